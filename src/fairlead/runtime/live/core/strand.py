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
from dataclasses import field, replace
from typing import Any

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.engine import Engine
from fairlead.matching.compiled.machine_code.interruption import Check
from fairlead.matching.compiled.running.batch import Prepared
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.delivery_order import completed
from fairlead.model.events.columns import Columns
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import majors_of
from fairlead.model.relations.relation import Relation
from fairlead.runtime.event_time import EventTimeMatcher, EventVerdicts
from fairlead.runtime.event_time.shared_steps import SharedSteps
from fairlead.runtime.live.core.block_columns import ColumnCache, Rejected
from fairlead.runtime.live.core.early import EarlyMatcher, LineageRuns, reordered
from fairlead.runtime.live.core.stream_groups import GroupStream
from fairlead.runtime.live.core.stream_merge import Reached, Stretch
from fairlead.runtime.parts import OrderPart
from fairlead.transport.log.blocks.block import INDEX_BITS
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

    def pass_by(self, blocks: Sequence[Stored]) -> None:
        """These are read."""
        self.reached = Reached(blocks[-1].sequence, blocks[-1].order_time)

    def dump(self) -> dict[str, Any]:
        return {"after": self.reached.sequence, "time": self.reached.time}

    def load(self, told: Mapping[str, Any]) -> None:
        self.reached = Reached(told["after"], told["time"])


@dataclass(frozen=True, eq=False)
class PlacedVerdicts:
    """Verdicts on events that take no part. `runs`, `at`: for each the number of its stretch, of those that were fed, and its
    position in its stream."""

    found: EventVerdicts
    runs: Numbers
    at: Numbers


@dataclass(frozen=True, eq=False)
class PlacedRelations:
    """Early deliveries. `runs`, `by`: as in StrandFindings; all are after the last block."""

    relations: Sequence[Relation]
    runs: Numbers
    by: Numbers


@dataclass(frozen=True, eq=False)
class StrandFindings:
    """`runs`: for each relation, the number of the stretch that completed it, of those that were fed. `by`: if the events are
    in an order by value, the position in its stream of the event by which the frontier passed each completion. `final`: the
    relations whose derived events can be stored, and `cuts`: the blocks of the sequence that completed them; None: those of
    all relations, by their positions. `events`: how many were fed. `hops`: of the blocks that were fed, by their numbers in the
    sequence, if they have some."""

    relations: Sequence[Relation]
    runs: Numbers
    events: int = 0
    by: Numbers | None = None
    final: Sequence[Relation] = ()
    cuts: Numbers | None = None
    verdicts: PlacedVerdicts | None = None
    early: PlacedRelations | None = None
    hops: Mapping[int, int] = field(default_factory=dict)


