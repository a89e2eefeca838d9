"""Where a new subscriber begins.

    "new"        with events published from now on, in the existing lineage of the same subscription, if there is one
    "earliest"   with the beginning of the log
    "snapshot"   with the newest snapshot of other subscribers, or where they began; delivers from there on
    a position   with the event at that position, if one stream is read
    a datetime   with events stored in its stream at that time or later; a stream that was created later contains the earlier
                 events too

The first subscriber of a group decides where its lineage begins, for "new" and "snapshot", and which lineage stores derived
events.

Takes: the `start` argument. Gives: the origin of the lineage, and the first event to deliver. Never: reads a block.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.model.identity import POSITIONS_MAX
from fairlead.runtime.live.ending import caught_up
from fairlead.runtime.live.grouping import StreamGroup
from fairlead.runtime.live.origin import Origin, from_json, to_json
from fairlead.transport.log.block import INDEX_BITS
from fairlead.transport.log.protocol import Conflict, Log, Stream

TABLE = "FL_ORIGINS"
Start = str | int | datetime
FIRST_YEAR, LAST_YEAR = 1678, 2261
"""Years for which a server can count nanoseconds."""


@dataclass(frozen=True)
class Beginning:
    """`silent_until`: by part, the sequence up to which nothing is delivered, if any. `at_newest`: begin with the newest
    snapshot. `leading`: this lineage stores derived events."""

    origin: Origin
    silent_until: tuple[int, ...] | None = None
    at_newest: bool = False
    leading: bool = True


def check_start(start: Start) -> None:
    match start:
        case bool():
            fine = False
        case int():
            fine = 0 <= start < POSITIONS_MAX
        case datetime():
            fine = FIRST_YEAR <= start.year <= LAST_YEAR
        case _:
            fine = start in ("new", "earliest", "snapshot")
    if not fine:
        fix = f"use 'new', 'earliest', 'snapshot', a position or a datetime of the years {FIRST_YEAR} to {LAST_YEAR}"
        raise UsageError("A251", f"start is {start!r}", fix)


async def beginning_of(log: Log, group: StreamGroup, streams: Sequence[Stream], key: str, start: Start) -> Beginning:
    earliest = (0,) * len(streams)
    match start:
        case "new":
            last = [await caught_up(log, stream, part.topics) for stream, part in zip(streams, group.parts, strict=True)]
            origin = await _leading(log, key, tuple((each + 1) << INDEX_BITS for each in last))
            return Beginning(origin, silent_until=tuple(last), at_newest=True)
        case "snapshot":
            return Beginning(await _leading(log, key, earliest), at_newest=True)
        case "earliest":
            origin = earliest
        case datetime():
            moment = start if start.tzinfo is not None else start.replace(tzinfo=UTC)
            before = [await log.before(stream, int(moment.timestamp() * 1_000_000)) for stream in streams]
            origin = tuple((each + 1) << INDEX_BITS if each else 0 for each in before)
        case _:
            if len(streams) > 1:
                problem = f"{group.names[0]} reads {len(streams)} streams, each with its own positions"
                raise UsageError("A264", problem, "start at a datetime, or with 'earliest', 'snapshot' or 'new'")
            origin = (int(start),)
    return Beginning(origin, leading=await is_leading(log, key, origin))


async def is_leading(log: Log, key: str, origin: Origin) -> bool:
    return await _leading(log, key, origin) == origin


async def _leading(log: Log, key: str, origin: Origin) -> Origin:
    """The origin of the first subscriber's lineage; `origin` if this subscriber is the first."""
    entry = await log.get(TABLE, key)
    if entry is None:
        try:
            await log.put(TABLE, key, json.dumps({"origin": to_json(origin)}).encode(), 0)
            return origin
        except Conflict:
            entry = await log.get(TABLE, key)
    return origin if entry is None else from_json(json.loads(entry.value)["origin"])
