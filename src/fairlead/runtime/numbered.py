"""Events from a source that numbers them itself: repeated events are stored once, even after a restart of everything.

The log knows the last number of every source, since a block has the sequence of its first event and their count. If a source
skips numbers, the sequence of a block is chosen such that its last event has the right number.

    1. look up the last number that is stored
    2. skip events that are stored already
    3. check that every event fits into a block
    4. store block after block

Takes: events of one type with increasing numbers. Gives: how many were new. Never: stores an event twice, or a number below one
that is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from fairlead.errors import StateError
from fairlead.runtime.live.publisher.event_check import too_large
from fairlead.transport.log.blocks.block import Block, pieces
from fairlead.transport.log.blocks.block_filter import UNKNOWN, Standing
from fairlead.transport.log.blocks.block_store import require_ours, stored_once
from fairlead.transport.log.names import NAME
from fairlead.transport.log.protocol import Log

ATTEMPTS = 4
"""How often another process may be faster."""


def source_name(text: str) -> str:
    """A name that the log accepts, for a source with any name: a URI, a topic and its partition."""
    return text if NAME.fullmatch(text) else f"x-{hashlib.sha256(text.encode()).hexdigest()[:40]}"


class Numbered:
    """One type and one source. `source` is a name that the log accepts."""

    def __init__(self, log: Log, topic: str, type: str, source: str, patience: float) -> None:
        self._log, self._topic, self._type, self._source, self._patience = log, topic, type, source, patience
        self._writer = uuid.uuid4().hex[:16]
        self._lock = asyncio.Lock()
        self._known = False
        self._after = self._number = self._next = self._count = 0
        self._standing = Standing()

    async def next(self) -> int:
        """The number after the last stored one; 0 if nothing is stored."""
        async with self._lock:
            await self._resume()
            return self._next

    async def store(self, batch: pa.RecordBatch, numbers: Sequence[int], schema: str) -> int:
        """Returns how many events were not stored before. `schema`: the digest of the declaration that they were checked
        against. Raises DataError, LogError; StateError if another process stores under the same name at the same time. After
        any of these, repeat the call to store what is missing."""
        async with self._lock:
            before = self._count
            for _ in range(ATTEMPTS - 1):
                with suppress(StateError):  # another process has stored some of it: look it up again
                    await self._attempt(batch, numbers, schema)
                    return self._count - before
            await self._attempt(batch, numbers, schema)
            return self._count - before

    async def _attempt(self, batch: pa.RecordBatch, numbers: Sequence[int], schema: str) -> None:
        await self._resume()  # 1
        old = bisect_left(numbers, self._next)
        blocks = list(pieces(batch.slice(old))) if old < len(numbers) else []  # 2
        for count, payload in blocks:  # 3
            too_large(count, payload, self._log.bytes_max, self._type)
        self._known = False
        for count, payload in blocks:  # 4
            old += count
            first = numbers[old - 1] - count + 1
            marks = self._standing.marks(UNKNOWN, self._number)
            block = Block(
                self._type, self._source, self._number, first, count, schema, payload, self._writer, marks, self._topic
            )
            found = await stored_once(self._log, block, self._after, self._patience)
            require_ours(found, block)
            self._standing.passed(found.block.marks, self._number)
            self._after, self._number, self._next = found.sequence, self._number + 1, first + count
            self._count += count
        self._known = True

    async def _resume(self) -> None:
        if not self._known:
            await self._log.open_topics([self._topic])
            last = await self._log.last_of(self._topic, self._source, self._type)
            if last is not None:
                self._number, self._next = last.block.number + 1, last.block.sequence + last.block.count
                self._standing.passed(last.block.marks, last.block.number)
            tail = await self._log.last_of(self._topic, self._source)
            self._after = 0 if tail is None else tail.sequence
            self._known = True
