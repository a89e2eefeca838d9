"""The relations of a group of subscriptions in its streams, from an origin: a function of the log alone.

Two processes that follow the same group from the same origin go through the same states: the same relations with the same
numbers, the same derived blocks, the same receipt. Only their progress differs. So a snapshot that one of them saved serves all
of them.

Takes: blocks in the one order of the streams (stream_merge.py). Gives: numbered relations; derived blocks; its state as bytes.
Never: reads a clock, does I/O; skips a block.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from fairlead.errors import StateError
from fairlead.matching.compiled.planning.costs.cost import may_take_long
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.delivery_order import Interleaved, delivery_words, interleaved
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.core.block_columns import ColumnCache, Rejected
from fairlead.runtime.live.core.deliveries import FoundRelations, FoundVerdicts
from fairlead.runtime.live.core.derived_blocks import HOPS_MAX, emitting_of
from fairlead.runtime.live.core.early import SharedRuns
from fairlead.runtime.live.core.ledger import book_of, dump_book, load_book
from fairlead.runtime.live.core.strand import PlacedRelations, PlacedVerdicts, Strand, StrandFindings, StreamPlace
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup, origin_name
from fairlead.runtime.live.core.stream_merge import Stretch
from fairlead.runtime.parts import OrderPart
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.entry_values import DIGEST, fits
from fairlead.transport.log.protocol import Stream

VERSION = 3
STRAND = {"after": int, "time": (int, type(None)), "bytes?": int, "held?": int, "final?": int, "blocks?": int}
HEAD = {
    "version": int,
    "events": int,
    "book": {"count": int, "total": [int], "stride": int, "samples": [DIGEST]},
    "derived": {str: [int]},
    "verdicts?": {str: int},
    "strands": [STRAND],
}
"""The shape of the first line of a state (transport/log/entry_values.py)."""


class Lineage:
    """`origin`: by stream, the position of the first event to read. `emits`: return the derived blocks too. `places`: the
    progress in each stream. `strands`: the matcher of each part."""

    def __init__(self, group: StreamGroup, origin: Origin, *, emits: bool) -> None:
        self.group, self.origin = group, origin
        self.emitting = emitting_of(group.plan, origin_name(origin)) if emits else ()
        self._derived = {each.subscription.digest: (0, 0) for each in self.emitting}
        self.places = tuple(
            StreamPlace(each, group.heartbeats, first) for each, first in zip(group.inputs, origin, strict=True)
        )
        self.strands = tuple(self._strand(number, part) for number, part in enumerate(group.parts))
        self._stopped = False
        self.events = 0
        self.book = book_of(group, origin)
        self.looped = False
        """A loop of rules that derive events of one another was ended; not part of the state."""
        self.verdicts: Counter[str] = Counter()
        """How many events took no part since the origin, by the reason."""

    def _strand(self, number: int, part: OrderPart) -> Strand:
        places = {at: place for at, place in enumerate(self.places) if place.part == number}
        return Strand(part, places, self._check, emits=bool(self.emitting))

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

    def begin_early(self, runs: SharedRuns, key: str, after: int) -> None:
        """Find early deliveries from here on, if the events are in an order by value. `key`: of the group on its streams.
        `after`: so many deliveries the subscriber has acknowledged. Subscribers share what
        they find if they have the same rules, with the same names and types, from the same origin."""
        declared = tuple(str(self.group.plan.catalogue[name]) for name in self.group.types)
        told = key, self.group.names, self.origin, declared
        for number, each in enumerate(self.strands):
            each.begin_early(runs.of((*told, number)), max(0, after - self.book.count))

    @property
    def is_settled(self) -> bool:
        """Whether all early deliveries are found."""
        return all(each.early is None or each.early.is_settled for each in self.strands)

    def settle(self) -> Sequence[Relation]:
        """The early deliveries, after all blocks so far."""
        found = [each.early.settle() for each in self.strands if each.early is not None]
        return found[0] if found else ()

    def take_rejected(self) -> Rejected:
        """The blocks with rejected events since the last call."""
        found: Rejected = {}
        for each in self.strands:
            found |= each.rejected
            each.rejected = {}
        return found

    @property
    def after(self) -> tuple[int, ...]:
        """By stream, the sequence of the last block that was read."""
        return tuple(each.reached.sequence for each in self.places)

    @property
    def steps(self) -> int:
        """The progress as one number: the order is fixed, so two lineages with the same number have read the same."""
        return sum(self.after)

    def feed(self, stretches: Sequence[Stretch], streams: Sequence[Stream], cache: ColumnCache) -> FoundRelations:
        """Feed the next stretches of blocks; returns the relations found. Raises StateError if blocks are missing, DataError if
        one is damaged."""
        by_part: dict[int, list[int]] = {}
        for turn, each in enumerate(stretches):
            by_part.setdefault(self.places[each.part].part, []).append(turn)
        # an engine takes about as long for one block as for many: feed each part once, then sort its relations into the order
        found, turns = list[StrandFindings](), list[Numbers]()
        for part, mine in sorted(by_part.items()):
            found.append(self.strands[part].feed([stretches[turn] for turn in mine], streams, cache))
            turns.append(np.array(mine)[found[-1].runs])
            self.events += found[-1].events
        if len(found) == 1:
            (one,) = found
            derived = self._derived_blocks(one.final, one.cuts, one.hops)
            found_early = None if one.early is None else replace(one.early, runs=np.array(mine)[one.early.runs])
            return self._numbered(one.relations, turns[0], derived, one.by, self._judged(one.verdicts, mine), found_early)
        relations = interleaved([each.relations for each in found], turns)
        derived = [
            block for owner, run in self._runs(relations) for block in self._derived_blocks(run, None, found[owner].hops)
        ]
        return self._numbered(relations, np.sort(np.concatenate(turns)), derived)

    def _numbered(
        self,
        relations: Sequence[Relation],
        turns: Numbers,
        derived: Sequence[Block],
        by: Numbers | None = None,
        verdicts: FoundVerdicts | None = None,
        early: PlacedRelations | None = None,
    ) -> FoundRelations:
        first, words = self.book.count + 1, delivery_words(relations)
        return FoundRelations(first, relations, turns, words, self.book.note(words), derived, by, verdicts, early)

    def _judged(self, told: PlacedVerdicts | None, turns: Sequence[int]) -> FoundVerdicts | None:
        if told is None:
            return None
        self.verdicts.update(each.value for each in told.found.verdicts)
        return FoundVerdicts(told.found, np.array(turns)[told.runs], told.at)

    def _runs(self, relations: Sequence[Relation]) -> Iterator[tuple[int, Sequence[Relation]]]:
        """Stretches of one part, with its number among those that were fed: blocks of different streams may have the same
        sequence."""
        if not self.emitting or not isinstance(relations, Interleaved):
            yield 0, relations
            return
        cuts = np.flatnonzero(np.diff(relations.owner)) + 1
        for low, high in pairwise([0, *cuts.tolist(), len(relations)]):
            if low < high:
                yield int(relations.owner[low]), relations[low:high]

    def _derived_blocks(self, relations: Sequence[Relation], cuts: Numbers | None, hops: Mapping[int, int]) -> list[Block]:
        found: list[Block] = []
        if len(relations):
            for each in self.emitting:
                number, sequence = self._derived[each.subscription.digest]
                self.looped = self.looped or any(hop >= HOPS_MAX for hop in hops.values())
                for block in each.blocks(relations, number, sequence, cuts, hops):
                    found.append(block)
                    number, sequence = block.number + 1, block.sequence + block.count
                self._derived[each.subscription.digest] = number, sequence
        return found

    def dump(self) -> bytes:
        """One line of JSON, then the states of the engines."""
        head: dict[str, Any] = {
            "version": VERSION,
            "events": self.events,
            "book": dump_book(self.book),
            "derived": self._derived,
            "strands": [],
        }
        if self.verdicts:
            head["verdicts"] = dict(sorted(self.verdicts.items()))
        states = []
        for place in self.places:
            told, strand = place.dump(), self.strands[place.part]
            if place is next(iter(strand.places.values())):  # the first stream of a part has the state of its matcher
                sizes, pieces = strand.dump()
                told |= sizes
                states += pieces
            head["strands"].append(told)
        return json.dumps(head).encode() + b"\n" + b"".join(states)

    @classmethod
    def load(cls, group: StreamGroup, origin: Origin, dumped: bytes, *, emits: bool) -> Lineage:
        """Raises StateError."""
        _, _, states = dumped.partition(b"\n")
        try:
            told = head_of(dumped)
            made = cls(group, origin, emits=emits)
            made.events = told["events"]
            load_book(made.book, told["book"])
            made.verdicts.update(told.get("verdicts", {}))
            made._derived |= {name: tuple(pair) for name, pair in told["derived"].items() if name in made._derived}
            start = 0
            for place, each in zip(made.places, told["strands"], strict=True):
                place.load(each)
                if "bytes" not in each:
                    continue
                start += made.strands[place.part].load(each, states[start:])
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError):
            raise StateError(
                "S132", "the stored state of a subscription is not readable", "remove it: it is rebuilt from the log"
            ) from None
        return made


def head_of(dumped: bytes) -> dict[str, Any]:
    """The first line of a state. Raises ValueError."""
    try:
        told: dict[str, Any] = json.loads(dumped.partition(b"\n")[0])
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not fits(told, HEAD) or told["version"] != VERSION:
        raise ValueError("a state of another version")
    pairs = all(len(each) == 2 and min(each) >= 0 for each in told["derived"].values())
    if not pairs or len(told["book"]["total"]) != 2 or min(told["events"], told["book"]["count"]) < 0:
        raise ValueError("no state")
    return told
