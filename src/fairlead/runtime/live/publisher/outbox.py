"""Publishes events of one topic: collects them in blocks, and stores the blocks one after the other.

One block is in flight at a time. So blocks are stored in the order of publishing, whatever their types are and whatever fails,
the log can reject duplicates, and the next block fills during the round trip: the slower the log, the larger the blocks. A
block is closed when it is full, some milliseconds after its first event (`linger`; twice as long at high rates), or when a
caller waits for it. Events of several types share a mixed block (mixed_block.py), unless that is not allowed: then each block
has one type.

Somebody else may append in this source, too. Messages that are no blocks are passed over (block_store.py). A block of another
publisher, or the loss of blocks that were acknowledged, is an error for a caller, once; then the outbox continues after what
the log has.

Takes: checked events. Gives: a return when they are accepted (`put`) or stored (`stored`). Never: drops or reorders events;
accepts a part of a call; accepts more while `QUEUED_MAX` blocks wait: then the publisher waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.errors import FairleadError, LogError
from fairlead.model.events.types import EventType
from fairlead.runtime.live.forgotten_sources import first_numbers
from fairlead.runtime.live.merged_streams import Throttle
from fairlead.runtime.live.publisher.event_check import EventCheck, Row, too_large
from fairlead.runtime.live.route_table import RouteMarks
from fairlead.transport.log.blocks.block import BYTES_MAX, EVENTS_MAX, INDEX_BITS, SEQUENCE_MAX, Block
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.blocks.block_store import TAKEN, require_ours, stored_once
from fairlead.transport.log.blocks.mixed_block import (
    TYPES_MAX,
    MixedEvents,
    events_of,
    joined_events,
    mixed_pieces,
    of_one_type,
    runs,
)
from fairlead.transport.log.blocks.room import require_room
from fairlead.transport.log.protocol import Log
from fairlead.transport.log.tasks import ended

QUEUED_MAX = 16
"""Closed blocks that wait to be sent: up to 64k events or 8 MB, or all blocks of one call."""
MANY = 256
"""With this many events in an open block, more will arrive soon: the block stays open for as long again. Each block costs every
reader some tenths of a millisecond."""
REFUSED = "N003"
KEPT = "what was published is kept, and sent with the next publish or flush"
NOT_ACCEPTED = "what was to be published was not accepted"


@dataclass(frozen=True, eq=False)
class Unsent:
    """A closed block without its numbers. `definitions`: the types of its events, by code."""

    count: int
    payload: bytes
    definitions: tuple[EventType, ...]
    schema: str

    @property
    def is_mixed(self) -> bool:
        return len(self.definitions) > 1


class BlockLane:
    """The blocks of one type, or the mixed ones, of a source: the number of the next one, and its marks."""

    def __init__(self, number: int, marks: RouteMarks | None) -> None:
        self.number, self.marks = number, marks


class Outbox:
    """The unsent events of one topic. `writer` distinguishes this publisher from another with the same source name."""

    def __init__(self, log: Log, topic: str, source: str, writer: str, linger: float, patience: float) -> None:
        self._log, self._topic, self._source, self._writer = log, topic, source, writer
        self._linger, self._patience = linger, patience
        self._checks: dict[str, EventCheck] = {}
        self._rows: list[tuple[str, Row]] = []
        self._open: list[MixedEvents] = []
        self._events = self._bytes = 0
        self._queue: deque[Unsent] = deque()
        self._accepted = self._stored = 0
        self._after = self._sequence = 0
        self._first: Mapping[str, int] = {}
        """By type, the number of the first block, if the log may have had others of this source."""
        self._lanes: dict[str, BlockLane] = {}
        self._mixes = True
        self._resumed = False
        self._throttle = Throttle(log, topic, patience)
        self._wanted = 0
        self._failed: Exception | None = None
        """The last error, if no caller has received it yet."""
        self._failures, self._last = 0, Exception()
        self._work, self._progress = asyncio.Event(), asyncio.Condition()
        self._sender: asyncio.Task[None] | None = None

    def use(self, check: EventCheck) -> None:
        """A type of the topic, or a definition of it that has more attributes from now on."""
        if check.type.name in self._checks:
            self._close_block()
        self._checks[check.type.name] = check

    async def room(self) -> None:
        """Waits until more can be accepted. Raises an earlier failure, once."""
        with telling(accepted=False):
            self._raise_failed()
            require_room(self._topic, self._after)
            self._begin()
            await self._until(lambda: len(self._queue) < QUEUED_MAX)

    async def put(self, check: EventCheck, row: Row) -> None:
        """Accept one event."""
        await self.room()
        self._rows.append((check.type.name, row))
        if self._gather(1, check.size(row)):
            await asyncio.sleep(0)  # so that a loop that only publishes lets the sender run

    def add_events(self, events: MixedEvents) -> bool:
        """Accept events that share a block with others. Whether the block was full with them."""
        self._end_rows()
        self._open.append(events)
        return self._gather(len(events), events.nbytes)

    def _gather(self, events: int, size: int) -> bool:
        if not self._events:
            self._work.set()
        self._events += events
        self._bytes += size
        self._accepted += events
        full = self._events >= EVENTS_MAX or self._bytes > BYTES_MAX
        if full:
            self._close_block(full_ones=self._bytes <= BYTES_MAX)
            self._work.set()
        return full

    def sized(self, events: MixedEvents) -> list[Unsent]:
        """Events as blocks. Raises DataError if an event is larger than the log accepts."""
        found = self._blocks(events)
        for each in found:
            too_large(each.count, each.payload, self._log.bytes_max, each.definitions[0].name)
        return found

    def add_blocks(self, blocks: Sequence[Unsent]) -> bool:
        """Accept events in blocks of their own."""
        self._close_block()  # events published before come first
        self._queue += blocks
        self._accepted += sum(each.count for each in blocks)
        self._work.set()
        return True

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
        for each in self._lanes.values():
            if each.marks is not None:
                await each.marks.close()
        self._sender = None

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

    def _end_rows(self) -> None:
        if self._rows:
            by_type: dict[str, list[Row]] = {}
            for name, row in self._rows:
                by_type.setdefault(name, []).append(row)
            batches = [self._checks[name].batch(rows) for name, rows in by_type.items()]
            if len(batches) == 1:
                self._open.append(of_one_type(self._rows[0][0], batches[0]))
            else:
                code = {name: at for at, name in enumerate(by_type)}
                codes = np.fromiter((code[name] for name, _ in self._rows), dtype=np.uint16, count=len(self._rows))
                self._open.append(MixedEvents(tuple(by_type), codes, batches))
            self._rows = []

    def _close_block(self, *, full_ones: bool = False) -> None:
        """`full_ones`: events beyond the last full block stay open for more, so that there are fewer blocks."""
        self._end_rows()
        if self._open:
            whole = joined_events(self._open)
            count = len(whole) - (len(whole) % EVENTS_MAX if full_ones else 0)
            self._queue += self._blocks(whole.slice(0, count) if count < len(whole) else whole)
            rest = whole.slice(count, len(whole))
            self._open, self._events, self._bytes = [rest] if len(rest) else [], len(rest), rest.nbytes

    def _blocks(self, events: MixedEvents) -> list[Unsent]:
        if self._mixes and len(events.types) <= TYPES_MAX:
            return [self._unsent(each, payload) for each, payload in mixed_pieces(events)]
        alone = [of_one_type(*each) for each in runs(events)]
        return [self._unsent(each, payload) for some in alone for each, payload in mixed_pieces(some)]

    def _unsent(self, events: MixedEvents, payload: bytes) -> Unsent:
        used = [self._checks[name] for name in events.types]
        return Unsent(len(events), payload, tuple(each.type for each in used), " ".join(each.schema for each in used))

    async def _send(self) -> None:
        try:
            await self._resume()
            while True:
                while not self._queue:
                    await self._gathered()
                await self._send_first()
        except Exception as error:  # every waiting caller receives it
            if isinstance(error, FairleadError) and error.code in TAKEN:
                await self._begin_again()
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
            await self._log.open_topics([self._topic])
            last = await self._log.last_of(self._topic, self._source)
            self._after = 0 if last is None else last.sequence
            block = await self._log.last_block_of(self._topic, self._source)
            if block is not None:
                self._sequence = max(
                    self._sequence, _next(block.block.sequence + block.block.count, block.sequence << INDEX_BITS)
                )
            else:  # a new name, or one that is forgotten
                sequence, self._first = await first_numbers(self._log, self._topic, self._source)
                self._sequence = max(self._sequence, sequence)
            self._resumed = True

    async def _begin_again(self) -> None:
        for each in self._lanes.values():
            if each.marks is not None:
                await each.marks.close()
        self._lanes, self._resumed = {}, False

    async def _lane(self, name: str) -> BlockLane:
        if name not in self._lanes:
            last = await self._log.last_block_of(self._topic, self._source, name)
            marks = None if name == MIXED else RouteMarks(self._log)
            if marks is not None:
                await marks.begin(name, None if last is None or last.block.number >= SEQUENCE_MAX else last.block)
            number = self._first.get(name, 0) if last is None else _next(last.block.number + 1, last.sequence)
            self._lanes[name] = BlockLane(number, marks)
        return self._lanes[name]

    async def _send_first(self) -> None:
        await self._throttle.take()
        block = await self._block(self._queue[0])
        try:
            found = await stored_once(self._log, block, self._after, self._patience, alone=True)
        except LogError as error:
            if error.code != REFUSED or not block.is_mixed:
                raise
            self._separate(block)
            return
        require_ours(found, block)
        lane = self._lanes[block.type]
        if lane.marks is not None:
            lane.marks.stored(found.block)
        lane.number += 1
        self._queue.popleft()
        self._after, self._sequence = found.sequence, self._sequence + block.count
        self._stored += block.count
        async with self._progress:
            self._progress.notify_all()

    async def _block(self, unsent: Unsent) -> Block:
        name = MIXED if unsent.is_mixed else unsent.definitions[0].name
        lane = await self._lane(name)
        types = tuple(each.name for each in unsent.definitions) if unsent.is_mixed else ()
        block = Block(
            name,
            self._source,
            lane.number,
            self._sequence,
            unsent.count,
            unsent.schema,
            unsent.payload,
            self._writer,
            topic=self._topic,
            types=types,
        )
        return block if lane.marks is None else replace(block, marks=lane.marks.marks(block, unsent.definitions[0]))

    def _separate(self, block: Block) -> None:
        """The log refuses mixed blocks of this publisher, which may publish its types one by one."""
        self._mixes = False
        first = self._queue.popleft()
        known = {each.name: each for each in first.definitions}
        digests = dict(zip(block.types, first.schema.split(), strict=True))
        self._queue.extendleft(
            Unsent(len(events), payload, (known[events.types[0]],), digests[events.types[0]])
            for each in reversed(list(runs(events_of(block))))
            for events, payload in reversed(list(mixed_pieces(of_one_type(*each))))
        )


def _next(number: int, other: int) -> int:
    """The number that follows those in the log; `other`, if a stranger has used them up."""
    return number if number < SEQUENCE_MAX else other


@contextmanager
def telling(accepted: bool) -> Iterator[None]:
    """Errors that are raised inside also say what happened to the events of the call. The object changes, since other callers
    receive the same one."""
    try:
        yield
    except FairleadError as error:
        words = f"{error.problem}; {KEPT if accepted else NOT_ACCEPTED}"
        told = type(error)(error.code, words, error.fix, error.place, error.excerpt)
        told.accepted = accepted
        raise told from None
