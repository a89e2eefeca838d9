"""Reads streams of a log: as they grow, several in one order; or a range of them, all of it or an error.

A reader of several streams that waits for a quiet one stores a heartbeat in its topics. All waiting readers try this under one
source name, so the log accepts one heartbeat.

    1. take the new blocks of all streams or, if many blocks are held, of the streams that delay them
    2. release the blocks that need not wait, in stretches of one stream (core/stream_merge.py)
    3. if blocks are held and none was released for a while, store a heartbeat

Takes: the streams, and the progress in each. Gives: stretches of blocks; ranges. Never: holds more than about
`HELD_MAX` blocks, or what the slowest stream needs; skips blocks that were trimmed, or that an administrator has removed,
without asking (`passes`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing

from fairlead.errors import DataError, LogError
from fairlead.order.merging import ReleasedMessage
from fairlead.runtime.live.core.stream_merge import PULSE, Reached, StreamMerge, Stretch, pulse_after
from fairlead.runtime.live.subscriber.trim_check import after_trim, behind, require_beginning
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.protocol import Conflict, Log, Stored, Stream, Trimmed, Unavailable
from fairlead.transport.log.stream_health import removed_blocks
from fairlead.transport.log.tasks import ended

CAME_MAX = 1024
"""Blocks of a stream that wait in its queue."""
PULSE_SECONDS = 0.1
"""The shortest interval between heartbeats for waiting readers: some 250 MB a day if one stream is quiet all day while another
is not. A relation that waits for a quiet stream is delivered up to a tenth of a second later."""
SILENCE_SECONDS_MAX = 60.0
"""A stored block arrives in milliseconds, or after a cluster has elected a leader."""
LOGGER = logging.getLogger("fairlead")


class OrderedReader:
    """`only`: the filter on a single stream. `topics`: of each stream. `beats`, `further`: see StreamMerge. `given`: the last
    stretches were released, and are still being processed. `passes`: called when blocks that were not read have been trimmed;
    raises unless reading may continue after them."""

    def __init__(
        self,
        log: Log,
        streams: Sequence[Stream],
        topics: Sequence[Sequence[str]],
        reached: Sequence[Reached],
        only: Only | None = None,
        beats: Mapping[int, bool] | None = None,
        further: Mapping[int, Sequence[Reached]] | None = None,
        passes: Callable[[Trimmed], Awaitable[None]] | None = None,
    ) -> None:
        self._passes = passes or self._refuse
        self._log, self._streams, self._topics, self._reached, self._only = log, streams, topics, reached, only
        self._merge = StreamMerge(streams, reached, beats, further)
        self._came: list[deque[Sequence[Stored] | Exception]] = [deque() for _ in streams]
        self._waiting = [0] * len(streams)
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._moved = 0
        self.given = False

    @property
    def seen(self) -> Sequence[int]:
        """By part, the sequence of the last block that arrived."""
        return self._merge.seen

    def has_passed(self, ends: Sequence[int]) -> bool:
        """Whether everything up to these ends, by part, was released and processed."""
        return not self.given and self.has_given(ends)

    def has_given(self, ends: Sequence[int]) -> bool:
        """Whether everything up to these ends, by part, was released."""
        return self._merge.has_given(ends)

    async def read(self) -> AsyncGenerator[Sequence[Stretch], None]:
        """The released blocks whenever blocks arrive, without end; the list may be empty."""
        async with aclosing(self._one() if len(self._streams) == 1 else self._several()) as reading:
            async for some in reading:
                self.given = True
                yield some
                self.given = False

    async def _one(self) -> AsyncGenerator[Sequence[Stretch], None]:
        async for blocks in self._read_on(0, self._only):
            self._merge.seen[0] = blocks[-1].sequence
            yield [Stretch(0, blocks)]

    async def _several(self) -> AsyncGenerator[Sequence[Stretch], None]:
        tasks = [asyncio.create_task(self._read(part)) for part in range(len(self._streams))]
        tasks.append(asyncio.create_task(self._pulsing()))
        try:
            while True:
                self._news.clear()
                if self._next_part() is None:
                    await self._news.wait()
                    continue
                released = self._taken()  # 1
                self._moved += bool(released)
                yield list(self._merge.stretches(released))  # 2
        finally:
            await ended(*tasks)

    async def _read(self, part: int) -> None:
        try:
            async for blocks in self._read_on(part):
                self._came[part].append(blocks)
                self._waiting[part] += len(blocks)
                self._news.set()
                while self._waiting[part] >= CAME_MAX:
                    self._room.clear()
                    await self._room.wait()
        except Exception as error:
            self._came[part].append(error)
            self._news.set()

    async def _read_on(self, part: int, only: Only | None = None) -> AsyncGenerator[Sequence[Stored], None]:
        """The blocks of a stream, after those that were trimmed if the reader may do without them."""
        after = self._reached[part].sequence
        while True:
            try:
                async with aclosing(self._log.read(self._streams[part], after, only)) as reading:  # type: ignore[type-var]
                    async for blocks in reading:
                        after = blocks[-1].sequence
                        yield blocks
            except Trimmed as trimmed:
                await self._passes(trimmed)
                after = trimmed.first - 1

    async def _refuse(self, trimmed: Trimmed) -> None:
        raise await behind(self._log, trimmed)

    def _next_part(self) -> int | None:
        return next((part for part in self._merge.wanted() if self._came[part]), None)

    def _taken(self) -> list[ReleasedMessage[Stored]]:
        released: list[ReleasedMessage[Stored]] = []
        while (part := self._next_part()) is not None:
            came = self._came[part].popleft()
            if isinstance(came, Exception):
                raise came
            self._waiting[part] -= len(came)
            self._room.set()
            released += self._merge.push(part, came)
        return released

    async def _pulsing(self) -> None:
        try:
            while True:
                before = self._moved
                await asyncio.sleep(PULSE_SECONDS)
                if self._merge.holds and self._moved == before:
                    for topic in sorted({topic for part in self._merge.waits_for() for topic in self._topics[part]}):
                        await pulse(self._log, topic)  # 3
        except Exception as error:
            self._came[0].append(error)
            self._news.set()


async def pulse(log: Log, topic: str) -> None:
    """Store a heartbeat in a topic, unless another reader stores one at the same time or no server answers."""
    try:
        last = await log.last_of(topic, PULSE)
        known = await log.last_block_of(topic, PULSE) if last is None or last.block.rejected else last
        block, after = pulse_after(known, topic), 0 if last is None else last.sequence
        await log.append(block, after)
    except (Conflict, Unavailable):
        pass
    except LogError as error:
        if error.code != "N001":
            raise


async def blocks_between(log: Log, stream: Stream, after: int, last: int) -> AsyncIterator[Sequence[Stored]]:
    """The blocks after `after`, up to and including `last`. Raises LogError if one was removed."""
    reading = log.read(stream, after).__aiter__()
    try:
        while after < last:
            found = []
            for each in await _next(log, reading, stream, after, last):
                if after == last:
                    break
                if each.sequence != after + 1:
                    raise removed_blocks(stream, after + 1, min(each.sequence - 1, last))
                after = each.sequence
                found.append(each)
            yield found
    finally:
        await reading.aclose()  # type: ignore[attr-defined]


async def blocks_until(
    log: Log, streams: Sequence[Stream], topics: Sequence[Sequence[str]], ends: Sequence[int], *, heartbeats: bool = False
) -> AsyncIterator[tuple[int, Sequence[Stored]]]:
    """The blocks of several streams from their beginnings, in their one order, by part; at least up to these ends.
    `heartbeats`: with those of publishers."""
    reached = [Reached(await after_trim(log, each)) for each in streams]
    for stream, merged, place in zip(streams, topics, reached, strict=True):
        if not place.sequence:
            await require_beginning(log, stream, merged)
    if len(streams) == 1:
        async for blocks in blocks_between(log, streams[0], reached[0].sequence, ends[0]):
            yield 0, blocks
        return
    beats = dict.fromkeys(range(len(streams)), True) if heartbeats else {}
    reading = OrderedReader(log, streams, topics, reached, beats=beats)
    if all(each.sequence >= end for each, end in zip(reached, ends, strict=True)):
        return
    async with aclosing(reading.read()) as stretches:
        async for some in stretches:
            for each in some:
                yield each.part, each.blocks
            if reading.has_given(ends):
                return


async def _next(log: Log, reading: AsyncIterator[Sequence[Stored]], stream: Stream, after: int, last: int) -> Sequence[Stored]:
    try:
        async with asyncio.timeout(SILENCE_SECONDS_MAX):
            return await anext(reading)
    except TimeoutError:
        raise removed_blocks(stream, after + 1, last) from None
    except Trimmed as trimmed:
        raise await behind(log, trimmed) from None


def report(stored: Stored, rejected: Iterable[DataError]) -> None:
    """Warn of rejected events, in Python's log: every reader skips them alike (mixed_block.py)."""
    for each in rejected:
        LOGGER.warning("%s %s (sequence %d): skipped by every reader", each.code, each.problem, stored.sequence)
