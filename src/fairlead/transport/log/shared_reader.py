"""Reads a stream once for all its readers in one process.

The last blocks of a stream are kept for a while, and each reader has its own position in them.

    1. a reader joins a reading that is at its position, or was a moment ago; otherwise a new reading begins
    2. a reading waits for slow readers, but only briefly while others are idle: then it continues without them, and they begin
       a new reading at their position
    3. a reader that has read everything moves to a reading that is further ahead, if its position is kept there; so readings
       that reach the same position become one, and a reading without readers ends

Takes: a log. Gives: `read`, as in the log. Never: skips, repeats or reorders; delays a reader for another one that has stopped.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import aclosing, suppress
from itertools import accumulate

from fairlead.dataclass import dataclass
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.protocol import Log, Stored, Stream
from fairlead.transport.log.tasks import ended


@dataclass(frozen=True)
class Window:
    """How much of a stream is held in memory. `unread_max`: bytes that the slowest reader may have before it. `kept_max`: bytes
    that are kept after all have read them, for readers that join. `slow_seconds`: a reader that takes nothing for this long,
    while others wait, is left behind."""

    unread_max: int = 8_000_000
    kept_max: int = 2_000_000
    slow_seconds: float = 0.5


class StreamReader:
    """`at`: the number of the next block to read, in its reading. `idle`: it has read everything."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.idle = False


class SharedReading:
    """The blocks of a stream after `after`, and the positions of the readers in them."""

    def __init__(self, log: Log, stream: Stream, after: int, only: Only | None, window: Window) -> None:
        self._before, self._window = after, window
        self._first = 0
        self._blocks: list[Stored] = []
        self._ends: list[int] = []
        """The bytes of all blocks up to each, since the beginning of the reading."""
        self._bytes = 0
        self._readers: set[StreamReader] = set()
        self._failed: Exception | None = None
        self._news, self._taken = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._read(log, stream, after, only))

    @property
    def reached(self) -> int:
        return self._blocks[-1].sequence if self._blocks else self._before

    @property
    def is_read(self) -> bool:
        return bool(self._readers)

    @property
    def has_failed(self) -> bool:
        return self._failed is not None

    def has_kept(self, after: int) -> bool:
        """Whether a reader that has read up to `after` can continue here."""
        return not self.has_failed and self._before <= after <= self.reached

    def join(self, after: int) -> StreamReader:
        reader = StreamReader(self._first + bisect_right(self._blocks, after, key=lambda each: each.sequence))
        self._readers.add(reader)
        return reader

    def leave(self, reader: StreamReader) -> None:
        self._readers.discard(reader)
        self._taken.set()

    async def end(self) -> None:
        await ended(self._task)

    def has_more(self, reader: StreamReader) -> bool:
        return reader.at < self._first + len(self._blocks)

    async def next(self, reader: StreamReader) -> Sequence[Stored]:
        """All blocks that the reader has not read, at least one; empty if it was dropped. Raises the error of the reading."""
        while not self.has_more(reader):
            if self._failed is not None:
                raise self._failed
            reader.idle = True
            await self._news.wait()
        reader.idle = False
        if reader.at < self._first:
            return []
        self._readers.add(reader)  # a dropped reader may have returned in time
        found = self._blocks[reader.at - self._first :]
        reader.at += len(found)
        self._taken.set()
        return found

    async def _read(self, log: Log, stream: Stream, after: int, only: Only | None) -> None:
        try:
            async with aclosing(log.read(stream, after, only)) as reading:  # type: ignore[type-var]
                async for some in reading:
                    self._blocks += some
                    self._ends += accumulate((len(each.block.payload) for each in some), initial=self._bytes)
                    self._ends.pop(-1 - len(some))
                    self._bytes = self._ends[-1]
                    self._tell()
                    while self._unread() > self._window.unread_max:
                        await self._some_took()  # 2
                    self._forget()
        except Exception as error:
            self._failed = error
            self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _unread(self) -> int:
        return self._bytes - self._end_before(min((each.at for each in self._readers), default=self._first))

    def _end_before(self, number: int) -> int:
        """The bytes of all blocks before this one."""
        at = number - self._first
        return self._ends[at - 1] if at > 0 else self._ends[0] - len(self._blocks[0].block.payload)

    async def _some_took(self) -> None:
        self._taken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._window.slow_seconds):
                await self._taken.wait()
                return
        idle = [each.at for each in self._readers if each.idle]
        if idle:
            self._readers = {each for each in self._readers if each.at >= min(idle)}

    def _forget(self) -> None:
        """Drops the blocks that all have read, except the newest."""
        slowest = min((each.at for each in self._readers), default=self._first)
        count = bisect_right(self._ends, self._bytes - self._window.kept_max, hi=max(0, slowest - self._first))
        if count:
            self._before = self._blocks[count - 1].sequence
            self._first += count
            del self._blocks[:count], self._ends[:count]


class Sharing:
    """All readings of one log."""

    def __init__(self, log: Log, window: Window | None = None) -> None:
        self._log, self._window = log, window or Window()
        self._readings: dict[Hashable, list[SharedReading]] = {}

    async def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncGenerator[Sequence[Stored], None]:
        key = stream, None if only is None else (only.types, tuple(sorted(only.routes.items())))
        while True:
            readings = self._readings.setdefault(key, [])
            reading = _best(readings, after)  # 1
            if reading is None:
                reading = SharedReading(self._log, stream, after, only, self._window)
                readings.append(reading)
            reader = reading.join(after)
            try:
                while reading.has_more(reader) or reading.has_failed or _best(readings, after) is reading:  # 3
                    found = await reading.next(reader)
                    if not found:
                        break
                    after = found[-1].sequence
                    yield found
            finally:
                reading.leave(reader)
                if not reading.is_read and reading in readings:
                    readings.remove(reading)
                    await reading.end()
                    if not readings:
                        self._readings.pop(key, None)


def _best(readings: Sequence[SharedReading], after: int) -> SharedReading | None:
    """Of the readings where a reader at `after` can continue, the one that is furthest ahead; the first of several."""
    return max((each for each in readings if each.has_kept(after)), key=lambda each: each.reached, default=None)
