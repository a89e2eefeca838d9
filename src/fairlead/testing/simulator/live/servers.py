"""The servers of a simulated log: one log in memory, whose merged streams copy blocks later.

Takes: operations of a log, one at a time. Gives: their results. Never: fails itself (network.py does that for it); changes the
order of a topic within a merged stream.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

from fairlead.testing.simulator.live.event_loop import EPOCH_SECONDS, SimulatedLoop
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.blocks.repeats import without_repeats
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.names import topic_stream
from fairlead.transport.log.protocol import Stored, Stream

COPY_SECONDS_MAX = 0.05
"""A merged stream lags by this much, while nothing fails."""


class SimulatedServers(MemoryLog):
    """`later(seconds, work, …)`: does the work of the servers at a later time."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        super().__init__(clock=lambda: int((EPOCH_SECONDS + loop.time()) * 1_000_000))
        self._rolls = random.Random(f"servers {seed}")
        self._copying: dict[tuple[str, str], deque[tuple[int, Block]]] = {}
        self.later: Callable[..., None] = lambda seconds, work, *given: None
        self._ever: dict[str, list[Stored]] = {}
        self._repeats: set[tuple[str, int]] = set()
        """The streams and sequences of blocks that were stored again after they were trimmed."""
        self._copied_from: dict[tuple[str, int], int] = {}
        """By merged stream and sequence there, the sequence in its topic."""

    def stored(self, stream: str) -> list[Stored]:
        """All blocks that a stream has ever had, also those that were trimmed; without those that were stored again."""
        return [each for each in self._ever.get(stream, ()) if (stream, each.sequence) not in self._repeats]

    def end(self, stream: str) -> int:
        """The sequence of its last block."""
        return self._end(stream) if stream in self._streams else 0

    async def append(self, block: Block, after: int) -> int:
        """Like the real ones, these accept a block that names none before it once all blocks of its source are trimmed, also if
        it is a copy of one of them: readers reject that (transport/log/blocks/repeats.py)."""
        if after:
            return await super().append(block, after)
        mine = [each.block for each in self._ever.get(topic_stream(block.topic), ()) if each.block.source == block.source]
        at = await super().append(replace(block, begins=True), after)
        if any((each.lane == block.lane and each.number >= block.number) or each.sequence >= block.sequence for each in mine):
            self._repeats.add((topic_stream(block.topic), at))
        return at

    async def last_of(self, topic: str, source: str | None, type: str | None = None) -> Stored | None:
        found = await super().last_of(topic, source, type)
        return None if found is None else (await without_repeats(self, [found]))[0]

    async def last_block_of(self, topic: str, source: str, type: str | None = None) -> Stored | None:
        found = await self.last_of(topic, source, type)
        return None if found is None or found.block.rejected else found

    async def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        async for some in super().read(stream, after, only):
            yield await self._judged(stream, some)

    async def heads(self, stream: Stream, after: int, last: int) -> AsyncIterator[Sequence[Stored]]:
        async for some in super().heads(stream, after, last):
            yield await self._judged(stream, some)

    async def _judged(self, stream: Stream, blocks: Sequence[Stored]) -> Sequence[Stored]:
        """A copy in a merged stream is judged as the block of its topic is."""
        found = []
        for each in blocks:
            at = self._copied_from.get((stream.name, each.sequence), each.sequence)
            (one,) = await without_repeats(self, [each._replace(sequence=at)])
            found.append(one._replace(sequence=each.sequence))
        return found

    async def remove_stream(self, stream: Stream) -> None:
        """Not one that was created since: real servers, which know the name only, drop a request that was overtaken."""
        if stream.name in self._streams and stream == self._stream(stream.name):
            await super().remove_stream(stream)
            self._ever.pop(stream.name, None)
            self._repeats = {each for each in self._repeats if each[0] != stream.name}
            self._copying = {key: each for key, each in self._copying.items() if key[0] != stream.name}
            self._copied_from = {key: at for key, at in self._copied_from.items() if key[0] != stream.name}

    def past(self) -> SimulatedServers:
        """The log as it is now; what happens later does not change it."""
        made: Any = object.__new__(SimulatedServers)
        made.__dict__.update(self.__dict__)
        for name in ("_streams", "_readers", "_tables", "_objects"):
            held = getattr(self, name)
            setattr(made, name, {key: each.copy() for key, each in held.items()})
        made._tails, made._unset, made._trimmed = dict(self._tails), dict(self._unset), dict(self._trimmed)
        made._copying = {}
        return made  # type: ignore[no-any-return]

    def _take(self, name: str, at: int, block: Block) -> Stored:
        """A merged stream is filled later: the blocks of each topic in their order, at its own pace."""
        if not any(name in readers for readers in self._readers.values()):
            return self._kept(name, super()._take(name, at, block))
        waiting = self._copying.setdefault((name, block.topic), deque())
        held = self._streams[topic_stream(block.topic)]
        waiting.append((next(each.sequence for each in reversed(held) if each.block is block), block))
        self.later(self._rolls.random() * COPY_SECONDS_MAX, self._copy, name, block.topic)
        return Stored(0, at, block)

    def _kept(self, name: str, stored: Stored) -> Stored:
        self._ever.setdefault(name, []).append(stored)
        return stored

    def _copy(self, name: str, topic: str) -> None:
        waiting = self._copying.get((name, topic))
        if waiting and name in self._streams:
            at, block = waiting.popleft()
            copy = self._kept(name, super()._take(name, self._clock(), block))
            self._copied_from[name, copy.sequence] = at
            if (topic_stream(topic), at) in self._repeats:
                self._repeats.add((name, copy.sequence))
            self._more.set()
            self._more = asyncio.Event()
