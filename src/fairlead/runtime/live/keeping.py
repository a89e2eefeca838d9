"""States of a lineage are put down now and then, beside following.

A state is taken between two feeds, at once, and stored while the subscriber goes on. Of the equal subscribers of one client one
does it for all.

Takes: a lineage whose derived blocks are stored as far as it is. Gives: its state in the log. Never: holds the subscriber up;
fails: a state saves reading, and no more, and where the log does not take it everybody goes on without.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fairlead.errors import LogError
from fairlead.runtime.live.lineage import Lineage
from fairlead.runtime.live.snapshots import Snapshots

EVERY_SECONDS = 30.0
"""A state is put down so long after the last one, if there were events."""


class Keeping:
    """`kept`: by lineage, how far the newest state is that somebody of this client has put down, in events from the origin on,
    and when that was. `every`: a state is put down after so many events, however short the time."""

    def __init__(self, lineage: Lineage, snapshots: Snapshots, kept: dict[str, tuple[int, float]], every: int) -> None:
        self._lineage, self._snapshots, self._kept, self._every = lineage, snapshots, kept, every
        self._key = snapshots.key
        events, at = kept.get(self._key, (0, asyncio.get_running_loop().time()))
        kept[self._key] = max(lineage.events, events), at
        self._storing: asyncio.Task[None] | None = None

    def now_and_then(self) -> None:
        """To be called when everything derived so far is stored."""
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
        """The subscriber leaves. `settled`: everything derived so far is stored."""
        if self._storing is not None:
            await self._storing
        if settled and self._lineage.is_whole and self._lineage.events > self._kept[self._key][0]:
            self._begin(asyncio.get_running_loop().time())
            assert self._storing is not None
            await self._storing
