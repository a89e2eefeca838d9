"""Where each group of a subscriber begins: a new one by its `start`, a known one where its name left it.

    "new"        with events published from now on, in the existing lineage of the same subscription, if there is one
    "earliest"   with the beginning of the log
    "snapshot"   with the newest snapshot of other subscribers, or where they began; delivers from there on
    a position   with the event at that position, if one stream is read
    a datetime   with events stored in its stream at that time or later; a stream that was created later contains the earlier
                 events too

The first subscriber of a group decides where its lineage begins, for "new" and "snapshot", and which lineage stores derived
events.

Takes: groups, the `start` argument, and what is recorded under the name. Gives: opened groups, each at its place, and which of
them resumed. Never: reads a block.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from threading import Lock
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import StateError, UsageError
from fairlead.matching.state.encoding import Change
from fairlead.model.relations.identity import POSITIONS_MAX
from fairlead.runtime.live.core.block_columns import ColumnCache
from fairlead.runtime.live.core.early import certain_at_once
from fairlead.runtime.live.core.follower import Follower
from fairlead.runtime.live.core.ledger import Ledger
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup, places_from_json, places_to_json
from fairlead.runtime.live.merged_streams import caught_up
from fairlead.runtime.live.subscriber.group_task import OpenedGroup
from fairlead.runtime.live.subscriber.record import SubscriberRecord
from fairlead.runtime.live.subscriber.snapshots import Snapshots, SnapshotTimes, SnapshotWriter
from fairlead.runtime.live.subscriber.stream_reader import report
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.protocol import Conflict, Log, Stream

TABLE = "FL_ORIGINS"
Start = str | int | datetime
Early = bool | str
"""Whether relations are delivered early, too; "final": those that no other event can change."""
EQUAL = "-"
"""Precedes the number in the keys of equal subscriptions, except the first."""
FIRST_YEAR, LAST_YEAR = 1678, 2261
"""Years for which a server can count nanoseconds."""


class SharedWork:
    """What the subscribers of one client share: the columns of blocks, and who saved which snapshot last."""

    def __init__(self) -> None:
        self.cache, self.times = ColumnCache(report, Lock()), SnapshotTimes()


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


def check_early(early: Early) -> None:
    if early is not True and early is not False and early != "final":
        raise UsageError("A265", f"early is {early!r}", "use True, False or 'final'")


async def beginning_of(log: Log, group: StreamGroup, streams: Sequence[Stream], key: str, start: Start) -> Beginning:
    earliest = (0,) * len(streams)
    match start:
        case "new":
            last = [await caught_up(log, stream, topics) for stream, topics in zip(streams, group.sources, strict=True)]
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
            await log.put(TABLE, key, json.dumps({"origin": places_to_json(origin)}).encode(), 0)
            return origin
        except Conflict:
            entry = await log.get(TABLE, key)
    return origin if entry is None else places_from_json(json.loads(entry.value)["origin"])


def group_keys(groups: Sequence[tuple[StreamGroup, Sequence[Stream]]], saved: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The keys of the records and states of each group. Each of several equal subscriptions has its own: the one it had under
    its name, else one that no name claims any more, else a new one. `saved`: by key, what is recorded under the name."""
    found: dict[int, str] = {}
    for by_name in (True, False):
        for number, (group, streams) in enumerate(groups):
            mine = (key for key, told in saved.items() if not by_name or told["names"] == [*group.names])
            free = [key for key in mine if _base(key) == group.key(streams) and key not in found.values()]
            if number not in found and free:
                found[number] = free[0]
    for number, (group, streams) in enumerate(groups):
        if number not in found:
            numbered = (f"{group.key(streams)}{EQUAL}{at}" if at else group.key(streams) for at in count())
            found[number] = next(key for key in numbered if key not in saved and key not in found.values())
    return [found[number] for number in range(len(groups))]


def changed(now: Mapping[str, StreamGroup], saved: Mapping[str, Mapping[str, Any]]) -> Change:
    """The changes to the subscriptions of a name, whatever they are called now."""
    resumed, started = (
        [n for key, group in now.items() if (key in saved) is kept for n in group.names] for kept in (True, False)
    )
    dropped = [name for key, told in saved.items() if key not in now for name in told["names"]]
    return Change(tuple(resumed), tuple(started), tuple(dropped))


class GroupOpening:
    """Opens the groups of one subscriber. `known`: its name is recorded. `emit`: store what its rules EMIT. `verdicts`: it gets
    reports on events. `early`: and early deliveries."""

    def __init__(
        self,
        log: Log,
        shared: SharedWork,
        record: SubscriberRecord | None,
        *,
        known: bool,
        start: Start,
        emit: bool,
        verdicts: bool,
        early: Early,
    ) -> None:
        self._log, self._shared, self._record, self._known = log, shared, record, known
        self._start, self._emit, self._verdicts = start, emit, verdicts
        self._early = early

    async def open(self, group: StreamGroup, streams: Sequence[Stream], key: str) -> OpenedGroup:
        saved = self._saved(group, streams, key)
        begun, delivered = await self._beginning(group, streams, key, saved)
        snapshots, border = Snapshots(self._log, group, key, begun.origin), begun.silent_until
        emits = self._emit and begun.leading
        silent = border if delivered is None else None
        lineage = await snapshots.begin(delivered, silent, emits=emits, verdicts=self._verdicts)
        wants_early = self._early is True or (self._early == "final" and _is_certain(group))
        early = (saved["count"] or 0 if saved else 0) if wants_early else None
        follower = Follower(key, streams, lineage, border, self._shared.cache, early)
        ledger = Ledger(lineage.book.copy(), saved)
        if self._record is not None:
            if saved is None:
                acknowledged = {"count": None, "digest": None} if border is not None else ledger.acknowledged()
                self._record.begin_group(key, group, streams, begun.origin, border, acknowledged)
            self._record.groups[key]["names"] = [*group.names]
        return OpenedGroup(group, streams, key, follower, ledger, SnapshotWriter(lineage, snapshots, self._shared.times))

    def _saved(self, group: StreamGroup, streams: Sequence[Stream], key: str) -> Mapping[str, Any] | None:
        """What is recorded of the group; None if it is new. Raises StateError if its stream is not the one that it read."""
        if self._record is None or not self._known:
            return None
        saved = self._record.groups.get(key)
        another_of_equals = any(_base(each) == group.key(streams) for each in self._record.groups)
        if saved is None and not another_of_equals and self._record.has_read(group.digest):
            problem = f"the stream that '{self._record.name}' read has been removed"
            raise StateError("S136", problem, "forget the subscriber, and subscribe again")
        return saved

    async def _beginning(
        self, group: StreamGroup, streams: Sequence[Stream], key: str, saved: Mapping[str, Any] | None
    ) -> tuple[Beginning, int | None]:
        """Where it begins, and how many deliveries a snapshot may have; None: any number."""
        if saved is None:
            begun = await beginning_of(self._log, group, streams, key, self._start)
            return begun, None if begun.at_newest else 0
        origin, silent = places_from_json(saved["origin"]), saved["silent_until"]
        leading = await is_leading(self._log, key, origin)
        return Beginning(origin, None if silent is None else places_from_json(silent), leading=leading), saved["count"]


def _is_certain(group: StreamGroup) -> bool:
    return all(certain_at_once(group.plan, group.plan[name]) for name in group.names)


def _base(key: str) -> str:
    """The common prefix of the keys of equal subscriptions."""
    return key.partition(EQUAL)[0]
