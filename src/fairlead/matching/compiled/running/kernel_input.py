"""A batch as the arguments of a kernel: for each lane times, numbers of keys, bits, numbers in the hash index, values.

Branches of several subscriptions that are alike but for conditions on single events (a family) run on one kernel: each is
to the others what another key is. A row then comes once for every branch that accepts it (acceptance.py).

Takes: batches. Gives: columns, by the names of the kernel's arguments (codegen/arguments.py). Never: runs the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.codegen.arguments import (
    CODES,
    LOCAL,
    PAIR_BITS,
    PAIR_KEY,
    PAIR_LANE,
    PAIR_ROW,
    PAIR_WORD,
    WORDS,
    LaneArguments,
    pair_bucket,
)
from fairlead.matching.compiled.codegen.kernel_names import KEY_TABLE, KEY_VALUES, TOLD, kbase
from fairlead.matching.compiled.planning.join_conditions import TEXTS
from fairlead.matching.compiled.planning.shape import Lane, Shape, ValueColumn, every_bit
from fairlead.matching.compiled.running.acceptance import Accepted, conditions_alone, own
from fairlead.matching.compiled.running.batch import UNTOLD, KernelBatch, Mask
from fairlead.matching.compiled.running.keys import (
    KeyNumbering,
    NumberTable,
    PartNumbering,
    ValueNumbering,
    WholeNumbering,
    paired,
)
from fairlead.matching.compiled.running.vector import truth
from fairlead.model.events.types import Kind
from fairlead.model.expressions.expression import Condition, Expression, Field
from fairlead.model.plans.plan import Branch
from fairlead.model.relations.identity import MINOR_BITS

Column = npt.NDArray[Any]
NOTHING = np.zeros(0, dtype=np.int64)
NO_NUMBER = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True)
class LaneColumns:
    """The columns of some rows of one lane; those that nothing needs are empty, and so are bits that are all set."""

    time: Column
    key: Column
    bits: Column
    buckets: tuple[Column, ...]
    """For each value that events of the lane are numbered by in the hash index."""
    values: Mapping[int, Column]
    """By value column."""

    def arguments(self, lane: int) -> dict[str, Any]:
        names = LaneArguments(lane)
        made = {names.time: self.time, names.key: self.key, names.bits: self.bits}
        made |= {names.bucket(number): each for number, each in enumerate(self.buckets)}
        return made | {names.column(number): each for number, each in self.values.items()}


def joined(parts: Sequence[LaneColumns], places: Sequence[npt.NDArray[np.int64]]) -> LaneColumns:
    """Rows of several types as those of one lane. `places`: of the rows of each type, where they stand in the lane."""
    size = sum(map(len, places))

    def one(columns: Sequence[Column]) -> Column:
        if not any(map(len, columns)):
            return np.concatenate(columns)
        made = np.empty(size, dtype=np.result_type(*columns))
        for column, mine in zip(columns, places, strict=True):
            made[mine] = column
        return made

    return LaneColumns(
        one([each.time for each in parts]),
        one([each.key for each in parts]),
        one([each.bits for each in parts]),
        tuple(one(each) for each in zip(*(each.buckets for each in parts), strict=True)),
        {number: one([each.values[number] for each in parts]) for number in parts[0].values},
    )


def rest_of(given: Mapping[str, Any], shape: Shape, is_paired: bool, rows: int) -> dict[str, Any]:
    """The arguments of a batch without its first rows."""
    made = dict(given)

    def skip(name: str, count: int) -> None:
        if name in made and len(made[name]):
            made[name] = made[name][count:]

    skip(TOLD.name, rows)
    if is_paired:
        for name in [each for each in made if each.startswith("pair_")]:
            skip(name, rows)
        return made
    done = made[LOCAL][made[CODES][:rows]]
    for at, lane in enumerate(shape.lanes):
        for name in LaneArguments(at).all(shape, lane):
            skip(name, int(np.count_nonzero(done == at)))
    for name in (CODES, WORDS):
        skip(name, rows)
    made["base"] += rows << MINOR_BITS
    return made


class KernelInput:
    """What turns rows into the arguments of one kernel: the conditions on single events of its branches, and the numbers that
    it has given to keys, texts and equal values."""

    def __init__(self, shape: Shape, branches: Sequence[Branch], keys: KeyNumbering | None = None) -> None:
        self.shape, self.branches = shape, list(branches)
        self.paired = shape.paired or len(self.branches) > 1
        alone = [conditions_alone(each) for each in self.branches]
        self.unary = [[each.conditions for each in mine] for mine in alone]
        noting = self.branches[0].noting
        self.noted = [[own(p.condition) for p in each.predicates if p.slots == (each.slot,)] for each in noting]
        several = len(self.branches) > 1
        self.accepted = [Accepted(list(each)) for each in zip(*alone, strict=True)] if several else []
        self.keys = keys or KeyNumbering(max((len(lane.key) for lane in shape.lanes), default=0))
        self.member_keys = WholeNumbering()
        """Pairs of key and branch, in a family."""
        self.texts = ValueNumbering()
        self.equal_values = PartNumbering()
        self.equal_pairs = WholeNumbering()
        self.numbered: NumberTable | None = None
        """The table with which the kernel numbers the keys of the batch at hand by itself."""

    def arguments(self, batch: KernelBatch) -> tuple[dict[str, Any], int]:
        """The columns of a batch, by the names of arguments, and how many rows the kernel goes through."""
        if not self.paired:
            return self._direct(batch), len(batch)
        given = self._paired(batch)
        return given, len(given[PAIR_LANE])

    def _direct(self, batch: KernelBatch) -> dict[str, Any]:
        """The columns of each lane, as they are."""
        local = np.full(len(batch.types), -1, dtype=np.int32)
        given: dict[str, Any] = {CODES: batch.codes, LOCAL: local, WORDS: NOTHING if batch.is_dense else batch.words}
        given[TOLD.name] = batch.told
        table = self._table_over(batch)
        for at, lane in enumerate(self.shape.lanes):
            present = [name for name in lane.types if name in batch.rows]
            for name in present:
                local[batch.types[name]] = at
            given |= self._lane(batch, lane, present, table is not None).arguments(at)
        given |= {KEY_TABLE.name: NO_NUMBER, KEY_VALUES.name: NOTHING, kbase.name: 0}
        self.numbered = table
        if table is not None:
            table.room_for(min(len(batch), len(table.table) - table.count))
            given |= {KEY_TABLE.name: table.table, KEY_VALUES.name: table.back, kbase.name: table.base}
        return given

    def _table_over(self, batch: KernelBatch) -> NumberTable | None:
        """The table of key numbers, where all keys of the batch are whole numbers that lie close together: the kernel numbers
        them by itself. None also where no row has a key: nothing is to be numbered then."""
        table = None
        for lane in self.shape.lanes if self.shape.whole_key is not None else ():
            for name in lane.types:
                if lane.key and name in batch.rows:
                    whole = batch.whole(name, lane.key[0])
                    known = whole is not None and whole[1] is None
                    table = self.keys.parts[0].wholes.table_over(whole[0]) if known and whole is not None else None
                    if table is None:
                        return None
        return table

    def _lane(self, batch: KernelBatch, lane: Lane, present: list[str], raw: bool = False) -> LaneColumns:
        """`raw`: keys as they are, for the kernel to number."""
        each = [self._rows(batch, lane, name, raw) for name in present] or [self._no_rows(lane)]
        if len(each) == 1:
            return each[0]
        if any(len(one.bits) for one in each):
            every = every_bit(self.shape, lane)
            full = [np.full(len(batch.rows[name]), every, dtype=np.int64) for name in present]
            each = [one if len(one.bits) else replace(one, bits=bits) for one, bits in zip(each, full, strict=True)]
        return joined(each, batch.together(present))

    def _no_rows(self, lane: Lane) -> LaneColumns:
        none = np.zeros(0, dtype=self.shape.whole_key or np.int32) if not self.paired else NO_NUMBER
        values = {
            number: np.zeros(0, dtype=np.float64 if column.is_double else np.int64)
            for number, column in enumerate(self.shape.columns)
            if column.queue in lane.queues
        }
        return LaneColumns(NOTHING, none, NOTHING, (NO_NUMBER,) * len(self.shape.equal_of(lane)), values)

    def _rows(self, batch: KernelBatch, lane: Lane, name: str, raw: bool) -> LaneColumns:
        """The rows of one type."""
        times = batch.rows[name].times
        key: Column = NO_NUMBER
        if lane.key:
            key = self._raw_keys(batch, lane, name) if raw else self._key_numbers(batch, lane, name)
        known: dict[int, Mask | None] = {}
        values: dict[int, Column] = {}
        for number, column in enumerate(self.shape.columns):
            if column.queue in lane.queues:
                values[number], known[number] = self.values(batch, column, name)
        bits = self.bits(batch, lane, name, known, None if len(self.branches) > 1 else 0)
        equal = self.shape.equal_of(lane)
        buckets = tuple(self._bucket_numbers(batch, lane, name, expression, key) for expression in equal)
        return LaneColumns(NOTHING if times is None else times, key, bits, buckets, values)

    def _raw_keys(self, batch: KernelBatch, lane: Lane, name: str) -> npt.NDArray[Any]:
        whole = batch.whole(name, lane.key[0])
        assert whole is not None
        return np.ascontiguousarray(whole[0], dtype=self.shape.whole_key)

    def _key_numbers(self, batch: KernelBatch, lane: Lane, name: str) -> npt.NDArray[np.int32]:
        """-1 where a row has no key, or goes by another lane: by this one it goes if just the keys that it joins are equal."""
        numbers = self._numbers_by(batch, name, lane.key)
        if self.shape.paired:
            for other in self.shape.keys_of(name):
                if other != lane.key:
                    equal = self._numbers_by(batch, name, other) == numbers
                    numbers = np.where(equal == (other in lane.joined), numbers, np.int32(-1))
        return numbers if self.paired or self.shape.whole_key is None else numbers.astype(self.shape.whole_key, copy=False)

    def _numbers_by(self, batch: KernelBatch, name: str, key: tuple[str, ...]) -> npt.NDArray[np.int32]:
        rows = batch.rows[name]
        return batch.once(  # type: ignore[no-any-return]
            ("key", self.keys, name, key), lambda: self.keys.of_columns([rows.column(each) for each in key], len(rows))
        )

    def bits(
        self, batch: KernelBatch, lane: Lane, name: str, known: dict[int, Mask | None], member: int | None = 0
    ) -> npt.NDArray[np.int64]:
        """`member` None: as if there were no conditions on single events."""
        shape = self.shape
        fits = {
            slot: None if member is None else batch.holds(name, self.unary[member][slot])
            for slot, at in enumerate(shape.queue_of_slot)
            if at in lane.queues
        }
        noted = {
            queue: batch.holds(name, self.noted[queue - len(shape.needed)])
            for queue in lane.queues
            if queue >= len(shape.needed)
        }
        keyed = {at: batch.rows[name].known(key) for at, key in shape.branch.table_queues.items() if at in lane.queues}
        if all(each is None for each in (*fits.values(), *noted.values(), *known.values(), *keyed.values())):
            return NOTHING
        mine = np.zeros(len(batch.rows[name]), dtype=np.int64)
        accepted: list[Mask | None] = []
        for queue in lane.queues:
            slots = [slot for slot in fits if shape.queue_of_slot[slot] == queue]
            kept = noted | keyed
            accepts = kept[queue] if queue in kept else _any([fits[slot] for slot in slots])
            accepted.append(accepts)
            mine |= _shifted(accepts, shape.accept_bit(lane, queue))
            for slot in slots:
                needs = [known[column] for needed, column in shape.required if needed == slot]
                mine |= _shifted(_all([fits[slot], *needs]), slot)
        for column, where in known.items():
            mine |= _shifted(where, shape.known_bit(column))
        anywhere = _any(accepted)
        if anywhere is not None:
            mine[~anywhere] = 0
        return mine

    def values(self, batch: KernelBatch, spec: ValueColumn, name: str) -> tuple[npt.NDArray[Any], Mask | None]:
        if spec.truth:
            atom = Condition(((spec.expression,),))  # type: ignore[arg-type]
            return batch.once(("atom", name, atom), lambda: truth(atom, batch.rows[name]).astype(np.int64)), None
        if spec.expression.kind in TEXTS:
            return batch.texts(name, spec.expression, self.texts)
        return batch.vector(name, spec.expression)

    def _bucket_numbers(
        self, batch: KernelBatch, lane: Lane, name: str, expression: Expression, key: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """The number of a value of the equal class, together with the key."""
        numbers = self.equal_numbers(batch, name, expression)
        return paired(self.equal_pairs, key, numbers) if lane.key and len(self.branches) == 1 else numbers

    def equal_numbers(self, batch: KernelBatch, name: str, expression: Expression) -> npt.NDArray[np.int32]:
        if isinstance(expression, Field):
            return self.equal_values.of_column(batch.rows[name].column(expression.attribute)).astype(np.int32, copy=False)
        if expression.kind is Kind.STRING:
            return batch.texts(name, expression, self.equal_values.others)[0].astype(np.int32)
        values, known = batch.vector(name, expression)
        if expression.kind is Kind.DOUBLE:
            nan = np.isnan(values)
            known = (~nan if known is None else known & ~nan) if nan.any() else known
            values = (values + 0.0).view(np.int64)
        if known is None:
            return self.equal_values.wholes.of(values)
        numbers = np.full(len(values), -1, dtype=np.int32)
        numbers[known] = self.equal_values.wholes.of(values[known])
        return numbers

    # Rows that go several ways

    def _paired(self, batch: KernelBatch) -> dict[str, Any]:
        """Each row once for every lane that its type has, and for every branch of the family that accepts it."""
        given: dict[str, Any] = {}
        pairs: list[list[npt.NDArray[Any]]] = []
        for at, lane in enumerate(self.shape.lanes):
            present = [name for name in lane.types if name in batch.rows]
            columns = self._lane(batch, lane, present)
            given |= columns.arguments(at)
            if not present:
                continue
            places = np.concatenate([batch.places(name) for name in present])
            places = np.sort(places) if len(present) > 1 else places
            rows, members, bits = self._accepted(batch, lane, present, places, columns.bits)
            keys = columns.key[rows] if len(columns.key) else np.zeros(len(rows), dtype=np.int32)
            if len(self.branches) > 1:
                keys = paired(self.member_keys, keys, members) if self.keys.parts else members.astype(np.int32)
            buckets = [np.full(len(rows), -1, dtype=np.int32)] * self.shape.equal_most
            for number, each in enumerate(columns.buckets):
                buckets[number] = paired(self.equal_pairs, keys, each[rows]) if len(self.branches) > 1 else each[rows]
            pairs.append(
                [places[rows], members, np.full(len(rows), at, dtype=np.int32), rows.astype(np.int32), keys, bits, *buckets]
            )
        if not pairs:
            none = [NO_NUMBER] * self.shape.equal_most
            pairs.append([NOTHING, NOTHING, NO_NUMBER, NO_NUMBER, NO_NUMBER, NOTHING, *none])
        whole = [np.concatenate(parts) for parts in zip(*pairs, strict=True)]
        several = len(self.branches) > 1
        order = _by_row(whole[0], whole[1], len(self.branches)) if several else np.lexsort((whole[2], whole[0]))
        places, _, *rest = (each[order] for each in whole)
        given[PAIR_LANE], given[PAIR_ROW], given[PAIR_KEY], given[PAIR_BITS], *buckets = rest
        given |= {pair_bucket(number): each for number, each in enumerate(buckets)}
        given[PAIR_WORD] = (batch.first_word + (places << MINOR_BITS)) if batch.is_dense else batch.words[places]
        given[TOLD.name] = NOTHING
        if len(batch.told):  # once for each row
            given[TOLD.name] = np.where(np.diff(places, prepend=-1) > 0, batch.told[places], UNTOLD)
        return given

    def _accepted(
        self, batch: KernelBatch, lane: Lane, present: list[str], places: npt.NDArray[np.int64], bits: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows of the lane, with the branch that accepts them and their bits for it."""
        every = every_bit(self.shape, lane)
        if len(self.branches) == 1:
            rows = np.arange(len(places))
            return rows, np.zeros(len(rows), dtype=np.int64), bits if len(bits) else np.full(len(rows), every, dtype=np.int64)
        slots = [slot for slot, queue in enumerate(self.shape.queue_of_slot) if queue in lane.queues]
        found: list[tuple[npt.NDArray[np.int64], ...]] = []
        for name in present:
            mine = batch.places(name)
            within_lane = np.arange(len(mine)) if len(present) == 1 else np.searchsorted(places, mine)
            if len(slots) == 1:
                rows, members = self.accepted[slots[0]].pairs(batch, name, self.texts)
                rows = within_lane[rows]
                found.append((rows, members, bits[rows] if len(bits) else np.full(len(rows), every, dtype=np.int64)))
                continue
            known = {
                c: self.values(batch, each, name)[1] for c, each in enumerate(self.shape.columns) if each.queue in lane.queues
            }
            for member in range(len(self.branches)):
                own_bits = self.bits(batch, lane, name, known, member)
                rows = np.flatnonzero(own_bits) if len(own_bits) else np.arange(len(mine))
                own_bits = own_bits[rows] if len(own_bits) else np.full(len(rows), every, dtype=np.int64)
                found.append((within_lane[rows], np.full(len(rows), member, dtype=np.int64), own_bits))
        one, two, three = (np.concatenate(each) for each in zip(*found, strict=True))
        return one, two, three


def _by_row(places: npt.NDArray[np.int64], members: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """The order by place, then by member. Where no place occurs twice, no sorting is needed."""
    if not len(places):
        return np.zeros(0, dtype=np.int64)
    owner = np.full(int(places.max()) + 1, -1, dtype=np.int64)
    owner[places] = np.arange(len(places))
    order = owner[owner >= 0]
    return order if len(order) == len(places) else np.argsort(places * count + members, kind="stable")


def _shifted(where: Mask | None, bit: int) -> Any:
    return np.int64(1 << bit) if where is None else where.astype(np.int64) << bit


def _any(masks: Sequence[Mask | None]) -> Mask | None:
    """None is true everywhere."""
    return None if any(each is None for each in masks) else np.logical_or.reduce([each for each in masks if each is not None])


def _all(masks: Sequence[Mask | None]) -> Mask | None:
    given = [each for each in masks if each is not None]
    return np.logical_and.reduce(given) if given else None
