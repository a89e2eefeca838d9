"""Where a subscriber that is new begins.

    "new"        with what comes from now on, in the lineage that others with the same subscription follow, if there is one
    "earliest"   with the beginning of the log
    "snapshot"   with the newest state that others have put down, or where they began: what they deliver from there on
    a position   with the event at that position
    a datetime   with what was stored in the stream that it reads at that time or later; a stream that was made later has
                 taken up what was there before it

The first who follows a group decides where its lineage begins, for "new" and "snapshot", and which lineage stores derived
events.

Takes: `start` as it was given. Gives: the origin of the lineage and from where on to deliver. Never: reads a block.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.runtime.live.grouping import Group
from fairlead.transport.log.block import INDEX_BITS
from fairlead.transport.log.protocol import Conflict, Log, Stream

TABLE = "FL_ORIGINS"
Start = str | int | datetime


@dataclass(frozen=True)
class Beginning:
    """`silent_until`: the sequence up to which nothing is delivered; `at_newest`: begin with the newest state. `leading`: this
    lineage stores what is derived."""

    origin: int
    silent_until: int = 0
    at_newest: bool = False
    leading: bool = True


def check_start(start: Start) -> None:
    fine = start in ("new", "earliest", "snapshot") if isinstance(start, str) else isinstance(start, (int, datetime))
    if not fine or isinstance(start, bool) or (isinstance(start, int) and start < 0):
        fix = "use 'new', 'earliest', 'snapshot', a position or a datetime"
        raise UsageError("A251", f"start is {start!r}", fix)


async def beginning_of(log: Log, group: Group, stream: Stream, key: str, start: Start) -> Beginning:
    match start:
        case "new":
            last = await group.end(log, stream)
            origin = await _leading(log, key, (last + 1) << INDEX_BITS)
            return Beginning(origin, silent_until=last, at_newest=True)
        case "snapshot":
            return Beginning(await _leading(log, key, 0), at_newest=True)
        case "earliest":
            origin = 0
        case datetime():
            moment = start if start.tzinfo is not None else start.replace(tzinfo=UTC)
            before = await log.before(stream, int(moment.timestamp() * 1_000_000))
            origin = (before + 1) << INDEX_BITS if before else 0
        case _:
            origin = int(start)
    return Beginning(origin, leading=await _leading(log, key, origin) == origin)


async def is_leading(log: Log, key: str, origin: int) -> bool:
    return await _leading(log, key, origin) == origin


async def _leading(log: Log, key: str, origin: int) -> int:
    """The origin of the lineage of those who came first; ours if we do."""
    entry = await log.get(TABLE, key)
    if entry is None:
        try:
            await log.put(TABLE, key, json.dumps({"origin": origin}).encode(), 0)
            return origin
        except Conflict:
            entry = await log.get(TABLE, key)
    return origin if entry is None else int(json.loads(entry.value)["origin"])
