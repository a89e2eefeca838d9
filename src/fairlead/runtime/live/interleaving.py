"""Reads the streams of groups in one order: the stream's own if there is one, else the merged order of all.

Several streams are merged by the time at which each block was stored (order/merging.py). A block waits until the other streams
are known to be past it, so a quiet stream delays the others. A reader that waits then stores a heartbeat in the topics that it
waits for. All waiting readers try this under one source name, so the log accepts one heartbeat.

    1. take the new blocks of all streams or, if many blocks are held, of the streams that delay them
    2. release the blocks that need not wait, in stretches of one stream
    3. if blocks are held and none was released for a while, store a heartbeat

Takes: the streams, and the progress in each. Gives: stretches of blocks. Never: makes the order depend on arrival; holds more
than about `HELD_MAX` blocks, or what the slowest stream needs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from itertools import groupby
from operator import ge

from fairlead.dataclass import dataclass
from fairlead.model.blobs import packed
from fairlead.model.columns import arrow_array, arrow_schema, record_batch
from fairlead.model.types import HEARTBEAT
from fairlead.order.merging import VERSION, Merging, ReleasedMessage
from fairlead.transport.log.block import Block, schema_digest
from fairlead.transport.log.block_filter import Only
from fairlead.transport.log.protocol import Conflict, Log, Stored, Stream, Unavailable
from fairlead.transport.log.tasks import ended

HELD_MAX = 4096
"""Blocks of a few hundred events each: some hundred megabytes at most."""
CAME_MAX = 1024
"""Blocks of a stream that wait in its queue."""
PULSE_SECONDS = 0.1
"""The shortest interval between heartbeats for waiting readers: some 250 MB a day if one stream is quiet all day while another
is not. A relation that waits for a quiet stream is delivered up to a tenth of a second later."""
PULSE = "=pulse"
"""The source of all these heartbeats; no publisher may have this name."""
NEVER_US = -62_135_596_800_000_000
"""The time of such a heartbeat, the first of the year 1: it moves no clock, and decides nothing."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive blocks of one part: of one of the streams that are read together, by number. If there are several, the times
    of the blocks are those of the merged order."""

    part: int
    blocks: Sequence[Stored]


@dataclass(frozen=True)
class Reached:
    """The progress in a part: the sequence of its last block, and the block's time in the merged order; None before the
    first."""

    sequence: int
    time: int | None = None


class Interleaving:
    """`only`: the filter on a single stream. `beats`: if there are several streams, the parts whose heartbeats are released
    too, and whether a reader waits for them. `further`: by part, the progress of other readers of the same order; after it, no
    block has an earlier time. `seen`: by part, the sequence of the last block that arrived. `given`: the last stretches were
    released, and are still being processed. `topics`: of each stream."""

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
        self._log, self._streams, self._reached, self._only = log, streams, reached, only
        self._topics = {each.name: mine for each, mine in zip(streams, topics, strict=True)}
        self._beats, self._further = beats or {}, further or {}
        self._part = {each.name: at for at, each in enumerate(streams)}
        places = {
            each.name: None if done.time is None else [done.sequence, done.time]
            for each, done in zip(streams, reached, strict=True)
        }
        self._merging: Merging[Stored] = Merging.load({"version": VERSION, "inputs": places})
        self.seen = [each.sequence for each in reached]
        self._came: list[deque[Sequence[Stored] | Exception]] = [deque() for _ in streams]
        self._waiting = [0] * len(streams)
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._moved = 0
        self.given = False

    def has_passed(self, ends: Sequence[int]) -> bool:
        """Whether everything up to these ends, by part, was released and processed."""
        return not self.given and self.has_given(ends)

    def has_given(self, ends: Sequence[int]) -> bool:
        """Whether everything up to these ends, by part, was released."""
        return not self._merging.held and all(map(ge, self.seen, ends))

    async def read(self) -> AsyncGenerator[Sequence[Stretch], None]:
        """The released blocks whenever blocks arrive, without end; the list may be empty."""
        async with aclosing(self._one() if len(self._streams) == 1 else self._several()) as reading:
            async for some in reading:
                self.given = True
                yield some
                self.given = False

    async def _one(self) -> AsyncGenerator[Sequence[Stretch], None]:
        async for blocks in self._log.read(self._streams[0], self._reached[0].sequence, self._only):
            self.seen[0] = blocks[-1].sequence
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
                yield list(_stretches(released, self._part))  # 2
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
        """The part to take from: any with new blocks or, if many blocks are held, one that delays them."""
        much = self._merging.held >= HELD_MAX
        wanted = [self._part[name] for name in self._merging.waits_for()] if much else range(len(self._streams))
        return next((part for part in wanted if self._came[part]), None)

    def _taken(self) -> list[ReleasedMessage[Stored]]:
        released: list[ReleasedMessage[Stored]] = []
        while (part := self._next_part()) is not None:
            came = self._came[part].popleft()
            if isinstance(came, Exception):
                raise came
            self._waiting[part] -= len(came)
            self._room.set()
            for each in came:
                released += self._pushed(part, each)
            self.seen[part] = came[-1].sequence
        return released

    def _pushed(self, part: int, stored: Stored) -> list[ReleasedMessage[Stored]]:
        """Heartbeats only show the progress of their stream: disjunctions do not read them. No reader waits for heartbeats that
        waiting readers stored, or there would be no end of them."""
        name, block, time = self._streams[part].name, stored.block, self._time(part, stored)
        if block.type == HEARTBEAT.name and (block.source == PULSE or not self._beats.get(part)):
            return self._merging.heartbeat(name, time, stored.sequence, stored if part in self._beats else None)
        return self._merging.push(name, time, stored.sequence, stored)

    def _time(self, part: int, stored: Stored) -> int:
        passed = [
            each.time for each in self._further.get(part, ()) if each.time is not None and each.sequence < stored.sequence
        ]
        return max([stored.time, *passed])

    async def _pulsing(self) -> None:
        try:
            while True:
                before = self._moved
                await asyncio.sleep(PULSE_SECONDS)
                if self._merging.held and self._moved == before:
                    quiet = {topic for name in self._merging.waits_for() for topic in self._topics[name]}
                    for topic in sorted(quiet):
                        await pulse(self._log, topic)  # 3
        except Exception as error:
            self._came[0].append(error)
            self._news.set()


def _stretches(released: Sequence[ReleasedMessage[Stored]], parts: dict[str, int]) -> Iterator[Stretch]:
    for name, run in groupby(released, key=lambda each: each.input):
        yield Stretch(parts[name], [each.item._replace(time=each.time) for each in run])


async def pulse(log: Log, topic: str) -> None:
    """Store a heartbeat in a topic, unless another reader stores one at the same time."""
    last = await log.last_of(topic, PULSE)
    number, sequence, after = (0, 0, 0) if last is None else (last.block.number + 1, last.block.sequence + 1, last.sequence)
    at = arrow_array([NEVER_US], HEARTBEAT.attributes[0].type)
    payload = packed(record_batch([at], arrow_schema(HEARTBEAT), 1))
    with suppress(Conflict, Unavailable):
        schema = schema_digest(HEARTBEAT)
        await log.append(Block(HEARTBEAT.name, PULSE, number, sequence, 1, schema, payload, topic=topic), after)
