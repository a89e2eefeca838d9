"""A merged stream is compared with its topics: what it lacks or has twice is said, and a message with an id may be missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from fairlead.errors import LogError
from fairlead.transport.log.blocks.block import rejected_block
from fairlead.transport.log.jetstream.merged_reader import CopiedMessage, Original, Originals
from fairlead.transport.log.protocol import Stored
from tests.transport.log.logs import run

SUBJECT = "fl.e.a.A.s.u.u.u.u"


def copied(number: int) -> CopiedMessage:
    return CopiedMessage(Stored(number, 0, rejected_block("", SUBJECT)), SUBJECT, (str(number),), ("FL_TOPIC_a", number))


async def topic(numbers: Sequence[int], with_id: int) -> AsyncGenerator[Sequence[Original], None]:
    yield [Original(SUBJECT, (str(number),), "", number == with_id) for number in numbers]
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("merged", "said"),
    [([1, 2, 3], False), ([1, 3], False), ([2], True), ([1, 2, 2], True), ([1, 1], True), ([1, 2, 4], True), ([5], True)],
)
def test_copies_are_compared_with_the_messages_of_their_topic(merged: list[int], said: bool) -> None:
    """The second message of the topic has an id."""

    async def work() -> None:
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        originals = Originals(topic([1, 2, 3, 4], with_id=2), failed)
        *before, last = merged
        for number in before if said else merged:
            await originals.next_of(copied(number))
        if said:
            with pytest.raises(LogError, match="N023"):
                await originals.next_of(copied(last))
        await originals.close()

    run(work)
