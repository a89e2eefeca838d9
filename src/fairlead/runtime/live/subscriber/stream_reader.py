"""Reads streams of a log: as they grow, several in one order; or a range of them, all of it or an error.

A reader of several streams that waits for a quiet one stores a heartbeat in its topics. All waiting readers try this under one
source name, so the log accepts one heartbeat.

    1. take the new blocks of all streams or, if many blocks are held, of the streams that delay them
    2. release the blocks that need not wait, in stretches of one stream (core/stream_merge.py)
    3. if blocks are held and none was released for a while, store a heartbeat

Takes: the streams, and the progress in each. Gives: stretches of blocks; ranges without repeats. Never: holds more than about
`HELD_MAX` blocks, or what the slowest stream needs; skips blocks that retention or an administrator has removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress

from fairlead.errors import DataError, LogError
from fairlead.order.continuity import Continuity
from fairlead.order.merging import ReleasedMessage
from fairlead.runtime.live.core.stream_merge import PULSE, Reached, StreamMerge, Stretch, pulse_after
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.protocol import Conflict, Log, Stored, Stream, Unavailable
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
    stretches were released, and are still being processed."""

    def __init__(
        self,
        log: Log,
        streams: Sequence[Stream],
        topics: Sequence[Sequence[str]],
        reached: Sequence[Reached],
        only: Only | None = None,
        beats: Mapping[int, bool] | None = None,
        further: Mapping[int, Sequence[Reached]] | None = None,
    ) -> None:
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
        async for blocks in self._log.read(self._streams[0], self._reached[0].sequence, self._only):
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
            async for blocks in self._log.read(self._streams[part], self._reached[part].sequence):
                self._came[part].append(blocks)
                self._waiting[part] += len(blocks)
                self._news.set()
                while self._waiting[part] >= CAME_MAX:
                    self._room.clear()
                    await self._room.wait()
        except Exception as error:
            self._came[part].append(error)
            self._news.set()

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
    """Store a heartbeat in a topic, unless another reader stores one at the same time."""
    block, after = pulse_after(await log.last_of(topic, PULSE), topic)
    with suppress(Conflict, Unavailable):
        await log.append(block, after)


async def blocks_between(log: Log, stream: Stream, after: int, last: int) -> AsyncIterator[Sequence[Stored]]:
    """The blocks after `after`, up to and including `last`. Raises LogError if one was removed, StateError if the numbers of a
    source have a gap."""
    continuity = Continuity(from_beginning=after == 0)
    reading = log.read(stream, after).__aiter__()
    try:
        while after < last:
            found = []
            for each in await _next(reading, stream, after, last):
                if after == last:
                    break
                if each.sequence != after + 1:
                    raise _lost(stream, after, min(each.sequence, last + 1))
                after = each.sequence
                if continuity.check(each.block.lane, each.block.source, each.block.number, each.block.count):
                    found.append(each)
            if found:
                yield found
    finally:
        await reading.aclose()  # type: ignore[attr-defined]


async def blocks_until(
    log: Log, streams: Sequence[Stream], topics: Sequence[Sequence[str]], ends: Sequence[int], *, heartbeats: bool = False
) -> AsyncIterator[tuple[int, Sequence[Stored]]]:
    """The blocks of several streams from their beginnings, in their one order, by part; at least up to these ends.
    `heartbeats`: with those of publishers."""
    if len(streams) == 1:
        async for blocks in blocks_between(log, streams[0], 0, ends[0]):
            yield 0, blocks
        return
    beats = dict.fromkeys(range(len(streams)), True) if heartbeats else {}
    reading = OrderedReader(log, streams, topics, [Reached(0)] * len(streams), beats=beats)
    checks = [Continuity(from_beginning=True) for _ in streams]
    if not any(ends):
        return
    async with aclosing(reading.read()) as stretches:
        async for some in stretches:
            for each in some:
                check = checks[each.part].check
                fresh = [
                    stored
                    for stored in each.blocks
                    if check(stored.block.lane, stored.block.source, stored.block.number, stored.block.count)
                ]
                if fresh:
                    yield each.part, fresh
            if reading.has_given(ends):
                return


async def _next(reading: AsyncIterator[Sequence[Stored]], stream: Stream, after: int, last: int) -> Sequence[Stored]:
    try:
        async with asyncio.timeout(SILENCE_SECONDS_MAX):
            return await anext(reading)
    except TimeoutError:
        raise _lost(stream, after, last + 1) from None


def _lost(stream: Stream, after: int, found: int) -> LogError:
    problem = f"blocks {after + 1:,} to {found - 1:,} of the stream {stream.name} have been deleted: events are lost"
    return LogError("N020", problem, f"restore them from a backup, or start after them: start={found << INDEX_BITS}")


def report(stored: Stored, rejected: Iterable[DataError]) -> None:
    """Warn of rejected events, in Python's log: every reader skips them alike (mixed_block.py)."""
    for each in rejected:
        LOGGER.warning("%s %s (sequence %d): skipped by every reader", each.code, each.problem, stored.sequence)
