"""The relations of a group of subscriptions in its streams, from an origin: a function of the log alone.

Two processes that follow the same group from the same origin go through the same states: the same relations with the same
numbers, the same derived blocks, the same receipt. Only their progress differs. So a snapshot that one of them saved serves all
of them.

Takes: blocks in the one order of the streams (stream_merge.py). Gives: numbered relations; derived blocks; its state as bytes.
Never: reads a clock, does I/O; skips a block.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.matching.compiled.machine_code.interruption import Check
from fairlead.matching.compiled.planning.cost import may_take_long
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.delivery_order import Interleaved, completed, ids_of, interleaved
from fairlead.model.identity import majors_of
from fairlead.model.relation import Relation
from fairlead.order.continuity import Continuity
from fairlead.runtime.event_time import EventTimeBuffer
from fairlead.runtime.live.core.block_columns import ColumnCache
from fairlead.runtime.live.core.deliveries import FoundRelations, book_of, dump_book, load_book
from fairlead.runtime.live.core.derived_blocks import emitting_of
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup, origin_name
from fairlead.runtime.live.core.stream_merge import Reached, Stretch
from fairlead.runtime.parts import OrderPart
from fairlead.transport.log.block import INDEX_BITS, Block
from fairlead.transport.log.protocol import Stored, Stream

VERSION = 3
FoundInStream = tuple[Sequence[Relation], Numbers | None]
"""Relations, and for an order by value where in the log the frontier passed their completion."""
KERNELS_FROM = 1_000
"""Events after which kernels take over, fewer than elsewhere (matching/unit.py): a subscriber runs long, so kernels pay off,
and incoming events wait in the meantime."""


class Strand:
    """The matcher of one part of the group on its stream. `reached`: the last block that was read."""

    def __init__(self, part: OrderPart, heartbeats: Sequence[str], origin: int, check: Check) -> None:
        self.part, self.origin = part, origin
        self.types = (*part.types, *heartbeats)
        self.definitions = tuple(part.plan.catalogue[name] for name in self.types)
        self.reached = Reached(max(0, (origin >> INDEX_BITS) - 1))
        self.engine = Engine(part.plan, kernels_from=KERNELS_FROM, check=check)
        self.continuity = Continuity(from_beginning=origin == 0)
        order = part.plan.order
        self.buffer = None if order is None else EventTimeBuffer(order, part.plan.catalogue)

    def feed(self, blocks: Sequence[Stored], stream: Stream, cache: ColumnCache) -> tuple[FoundInStream, int]:
        """What is found, and the number of events."""
        fresh = []
        for each in blocks:
            block = each.block
            if self.continuity.check(block.lane, block.source, block.number, block.count, block.before):
                fresh.append(each)
        self.reached = Reached(blocks[-1].sequence, blocks[-1].time)
        if not fresh:
            return ([], None), 0
        catalogue, sourced = self.part.plan.catalogue, self.buffer is not None
        prepared = cache.prepared(stream, fresh, catalogue, self.types, self.origin, sourced=sourced)
        if self.buffer is None:
            return (self.engine.feed(prepared.columns, prepared), None), len(prepared.columns)
        released, prepared_events = cache.steps.step(self.buffer, self.definitions, prepared.columns)
        relations = self.engine.feed(released.columns, prepared_events)
        by = released.by[majors_of(completed(relations)) - (self.buffer.next - len(released.by))]
        return (relations, by), len(prepared.columns)


class Lineage:
    """`origin`: by part, the position of the first event to read. `emits`: return the derived blocks too."""

    def __init__(self, group: StreamGroup, origin: Origin, *, emits: bool) -> None:
        self.group, self.origin = group, origin
        beats = group.heartbeats
        self.strands = tuple(Strand(part, beats, first, self._check) for part, first in zip(group.parts, origin, strict=True))
        self._stopped = False
        self.events = 0
        self.book = book_of(group, origin)
        self.emitting = emitting_of(group.plan, origin_name(origin)) if emits else ()
        self._derived = {each.subscription.digest: (0, 0) for each in self.emitting}

    @cached_property
    def may_take_long(self) -> bool:
        """Whether a feed can take longer than the other tasks of the process may wait."""
        return any(may_take_long(part.plan) for part in self.group.parts)

    def stop(self) -> None:
        """Stops a feed that runs in another thread, soon. The feed raises, and the lineage is unusable afterwards."""
        self._stopped = True

    def _check(self) -> None:
        if self._stopped:
            raise StateError("S115", "matching was interrupted in the middle of a batch", "subscribe again")

    @property
    def after(self) -> tuple[int, ...]:
        """By part, the sequence of the last block that was read."""
        return tuple(each.reached.sequence for each in self.strands)

    @property
    def steps(self) -> int:
        """The progress as one number: the order is fixed, so two lineages with the same number have read the same."""
        return sum(self.after)

    def feed(self, stretches: Sequence[Stretch], streams: Sequence[Stream], cache: ColumnCache) -> FoundRelations:
        """Feed the next stretches of blocks; returns the relations found. Raises StateError if blocks are missing, DataError if
        one is damaged."""
        if len(stretches) == 1:
            part, mine = stretches[0].part, stretches[0].blocks
            alone, by = self._found(part, mine, streams[part], cache)
            return self._numbered(alone, np.zeros(len(alone), dtype=np.int64), by)
        blocks: dict[int, list[Stored]] = {}
        for each in stretches:
            blocks.setdefault(each.part, []).extend(each.blocks)
        # an engine takes about as long for one block as for many: feed each part once, then sort its relations into the order
        found, turns = [], []
        for part, mine in sorted(blocks.items()):
            relations, by = self._found(part, mine, streams[part], cache)
            sequences = np.array([each.sequence for each in mine])
            turn = np.array([at for at, each in enumerate(stretches) if each.part == part for _ in each.blocks])
            found.append(relations)
            at = majors_of(completed(relations)) if by is None else by
            turns.append(turn[np.searchsorted(sequences, at >> INDEX_BITS)])
        if len(found) == 1:
            return self._numbered(found[0], turns[0], by)
        return self._numbered(interleaved(found, turns), np.sort(np.concatenate(turns)))

    def _found(self, part: int, blocks: Sequence[Stored], stream: Stream, cache: ColumnCache) -> FoundInStream:
        found, events = self.strands[part].feed(blocks, stream, cache)
        self.events += events
        return found

    def _numbered(self, relations: Sequence[Relation], turns: Numbers, by: Numbers | None = None) -> FoundRelations:
        first, ids = self.book.count + 1, ids_of(relations)
        digests = self.book.note(ids)
        derived = [block for run in self._runs(relations) for block in self._derived_blocks(run, by)]
        return FoundRelations(first, relations, turns, ids, digests, derived, by)

    def _runs(self, relations: Sequence[Relation]) -> Iterator[Sequence[Relation]]:
        """Stretches of one part: blocks of different streams may have the same sequence."""
        if not self.emitting or not isinstance(relations, Interleaved):
            yield relations
            return
        cuts = np.flatnonzero(np.diff(relations.owner)) + 1
        for low, high in pairwise([0, *cuts.tolist(), len(relations)]):
            yield relations[low:high]

    def _derived_blocks(self, relations: Sequence[Relation], by: Numbers | None) -> list[Block]:
        found: list[Block] = []
        if len(relations):
            for each in self.emitting:
                number, sequence = self._derived[each.subscription.digest]
                for block in each.blocks(relations, number, sequence, by):
                    found.append(block)
                    number, sequence = block.number + 1, block.sequence + block.count
                self._derived[each.subscription.digest] = number, sequence
        return found

    @property
    def is_whole(self) -> bool:
        """Whether its state serves every subscriber, including those that store derived events."""
        return len(self.emitting) == sum(self.group.plan[name].emits is not None for name in self.group.names)

    def dump(self) -> bytes:
        """One line of JSON, then the states of the engines."""
        head: dict[str, Any] = {
            "version": VERSION,
            "events": self.events,
            "book": dump_book(self.book),
            "derived": self._derived,
            "strands": [],
        }
        states = []
        for each in self.strands:
            held = b"" if each.buffer is None else each.buffer.dump()
            states += [each.engine.dump(), held]
            place = {"after": each.reached.sequence, "time": each.reached.time}
            size = {"bytes": len(states[-2])} | ({"held": len(held)} if held else {})
            head["strands"].append(place | {"continuity": each.continuity.dump()} | size)
        return json.dumps(head).encode() + b"\n" + b"".join(states)

    @classmethod
    def load(cls, group: StreamGroup, origin: Origin, dumped: bytes, *, emits: bool) -> Lineage:
        """Raises StateError."""
        head, _, states = dumped.partition(b"\n")
        try:
            told = json.loads(head)
            if told["version"] != VERSION:
                raise ValueError(told["version"])
            made = cls(group, origin, emits=emits)
            made.events = told["events"]
            load_book(made.book, told["book"])
            made._derived |= {name: tuple(pair) for name, pair in told["derived"].items() if name in made._derived}
            start = 0
            for strand, each in zip(made.strands, told["strands"], strict=True):
                strand.reached = Reached(each["after"], each["time"])
                strand.continuity = Continuity.load(each["continuity"])
                strand.engine = Engine.load(
                    strand.part.plan, states[start : start + each["bytes"]], KERNELS_FROM, check=made._check
                )
                start += each["bytes"]
                if strand.buffer is not None:
                    strand.buffer.load(states[start : start + each["held"]])
                    start += each["held"]
        except (ValueError, KeyError, TypeError):
            raise StateError(
                "S132", "the stored state of a subscription is not readable", "remove it: it is rebuilt from the log"
            ) from None
        return made
