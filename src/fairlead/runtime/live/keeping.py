"""Saves snapshots of a lineage periodically, in the background.

The state is dumped at once, between two feeds, and stored while the subscriber continues. One of the equal subscribers of a
client does it for all.

Takes: a lineage whose derived blocks are stored up to its position. Gives: its state in the log. Never: delays the subscriber;
fails: a snapshot only saves reading, so subscribers continue without one if the log does not accept it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fairlead.errors import LogError
from fairlead.runtime.live.lineage import Lineage
from fairlead.runtime.live.snapshots import Snapshots

EVERY_SECONDS = 30.0
"""A state is saved this long after the last one, if there were events."""


class Keeping:
    """`kept`: by lineage, the newest state that this client has saved, in events since the origin, and when it was saved.
    `every`: a state is saved after so many events, however short the time."""

    def __init__(self, lineage: Lineage, snapshots: Snapshots, kept: dict[str, tuple[int, float]], every: int) -> None:
        self._lineage, self._snapshots, self._kept, self._every = lineage, snapshots, kept, every
        self._key = snapshots.key
        events, at = kept.get(self._key, (0, asyncio.get_running_loop().time()))
        kept[self._key] = max(lineage.events, events), at
        self._storing: asyncio.Task[None] | None = None

    def now_and_then(self) -> None:
        """Call this when all derived blocks so far are stored."""
        now, (events, at) = asyncio.get_running_loop().time(), self._kept[self._key]
        fresh = self._lineage.events - events
        due = fresh >= self._every or (fresh > 0 and now - at > EVERY_SECONDS)
        if due and self._lineage.is_whole and (self._storing is None or self._storing.done()):
            self._begin(now)

    def _begin(self, now: float) -> None:
        lineage = self._lineage
        self._kept[self._key] = lineage.events, now
        self._storing = asyncio.create_task(self._store(lineage.steps, lineage.book.count, lineage.dump()))

    async def _store(self, steps: int, count: int, state: bytes) -> None:
        with suppress(LogError):
            await self._snapshots.keep(steps, count, state)

    async def end(self, settled: bool) -> None:
        """The subscriber leaves. `settled`: all derived blocks so far are stored."""
        if self._storing is not None:
            await self._storing
        if settled and self._lineage.is_whole and self._lineage.events > self._kept[self._key][0]:
            self._begin(asyncio.get_running_loop().time())
            assert self._storing is not None
            await self._storing
