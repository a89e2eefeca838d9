"""The streams of groups in one order: the stream's own if there is one, else the merged order of all.

Several streams are merged by the time at which each block was stored (order/merging.py). A block waits until the other streams
are known to be past it, so a quiet stream delays the others, until something is stored in it.

Takes: the progress in each stream, and blocks as they arrive. Gives: stretches of blocks to match; which streams are waited
for. Never: makes the order depend on arrival; reads anything itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import ge

from fairlead.dataclass import dataclass
from fairlead.model.blobs import packed
from fairlead.model.events.columns import arrow_array, arrow_schema, record_batch
from fairlead.model.events.types import HEARTBEAT
from fairlead.order.merging import VERSION, Merging, ReleasedMessage
from fairlead.transport.log.blocks.block import Block, schema_digest
from fairlead.transport.log.protocol import Stored, Stream

HELD_MAX = 4096
"""Blocks of a few hundred events each: some hundred megabytes at most."""
PULSE = "=pulse"
"""The source of the heartbeats that waiting readers store; no publisher may have this name."""
NEVER_US = -62_135_596_800_000_000
"""The time of such a heartbeat, the first of the year 1: it moves no clock, and decides nothing."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive blocks of one part: of one of the streams that are read together, by number. If there are several, the blocks
    have their times in the merged order."""

    part: int
    blocks: Sequence[Stored]


@dataclass(frozen=True)
class Reached:
    """The progress in a part: the sequence of its last block, and the block's time in the merged order; None before the
    first."""

    sequence: int
    time: int | None = None


class StreamMerge:
    """Several streams, by part. `beats`: the parts whose heartbeats are released too, and whether a reader waits for them.
    `further`: by part, the progress of other readers of the same order; after it, no block has an earlier time. `seen`: by
    part, the sequence of the last block that arrived."""

    def __init__(
        self,
        streams: Sequence[Stream],
        reached: Sequence[Reached],
        beats: Mapping[int, bool] | None = None,
        further: Mapping[int, Sequence[Reached]] | None = None,
    ) -> None:
        self._streams = streams
        self._beats, self._further = beats or {}, further or {}
        self._part = {each.name: at for at, each in enumerate(streams)}
        places = {
            each.name: None if done.time is None else [done.sequence, done.time]
            for each, done in zip(streams, reached, strict=True)
        }
        self._merging: Merging[Stored] = Merging.load({"version": VERSION, "inputs": places})
        self.seen = [each.sequence for each in reached]

    @property
    def holds(self) -> bool:
        """Whether blocks wait for other streams."""
        return bool(self._merging.held)

    def has_given(self, ends: Sequence[int]) -> bool:
        """Whether everything up to these ends, by part, was released."""
        return not self.holds and all(map(ge, self.seen, ends))

    def waits_for(self) -> list[int]:
        """The parts that delay the next block; empty if none is held."""
        return [self._part[name] for name in self._merging.waits_for()]

    def wanted(self) -> Sequence[int]:
        """The parts to take blocks from: all or, if many blocks are held, those that delay them."""
        return self.waits_for() if self._merging.held >= HELD_MAX else range(len(self._streams))

    def push(self, part: int, blocks: Sequence[Stored]) -> list[ReleasedMessage[Stored]]:
        """Add the next blocks of a part; returns those that need not wait any more, of all parts."""
        released: list[ReleasedMessage[Stored]] = []
        for each in blocks:
            released += self._pushed(part, each)
        self.seen[part] = blocks[-1].sequence
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

    def stretches(self, released: Sequence[ReleasedMessage[Stored]]) -> Iterator[Stretch]:
        """Released blocks, in stretches of one part."""
        for name, run in groupby(released, key=lambda each: each.input):
            yield Stretch(self._part[name], [each.item._replace(merged=each.time) for each in run])


def pulse_after(last: Stored | None, topic: str) -> Block:
    """The next heartbeat of waiting readers in a topic, after the last one."""
    number, sequence = (0, 0) if last is None else (last.block.number + 1, last.block.sequence + 1)
    at = arrow_array([NEVER_US], HEARTBEAT.attributes[0].type)
    payload = packed(record_batch([at], arrow_schema(HEARTBEAT), 1))
    return Block(HEARTBEAT.name, PULSE, number, sequence, 1, schema_digest(HEARTBEAT), payload, topic=topic)
