"""Follows the streams of groups that have a stream in common: read once, match, store derived blocks, deliver, save snapshots.

The order of the steps ensures that each takes effect once:

    1. match: the relations and derived blocks are a function of the log
    2. store the derived blocks that the log does not have yet
    3. deliver the relations
    4. save snapshots periodically: all derived blocks up to a snapshot are stored (2), so a reader that starts from it need not
       store them again

Lineages may have different positions. Reading begins at the earliest, and each lineage skips the blocks that it has read. So
lineages that are ahead wait for the others, and all deliveries are in one order.

Takes: lineages and their streams. Gives: relations, to a receiver. Never: reads faster than the receiver accepts.
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
    """`streams`: all streams that the followers read. `only`: the filter on the stream, if there is a single one."""

    def __init__(self, log: Log, followers: Sequence[Follower], patience: float, only: Only | None) -> None:
        self._log, self.followers, self.only = log, followers, only
        self.streams = tuple({stream.name: stream for each in followers for stream in each.streams}.values())
        topics = {
            stream.name: part.topics
            for each in followers
            for stream, part in zip(each.streams, each.lineage.group.parts, strict=True)
        }
        self._reading = Interleaving(
            log,
            self.streams,
            [topics[each.name] for each in self.streams],
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
        """The position of the follower that has read least."""
        least = min(place.sequence for each in self.followers if (place := each.reached(stream)) is not None)
        times = [each.time for each in self._merged(stream) if each.sequence == least and each.time is not None]
        return Reached(least, max(times, default=None))

    def _beats(self, stream: Stream) -> bool | None:
        """Whether a heartbeat in the stream may decide something; None if no follower reads the stream alone. A follower that
        does counts heartbeats in its state."""
        told = [each.lineage.group.timed for each in self.followers if [one.name for one in each.streams] == [stream.name]]
        return any(told) if told else None

    def _merged(self, stream: Stream) -> list[Reached]:
        """The progress of the followers that read several streams: their order depends on the times that they have seen, even
        if a clock was set back since and other followers have not seen it."""
        return [place for each in self.followers if len(each.streams) > 1 and (place := each.reached(stream)) is not None]

    @property
    def events(self) -> int:
        """Events read since the origins, in the lineage that has read most."""
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
        """Matches that may take long run in threads, so that the event loop stays responsive and can cancel them."""
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
        """Waits until all threads end, also when cancelled: the threads are stopped first, and end soon."""
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
        """Stretches that go to the engines together: at most `EVENTS_TOGETHER` events, and silent ones separately."""
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
        """Whether the relations up to these ends, in every stream, are stored and delivered."""
        if self._reading.has_passed(ends):
            return True
        if self.only is None or await self._log.last(self.streams[0]) < ends[0]:
            return False
        return self._reading.has_passed([await self._log.last(self.streams[0], self.only)])

    async def lag(self) -> int:
        """Blocks of the streams that are not read yet; 0 if the filter leaves none to read."""
        if self.only is not None and await self._log.last(self.streams[0], self.only) <= self._reading.seen[0]:
            return 0
        return sum([await self._log.last(each) for each in self.streams]) - sum(self._reading.seen)

    async def end(self) -> None:
        """The subscriber leaves: save snapshots, unless a derived block of theirs is not stored."""
        for each in self.followers:
            await each.keeping.end(self._settled)
