"""Following the streams of one group: read, match, store what is derived, hand over, put states down.

The order of the steps is what makes all of it happen once:

    1. match: the relations and derived blocks are a function of the log
    2. store the derived blocks that the log does not have yet
    3. hand the relations over
    4. now and then, store the state: what it has passed is stored (2), so whoever begins with it need not store it again

Takes: a lineage and its streams. Gives: what is found, to whoever receives it. Never: goes faster than it is received.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress

from fairlead.runtime.live.gathering import EVENTS_TOGETHER, Gathering, portions
from fairlead.runtime.live.interleaving import Interleaving, Stretch
from fairlead.runtime.live.keeping import Keeping
from fairlead.runtime.live.lineage import Found, Lineage
from fairlead.runtime.live.rounds import pause
from fairlead.runtime.live.snapshots import Snapshots
from fairlead.transport.log.only import Only
from fairlead.transport.log.protocol import Log, Stream
from fairlead.transport.log.storing import Tails

Receive = Callable[[Found, bool], Awaitable[None]]


class Following:
    """`border`: by part, the last block from before the subscriber joined. What is found up to there is silent: as long as no
    block behind it has come, in any part. `only`: what it reads of its stream, where it has one."""

    def __init__(
        self,
        log: Log,
        streams: Sequence[Stream],
        lineage: Lineage,
        snapshots: Snapshots,
        patience: float,
        border: Sequence[int] | None,
        only: Only | None,
        gathering: Gathering,
    ) -> None:
        self._log, self._streams, self.only, self._gathering = log, streams, only, gathering
        self.lineage = lineage
        self._reading = Interleaving(log, streams, [each.reached for each in lineage.strands], only)
        self._border = border or (0,) * len(streams)
        self._silent = all(mine <= theirs for mine, theirs in zip(lineage.after, self._border, strict=True))
        for each in lineage.strands:
            each.continuity.read_through(only.routes if only is not None else {})
        self._tails = Tails(log, patience, "forget the subscriber, and subscribe anew")
        self._keeping = Keeping(lineage, snapshots, gathering.kept)
        self._settled = True

    async def run(self, receive: Receive) -> None:
        clock = asyncio.get_running_loop().time
        async for stretches in self._reading.read():
            begun, events = clock(), self.lineage.events
            for some in self._portions(stretches):
                self._settled = False
                found = await self._matched(some)  # 1
                for block in found.derived:
                    await self._tails.store(block)  # 2
                self._settled = True
                self._silent = self._silent and not any(map(self._is_new, some))
                await receive(found, self._silent)  # 3
                self._keeping.now_and_then()  # 4
            if self.lineage.events - events < EVENTS_TOGETHER:
                await asyncio.sleep(pause(clock(), clock() - begun))

    async def _matched(self, some: Sequence[Stretch]) -> Found:
        """What may take long goes on in a thread, so that the loop can end it, and everybody else goes on."""
        if not self.lineage.may_take_long:
            return self.lineage.feed(some, self._streams, self._gathering)
        work = asyncio.get_running_loop().run_in_executor(None, self.lineage.feed, some, self._streams, self._gathering)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self.lineage.stop()
            while not work.done():
                with suppress(asyncio.CancelledError):  # more of them change nothing: the thread ends soon
                    await asyncio.wait([work])
            work.exception()
            raise

    def _portions(self, stretches: Sequence[Stretch]) -> Iterator[list[Stretch]]:
        """Those that go to the engines together: not too much at a time, and what is silent by itself."""
        together, events = list[Stretch](), 0
        for each in stretches:
            for blocks in portions(each.blocks, self._border[each.part]):
                stretch, count = Stretch(each.part, blocks), sum(stored.block.count for stored in blocks)
                if together and (events + count > EVENTS_TOGETHER or (self._silent and self._is_new(stretch))):
                    yield together
                    together, events = [], 0
                together.append(stretch)
                events += count
        if together:
            yield together

    def _is_new(self, stretch: Stretch) -> bool:
        """Whether it is from after the subscriber joined."""
        return stretch.blocks[-1].sequence > self._border[stretch.part]

    async def has_passed(self, ends: Sequence[int]) -> bool:
        """Whether what was found up to there, in every part, is stored and handed over."""
        if self._reading.has_passed(ends):
            return True
        if self.only is None or await self._log.last(self._streams[0]) < ends[0]:
            return False
        return self._reading.has_passed([await self._log.last(self._streams[0], self.only)])

    async def lag(self) -> int:
        """Blocks of the streams that have not come yet; none where nothing of them is wanted."""
        if self.only is not None and await self._log.last(self._streams[0], self.only) <= self._reading.seen[0]:
            return 0
        return sum([await self._log.last(each) for each in self._streams]) - sum(self._reading.seen)

    async def end(self) -> None:
        """The subscriber leaves: its state is put down, unless it has passed something derived that is not stored."""
        await self._keeping.end(self._settled)
