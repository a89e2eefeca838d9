"""Events from a source that numbers them itself: repeated events are stored once, even after a restart of everything.

The log knows which numbers of a source are stored: the last block of its type says it (order/stored_numbers.py). So numbers may
arrive out of order, over several connections or gateways, within a window; outside it they are refused, not dropped. If a block
skips numbers, its sequence is chosen such that its last event has the right number.

    1. look up which numbers are stored. If some of these are, by what is remembered, look again: the log may have been restored
       from a backup since
    2. skip events that are stored already; refuse those of which nobody can tell
    3. check that every event fits into a block
    4. store block after block

Takes: events of one type with increasing numbers. Gives: how many were new. Never: stores an event twice, or says that one is
stored which is not.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import uuid
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from fairlead.errors import DataError, StateError
from fairlead.order.stored_numbers import StoredNumbers, Unordered
from fairlead.runtime.live.publisher.event_check import too_large
from fairlead.transport.log.blocks.block import Block, pieces
from fairlead.transport.log.blocks.block_filter import UNKNOWN, Standing
from fairlead.transport.log.blocks.block_store import require_ours, stored_once
from fairlead.transport.log.blocks.room import require_room
from fairlead.transport.log.names import NAME, is_derived
from fairlead.transport.log.protocol import Log

ATTEMPTS = 4
"""How often another process may be faster."""
TOGETHER_MAX = 500
"""Events of a request in many blocks, whose numbers are looked at again for every block."""


HASHED = re.compile(r"x-[0-9a-f]{40}")
"""A text of this form is hashed, too: as a name it is that of another source, which somebody else may own."""


def source_name(text: str) -> str:
    """A name that the log accepts, for a source with any name: a URI, a topic and its partition."""
    plain = NAME.fullmatch(text) and not is_derived(text) and not HASHED.fullmatch(text)
    return text if plain else f"x-{hashlib.sha256(text.encode()).hexdigest()[:40]}"


class Numbered:
    """One type and one source. `source` is a name that the log accepts."""

    def __init__(self, log: Log, topic: str, type: str, source: str, patience: float) -> None:
        self._log, self._topic, self._type, self._source, self._patience = log, topic, type, source, patience
        self._writer = uuid.uuid4().hex[:16]
        self._lock = asyncio.Lock()
        self._known = False
        self._after = self._number = self._count = 0
        self._stored = self._before = StoredNumbers()
        self._request: object = None
        self._mine: list[int] = []
        self._standing = Standing()

    async def next(self) -> int:
        """The number after the last stored one; 0 if nothing is stored."""
        async with self._lock:
            await self._resume()
            return self._stored.next

    async def new_of(self, numbers: Sequence[int]) -> list[int]:
        """Of increasing numbers, the indexes of those that are not stored. Raises DataError if nobody can tell."""
        async with self._lock:
            return await self._new_of(numbers)

    async def _new_of(self, numbers: Sequence[int]) -> list[int]:
        if self._known:
            with suppress(Unordered):
                new = self._stored.new_of(numbers)
                if len(new) == len(numbers):
                    return new
            self._known = False  # 1
        await self._resume()
        try:
            return self._stored.new_of(numbers)
        except Unordered as error:
            problem = (
                f"number {error.number} of source '{self._source}' arrives out of order: numbers of '{self._type}' up to "
                f"{self._stored.next - 1} are stored, and nobody knows whether this one is"
            )
            raise DataError("D036", problem, "send numbers in order, or over fewer connections; see docs/gateway.md") from None

    async def store(self, batch: pa.RecordBatch, numbers: Sequence[int], schema: str, request: object = None) -> int:
        """Returns how many events were not stored before. `schema`: the digest of the declaration that they were checked
        against. `request`: the same for calls whose events belong together, and are sent again together. Raises DataError,
        LogError; StateError if another process stores under the same name at the same time. After any of these, repeat the
        call to store what is missing."""
        async with self._lock:
            before = self._count
            if request is None or request is not self._request:
                self._request, self._mine = request, []
            for _ in range(ATTEMPTS - 1):
                with suppress(StateError):  # another process has stored some of it: look it up again
                    await self._attempt(batch, numbers, schema)
                    return self._count - before
            await self._attempt(batch, numbers, schema)
            return self._count - before

    async def _attempt(self, batch: pa.RecordBatch, numbers: Sequence[int], schema: str) -> None:
        new = await self._new_of(numbers)  # 2
        if len(new) < len(numbers):
            batch = batch.take(pa.array(new, pa.int64())) if new else batch.slice(0, 0)
        if new:
            require_room(self._topic, self._after)
        blocks = list(pieces(batch)) if new else []
        for count, payload in blocks:  # 3
            too_large(count, payload, self._log.bytes_max, self._type)
        self._known, done = not blocks, 0
        for count, payload in blocks:  # 4
            mine = [numbers[at] for at in new[done : done + count]]
            done += count
            stored = self._with_stored(mine)
            marks = self._standing.marks(UNKNOWN, self._number)
            about = (self._number, mine[-1] - count + 1, count, schema, payload, self._writer, marks, self._topic)
            block = Block(self._type, self._source, *about, numbers=stored.text())
            found = await stored_once(self._log, block, self._after, self._patience)
            require_ours(found, block)
            self._standing.passed(found.block.marks, self._number)
            self._after, self._number, self._stored = found.sequence, self._number + 1, stored
            self._count += count
        self._known = True

    def _with_stored(self, numbers: list[int]) -> StoredNumbers:
        """What one request skips is remembered once, not once for each of its blocks."""
        if not self._mine or len(self._mine) > TOGETHER_MAX:
            self._before, self._mine = self._stored, []
        self._mine += numbers
        return self._before.with_stored(self._mine)

    async def _resume(self) -> None:
        if not self._known:
            self._mine, self._number, self._stored, self._standing = [], 0, StoredNumbers(), Standing()
            await self._log.open_topics([self._topic])
            # first what an append names: a block that another process stores between the two looks is seen, or refuses it
            tail = await self._log.last_of(self._topic, self._source)
            last = await self._log.last_block_of(self._topic, self._source, self._type)
            if last is not None:
                self._number = last.block.number + 1
                # a release before this one stored no gaps
                before = StoredNumbers(last.block.sequence + last.block.count)
                self._stored = StoredNumbers.of(last.block.numbers) or before
                self._standing.passed(last.block.marks, last.block.number)
            self._after = 0 if tail is None else tail.sequence
            self._known = True
