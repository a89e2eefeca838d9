"""One branch on its kernel: batches of rows in, matches as index columns out.

Takes: the rows of a batch by concrete type (vector.py), with their references, which rise along the order.
Gives: for each match the row that completed it and the references of its members. Never: makes an object for an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.matching.instance import Instance, Key
from fairlead.matching.kernel.compile import kernel_of
from fairlead.matching.kernel.keys import KeyNumbering, Numbering
from fairlead.matching.kernel.pool import NEVER, Pool
from fairlead.matching.kernel.shape import Shape, ValueColumn, at_slot_zero, shape_of
from fairlead.matching.kernel.vector import Rows, evaluate, evaluate_text, truth
from fairlead.model.expression import Condition
from fairlead.model.plan import Branch, Subscription
from fairlead.model.position import Position
from fairlead.model.types import Catalogue, Kind

Refs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """A batch as every branch sees it: `places[name][j]` is the row of the batch at which the j-th event of the type stands."""

    length: int
    refs: Refs
    rows: Mapping[str, Rows]
    places: Mapping[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Found:
    """Matches of one branch in a batch, in order: the word of the completing event, and a row of member references for each."""

    at: npt.NDArray[np.int64]
    refs: Refs


class KernelBranch:
    def __init__(self, subscription: Subscription, branch: Branch, catalogue: Catalogue) -> None:
        self.shape: Shape = shape_of(subscription, branch, catalogue)
        self.branch, self.within = branch, subscription.within_us or 0
        self.kernel = kernel_of(self.shape)
        self.queue_of_type = {name: at for at, queue in enumerate(self.shape.queue_names) for name in catalogue.accepts(queue)}
        self.unary = [[_own(p.condition) for p in branch.predicates if p.slots == (slot,)] for slot in range(self.shape.size)]
        self.noted = [[_own(p.condition) for p in each.predicates if p.slots == (each.slot,)] for each in branch.negated]
        self.key_of_queue = [dict(branch.keys).get(name, ()) for name in self.shape.queue_names]
        self.keys = KeyNumbering(len(self.key_of_queue[0]))
        self.texts = Numbering()
        self.pool = Pool(self.shape.stride, [each.is_double for each in self.shape.columns])
        self.members = np.zeros(self.shape.size, dtype=np.int32)

    def feed(self, batch: Batch) -> Found:
        queue, key, time, bits, values = self._encoded(batch)
        rows = np.flatnonzero((queue >= 0) & (key >= 0))
        pool = self.pool
        pool.room_for(len(self.keys), len(rows))
        at = np.zeros(len(rows), dtype=np.int64)
        refs = np.zeros((len(rows), self.shape.size), dtype=np.int64)
        found, pool.free_top = self.kernel(
            queue[rows], key[rows], batch.refs[rows], time[rows], bits[rows], *(each[rows] for each in values),
            pool.head, pool.tail, pool.count, pool.clock, pool.flags, pool.next, pool.prev, pool.ref, pool.time, pool.bits,
            *pool.values, *([self.texts.ranks()] if self.shape.ranked else []),
            pool.free, pool.free_top, self.within, self.members, at, refs,
        )  # fmt: skip
        return Found(batch.refs[rows[at[:found]]], refs[:found])

    def adopt(self, batch: Batch, loaded: list[tuple[Key, Instance]], rows: Mapping[Position, int]) -> None:
        """Queue the events of a loaded state: `batch` has them all, `rows` says at which row each stands."""
        _, _, time, bits, values = self._encoded(batch)
        pool, numbers = self.pool, [self.keys.number(key) for key, _ in loaded]
        pool.room_for(len(self.keys), sum(len(queue) for _, instance in loaded for queue in instance.lists()))
        for number, (_, instance) in zip(numbers, loaded, strict=True):
            pool.clock[number] = NEVER if instance.clock is None else instance.clock
            pool.flags[number] = int(instance.loose)
            for queue, events in enumerate(instance.lists()):
                times = [event.time or 0 for event in events]
                if times != sorted(times):
                    pool.flags[number] |= 2
                for event in events:
                    row = rows[event.position]
                    pool.append(number, queue, batch.refs[row], time[row], bits[row], [each[row] for each in values])

    def _encoded(
        self, batch: Batch
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], list[Any]]:
        """The batch as the kernel's columns; queue -1 where nothing accepts the row."""
        queue = np.full(batch.length, -1, dtype=np.int8)
        key, time, bits = (np.zeros(batch.length, dtype=np.int64) for _ in range(3))
        values = [np.zeros(batch.length, dtype=np.float64 if each.is_double else np.int64) for each in self.shape.columns]
        for name, rows in batch.rows.items():
            at = self.queue_of_type.get(name)
            if at is None:
                continue
            places = batch.places[name]
            slots = [slot for slot, each in enumerate(self.shape.queue_of_slot) if each == at]
            fits = {slot: _all(rows, self.unary[slot]) for slot in slots}
            noted = [] if slots else self.noted[at - len(self.shape.needed)]
            accepted = np.logical_or.reduce(list(fits.values())) if slots else _all(rows, noted)
            mine = np.zeros(len(rows), dtype=np.int64)
            known: dict[int, npt.NDArray[np.bool_]] = {}
            for column, spec in enumerate(self.shape.columns):
                if spec.queue == at:
                    values[column][places], known[column] = self._values(spec, rows)
                    mine |= known[column].astype(np.int64) << self.shape.known_bit(column)
            for slot in slots:
                able = fits[slot]
                for needed_slot, column in self.shape.required:
                    if needed_slot == slot:
                        able = able & known[column]
                mine |= able.astype(np.int64) << slot
            bits[places] = mine
            queue[places] = np.where(accepted, at, -1)
            key[places] = self.keys.of_columns([rows.column(attribute) for attribute in self.key_of_queue[at]], len(rows))
            if rows.times is not None:
                time[places] = rows.times
        return queue, key, time, bits, values

    def _values(self, spec: ValueColumn, rows: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        if spec.truth:
            holds = truth(Condition(((spec.expression,),)), rows)  # type: ignore[arg-type]
            return holds.astype(np.int64), np.ones(len(rows), dtype=bool)
        if spec.expression.kind is Kind.STRING:
            return evaluate_text(spec.expression, rows, self.texts)
        vector = evaluate(spec.expression, rows)
        if spec.is_double:
            return np.where(vector.known, vector.values, np.nan), vector.known
        return vector.values, vector.known


def _own(condition: Condition) -> Condition:
    return Condition(tuple(tuple(at_slot_zero(atom) for atom in term) for term in condition.terms))  # type: ignore[misc]


def _all(rows: Rows, conditions: list[Condition]) -> npt.NDArray[np.bool_]:
    result = np.ones(len(rows), dtype=bool)
    for condition in conditions:
        result &= truth(condition, rows)
    return result
