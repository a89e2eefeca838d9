"""Snapshots of lineages in the log, shared by all subscribers that follow the same lineage.

A table entry lists the snapshots of a lineage, each with its steps and number of deliveries; the states themselves are objects.
Older snapshots are thinned out: each is about twice as far back as the next newer one, so a subscriber that resumes from far
back reads at most about twice what it needs.

A writer saves them periodically, in the background: the state is dumped at once, between two feeds, and stored while the
subscriber continues. One of the equal subscribers of a client does it for all.

Takes: lineages whose derived blocks are stored up to their position. Gives: the newest snapshot at or before a number of
deliveries. Never: requires a snapshot: the log has all events; delays a subscriber, or fails: a snapshot only saves reading, so
subscribers continue without one if the log does not accept it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from operator import le

from fairlead.errors import LogError, StateError
from fairlead.runtime.live.core.lineage import Lineage
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup, origin_name
from fairlead.transport.log.protocol import Conflict, Log

TABLE, STORE = "FL_LINEAGES", "FL_STATES"
NEWEST = 3
"""Snapshots that are always kept, so that one that is being loaded is not removed."""
EVERY_SECONDS = 30.0
"""A state is saved this long after the last one, if there were events."""


class Snapshots:
    """The snapshots of one lineage: a group on its streams (`key`) from an origin."""

    def __init__(self, log: Log, group: StreamGroup, key: str, origin: Origin) -> None:
        self._log, self._group, self._origin = log, group, origin
        self.key = f"{key}-{origin_name(origin)}"

    async def begin(
        self, count_max: int | None, border: Sequence[int] | None, *, emits: bool, verdicts: bool = False
    ) -> Lineage:
        """The lineage at its newest snapshot with at most this many deliveries and not after the border in any part; or at its
        origin. `verdicts`: at one from which all verdicts after the last of these deliveries are found again."""
        listed, _ = await self._listed()
        for steps, count in reversed(listed):
            if (count_max is not None and count > count_max) or (border is not None and steps > sum(border)):
                continue
            dumped = await self._log.get_object(STORE, self._name(steps))
            if dumped is not None:
                try:
                    made = Lineage.load(self._group, self._origin, dumped, emits=emits)
                except StateError:
                    continue  # of another version: use an older one, or the origin
                if verdicts and made.verdicts and count == count_max:
                    continue  # some of them may be after that delivery
                if border is None or all(map(le, made.after, border)):
                    return made
        return Lineage(self._group, self._origin, emits=emits)

    async def keep(self, steps: int, count: int, state: bytes) -> None:
        """Save a snapshot: 1. the state, 2. the list that names it, 3. remove the states that the list no longer names."""
        listed, revision = await self._listed()
        if any(theirs >= steps for theirs, _ in listed):
            return  # another subscriber was faster
        await self._log.put_object(STORE, self._name(steps), state)  # 1
        kept = thinned([*listed, (steps, count)])
        try:
            await self._log.put(TABLE, self.key, json.dumps(kept).encode(), revision)  # 2
        except Conflict:
            listed, _ = await self._listed()
            if steps not in dict(listed):  # another subscriber was faster
                await self._log.remove_object(STORE, self._name(steps))
            return
        for theirs, _ in listed:
            if theirs not in dict(kept):
                await self._log.remove_object(STORE, self._name(theirs))  # 3

    async def _listed(self) -> tuple[list[tuple[int, int]], int]:
        entry = await self._log.get(TABLE, self.key)
        if entry is None:
            return [], 0
        return [(steps, count) for steps, count in json.loads(entry.value)], entry.revision

    def _name(self, steps: int) -> str:
        return f"{self.key}-{steps:016x}"


def thinned(listed: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The newest few, and of the others each twice as far back as the next newer one that is kept."""
    newest = listed[-1][0]
    kept = listed[-NEWEST:]
    for each in reversed(listed[:-NEWEST]):
        if newest - each[0] >= 2 * (newest - kept[0][0]):
            kept.insert(0, each)
    return kept


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
        self._key = snapshots.key
        events, at = self._newest.get(self._key, (0, asyncio.get_running_loop().time()))
        self._newest[self._key] = max(lineage.events, events), at
        self._storing: asyncio.Task[None] | None = None

    def save_if_due(self) -> None:
        """Call this when all derived blocks so far are stored."""
        now, (events, at) = asyncio.get_running_loop().time(), self._newest[self._key]
        fresh = self._lineage.events - events
        due = fresh >= self._every or (fresh > 0 and now - at > EVERY_SECONDS)
        if due and self._lineage.is_whole and (self._storing is None or self._storing.done()):
            self._begin(now)

    def _begin(self, now: float) -> None:
        lineage = self._lineage
        self._newest[self._key] = lineage.events, now
        self._storing = asyncio.create_task(self._store(lineage.steps, lineage.book.count, lineage.dump()))

    async def _store(self, steps: int, count: int, state: bytes) -> None:
        with suppress(LogError):
            await self._snapshots.keep(steps, count, state)

    async def end(self, settled: bool) -> None:
        """The subscriber leaves. `settled`: all derived blocks so far are stored."""
        if self._storing is not None:
            await self._storing
        if settled and self._lineage.is_whole and self._lineage.events > self._newest[self._key][0]:
            self._begin(asyncio.get_running_loop().time())
            assert self._storing is not None
            await self._storing
