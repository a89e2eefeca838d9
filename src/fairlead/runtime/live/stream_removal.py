"""The removal of merged streams beside clients that begin to use them: one of the two always learns of the other.

    who removes                                     who begins to use one (merged_streams.Lease)
    1. looks for streams that are not in use        a. takes a lease
    2. plans to remove them                         b. withdraws the plan, if it may; waits for the end of a removal
    3. looks again, and withdraws the plan          c. opens the stream, and creates it if it is not there
    4. begins the removal, if it is still planned
    5. removes the streams, and ends the removal

If (a) comes before (3), the lease is seen. Otherwise the plan was there before (b): it is withdrawn, so that (4) is refused, or
the removal has begun, and (c) comes after its end. There is one entry for all streams, in the table of leases, and it is
changed by comparison only: a stream and the ones that it copies are removed together or not at all. What a leader that is cut
off says in (1) does no harm: it cannot confirm (2). What it says in (3) is not believed if it does not know the plan.

Users may write their own leases, and not this entry (runtime/rights/subjects.py): what it says is removed. Those that may not
withdraw a plan wait for its end, too: the sweep sees their lease in (3).

A client that is gone leaves a plan, which anybody with the right withdraws, or a removal, which the next sweep completes. A
lease that was taken before the plan shows that this sweep did not look: such streams stay, whatever the plan says. Servers
remove a stream by its name; so before each, the client looks whether the removal is still its own.

Takes: a log, names of merged streams. Gives: plans, begun removals, and a return when streams can be opened. Never: removes a
stream.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.errors import LogError, StateError
from fairlead.transport.log.entry_values import entry_value
from fairlead.transport.log.names import LEASES
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Conflict, Log
from fairlead.transport.log.signed_log import ignored

TABLE = LEASES
KEY = "sweep.plan"
"""Leases have keys of one word, or begin with another (names.lease_key)."""
ATTEMPTS = 5


@dataclass(frozen=True)
class StreamRemoval:
    """Of the merged streams with these names: planned, or begun. `planned`: the revision of the plan; leases are entries of the
    same table, so those of a smaller revision were taken before."""

    streams: tuple[str, ...]
    begun: bool
    revision: int
    planned: int = 0


async def plan_removal(log: Log, streams: Iterable[str]) -> StreamRemoval | None:
    """Replaces the plan of another client. None if one has begun a removal, or all plan at once."""
    for _ in range(ATTEMPTS):
        known = await current_removal(log)
        if known is not None and known.begun:
            return None
        planned = StreamRemoval(tuple(streams), begun=False, revision=await log.revision_of(TABLE, KEY))
        if (stored := await _stored(log, planned)) is not None:
            return stored
    return None


async def begin_removal(log: Log, removal: StreamRemoval) -> StreamRemoval | None:
    """Of a plan, or once more of a removal that another client has begun. None if it has changed."""
    return await _stored(log, replace(removal, begun=True))


async def _stored(log: Log, wanted: StreamRemoval) -> StreamRemoval | None:
    told = {"streams": wanted.streams, "begun": wanted.begun, "planned": wanted.planned, "by": uuid.uuid4().hex}
    try:
        stored = await log.put(TABLE, KEY, json.dumps(told).encode(), wanted.revision)
    except Conflict:
        return None
    return replace(wanted, revision=stored, planned=wanted.planned or stored)


async def current_removal(log: Log) -> StreamRemoval | None:
    try:
        entry = await log.get(TABLE, KEY)
        if entry is None:
            return None
        told = entry_value(entry.value, {"streams": [str], "begun": bool, "planned?": int}, TABLE, KEY)
    except StateError as error:
        ignored(error)
        return None
    return StreamRemoval(tuple(told["streams"]), told["begun"], entry.revision, told.get("planned") or entry.revision)


async def end_removal(log: Log, removal: StreamRemoval) -> None:
    """Withdraws a plan, or ends a removal, unless another client has replaced it."""
    with suppress(Conflict):
        await log.remove(TABLE, KEY, removal.revision)


async def require_no_removal(log: Log, streams: Collection[str], patience: float) -> None:
    """Returns when these streams can be opened: to be called by the holder of a lease on them. Raises LogError after so many
    seconds."""
    trying, withdraws = Patience(patience), True
    while streams and (removal := await current_removal(log)) is not None:
        names = sorted({*removal.streams} & {*streams})
        if not names:
            return
        if not removal.begun and withdraws:
            withdraws = await _withdrawn(log, removal)
        elif trying.is_over:
            problem = f"a sweep has begun to remove the merged stream {names[0]}, and does not end"
            raise LogError("N027", problem, "run `fairlead streams --sweep`, then subscribe again")
        else:
            await trying.pause()


async def _withdrawn(log: Log, removal: StreamRemoval) -> bool:
    """Whether this client may withdraw a plan."""
    try:
        await end_removal(log, removal)
    except LogError as error:
        if error.code != "N003":
            raise
        return False
    return True