class Strand:
    """The matcher of one part. `places`: by the number of the stream in its group. `blocks`: how many were read, if there are
    several streams. `rejected`: of the blocks that were fed since somebody looked, those that have rejected events.

    With LATE REVISE, relations are delivered before they are final, and may be taken back; the log holds final facts only. So a
    second matcher, which waits for as long as late events are accepted, finds what is stored (`emits`). It accepts the same
    events, as its frontier is that of the first one, less the time for revisions."""

    def __init__(self, part: OrderPart, places: Mapping[int, StreamPlace], check: Check, *, emits: bool) -> None:
        self.part, self.places, self.blocks = part, places, 0
        self.rejected: Rejected = {}
        self._arguments: dict[str, Any] = {"kernels_from": KERNELS_FROM, "check": check}
        # what has no place in the order is in the log, so it cannot be an error for every reader
        self._ordering = self._arguments | {"rejects": True}
        order = part.plan.order
        self.matcher = None if order is None else EventTimeMatcher(part.plan, INDEX_BITS, **self._ordering)
        self._engine = Engine(part.plan, **self._arguments) if self.matcher is None else None
        self.early: EarlyMatcher | None = None
        self.final: EventTimeMatcher | None = None
        if order is not None and order.revise_us is not None and emits:
            self.final = EventTimeMatcher(self._final_plan(order), INDEX_BITS, **self._ordering)

    def _final_plan(self, order: EventOrder) -> Plan:
        behind = (order.delay_us or 0) + (order.revise_us or 0)
        return reordered(self.part.plan, replace(order, delay_us=behind, revise_us=None))

    @property
    def engine(self) -> Engine:
        if self._engine is not None:
            return self._engine
        assert self.matcher is not None
        return self.matcher.engine

    def feed(self, stretches: Sequence[Stretch], streams: Sequence[Stream], cache: ColumnCache) -> StrandFindings:
        """The next stretches, in their order."""
        for each in stretches:
            self.places[each.part].pass_by(each.blocks)
        some = [each.blocks for each in stretches]
        blocks = [block for mine in some for block in mine]
        places = BlockPlaces(blocks, self._numbers(blocks), np.repeat(np.arange(len(some)), list(map(len, some))))
        prepared, rejected = self._prepared(stretches, some, places, streams, cache)
        self.rejected |= rejected
        if self._engine is not None:
            relations = self._engine.feed(prepared.columns, prepared)
            one = len(stretches) == 1
            runs = np.zeros(len(relations), dtype=np.int64) if one else places.runs_of(majors_of(completed(relations)))
            return StrandFindings(relations, runs, len(prepared.columns), final=relations, hops=places.hops)
        assert self.matcher is not None
        return replace(self._ordered(self.matcher, prepared.columns, places, cache.steps), hops=places.hops)

    def _ordered(self, matcher: EventTimeMatcher, columns: Columns, places: BlockPlaces, steps: SharedSteps) -> StrandFindings:
        order = self.part.plan.order
        stored = None if order is None or order.ahead_us is None else places.times_of(columns.position_array)
        found = matcher.step(columns, stored, closed=True, steps=steps)  # blocks are whole
        final = found if self.final is None else self.final.step(columns, stored, closed=True, steps=steps)
        told = found.verdicts.columns.position_array
        verdicts = PlacedVerdicts(found.verdicts, places.runs_of(told), places.own(told)) if len(told) else None
        ahead = None if self.early is None else places.at_the_end(self.early.step(columns, stored, found.relations))
        runs, by = places.runs_of(found.by), places.own(found.by)
        return StrandFindings(found.relations, runs, len(columns), by, final.relations, final.by, verdicts, ahead)

    def begin_early(self, runs: LineageRuns, known: int) -> None:
        """Find early deliveries from here on. `runs`: those of the lineage; `known`: see EarlyMatcher."""
        if self.matcher is not None and self.early is None:
            self.early = EarlyMatcher(self.matcher, runs, known=known, **self._arguments)

    def _prepared(
        self,
        stretches: Sequence[Stretch],
        some: Sequence[Sequence[Stored]],
        places: BlockPlaces,
        streams: Sequence[Stream],
        cache: ColumnCache,
    ) -> tuple[Prepared, Rejected]:
        catalogue, ordered = self.part.plan.catalogue, self.matcher is not None
        if len(self.places) == 1:
            ((at, place),) = self.places.items()
            return cache.prepared((streams[at],), places.blocks, catalogue, place.types, place.origin, sourced=ordered)
        read = tuple(streams[each.part] for each, mine in zip(stretches, some, strict=True) for _ in mine)
        types = [name for each in self.places.values() for name in each.types]
        return cache.prepared(read, places.blocks, catalogue, types, 0, sourced=ordered, numbers=places.numbers)

    def _numbers(self, blocks: Sequence[Stored]) -> Numbers:
        """The numbers of blocks in the sequence of the part."""
        if len(self.places) == 1:
            return np.array([each.sequence for each in blocks])
        self.blocks += len(blocks)
        return np.arange(self.blocks - len(blocks), self.blocks) + 1

    def dump(self) -> tuple[dict[str, int], list[bytes]]:
        """Its state: sizes, and as many pieces."""
        states = [self.engine.dump()]
        sizes = {"bytes": len(states[0])}
        for name, held in (
            ("held", b"" if self.matcher is None else self.matcher.held()),
            ("final", b"" if self.final is None else self.final.dump()),
        ):
            states.append(held)
            sizes |= {name: len(held)} if held else {}
        return sizes | ({"blocks": self.blocks} if len(self.places) > 1 else {}), states

    def load(self, told: Mapping[str, int], states: bytes) -> int:
        """The inverse of `dump`; returns how many bytes it took."""
        ends = np.cumsum([0, *(told.get(name, 0) for name in ("bytes", "held", "final"))]).tolist()
        engine = Engine.load(self.part.plan, states[: ends[1]], **self._arguments)
        self.blocks = told.get("blocks", 0)
        if self.matcher is None:
            self._engine = engine
        else:
            held = states[ends[1] : ends[2]]
            self.matcher = EventTimeMatcher.resume(self.part.plan, engine, held, INDEX_BITS, **self._ordering)
        if self.final is not None:
            self.final = EventTimeMatcher.load(self.final.plan, states[ends[2] : ends[3]], INDEX_BITS, **self._ordering)
        return int(ends[3])


@dataclass(frozen=True, eq=False)
class BlockPlaces:
    """Blocks of one feed. `numbers`: theirs in the sequence of the part, rising. `runs`: the number of the stretch of each."""

    blocks: Sequence[Stored]
    numbers: Numbers
    runs: Numbers

    @property
    def hops(self) -> Mapping[int, int]:
        return {int(number): each.block.hops for number, each in zip(self.numbers, self.blocks, strict=True) if each.block.hops}

    def _at(self, positions: Numbers) -> Numbers:
        found: Numbers = np.searchsorted(self.numbers, positions >> INDEX_BITS)
        return found

    def runs_of(self, positions: Numbers) -> Numbers:
        """The stretch of each position of the sequence."""
        return self.runs[self._at(positions)]

    def own(self, positions: Numbers) -> Numbers:
        """The positions of the sequence as positions in the streams."""
        sequences = np.array([each.sequence for each in self.blocks])
        return (sequences[self._at(positions)] << INDEX_BITS) | (positions & ((1 << INDEX_BITS) - 1))

    def at_the_end(self, relations: Sequence[Relation]) -> PlacedRelations:
        """The relations after the last block."""
        last = (self.blocks[-1].sequence + 1 << INDEX_BITS) - 1
        runs, by = (np.full(len(relations), each, dtype=np.int64) for each in (self.runs[-1], last))
        return PlacedRelations(relations, runs, by)

    def times_of(self, positions: Numbers) -> Numbers:
        """When the log stored the event at each position of the sequence, in the stream of its topic."""
        return np.array([each.time for each in self.blocks])[self._at(positions)]
