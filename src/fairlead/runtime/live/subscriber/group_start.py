"""Where each group of a subscriber begins: a new one by its `start`, a known one where its name left it.

    "new"        with events published from now on, in the existing lineage of the same subscription, if there is one
    "earliest"   with the beginning of the log, or what trimming has left of it
    "snapshot"   with the newest snapshot of other subscribers, or where they began; delivers from there on
    a position   with the event at that position, if one stream is read
    a datetime   with events stored in its stream at that time or later; a stream that was created later contains the earlier
                 events too

With "new" and "snapshot", subscribers join the leading lineage, which also stores derived events (leading_lineage.py).

Takes: groups, the `start` argument, and what is recorded under the name. Gives: opened groups, each at its place, and which of
them resumed. Never: reads a block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from threading import Lock
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import StateError, UsageError
from fairlead.matching.state.encoding import Change
from fairlead.runtime.live.core.block_columns import ColumnCache
from fairlead.runtime.live.core.early import SharedRuns, certain_at_once
from fairlead.runtime.live.core.follower import Follower
from fairlead.runtime.live.core.ledger import Ledger
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup, places_from_json
from fairlead.runtime.live.merged_streams import caught_up
from fairlead.runtime.live.subscriber.group_task import OpenedGroup, SilentLineage
from fairlead.runtime.live.subscriber.leading_lineage import EQUAL, LeadingLineage, base_key
from fairlead.runtime.live.subscriber.match_threads import MatchThreads
from fairlead.runtime.live.subscriber.record import SubscriberRecord
from fairlead.runtime.live.subscriber.request import Start, SubscriptionRequest
from fairlead.runtime.live.subscriber.snapshots import Snapshots, SnapshotTimes, SnapshotWriter
from fairlead.runtime.live.subscriber.stream_reader import report
from fairlead.runtime.live.subscriber.trim_check import begins, first_of, require_beginning
from fairlead.runtime.live.subscriber.wake_clock import WakeClock
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.protocol import Log, Stream
from fairlead.transport.threads.turns import Turns

BESIDE = "="
"""Follows the key of a group in that of the leading lineage, which is followed for what it derives."""


class SharedWork:
    """What the subscribers of one client share: the columns of blocks, who saved which snapshot last, and how many rejected
    blocks they have read, by code; when they wake, and the threads in which they match."""

    def __init__(self) -> None:
        self.rejected = Counter[str]()
        self.cache, self.times = ColumnCache(report, Lock(), SharedRuns(Turns)), SnapshotTimes()
        self.clock, self.threads = WakeClock(), MatchThreads()


@dataclass(frozen=True)
class Beginning:
    """`leading`: the origin of the lineage that stores derived events. `silent_until`: by part, the sequence up to which
    nothing is delivered, if any. `at_newest`: begin with the newest snapshot."""

    origin: Origin
    leading: Origin
    silent_until: tuple[int, ...] | None = None
    at_newest: bool = False


async def beginning_of(
    log: Log, group: StreamGroup, streams: Sequence[Stream], start: Start, leading: LeadingLineage
) -> Beginning:
    match start:
        case "new":
            last = [await caught_up(log, stream, topics) for stream, topics in zip(streams, group.sources, strict=True)]
            origin = await leading.joined(tuple((each + 1) << INDEX_BITS for each in last))
            return Beginning(origin, origin, silent_until=tuple(last), at_newest=True)
        case "snapshot":
            origin = await leading.joined(await _earliest(log, streams))
            return Beginning(origin, origin, at_newest=True)
        case "earliest":
            origin = await _earliest(log, streams)
        case datetime():
            moment = start if start.tzinfo is not None else start.replace(tzinfo=UTC)
            before = [await log.before(stream, int(moment.timestamp() * 1_000_000)) for stream in streams]
            origin = tuple((each + 1) << INDEX_BITS if each else 0 for each in before)
        case _:
            if len(streams) > 1:
                problem = f"{group.names[0]} reads {len(streams)} streams, each with its own positions"
                raise UsageError("A264", problem, "start at a datetime, or with 'earliest', 'snapshot' or 'new'")
            origin = (int(start),)
    return Beginning(origin, await leading.beside(origin))


async def _earliest(log: Log, streams: Sequence[Stream]) -> Origin:
    return tuple([await first_of(log, each) for each in streams])


def group_keys(groups: Sequence[tuple[StreamGroup, Sequence[Stream]]], saved: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The keys of the records and states of each group. Each of several equal subscriptions has its own: the one it had under
    its name, else one that no name claims any more, else a new one. `saved`: by key, what is recorded under the name."""
    found: dict[int, str] = {}
    for by_name in (True, False):
        for number, (group, streams) in enumerate(groups):
            mine = (key for key, told in saved.items() if not by_name or told["names"] == [*group.names])
            free = [key for key in mine if base_key(key) == group.key(streams) and key not in found.values()]
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
    """Opens the groups of one subscriber. `known`: its name is recorded."""

    def __init__(
        self, log: Log, shared: SharedWork, record: SubscriberRecord | None, request: SubscriptionRequest, *, known: bool
    ) -> None:
        self._log, self._shared, self._record, self._request, self._known = log, shared, record, request, known

    def keyed(
        self, groups: Sequence[tuple[StreamGroup, Sequence[Stream]]], saved: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, tuple[StreamGroup, Sequence[Stream]]]:
        """The groups by their keys. Raises UsageError if they are too many for one record."""
        found = dict(zip(group_keys(groups, saved), groups, strict=True))
        if self._record is not None:
            self._record.require_room(found)
        return found

    async def open(self, group: StreamGroup, streams: Sequence[Stream], key: str) -> OpenedGroup:
        saved = self._saved(group, streams, key)
        stores = self._request.emit and bool(group.emits)
        leading = LeadingLineage(self._log, group, streams, key, emits=stores)
        begun, delivered = await self._beginning(group, streams, saved, leading)
        emits, border = stores and begun.leading == begun.origin, begun.silent_until
        snapshots = Snapshots(self._log, group, key, begun.origin, emits=emits)
        silent = border if delivered is None else None
        lineage = await snapshots.begin(delivered, silent, verdicts=self._request.verdicts, joins=saved is None)
        for stream, topics, place in zip(streams, group.sources, lineage.places, strict=True):
            if place.reached.time is not None:  # a state is of no use in a stream that has lost what it was made of
                await self._log.check(stream, place.reached.sequence, place.reached.time)
            elif begins(place):
                await require_beginning(self._log, stream, topics)
        asked = self._request.early
        wants_early = asked is True or (asked == "final" and _is_certain(group))
        early = (saved["count"] or 0 if saved else 0) if wants_early else None
        follower = Follower(key, streams, lineage, border, self._shared.cache, early)
        ledger = Ledger(lineage.book.copy(), saved)
        if self._record is not None:
            if saved is None:
                acknowledged = {"count": None, "digest": None} if border is not None else ledger.acknowledged()
                self._record.begin_group(key, group, streams, begun.origin, border, acknowledged)
            self._record.groups[key] |= {"names": [*group.names], "emits": [*group.emits] if stores else []}
            self._record.groups[key]["reports"] = self._request.verdicts
        beside = await self._beside(group, streams, key, begun.leading) if stores and not emits else None
        writer = SnapshotWriter(lineage, snapshots, self._shared.times)
        return OpenedGroup(group, streams, key, follower, ledger, writer, beside)

    async def _beside(self, group: StreamGroup, streams: Sequence[Stream], key: str, origin: Origin) -> SilentLineage:
        """The leading lineage, for what it derives."""
        snapshots = Snapshots(self._log, group, base_key(key), origin, emits=True)
        lineage = await snapshots.begin(None, None, joins=True)
        follower = Follower(f"{key}{BESIDE}", streams, lineage, None, self._shared.cache)
        return SilentLineage(follower, SnapshotWriter(lineage, snapshots, self._shared.times))

    def _saved(self, group: StreamGroup, streams: Sequence[Stream], key: str) -> Mapping[str, Any] | None:
        """What is recorded of the group; None if it is new. Raises StateError if its stream is not the one that it read."""
        if self._record is None or not self._known:
            return None
        saved = self._record.groups.get(key)
        another_of_equals = any(base_key(each) == group.key(streams) for each in self._record.groups)
        if saved is None and not another_of_equals and self._record.has_read(group.digest):
            problem = f"the stream that '{self._record.name}' read has been removed"
            raise StateError("S136", problem, "forget the subscriber, and subscribe again")
        return saved

    async def _beginning(
        self, group: StreamGroup, streams: Sequence[Stream], saved: Mapping[str, Any] | None, leading: LeadingLineage
    ) -> tuple[Beginning, int | None]:
        """Where it begins, and how many deliveries a snapshot may have; None: any number."""
        if saved is None:
            begun = await beginning_of(self._log, group, streams, self._request.start, leading)
            return begun, None if begun.at_newest else 0
        origin, silent = places_from_json(saved["origin"]), saved["silent_until"]
        border = None if silent is None else places_from_json(silent)
        return Beginning(origin, await leading.beside(origin), border), saved["count"]


def _is_certain(group: StreamGroup) -> bool:
    return all(certain_at_once(group.plan, group.plan[name]) for name in group.names)
