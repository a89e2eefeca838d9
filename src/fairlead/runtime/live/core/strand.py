"""One part of a group at work: a matcher, and its progress in the streams that it reads.

A part reads one stream. If the events are in an order by value (ORDER BY), it reads the streams of all its topics, in the one
order by stored time (stream_merge.py), not a merged stream of the log: the order of that one depends on when it was created.
The sequence of such a part is the merged order, and its blocks are counted from the origin; so a round, a derived block and a
verdict have the same place for everybody.

Takes: blocks in the one order of the streams. Gives: relations, each with its place in the log. Never: reads a clock, does I/O;
skips a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.engine import Engine
from fairlead.matching.compiled.machine_code.interruption import Check
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.delivery_order import completed
from fairlead.model.identity import majors_of
from fairlead.model.relation import Relation
from fairlead.order.continuity import Continuity
from fairlead.runtime.event_time import EventTimeBuffer
from fairlead.runtime.live.core.block_columns import ColumnCache
from fairlead.runtime.live.core.stream_groups import GroupStream
from fairlead.runtime.live.core.stream_merge import Reached, Stretch
from fairlead.runtime.parts import OrderPart
from fairlead.transport.log.block import INDEX_BITS
from fairlead.transport.log.protocol import Stored, Stream

KERNELS_FROM = 1_000
"""Events after which kernels take over, fewer than elsewhere (matching/unit.py): a subscriber runs long, so kernels pay off,
and incoming events wait in the meantime."""


class StreamPlace:
    """The progress in one stream. `reached`: the last block that was read. `origin`: the position of the first event."""

    def __init__(self, given: GroupStream, heartbeats: Sequence[str], origin: int) -> None:
        self.part, self.origin = given.part, origin
        self.types = (*given.types, *heartbeats)
        self.reached = Reached(max(0, (origin >> INDEX_BITS) - 1))
        self.continuity = Continuity(from_beginning=origin == 0)

    def fresh(self, blocks: Sequence[Stored]) -> list[Stored]:
        """The next blocks, without repeats. Raises StateError if some are missing."""
        found = []
        for each in blocks:
            block = each.block
            if self.continuity.check(block.lane, block.source, block.number, block.count, block.before):
                found.append(each)
        self.reached = Reached(blocks[-1].sequence, blocks[-1].order_time)
        return found

    def dump(self) -> dict[str, Any]:
        place = {"after": self.reached.sequence, "time": self.reached.time}
        return place | {"continuity": self.continuity.dump()}

    def load(self, told: Mapping[str, Any]) -> None:
        self.reached = Reached(told["after"], told["time"])
        self.continuity = Continuity.load(told["continuity"])


@dataclass(frozen=True, eq=False)
class StrandFindings:
    """`runs`: for each relation, the number of the stretch that completed it, of those that were fed. `by`: if the events are
    in an order by value, the position in its stream of the event by which the frontier passed each completion; `cuts`: the
    same in the sequence of the part. `events`: how many were fed."""

    relations: Sequence[Relation]
    runs: Numbers
    events: int = 0
    by: Numbers | None = None
    cuts: Numbers | None = None


class Strand:
    """The matcher of one part. `places`: by the number of the stream in its group. `blocks`: how many were read, if there are
    several streams."""

    def __init__(self, part: OrderPart, places: Mapping[int, StreamPlace], check: Check) -> None:
        self.part, self.places = part, places
        self.engine = Engine(part.plan, kernels_from=KERNELS_FROM, check=check)
        order = part.plan.order
        self.buffer = None if order is None else EventTimeBuffer(order, part.plan.catalogue)
        self.blocks = 0

    def feed(self, stretches: Sequence[Stretch], streams: Sequence[Stream], cache: ColumnCache) -> StrandFindings:
        """The next stretches, in their order."""
        some = [self.places[each.part].fresh(each.blocks) for each in stretches]
        blocks = [block for mine in some for block in mine]
        if not blocks:
            return StrandFindings([], np.zeros(0, dtype=np.int64))
        numbers = self._numbers(blocks)
        catalogue, ordered = self.part.plan.catalogue, self.buffer is not None
        if len(self.places) == 1:
            ((at, place),) = self.places.items()
            prepared = cache.prepared((streams[at],), blocks, catalogue, place.types, place.origin, sourced=ordered)
        else:
            read = tuple(streams[each.part] for each, mine in zip(stretches, some, strict=True) for _ in mine)
            types = [name for each in self.places.values() for name in each.types]
            prepared = cache.prepared(read, blocks, catalogue, types, 0, sourced=ordered, numbers=numbers)
        if self.buffer is None:
            relations, by = self.engine.feed(prepared.columns, prepared), None
        else:
            released, events = cache.steps.step(self.buffer, prepared.columns)
            relations = self.engine.feed(released.columns, events)
            by = released.by[majors_of(completed(relations)) - (self.buffer.next - len(released.by))]
        runs, by, cuts = self._places(relations, by, blocks, numbers, np.repeat(np.arange(len(some)), list(map(len, some))))
        return StrandFindings(relations, runs, len(prepared.columns), by, cuts)

    def _numbers(self, blocks: Sequence[Stored]) -> Numbers:
        """The numbers of blocks in the sequence of the part."""
        if len(self.places) == 1:
            return np.array([each.sequence for each in blocks])
        self.blocks += len(blocks)
        return np.arange(self.blocks - len(blocks), self.blocks) + 1

    def _places(
        self, relations: Sequence[Relation], by: Numbers | None, blocks: Sequence[Stored], numbers: Numbers, runs: Numbers
    ) -> tuple[Numbers, Numbers | None, Numbers | None]:
        """For each relation its stretch, and the position by which it was released, in its stream and in the sequence."""
        at = majors_of(completed(relations)) if by is None else by
        place = np.searchsorted(numbers, at >> INDEX_BITS)
        if by is None or len(self.places) == 1:
            return runs[place], by, by
        sequences = np.array([each.sequence for each in blocks])
        return runs[place], (sequences[place] << INDEX_BITS) | (by & ((1 << INDEX_BITS) - 1)), by
