"""A subscriber's deliveries: relations many at a time, their numbers, acknowledgements and receipts.

Each group has its own numbers, receipts and states. The relations that several groups complete in the same blocks are sorted as
docs/semantics.md defines: by the position of completion; at one position, relations decided by deadlines come first, by
deadline; then the order of the text. If events are in an order by value, by the event of the log that released them; then the
order of the text. This order is a function of the log, wherever each group began.

Takes: relations of groups that are followed together, as they are found, by number and id. Gives: batches in the one order,
each relation with its number; for a delivery, the earlier deliveries of each group; receipts. Never: copies relations; delivers
what was acknowledged; forgets an id before it is acknowledged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.deliver.receipt import Receipt, ReceiptBook
from fairlead.errors import StateError, UsageError
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.delivery_order import by_turn
from fairlead.matching.results.relation_batches import only, relation_table
from fairlead.model.identity import Words, from_hex
from fairlead.model.layout import layout_of
from fairlead.model.plan import Plan
from fairlead.model.relation import Relation
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup
from fairlead.transport.log.block import Block


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


@dataclass(frozen=True, eq=False)
class Batch(Sequence[Relation]):
    """Relations that were completed close together, in the order of delivery. Relations found by kernels become objects when
    accessed."""

    plan: Plan
    relations: Sequence[Relation]
    numbering: DeliveryNumbers

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
        """Each relation with the key of its group (one of `receipts`) and its number there."""
        for (key, number), relation in zip(self.numbering, self.relations, strict=True):
            yield key, number, relation

    @property
    def lasts(self) -> dict[str, int]:
        """By group, the number of the last relation."""
        return self.numbering.lasts

    def behind(self, count: int) -> Batch:
        """The batch without the first `count` relations."""
        return Batch(self.plan, self.relations[count:], self.numbering.behind(count)) if count else self

    def to_arrow(self, subscription: str | None = None) -> pa.Table:
        """A table (model/layout.py) of all relations, or of those of one subscription."""
        chosen = self.relations if subscription is None else only(self.relations, subscription)
        return relation_table([chosen], layout_of(self.plan, subscription))


class Ledger:
    """`book` counts acknowledged relations. `acknowledged`: how many of the relations that are found again were acknowledged
    before, and their digest at that time."""

    def __init__(self, book: ReceiptBook, acknowledged: int, digest: str | None) -> None:
        self.book = book
        self._until, self._digest = acknowledged, digest
        self._pending: deque[tuple[int, Words, Words]] = deque()
        """The number of a relation, the ids starting with it, and the digest of the receipt after each."""
        self.handed = book.count
        self._check()

    @property
    def current(self) -> bool:
        """Whether everything that was acknowledged before is counted again."""
        return self.book.count >= self._until

    def found(self, first: int, ids: Words, digests: Words, *, silent: bool) -> int:
        """How many of these are not delivered, because they were acknowledged before or are from before the subscriber
        joined."""
        known = len(ids) if silent else min(len(ids), max(0, self._until - first + 1))
        if known:
            self.book.note_digests(digests[:known])
            self.handed = self.book.count
            self._check()
        if known < len(ids):
            self._pending.append((first + known, ids[known:], digests[known:]))
        return known

    def _check(self) -> None:
        """Replayed relations must equal those that were acknowledged."""
        if self.book.count == self._until and self._digest is not None and self.book.receipt().digest != self._digest:
            problem = f"the first {self._until} deliveries differ from those that were acknowledged"
            raise StateError("S133", problem, "this name belongs to another log: subscribe under another name")

    def number_of(self, relation_id: str) -> int:
        """The number of a relation that was delivered and is not acknowledged."""
        wanted = from_hex([relation_id])[0]
        for first, ids, _ in reversed(self._pending):
            (at,) = np.nonzero((ids == wanted).all(axis=1))
            if len(at):
                return first + int(at[-1])
        raise UsageError(
            "A249",
            "this relation was not delivered here, or is already acknowledged",
            "acknowledge a relation that this subscription delivered",
        )

    def acknowledge(self, number: int) -> None:
        """Acknowledge everything up to this number."""
        while self._pending and self._pending[0][0] <= number:
            first, ids, digests = self._pending.popleft()
            count = min(len(ids), number - first + 1)
            self.book.note_digests(digests[:count])
            if count < len(ids):
                self._pending.appendleft((first + count, ids[count:], digests[count:]))
        self.handed = max(self.handed, self.book.count)

    def receipt(self) -> Receipt:
        """The receipt of the subscriber's deliveries."""
        book = copied(self.book)
        for first, _, digests in self._pending:
            book.note_digests(digests[: max(0, self.handed - first + 1)])
        return book.receipt()


