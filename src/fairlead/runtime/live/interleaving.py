"""Reading the streams of groups, in one order: the stream's own where there is one, or that of all of them together.

Several streams are merged by the time at which each block was stored (order/merging.py). A block waits until the other streams
are known to be past it, so a quiet stream holds up the others: then a heartbeat is stored in the log, which every merged stream
takes up. Who stores it does not matter, and all who wait for one try, under one name: the log takes one.

    1. take what came, from all streams, or, where much is held, from those that hold it up
    2. give what may go, in stretches of one stream
    3. where something is held and nothing went for a while, store a heartbeat

Takes: the streams, and how far each was done with before. Gives: stretches of blocks. Never: an order that depends on when
blocks came; holds more than about `HELD_MAX` blocks, or what the slowest stream needs.
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
"""Blocks; of a few hundred events each, some hundred megabytes at most."""
CAME_MAX = 1024
"""Blocks of a stream that wait to be taken."""
PULSE_SECONDS = 0.1
"""At most so often a heartbeat is stored for those who wait: some 250 MB a day if one stream were quiet all day while another
is not, and a tenth of a second more until a relation is delivered then."""
PULSE = "=pulse"
"""The source of all of them; no publisher may be called so."""
NEVER_US = -62_135_596_800_000_000
"""The time of such a heartbeat, the first of the year 1: it moves no clock, and decides nothing."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive blocks of one part: of one of the streams that are read together, by number. Where there are several, their
    times are those of the order."""

    part: int
    blocks: Sequence[Stored]


@dataclass(frozen=True)
class Reached:
    """How far a part is done with: the sequence of the last block, and its time as the order has it; None before the first."""

    sequence: int
    time: int | None = None


class Interleaving:
    """`only`: what is read of a stream that is alone. `beats`: the parts of which heartbeats are given too, where there are
    several, and whether somebody waits for them. `further`: by part, how far others are who go on in the same order: behind
    that, no block has an earlier time than theirs. `seen`: by part, the sequence of the last block that came. `given`: some
    were given, and no more asked for since."""

    def __init__(
        self,
        log: Log,
        streams: Sequence[Stream],
        reached: Sequence[Reached],
        only: Only | None = None,
        beats: Mapping[int, bool] | None = None,
        further: Mapping[int, Sequence[Reached]] | None = None,
    ) -> None:
        self._log, self._streams, self._reached, self._only = log, streams, reached, only
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
        """Whether everything up to there, by part, was given and is done with."""
        return not self.given and self.has_given(ends)

    def has_given(self, ends: Sequence[int]) -> bool:
        """Whether everything up to there, by part, was given."""
        return not self._merging.held and all(map(ge, self.seen, ends))

    async def read(self) -> AsyncGenerator[Sequence[Stretch], None]:
        """What may go, each time that something came, for ever; it may be nothing."""
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
        """The part to take from: any of which something came, or, where much is held, one that holds it up."""
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
        """Heartbeats only say how far their stream is: disjunctions do not read them. For those that are stored for who waits
        nobody waits, or there would be no end of them."""
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
                    await pulse(self._log)  # 3
        except Exception as error:
            self._came[0].append(error)
            self._news.set()


def _stretches(released: Sequence[ReleasedMessage[Stored]], parts: dict[str, int]) -> Iterator[Stretch]:
    for name, run in groupby(released, key=lambda each: each.input):
        yield Stretch(parts[name], [each.item._replace(time=each.time) for each in run])


async def pulse(log: Log) -> None:
    """Store a heartbeat, unless somebody else does just now."""
    last = await log.last_of(HEARTBEAT.name, PULSE)
    number, sequence, after = (0, 0, 0) if last is None else (last.block.number + 1, last.block.sequence + 1, last.sequence)
    at = arrow_array([NEVER_US], HEARTBEAT.attributes[0].type)
    payload = packed(record_batch([at], arrow_schema(HEARTBEAT), 1))
    with suppress(Conflict, Unavailable):
        await log.append(Block(HEARTBEAT.name, PULSE, number, sequence, 1, schema_digest(HEARTBEAT), payload), after)
