"""Following a stream for one group: read, match, store what is derived, hand over, put states down.

The order of the steps is what makes all of it happen once:

    1. match: the relations and derived blocks are a function of the log
    2. store the derived blocks that the log does not have yet
    3. hand the relations over
    4. now and then, store the state: what it has passed is stored (2), so whoever begins with it need not store it again

Takes: a lineage and its stream. Gives: what is found, to whoever receives it. Never: goes faster than it is received.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from fairlead.errors import LogError
from fairlead.runtime.live.gathering import EVENTS_TOGETHER, portions
from fairlead.runtime.live.lineage import Found, Lineage
from fairlead.runtime.live.snapshots import Snapshots
from fairlead.transport.log.protocol import Log, Stream
from fairlead.transport.log.storing import Tails

Receive = Callable[[Found, bool], Awaitable[None]]
SNAPSHOT_EVENTS = 2_000_000
SNAPSHOT_SECONDS = 30.0
"""A state is put down after so many events, or so long after the last one, if there were any."""
PAUSES, PAUSE_SECONDS_MAX = 16, 0.02
"""An engine takes about as long for one event as for a thousand. Who is not behind leaves it alone for some times as long as it
took, so that the next events come together: a subscriber then takes about a seventeenth of a processor where events keep
coming, and gets them ten milliseconds later at most on average."""


class Following:
    """`silent_until`: what is found up to this sequence is from before the subscriber joined."""

    def __init__(self, log: Log, stream: Stream, lineage: Lineage, snapshots: Snapshots, patience: float) -> None:
        self._log, self._stream, self.lineage, self._snapshots = log, stream, lineage, snapshots
        self.silent_until = 0
        self._tails = Tails(log, patience, "forget the subscriber, and subscribe anew")
        self._kept, self._kept_at = lineage.events, 0.0
        self._settled = True

    async def run(self, receive: Receive) -> None:
        clock = asyncio.get_running_loop().time
        self._kept_at = clock()
        async for blocks in self._log.read(self._stream, self.lineage.after):
            begun, events = clock(), self.lineage.events
            for some in portions(blocks, self.silent_until):
                self._settled = False
                found = self.lineage.feed(some)  # 1
                for block in found.derived:
                    await self._tails.store(block)  # 2
                self._settled = True
                await receive(found, self.lineage.after <= self.silent_until)  # 3
                fresh = self.lineage.events - self._kept
                if fresh >= SNAPSHOT_EVENTS or (fresh and clock() - self._kept_at > SNAPSHOT_SECONDS):
                    await self.keep()  # 4
                    self._kept_at = clock()
            if self.lineage.events - events < EVENTS_TOGETHER:
                await asyncio.sleep(min(PAUSE_SECONDS_MAX, PAUSES * (clock() - begun)))

    def has_passed(self, sequence: int) -> bool:
        """Whether what was found up to there is stored and handed over."""
        return self._settled and self.lineage.after >= sequence

    async def keep(self) -> None:
        """Put the state down, unless it has passed something derived that is not stored. A state saves reading, and no more:
        where the log does not take it, the subscriber goes on without."""
        if self.lineage.events > self._kept and self.lineage.is_whole and self._settled:
            self._kept = self.lineage.events
            with suppress(LogError):
                await self._snapshots.keep(self.lineage)