@dataclass(frozen=True, eq=False)
class FoundRelations:
    """The relations of a group in the next blocks. `first`: the number of the first relation; numbers start at 1. `turns`: for
    each relation, the number of the stretch that completed it. `digests`: the digest of the receipt after each relation.
    `derived`: the blocks of emitted events. `by`: if the events are in an order by value, for each relation the position in the
    log of the event by which the frontier passed its completion."""

    first: int
    relations: Sequence[Relation]
    turns: Numbers
    ids: Words
    digests: Words
    derived: Sequence[Block]
    by: Numbers | None = None


@dataclass(frozen=True, eq=False)
class GroupFindings:
    """What a group found in the blocks that all groups read together. `key`: of the group. `turns`: for each relation, the
    number of the stretch that completed it, among all stretches. `silent`: the relations are from before the subscriber
    joined."""

    key: str
    found: FoundRelations
    turns: Numbers
    silent: bool


class JointDeliveries:
    """The deliveries of groups that are followed together. `ledgers`: by group, in the order of the text. `plan`: the plan of
    the relations that they deliver."""

    def __init__(self, plan: Plan, ledgers: Mapping[str, Ledger]) -> None:
        self.plan, self.ledgers = plan, ledgers
        self._open: deque[DeliveryNumbers] = deque()
        """Deliveries that are not acknowledged; kept only if there are several groups."""

    def batch_of(self, found_by_groups: Sequence[GroupFindings]) -> Batch | None:
        """The relations to deliver, of those that the groups completed in the same blocks."""
        fresh = list[tuple[GroupFindings, int]]()
        for each in found_by_groups:
            found = each.found
            known = self.ledgers[each.key].found(found.first, found.ids, found.digests, silent=each.silent)
            if known < len(found.relations):
                fresh.append((each, known))
        if not fresh:
            return None
        batch = self._joined(fresh)
        if len(self.ledgers) > 1:
            self._open.append(batch.numbering)
        return batch

    def _joined(self, fresh: Sequence[tuple[GroupFindings, int]]) -> Batch:
        keys = tuple(each.key for each, _ in fresh)
        if len(fresh) == 1:
            ((one, count),) = fresh
            numbering = DeliveryNumbers(len(one.found.relations), keys, (one.found.first,))
            return Batch(self.plan, one.found.relations, numbering).behind(count)
        known = [count for _, count in fresh]
        by = [each.found.by for each, _ in fresh]
        together = by_turn([each.found.relations for each, _ in fresh], [each.turns for each, _ in fresh], known, by)
        firsts = tuple(each.found.first + count for each, count in fresh)
        return Batch(self.plan, together, DeliveryNumbers(len(together), keys, firsts, together.owner))

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


def book_of(group: StreamGroup, origin: Origin) -> ReceiptBook:
    """Receipts of the same subscription from different origins need not agree, so the origin distinguishes them."""
    return ReceiptBook(f"{group.digest}@{'+'.join(map(str, origin))}" if any(origin) else group.digest)


def dump_book(book: ReceiptBook) -> dict[str, object]:
    total = [int(each) for each in book.total]
    return {"count": book.count, "total": total, "stride": book.stride, "samples": book.samples}


def load_book(book: ReceiptBook, told: dict[str, object]) -> None:
    book.count, book.stride, book.samples = told["count"], told["stride"], list(told["samples"])  # type: ignore[assignment,call-overload]
    book.total = np.array(told["total"], dtype=np.uint64)


def copied(book: ReceiptBook) -> ReceiptBook:
    made = ReceiptBook(book.plan)
    made.count, made.stride, made.samples, made.total = book.count, book.stride, list(book.samples), book.total.copy()
    return made
