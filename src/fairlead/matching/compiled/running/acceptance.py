"""Which rows each of many alike branches accepts: an index over their conditions.

Branches that differ only in conditions on single events run on one kernel, side by side like keys (branch.py). Where such a
condition is an interval of one value (`price >= 10 AND price < 20`, `symbol = 'X'`), the rows are sorted by the value once and
every branch's rows are a stretch of them, found by binary search: what a branch does not accept costs nothing. All other
conditions are evaluated for the whole column, each distinct one once.

Takes: the conditions of each branch on one slot, and a batch. Gives: pairs of a row and a branch. Never: their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.planning.identity_cache import IdentityCache
from fairlead.matching.compiled.planning.sequences.running_values import is_plain
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.keys import ValueNumbering
from fairlead.model.events.types import Kind
from fairlead.model.expressions.expression import Compare, Condition, Expression, Literal, at_slot_zero, slots_of
from fairlead.model.plans.plan import Branch

Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
WHOLE = (Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL)


@dataclass
class Interval:
    """Values of one expression between two ends, each with whether it belongs to it."""

    expression: Expression
    low: Any = None
    low_in: bool = True
    high: Any = None
    high_in: bool = True

    def narrow(self, sign: str, value: Any) -> None:
        if sign in (">", ">=", "="):
            inside = sign != ">"
            if self.low is None or value > self.low or (value == self.low and not inside):
                self.low, self.low_in = value, inside
        if sign in ("<", "<=", "="):
            inside = sign != "<"
            if self.high is None or value < self.high or (value == self.high and not inside):
                self.high, self.high_in = value, inside


def interval_of(conditions: Sequence[Condition]) -> Interval | None:
    """The interval that the conditions come down to, if they do."""
    found: Interval | None = None
    for condition in conditions:
        if len(condition.terms) != 1:
            return None
        for atom in condition.terms[0]:
            if not isinstance(atom, Compare) or atom.operator not in SWAPPED:
                return None
            side, sign, literal = atom.left, atom.operator, atom.right
            if isinstance(side, Literal):
                side, sign, literal = atom.right, SWAPPED[atom.operator], atom.left
            if (
                not isinstance(literal, Literal)
                or literal.value is None
                or literal.value != literal.value
                or not slots_of(side)
            ):
                return None
            if not _comparable(side.kind, literal.kind, sign):
                return None
            if found is None:
                found = Interval(side)
            if found.expression != side:
                return None
            found.narrow(sign, literal.value)
    return found


def _comparable(side: Kind, literal: Kind, sign: str) -> bool:
    if side is Kind.STRING:
        return literal is Kind.STRING and sign == "="
    return (side in WHOLE and literal in WHOLE) or (side is Kind.DOUBLE and literal in (Kind.DOUBLE, Kind.INT))


class SlotConditions:
    """The conditions of a branch on the event at one slot alone, which is slot 0 in them."""

    def __init__(self, conditions: list[Condition]) -> None:
        self.conditions = conditions

    @cached_property
    def interval(self) -> Interval | None:
        return interval_of(self.conditions)


class IntervalGroup:
    """Branches whose conditions are intervals of one expression."""

    def __init__(self, expression: Expression, members: list[int], intervals: list[Interval]) -> None:
        self.expression, self.members, self.intervals = expression, np.array(members, dtype=np.int64), intervals
        if expression.kind is not Kind.STRING:
            dtype, least, most = (
                (np.float64, -np.inf, np.inf)
                if expression.kind is Kind.DOUBLE
                else (np.int64, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
            )
            self.low = np.array([least if each.low is None else each.low for each in intervals], dtype=dtype)
            self.high = np.array([most if each.high is None else each.high for each in intervals], dtype=dtype)
        self.low_in = np.array([each.low_in for each in intervals])
        self.high_in = np.array([each.high_in for each in intervals])

    def pairs(self, batch: KernelBatch, name: str, texts: ValueNumbering) -> Pairs:
        order, values = self._sorted(batch, name, texts)
        low, high = (self.low, self.high) if self.expression.kind is not Kind.STRING else self._numbers(texts)
        first = np.where(self.low_in, np.searchsorted(values, low, "left"), np.searchsorted(values, low, "right"))
        last = np.where(self.high_in, np.searchsorted(values, high, "right"), np.searchsorted(values, high, "left"))
        return stretches(order, first, last, self.members)

    def _sorted(self, batch: KernelBatch, name: str, texts: ValueNumbering) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        def compute() -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
            if self.expression.kind is Kind.STRING:
                values, known = batch.texts(name, self.expression, texts)
            else:
                values, known = batch.vector(name, self.expression)
            if self.expression.kind is Kind.DOUBLE:
                there = ~np.isnan(values)
                known = there if known is None else known & there
            order = np.argsort(values)  # rows of equal values in any order: pairs are sorted by row at the end
            if known is not None and not known.all():
                order = order[known[order]]
            return order, values[order]

        found: tuple[npt.NDArray[np.int64], npt.NDArray[Any]] = batch.once(("sorted", texts, name, self.expression), compute)
        return found

    def _numbers(self, texts: ValueNumbering) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """A text equals the texts of its number. Nothing equals two different ones: the numbers 0 and -1 are an empty stretch,
        those of the two may not be one, since numbers are not in the order of texts."""
        low = [texts.number(each.low) if each.low == each.high else 0 for each in self.intervals]
        high = [texts.number(each.high) if each.low == each.high else -1 for each in self.intervals]
        return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def stretches(
    order: npt.NDArray[np.int64], first: npt.NDArray[np.int64], last: npt.NDArray[np.int64], members: npt.NDArray[np.int64]
) -> Pairs:
    """The rows order[first:last] of each member, one after the other."""
    counts = np.maximum(last - first, 0)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    at = np.arange(total) + np.repeat(first - (ends - counts), counts)
    return order[at], np.repeat(members, counts)


class Accepted:
    """The conditions of each branch of a family on the events of one slot."""

    def __init__(self, conditions: list[SlotConditions]) -> None:
        by_expression: dict[Expression, tuple[list[int], list[Interval]]] = {}
        self.everything: list[int] = []
        self.others: list[tuple[int, list[Condition]]] = []
        for member, each in enumerate(conditions):
            interval = each.interval
            if not each.conditions:
                self.everything.append(member)
            elif interval is None:
                self.others.append((member, each.conditions))
            else:
                members, intervals = by_expression.setdefault(interval.expression, ([], []))
                members.append(member)
                intervals.append(interval)
        self.groups = [IntervalGroup(expression, *found) for expression, found in by_expression.items()]

    def pairs(self, batch: KernelBatch, name: str, texts: ValueNumbering) -> Pairs:
        found = [group.pairs(batch, name, texts) for group in self.groups]
        rows = len(batch.rows[name])
        for member in self.everything:
            found.append((np.arange(rows), np.full(rows, member, dtype=np.int64)))
        for member, conditions in self.others:
            holds = batch.holds(name, conditions)
            mine = np.arange(rows) if holds is None else np.flatnonzero(holds)
            found.append((mine, np.full(len(mine), member, dtype=np.int64)))
        if not found:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])


_ALONE: IdentityCache[list[SlotConditions]] = IdentityCache()


def conditions_alone(branch: Branch) -> list[SlotConditions]:
    """By slot."""
    return _ALONE.of(
        branch,
        lambda: [
            SlotConditions([own(p.condition) for p in branch.predicates if p.slots == (slot,) and is_plain(p)])
            for slot in range(len(branch.slots))
        ],
    )


def own(condition: Condition) -> Condition:
    return Condition(tuple(tuple(at_slot_zero(atom) for atom in term) for term in condition.terms))  # type: ignore[misc]
