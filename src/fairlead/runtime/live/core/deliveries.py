"""A subscriber's deliveries: relations many at a time, in one order, with their numbers; and verdicts on events among them.

Each group has its own numbers, receipts and states. The relations that several groups complete in the same blocks are sorted as
docs/semantics.md defines: by the position of completion; at one position, relations decided by deadlines come first, by
deadline; then the order of the text. If events are in an order by value, by the event of the log that released them; then the
order of the text. This order is a function of the log, wherever each group began.

A verdict on an event is a function of the log, too: a report has its place among the relations, and no number.

Takes: relations of groups that are followed together, as they are found. Gives: batches in the one order, each relation with
its number; for a delivery, the earlier deliveries of each group. Never: copies relations; delivers what was acknowledged.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.delivery_order import by_turn
from fairlead.matching.results.relation_batches import only, relation_table
from fairlead.model.events.types import Catalogue
from fairlead.model.events.verdict import EventReport
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import Words
from fairlead.model.relations.layout import layout_of
from fairlead.model.relations.relation import Relation
from fairlead.runtime.event_time import EventVerdicts
from fairlead.runtime.live.core.ledger import Ledger
from fairlead.runtime.live.core.strand import PlacedRelations
from fairlead.transport.log.blocks.block import Block


@dataclass(frozen=True, eq=False)
class DeliveryNumbers:
    """The numbers of relations that are delivered one after the other. `keys`: the groups of these relations. `firsts`: the
    number of the first relation of each group; numbers start at 1. `owner`: for each relation, the index of its group; None if
    there is only one group."""

    count: int
    keys: tuple[str, ...]
    firsts: tuple[int, ...]
    owner: npt.NDArray[np.int32] | None = None

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """For each relation, the key of its group and its number there."""
        numbers = list(self.firsts)
        for owner in repeat(0, self.count) if self.owner is None else self.owner.tolist():
            yield self.keys[owner], numbers[owner]
            numbers[owner] += 1

    @cached_property
    def lasts(self) -> dict[str, int]:
        """By group, the number of the last relation."""
        return self.lasts_of(self.count)

    def lasts_of(self, count: int) -> dict[str, int]:
        """By group, the number of its last relation among the first `count`; if it has none, one less than its first number."""
        if self.owner is None:
            return {self.keys[0]: self.firsts[0] + count - 1}
        counts = np.bincount(self.owner[:count], minlength=len(self.keys)).tolist()
        return {key: first + each - 1 for key, first, each in zip(self.keys, self.firsts, counts, strict=True)}

    @property
    def last(self) -> tuple[str, int]:
        """The group of the last relation, and its number there."""
        key = self.keys[0 if self.owner is None else int(self.owner[-1])]
        return key, self.lasts[key]

    def place_of(self, key: str, number: int) -> int:
        """The index of a relation in this batch; negative if the relation is before the batch. It must not be after the
        batch."""
        mine = self.keys.index(key)
        place = number - self.firsts[mine]
        return place if self.owner is None or place < 0 else int(np.flatnonzero(self.owner == mine)[place])

    def behind(self, count: int) -> DeliveryNumbers:
        """The numbers without the first `count`."""
        firsts = tuple(each + 1 for each in self.lasts_of(count).values())
        return DeliveryNumbers(self.count - count, self.keys, firsts, None if self.owner is None else self.owner[count:])


NO_NUMBERS = DeliveryNumbers(0, (), (), np.zeros(0, dtype=np.int32))


@dataclass(frozen=True, eq=False)
class Batch(Sequence[Relation]):
    """Relations that were completed close together, in the order of delivery. Relations found by kernels become objects when
    accessed. `reports`: on events that take no part, if the subscriber asked for them; `before`: for each, how many relations
    of the batch are delivered before it. `early`: the relations are early ones, which have no numbers."""

    plan: Plan
    relations: Sequence[Relation]
    numbering: DeliveryNumbers
    reports: Sequence[EventReport] = ()
    before: Sequence[int] = ()
    early: bool = False

    def __len__(self) -> int:
        return len(self.relations)

    def __iter__(self) -> Iterator[Relation]:
        return iter(self.relations)

    @overload
    def __getitem__(self, at: int) -> Relation: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Relation]: ...
    def __getitem__(self, at: int | slice) -> Relation | Sequence[Relation]:
        return self.relations[at]

    def numbered(self) -> Iterator[tuple[str, int, Relation]]:
        """Each relation with the key of its group (one of `receipts`) and its number there; early ones have none."""
        for (key, number), relation in zip(self.numbering, self.relations, strict=not self.early):
            yield key, number, relation

    @property
    def lasts(self) -> dict[str, int]:
        """By group, the number of the last relation."""
        return self.numbering.lasts

    def behind(self, count: int) -> Batch:
        """The batch without the first `count` relations."""
        return self.left(count, bisect_right(self.before, count - 1)) if count else self

    def left(self, count: int, reports: int) -> Batch:
        """The batch without the first `count` relations, and so many reports."""
        before = [each - count for each in self.before[reports:]]
        left, numbering = self.relations[count:], self.numbering if self.early else self.numbering.behind(count)
        return Batch(self.plan, left, numbering, self.reports[reports:], before, self.early)

    def to_arrow(self, subscription: str | None = None) -> pa.Table:
        """A table (model/relations/layout.py) of all relations, or of those of one subscription."""
        chosen = self.relations if subscription is None else only(self.relations, subscription)
        return relation_table([chosen], layout_of(self.plan, subscription))


@dataclass(frozen=True, eq=False)
class FoundVerdicts:
    """The verdicts of a group in the next blocks. `turns`: for each event, the number of its stretch. `at`: its position in its
    stream."""

    found: EventVerdicts
    turns: Numbers
    at: Numbers


@dataclass(frozen=True, eq=False)
class FoundRelations:
    """The relations of a group in the next blocks. `first`: the number of the first relation; numbers start at 1. `turns`: for
    each relation, the number of the stretch that completed it. `words`: of the deliveries (model/relations/identity.py),
    `digests`: the digest of the receipt after each. `derived`: the blocks of emitted events. `by`: if the events are in an
    order by value, for each relation the position in its stream of the event by which the frontier passed its completion;
    `verdicts`: on events that take no part then; `early`: deliveries before the delay has passed."""

    first: int
    relations: Sequence[Relation]
    turns: Numbers
    words: Words
    digests: Words
    derived: Sequence[Block]
    by: Numbers | None = None
    verdicts: FoundVerdicts | None = None
    early: PlacedRelations | None = None


@dataclass(frozen=True, eq=False)
class GroupFindings:
    """What a group found in the blocks that all groups read together. `key`: of the group. `turns`: for each relation, the
    number of the stretch that completed it, among all stretches. `silent`: the relations are from before the subscriber
    joined. `verdicts`, `early`: those of the relations, with turns among all stretches."""

    key: str
    found: FoundRelations
    turns: Numbers
    silent: bool
    verdicts: FoundVerdicts | None = None
    early: PlacedRelations | None = None


class JointDeliveries:
    """The deliveries of groups that are followed together. `ledgers`: by group, in the order of the text. `plan`: the plan of
    the relations that they deliver. `names`: by group, its subscriptions, if the subscriber asked for verdicts."""

    def __init__(self, plan: Plan, ledgers: Mapping[str, Ledger], names: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self.plan, self.ledgers, self._names = plan, ledgers, names
        self._open: deque[DeliveryNumbers] = deque()
        """Deliveries that are not acknowledged; kept only if there are several groups."""

    def batch_of(self, findings: Sequence[GroupFindings]) -> Batch | None:
        """What to deliver, of what the groups found in the same blocks."""
        fresh, told = list[tuple[GroupFindings, int]](), list[tuple[GroupFindings, int]]()
        for each in findings:
            found, ledger = each.found, self.ledgers[each.key]
            known = ledger.found(found.first, found.words, found.digests, silent=each.silent)
            if known < len(found.relations):
                fresh.append((each, known))
            if each.verdicts is not None and ledger.current and not each.silent:
                told.append((each, known))
        if not fresh and not (told and self._names is not None):
            return None
        batch = self._joined(fresh)
        if len(self.ledgers) > 1:
            self._open.append(batch.numbering)
        return batch if self._names is None or not told else self._with_reports(batch, fresh, told, self._names)

    def early_batch(self, found: Sequence[PlacedRelations]) -> Batch | None:
        """The early deliveries of groups in the same blocks, in one order."""
        some = [each for each in found if len(each.relations)]
        if not some:
            return None
        relations: Sequence[Relation] = some[0].relations
        if len(some) > 1:
            turns, by = [each.runs for each in some], [each.by for each in some]
            relations = by_turn([each.relations for each in some], turns, [0] * len(some), by)
        return Batch(self.plan, relations, NO_NUMBERS, early=True)

    def _joined(self, fresh: Sequence[tuple[GroupFindings, int]]) -> Batch:
        keys = tuple(each.key for each, _ in fresh)
        if len(fresh) == 1:
            ((one, count),) = fresh
            numbering = DeliveryNumbers(len(one.found.relations), keys, (one.found.first,))
            return Batch(self.plan, one.found.relations, numbering).behind(count)
        if not fresh:
            return Batch(self.plan, (), NO_NUMBERS)
        known = [count for _, count in fresh]
        by = [each.found.by for each, _ in fresh]
        together = by_turn([each.found.relations for each, _ in fresh], [each.turns for each, _ in fresh], known, by)
        firsts = tuple(each.found.first + count for each, count in fresh)
        return Batch(self.plan, together, DeliveryNumbers(len(together), keys, firsts, together.owner))

    def _with_reports(
        self,
        batch: Batch,
        fresh: Sequence[tuple[GroupFindings, int]],
        told: Sequence[tuple[GroupFindings, int]],
        names: Mapping[str, tuple[str, ...]],
    ) -> Batch:
        """The batch with verdicts in their places: after the relations that were completed before them, without those that come
        before relations that were acknowledged."""
        places = sorted(place for each, known in fresh for place in _places(each)[known:])
        reports = [
            (place, report)
            for each, known in told
            for place, report in placed_reports(each.verdicts, self.plan.catalogue, names[each.key])
            if bisect_left(_places(each), place) >= known
        ]
        reports.sort(key=lambda each: each[0])
        before = [bisect_left(places, place) for place, _ in reports]
        return Batch(self.plan, batch.relations, batch.numbering, [report for _, report in reports], before)

    def up_to(self, key: str, number: int) -> Mapping[str, int]:
        """By group, the number of its last delivery up to the given delivery; groups without one are absent."""
        before: dict[str, int] = {}
        for each in self._open:
            if number <= each.lasts.get(key, 0):
                place = each.place_of(key, number)
                return before | ({key: number} if place < 0 else each.lasts_of(place + 1))
            before |= each.lasts
        return {key: number}

    def acknowledge(self, numbers: Mapping[str, int]) -> None:
        """Acknowledge all deliveries up to these numbers, by group."""
        for key, number in numbers.items():
            self.ledgers[key].acknowledge(number)
        while self._open and all(last <= self.ledgers[key].book.count for key, last in self._open[0].lasts.items()):
            self._open.popleft()


def _places(findings: GroupFindings) -> list[tuple[int, int]]:
    """Of each relation its stretch, and where in it the frontier passed its completion."""
    by = findings.found.by
    return [] if by is None else list(zip(findings.turns.tolist(), by.tolist(), strict=True))


def placed_reports(
    verdicts: FoundVerdicts | None, catalogue: Catalogue, subscriptions: tuple[str, ...]
) -> Iterator[tuple[tuple[int, int], EventReport]]:
    """Each report with its place: the stretch, and the position in it."""
    if verdicts is not None:
        events = verdicts.found.columns.events(catalogue)
        places = zip(verdicts.turns.tolist(), verdicts.at.tolist(), strict=True)
        for place, event, verdict in zip(places, events, verdicts.found.verdicts, strict=True):
            yield place, EventReport(verdict, event, subscriptions)
