"""Following the streams of groups that have a stream in common: read once, match, store what is derived, hand over, put states
down.

The order of the steps is what makes all of it happen once:

    1. match: the relations and derived blocks are a function of the log
    2. store the derived blocks that the log does not have yet
    3. hand the relations over
    4. now and then, store the states: what they have passed is stored (2), so whoever begins with one need not store it again

Lineages may be at different places: reading begins with the first of these, and each takes what is behind its own. So those
that are ahead wait for the others, and all that is handed over is in one order.

Takes: lineages and their streams. Gives: what is found, to whoever receives it. Never: goes faster than it is received.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress

from fairlead.runtime.live.follower import Follower, Heard
from fairlead.runtime.live.gathering import EVENTS_TOGETHER, portions
from fairlead.runtime.live.interleaving import Interleaving, Reached, Stretch
from fairlead.runtime.live.rounds import pause
from fairlead.transport.log.block_filter import Only
from fairlead.transport.log.block_store import Tails
from fairlead.transport.log.protocol import Log, Stream

Receive = Callable[[Sequence[Heard]], Awaitable[None]]


class Following:
    """`streams`: all that the followers read between them. `only`: what is read of the stream, where there is one."""

    def __init__(self, log: Log, followers: Sequence[Follower], patience: float, only: Only | None) -> None:
        self._log, self.followers, self.only = log, followers, only
        self.streams = tuple({stream.name: stream for each in followers for stream in each.streams}.values())
        self._reading = Interleaving(
            log,
            self.streams,
            [self._first(each) for each in self.streams],
            only,
            {at: told for at, each in enumerate(self.streams) if (told := self._beats(each)) is not None},
            {at: self._merged(each) for at, each in enumerate(self.streams)},
        )
        for strand in (strand for each in followers for strand in each.lineage.strands):
            strand.continuity.read_through(only.routes if only is not None else {})
        self._tails = Tails(log, patience, "forget the subscriber, and subscribe again")
        self._settled = True

    def _first(self, stream: Stream) -> Reached:
        """The place of the one that is least far."""
        least = min(place.sequence for each in self.followers if (place := each.reached(stream)) is not None)
        times = [each.time for each in self._merged(stream) if each.sequence == least and each.time is not None]
        return Reached(least, max(times, default=None))

    def _beats(self, stream: Stream) -> bool | None:
        """Whether a heartbeat in it may decide something; None where nobody reads it alone, who counts them in his state."""
        told = [each.lineage.group.timed for each in self.followers if [one.name for one in each.streams] == [stream.name]]
        return any(told) if told else None

    def _merged(self, stream: Stream) -> list[Reached]:
        """How far those are who read several streams: their own order goes by the times that they have seen, also where a
        clock was set back since and others have not."""
        return [place for each in self.followers if len(each.streams) > 1 and (place := each.reached(stream)) is not None]

    @property
    def events(self) -> int:
        """That came from the origins on: as many as the lineage has that was fed most."""
        return max(each.lineage.events for each in self.followers)

    async def run(self, receive: Receive) -> None:
        clock = asyncio.get_running_loop().time
        async for stretches in self._reading.read():
            begun, events = clock(), sum(stored.block.count for each in stretches for stored in each.blocks)
            for some in self._portions(stretches):
                self._settled = False
                heard = await self._matched(some)  # 1
                for block in (block for each in heard for block in each.found.derived):
                    await self._tails.store(block)  # 2
                self._settled = True
                await receive(heard)  # 3
                for each in self.followers:
                    each.keeping.now_and_then()  # 4
            if events < EVENTS_TOGETHER:
                await asyncio.sleep(pause(clock(), clock() - begun))

    async def _matched(self, some: Sequence[Stretch]) -> list[Heard]:
        """What may take long goes on in threads, so that the loop can end it, and everybody else goes on."""
        shares = [(each, share) for each in self.followers if (share := each.share(some, self.streams)).stretches]
        slow = [(each, share) for each, share in shares if each.lineage.may_take_long]
        loop = asyncio.get_running_loop()
        works = {each: loop.run_in_executor(None, each.feed, share) for each, share in slow}
        try:
            quick = {each: each.feed(share) for each, share in shares if each not in works}
        finally:
            await self._ended(works)
        return [works[each].result() if each in works else quick[each] for each, _ in shares]

    async def _ended(self, works: dict[Follower, asyncio.Future[Heard]]) -> None:
        """All of them, whatever happens: more of it changes nothing then, the threads end soon."""
        try:
            if works:
                await asyncio.wait(works.values())
        except asyncio.CancelledError:
            for each in works:
                each.lineage.stop()
            while not all(work.done() for work in works.values()):
                with suppress(asyncio.CancelledError):
                    await asyncio.wait(works.values())
            for work in works.values():
                work.exception()
            raise

    def _portions(self, stretches: Sequence[Stretch]) -> Iterator[list[Stretch]]:
        """Those that go to the engines together: not too much at a time, and what is silent by itself."""
        together, events = list[Stretch](), 0
        for each in stretches:
            stream = self.streams[each.part]
            for blocks in portions(each.blocks, {one.border(stream) for one in self.followers}):
                count = sum(stored.block.count for stored in blocks)
                wakes = any(one.wakes(stream, blocks) for one in self.followers)
                if together and (events + count > EVENTS_TOGETHER or wakes):
                    yield together
                    together, events = [], 0
                together.append(Stretch(each.part, blocks))
                events += count
        if together:
            yield together

    async def has_passed(self, ends: Sequence[int]) -> bool:
        """Whether what was found up to there, in every stream, is stored and handed over."""
        if self._reading.has_passed(ends):
            return True
        if self.only is None or await self._log.last(self.streams[0]) < ends[0]:
            return False
        return self._reading.has_passed([await self._log.last(self.streams[0], self.only)])

    async def lag(self) -> int:
        """Blocks of the streams that have not come yet; none where nothing of them is wanted."""
        if self.only is not None and await self._log.last(self.streams[0], self.only) <= self._reading.seen[0]:
            return 0
        return sum([await self._log.last(each) for each in self.streams]) - sum(self._reading.seen)

    async def end(self) -> None:
        """The subscriber leaves: states are put down, unless they have passed something derived that is not stored."""
        for each in self.followers:
            await each.keeping.end(self._settled)
