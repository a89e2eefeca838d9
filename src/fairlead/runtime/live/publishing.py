"""Publishes events of one type: collects them in blocks, and stores the blocks one after the other.

One block is in flight at a time. So blocks are stored in order whatever fails, the log can reject duplicates, and the next
block fills during the round trip: the slower the log, the larger the blocks. A block is closed when it is full, some
milliseconds after its first event (`linger`; twice as long at high rates), or when a caller waits for it.

Takes: checked events. Gives: a return when they are accepted (`put`) or stored (`stored`). Never: drops an event; accepts a
part of a call; accepts more while `QUEUED_MAX` blocks wait: then the publisher waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from fairlead.runtime.live.accepting import telling
from fairlead.runtime.live.checking import Checking, Row, too_large
from fairlead.runtime.live.gathering import joined
from fairlead.runtime.live.marking import Marking
from fairlead.runtime.live.throttling import Throttle
from fairlead.transport.log.block import BYTES_MAX, EVENTS_MAX, Block, pieces
from fairlead.transport.log.block_store import require_ours, stored_once
from fairlead.transport.log.protocol import Log
from fairlead.transport.log.tasks import ended

QUEUED_MAX = 16
"""Closed blocks that wait to be sent: up to 64k events or 8 MB, or all blocks of one call."""
MANY = 256
"""With this many events in an open block, more will arrive soon: the block stays open for as long again. Each block costs every
reader some tenths of a millisecond."""


class Outbox:
    """The unsent events of one type. `writer` distinguishes this publisher from another with the same source name."""

    def __init__(self, log: Log, checking: Checking, source: str, writer: str, linger: float, patience: float) -> None:
        self._log, self.checking, self._source, self._writer = log, checking, source, writer
        self._linger, self._patience = linger, patience
        self._rows: list[Row] = []
        self._tables: list[pa.RecordBatch] = []
        self._events = self._bytes = 0
        self._queue: deque[tuple[int, bytes, str]] = deque()
        self._accepted = self._stored = 0
        self._number = self._after = self._sequence = 0
        self._marking = Marking(log)
        self._resumed = False
        self._throttle = Throttle(log, checking.type.name, patience)
        self._wanted = 0
        self._failed: Exception | None = None
        """The last error, if no caller has received it yet."""
        self._failures, self._last = 0, Exception()
        self._work, self._progress = asyncio.Event(), asyncio.Condition()
        self._sender: asyncio.Task[None] | None = None

    async def put(self, row: Row) -> None:
        """Accept one event. Raises an earlier failure, once."""
        await self._room()
        self._rows.append(row)
        await self._gather(1, self.checking.size(row))

    async def put_tables(self, tables: Sequence[pa.RecordBatch]) -> None:
        """Accept events that share a block with others."""
        await self._room()
        self._end_rows()
        self._tables += tables
        await self._gather(sum(each.num_rows for each in tables), sum(each.nbytes for each in tables))

    async def _gather(self, events: int, size: int) -> None:
        if not self._events:
            self._work.set()
        self._events += events
        self._bytes += size
        self._accepted += events
        if self._events >= EVENTS_MAX or self._bytes > BYTES_MAX:
            self._close_block(full_ones=self._bytes <= BYTES_MAX)
            self._work.set()
            await asyncio.sleep(0)  # so that a loop that only publishes lets the sender run

    def sized(self, batches: Iterable[pa.RecordBatch]) -> list[tuple[int, bytes]]:
        """Record batches as blocks. Raises DataError if an event is larger than the log accepts."""
        found = [each for batch in batches for each in pieces(batch)]
        for count, payload in found:
            too_large(count, payload, self._log.bytes_max, self.checking.type.name)
        return found

    async def put_blocks(self, blocks: Sequence[tuple[int, bytes]]) -> None:
        await self._room()
        self._close_block()  # events published before come first
        self._queue += [(count, payload, self.checking.schema) for count, payload in blocks]
        self._accepted += sum(count for count, _ in blocks)
        self._work.set()

    async def stored(self) -> None:
        """Waits until everything accepted so far is stored. Raises the error if that fails; unsent events are kept, and sent
        with the next publish or wait."""
        with telling(accepted=True):
            self._raise_failed()
            target = self._wanted = self._accepted
            self._begin()
            self._work.set()
            await self._until(lambda: self._stored >= target)

    async def close(self) -> None:
        await ended(self._sender)
        await self._marking.close()
        self._sender = None

    async def _room(self) -> None:
        with telling(accepted=False):
            self._raise_failed()
            self._begin()
            await self._until(lambda: len(self._queue) < QUEUED_MAX)

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Raises in every caller that waits when sending fails."""
        before = self._failures
        if not reached():
            async with self._progress:
                await self._progress.wait_for(lambda: reached() or self._failures > before)
        if not reached():
            self._failed = None
            raise self._last

    def _begin(self) -> None:
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    def _raise_failed(self) -> None:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def change(self, checking: Checking) -> None:
        """The type has more attributes from now on."""
        self._close_block()
        self.checking = checking

    def _end_rows(self) -> None:
        if self._rows:
            self._tables.append(self.checking.batch(self._rows))
            self._rows = []

    def _close_block(self, *, full_ones: bool = False) -> None:
        """`full_ones`: events beyond the last full block stay open for more, so that there are fewer blocks."""
        self._end_rows()
        if self._tables:
            whole = joined(self._tables, self._tables[0].schema)
            count = whole.num_rows - (whole.num_rows % EVENTS_MAX if full_ones else 0)
            self._queue += [(*each, self.checking.schema) for each in pieces(whole.slice(0, count))]
            rest = whole.slice(count)
            self._tables, self._events, self._bytes = [rest] if rest.num_rows else [], rest.num_rows, rest.nbytes

    async def _send(self) -> None:
        try:
            await self._resume()
            while True:
                while not self._queue:
                    await self._gathered()
                await self._send_first()
        except Exception as error:  # every waiting caller receives it
            self._failed = error
            self._failures, self._last = self._failures + 1, error
            async with self._progress:
                self._progress.notify_all()

    async def _gathered(self) -> None:
        """Waits for the first event, then for as long as a block may stay open."""
        while not self._events and not self._queue:
            self._work.clear()
            await self._work.wait()
        await self._filling(self._linger)
        if self._events >= MANY:
            await self._filling(self._linger)
        if not self._queue:
            self._close_block()

    async def _filling(self, seconds: float) -> None:
        """Waits until the block is full, a caller waits for it, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._events and not self._queue and self._wanted <= self._stored:
                    self._work.clear()
                    await self._work.wait()

    async def _resume(self) -> None:
        """Continue the numbers of this source after its last stored block, of this process or an earlier one."""
        if not self._resumed:
            await self._log.open_type(self.checking.type.name)
            last = await self._log.last_of(self.checking.type.name, self._source)
            if last is not None:
                self._after, self._number = last.sequence, last.block.number + 1
                self._sequence = last.block.sequence + last.block.count
            await self._marking.begin(self.checking.type.name, None if last is None else last.block)
            self._resumed = True

    async def _send_first(self) -> None:
        count, payload, schema = self._queue[0]
        name = self.checking.type.name
        await self._throttle.take()
        block = Block(name, self._source, self._number, self._sequence, count, schema, payload, self._writer)
        block = replace(block, marks=self._marking.marks(block, self.checking.type))
        found = await stored_once(self._log, block, self._after, self._patience)
        require_ours(found, block)
        self._marking.stored(found.block)
        self._queue.popleft()
        self._after, self._number, self._sequence = found.sequence, self._number + 1, self._sequence + count
        self._stored += count
        async with self._progress:
            self._progress.notify_all()
