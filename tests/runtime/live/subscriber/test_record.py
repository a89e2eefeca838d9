"""The record of a durable subscriber belongs to one process, also where a write had no answer."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.errors import StateError
from fairlead.runtime.live.subscriber.record import SubscriberRecord
from fairlead.transport.log.memory_log import MemoryLog


def test_a_write_of_its_own_that_was_stored_without_an_answer_is_no_conflict() -> None:
    async def written() -> None:
        log = MemoryLog()
        one, other = SubscriberRecord(log, "desk"), SubscriberRecord(log, "desk")
        await one.write()
        before = one._revision
        await one.write()
        one._revision = before  # the answer to the second write was lost
        await one.write()
        assert await other.read()
        await other.write()
        for _ in range(2):
            with pytest.raises(StateError, match="S134"):
                await one.write()
        await other.write()

    asyncio.run(written())
