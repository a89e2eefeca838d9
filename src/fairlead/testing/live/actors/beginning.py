"""Where a subscriber begins that starts in the middle of the log: chosen by its first process, and in its record.

A position is that of the second event of the last block that the subscriber may read, or the place after the block if it has
one event. A time is that at which the last block was stored.

Takes: a client, the record. Gives: the `start` of all processes of the subscriber. Never: chooses again after a restart.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from fairlead.runtime.live.client import Client
from fairlead.testing.live.actors.records import Line, Writer
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.blocks.block_filter import Only

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Start = int | datetime | Literal["new", "earliest", "snapshot"]


async def chosen_start(fl: Client, how: str, topic: str, before: list[Line], record: Writer) -> Start:
    """`how`: position, time, or a start that needs no choice."""
    if how not in ("position", "time"):
        return how  # type: ignore[return-value]
    told = next((line["start"] for line in before if "start" in line), None)
    if told is None:
        stream = await fl.log.open_topics([topic])
        last = await fl.log.last(stream, Only(tuple(each.name for each in await fl.types() if each.topic == topic)))
        stored = [each async for some in fl.log.heads(stream, last - 1, last) for each in some]
        told = (last << INDEX_BITS) + 1 if how == "position" else stored[-1].time
        record.note(start=told)
        before.append({"start": told})
    return told if how == "position" else time_of_log(told)


def time_of_log(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)
