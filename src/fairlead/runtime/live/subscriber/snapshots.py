"""Snapshots of lineages in the log, shared by all subscribers that follow the same lineage.

A table entry lists the snapshots of a lineage, each with its steps and number of deliveries; the states themselves are objects.
Older snapshots are thinned out: each is about twice as far back as the next newer one, so a subscriber that resumes from far
back reads at most about twice what it needs. Where the log is trimmed, it may need one of them, and not only to read less:
those are marked as held, and stay. Retention does that (resume_points.py), and subscribers that join a lineage of several
streams, of which one can be trimmed further than the others. Retention may not have seen such a subscriber yet: a mark that it
has no reason for stays until it runs again.

The state of a lineage whose derived events are not stored does not serve one that stores them: it does not know their numbers.
So those of viewers (`emit=False`) have a list of their own.

A writer saves them periodically, in the background: the state is dumped between two feeds, in a thread, so that the other tasks
of the process continue, and stored while the subscriber continues. One of the equal subscribers of a client does it for all.

Takes: lineages whose derived blocks are stored up to their position. Gives: the newest snapshot at or before a number of
deliveries. Never: requires a snapshot: the log has all events; delays a subscriber, or fails: a snapshot only saves reading, so
subscribers continue without one if the log does not accept it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import le

from fairlead.dataclass import dataclass
from fairlead.errors import LogError, StateError
from fairlead.runtime.live.core.lineage import Lineage
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup, origin_name
from fairlead.transport.log.entry_values import entry_value
from fairlead.transport.log.names import LINEAGES
from fairlead.transport.log.protocol import Conflict, Log
from fairlead.transport.log.signed_log import ignored
from fairlead.transport.log.trims import trim_record

TABLE, STORE = LINEAGES, "FL_STATES"
VIEWERS = "-v"
KEPT_US = 24 * 3600 * 1_000_000
"""Snapshots are kept for a day after the last one of their lineage, at least."""
NEWEST = 3
"""Snapshots that are always kept, so that one that is being loaded is not removed."""
HELD, AGED = 1, 2
"""Marks of snapshots that stay, and of those that stay until retention runs again."""
ATTEMPTS = 5
"""To add a state to the list, while others add to it, or a server answers from the past."""
LARGE = 100_000
"""Bytes of a state that takes longer to load than other tasks should wait: some ten milliseconds."""
EVERY_SECONDS = 30.0
"""A state is saved this long after the last one, if there were events."""


class Snapshots:
    """The snapshots of one lineage: a group on its streams (`key`) from an origin. `emits`: it stores derived events."""

    kept_us = KEPT_US

    def __init__(self, log: Log, group: StreamGroup, key: str, origin: Origin, *, emits: bool) -> None:
        self._log, self._group, self._origin = log, group, origin
        self._emits = emits
        self._lists = snapshot_lists(key, origin, whole=emits or not group.emits)
        self.key = self._lists[0]

    async def begin(
        self, count_max: int | None, border: Sequence[int] | None, *, verdicts: bool = False, joins: bool = False
    ) -> Lineage:
        """The lineage at its newest snapshot with at most this many deliveries and not after the border in any part; or at its
        origin. `verdicts`: at one from which all verdicts after the last of these deliveries are found again. `joins`: it is
        not recorded that the subscriber needs it, so its list is renewed."""
        every = [(steps, count, key) for key in self._lists for steps, count in (await self._listed(key)).snapshots]
        for steps, count, key in sorted(every, reverse=True):
            if (count_max is not None and count > count_max) or (border is not None and steps > sum(border)):
                continue
            dumped = await state_of(self._log, key, steps)
            if dumped is not None:
                try:
                    made = await self._loaded(dumped)
                except StateError:
                    continue  # of another version: use an older one, or the origin
                if verdicts and made.verdicts and count == count_max:
                    continue  # some of them may be after that delivery
                if (border is None or all(map(le, made.after, border))) and (not joins or await self._renewed(key, steps)):
                    return made
        return Lineage(self._group, self._origin, emits=self._emits)

    async def _renewed(self, key: str, steps: int) -> bool:
        """Store the list of the snapshot again if it is so old that it may be removed soon (abandoned_states.py), or if the
        snapshot has to be held; False if it was removed. Lists that somebody adds to are never that old."""
        try:
            while (told := await snapshot_list(self._log, key)).revision:
                wanted = told
                if len(self._origin) > 1 and steps not in told.held:
                    if steps not in dict(told.snapshots):
                        return False
                    wanted = told.holding({*told.held, steps}, told.aged)
                elif await self._log.now(TABLE) - told.time <= self.kept_us // 2:
                    return True
                try:
                    await self._log.put(TABLE, key, wanted.to_bytes(), told.revision)
                except Conflict:
                    continue  # somebody else has renewed it, has added to it, or has removed it
                return True
            return False
        except LogError as error:
            if error.code != "N003":
                raise
            return True  # it may not save states, and does without

    async def _loaded(self, dumped: bytes) -> Lineage:
        """A large state in a thread: a million waiting events take seconds, and the loop has others to serve."""
        load = partial(Lineage.load, self._group, self._origin, dumped, emits=self._emits)
        return load() if len(dumped) < LARGE else await asyncio.to_thread(load)

    async def keep(self, steps: int, count: int, state: bytes) -> None:
        """Save a snapshot: 1. the state, 2. the list that names it, 3. remove the states that the list no longer names. A list
        exists before its first state: a state without one was abandoned (abandoned_states.py)."""
        told = await self._listed(self.key)
        if any(theirs >= steps for theirs, _ in told.snapshots):
            return  # another subscriber was faster
        if not told.snapshots and not told.revision:
            try:
                told = SnapshotList(revision=await self._log.put(TABLE, self.key, b"[]", 0))
            except Conflict:
                return  # another subscriber is faster
        await self._log.put_object(STORE, state_name(self.key, steps), state)  # 1
        for _ in range(ATTEMPTS):
            kept = told.with_state(steps, count, await self._trimmed())
            try:
                await self._log.put(TABLE, self.key, kept.to_bytes(), told.revision)  # 2
            except Conflict:
                told = await self._listed(self.key)
                if steps in dict(told.snapshots) or not told.revision:
                    return  # another subscriber has saved the same state, or the lineage was abandoned
                if told.snapshots and told.snapshots[-1][0] > steps:  # nobody will name an older one any more
                    await self._log.remove_object(STORE, state_name(self.key, steps))
                    return
                continue  # another one may be about to name this state: add it here, but never remove it
            for theirs, _ in told.snapshots:
                if theirs not in dict(kept.snapshots):
                    await self._log.remove_object(STORE, state_name(self.key, theirs))  # 3
            return

    async def _trimmed(self) -> tuple[int, int]:
        """How many blocks of its streams are trimmed, and how many may be soon."""
        trimmed = planned = 0
        for topics in self._group.sources:
            stream = await self._log.open_topics(topics)
            record = await trim_record(self._log, stream.name)
            first = max((await self._log.state(stream)).first, record.first)
            trimmed, planned = trimmed + first - 1, planned + max(first, record.planned) - 1
        return trimmed, planned

    async def _listed(self, key: str) -> SnapshotList:
        try:
            return await snapshot_list(self._log, key)
        except LogError as error:
            if error.code != "N003":
                raise
            return SnapshotList()  # a subscriber that may not read states does without


@dataclass(frozen=True)
class SnapshotList:
    """`snapshots`: the steps and deliveries of each, in their order. `held`: the steps of those that stay, since durable
    subscribers may have to resume there; `aged`: of those that were held before. `revision`: of the entry; 0 if there is none.
    `time`: when it was stored."""

    snapshots: tuple[tuple[int, int], ...] = ()
    held: tuple[int, ...] = ()
    aged: tuple[int, ...] = ()
    revision: int = 0
    time: int = 0

    @staticmethod
    def of(told: Sequence[Sequence[int]], revision: int, time: int = 0) -> SnapshotList:
        """Pairs are snapshots. A mark has a third number; earlier releases leave those out."""
        pairs = sorted((each[0], each[1]) for each in told if len(each) == 2 and min(each) >= 0)
        held, aged = (tuple(sorted({each[0] for each in told if len(each) == 3 and each[2] == age})) for age in (HELD, AGED))
        return SnapshotList(tuple(pairs), held, aged, revision, time)

    def to_bytes(self) -> bytes:
        ages = dict.fromkeys(self.aged, AGED) | dict.fromkeys(self.held, HELD)
        marks = [(steps, count, ages[steps]) for steps, count in self.snapshots if steps in ages]
        return json.dumps([*self.snapshots, *marks]).encode()

    def holding(self, held: Iterable[int], aged: Iterable[int]) -> SnapshotList:
        return replace(self, held=tuple(sorted({*held})), aged=tuple(sorted({*aged} - {*held})))

    def with_state(self, steps: int, count: int, trimmed: Sequence[int]) -> SnapshotList:
        return replace(self, snapshots=tuple(thinned([*self.snapshots, (steps, count)], trimmed, (*self.held, *self.aged))))


async def snapshot_list(log: Log, key: str) -> SnapshotList:
    """A list that is not signed or not readable counts as empty: the log has all events."""
    try:
        entry = await log.get(TABLE, key)
        return (
            SnapshotList() if entry is None else SnapshotList.of(entry_value(entry.value, [[int]], TABLE, key), entry.revision)
        )
    except StateError as error:
        ignored(error)
        return SnapshotList(revision=await log.revision_of(TABLE, key))


async def state_of(log: Log, key: str, steps: int) -> bytes | None:
    """The state of a snapshot; None if there is none that is signed."""
    try:
        return await log.get_object(STORE, state_name(key, steps))
    except StateError as error:
        ignored(error)
        return None


def snapshot_lists(key: str, origin: Origin, *, whole: bool) -> list[str]:
    """The keys of the lists that a lineage may use; it adds to the first. `whole`: it stores what it derives."""
    name = f"{key}-{origin_name(origin)}"
    return [name] if whole else [f"{name}{VIEWERS}", name]


def state_name(key: str, steps: int) -> str:
    return f"{key}-{steps:016x}"


def thinned(listed: list[tuple[int, int]], trimmed: Sequence[int] = (0,), held: Sequence[int] = ()) -> list[tuple[int, int]]:
    """The newest few, and of the others each twice as far back as the next newer one that is kept; those that are held; and the
    oldest one from which the log still has all blocks, since a subscriber that has just joined may have to resume there.
    `trimmed`: how many blocks it may lack."""
    newest = listed[-1][0]
    kept = listed[-NEWEST:]
    for each in reversed(listed[:-NEWEST]):
        if newest - each[0] >= 2 * (newest - kept[0][0]):
            kept.insert(0, each)
    oldest = (next((each for each in listed if each[0] >= count), listed[-1]) for count in trimmed)
    return sorted({*oldest, *kept, *(each for each in listed if each[0] in held)})


class SnapshotTimes:
    """Of the subscribers of one client: `newest` is the last state saved of each lineage, in events since the origin, and when
    it was saved. `every_events`: a state is saved after so many events, however short the time."""

    every_events = 2_000_000

    def __init__(self) -> None:
        self.newest: dict[str, tuple[int, float]] = {}


class SnapshotWriter:
    """Saves the states of one lineage."""

    def __init__(self, lineage: Lineage, snapshots: Snapshots, times: SnapshotTimes) -> None:
        self._lineage, self._snapshots, self._newest, self._every = lineage, snapshots, times.newest, times.every_events
        self._key, self.resumed = snapshots.key, snapshots.begin
        events, at = self._newest.get(self._key, (0, asyncio.get_running_loop().time()))
        self._newest[self._key] = max(lineage.events, events), at
        self._storing: asyncio.Task[None] | None = None

    async def save_if_due(self) -> None:
        """Call this when all derived blocks so far are stored."""
        now, (events, at) = asyncio.get_running_loop().time(), self._newest[self._key]
        fresh = self._lineage.events - events
        due = fresh >= self._every or (fresh > 0 and now - at > EVERY_SECONDS)
        if due and (self._storing is None or self._storing.done()):
            await self._begin(now)

    async def _begin(self, now: float) -> None:
        lineage = self._lineage
        self._newest[self._key] = lineage.events, now
        dumping = asyncio.create_task(asyncio.to_thread(lineage.dump))
        try:
            state = await asyncio.shield(dumping)
        except asyncio.CancelledError:
            await asyncio.wait([dumping])  # whatever comes next may change the lineage
            raise
        self._storing = asyncio.create_task(self._store(lineage.steps, lineage.book.count, state))

    async def _store(self, steps: int, count: int, state: bytes) -> None:
        with suppress(LogError):
            await self._snapshots.keep(steps, count, state)

    async def end(self, settled: bool) -> None:
        """The subscriber leaves. `settled`: all derived blocks so far are stored."""
        if self._storing is not None:
            await self._storing
        if settled and self._lineage.events > self._newest[self._key][0]:
            await self._begin(asyncio.get_running_loop().time())
            assert self._storing is not None
            await self._storing
