"""Whether events satisfy the conditions by which they came where a state has them.

An event enters a queue if one of its slots has all its conditions on that event alone true; a clause notes an event if its own
ones are; a member that waits was in its slot. Matchers rely on it: kernels of alike branches do not ask again (family.py).

Takes: the events of a state, then rows of them with the conditions of a place. Gives: whether they hold, evaluated for whole
columns, each for no more rows than it is asked of. Never: a condition that reads several events.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.running.vector import TypeRows, truth
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.state.content import Events, Mask
from fairlead.model.events.columns import record_batch, taken_rows
from fairlead.model.events.types import PATH, Catalogue
from fairlead.model.expressions.expression import Aggregate, Condition, Field, Predicate, at_slot_zero, leaves
from fairlead.model.plans.plan import Branch
from fairlead.model.relations.identity import majors_of

Options = tuple[tuple[Condition, ...], ...]
"""Of each option all conditions hold, of at least one option; empty if there is nothing to ask."""


@dataclass(frozen=True)
class BranchConditions:
    """The conditions of a branch on single events: by queue, those of noted events last, and by member."""

    queues: tuple[Options, ...]
    members: tuple[Options, ...]

    @classmethod
    def of(cls, branch: Branch) -> BranchConditions:
        if branch.sequence is not None:  # its rows are there whether or not they meet a condition
            return cls(((),) * len(branch.queue_types), ((),) * len(branch.slots))
        members = [_own(branch.predicates, slot) for slot in range(len(branch.slots))]
        tables = dict(branch.tables)  # they accept whatever has a key
        entered = [
            [] if name in tables else [members[slot] for slot in branch.slots_of_type[name]] for name in branch.queue_types
        ]
        noted = [[_own(each.predicates, each.slot)] for each in branch.noting]
        return cls(tuple(map(_options, [*entered, *noted])), tuple(_options([each]) for each in members))


def _own(predicates: tuple[Predicate, ...], slot: int) -> tuple[Condition, ...]:
    return tuple(
        Condition(tuple(tuple(at_slot_zero(atom) for atom in term) for term in each.condition.terms))  # type: ignore[misc]
        for each in predicates
        if each.slots == (slot,)
    )


def _options(of_slots: list[tuple[Condition, ...]]) -> Options:
    return tuple(dict.fromkeys(of_slots)) if of_slots and all(of_slots) else ()


@dataclass(frozen=True)
class EventConditions:
    """`inner`: which row of its table each event is; `times`: of those that have one."""

    events: Events
    inner: Numbers
    times: Numbers
    catalogue: Catalogue

    def hold(self, rows: Numbers, options: Options) -> bool:
        """Of all these events; one may be there several times."""
        codes = self.events.codes[rows]
        for code, name in enumerate(self.events.types):
            mine = rows if len(self.events.types) == 1 else rows[codes == code]
            if len(mine) and not self._of_type(name, mine, options).all():
                return False
        return True

    def _of_type(self, name: str, rows: Numbers, options: Options) -> Mask:
        whole = 2 * len(rows) >= self.events.tables[name].num_rows
        asked = self._all(name) if whole else self._some(name, rows, options)
        found = np.zeros(len(rows), dtype=bool)
        for conditions in options:
            holds = np.ones(len(rows), dtype=bool)
            for each in conditions:
                holds &= self._kept(name, each, asked)[self.inner[rows]] if whole else truth(each, asked)
            found |= holds
        return found

    def _kept(self, name: str, condition: Condition, asked: TypeRows) -> Mask:
        """A kernel that resumes from the state asks again."""
        truths, key = self.events.truths, (name, condition)
        if key not in truths:
            truths[key] = truth(condition, asked)
        return truths[key]

    def _all(self, name: str) -> TypeRows:
        return self._rows(name, self.events.tables[name], np.flatnonzero(self.events.codes == self.events.types.index(name)))

    def _some(self, name: str, rows: Numbers, options: Options) -> TypeRows:
        """With the attributes that are read; nobody looks at the others."""
        table, read = self.events.tables[name], frozenset(_attributes(options))
        columns = [
            taken_rows(column, self.inner[rows]) if attribute in read else pa.nulls(len(rows), column.type)
            for attribute, column in zip(table.schema.names, table.columns, strict=True)
        ]
        return self._rows(name, record_batch(columns, table.schema, len(rows)), rows)

    def _rows(self, name: str, table: pa.RecordBatch, rows: Numbers) -> TypeRows:
        schema = self.catalogue[name]
        times = self.times[rows] if schema.timed else None
        return TypeRows(schema, table, times, lambda: majors_of(self.events.words[rows]))


def _attributes(options: Options) -> Iterator[str]:
    """Those that are read, or in which a path is."""
    for term in (term for conditions in options for each in conditions for term in each.terms):
        read = (leaf for atom in term for leaf in leaves(atom) if isinstance(leaf, Field | Aggregate))
        yield from ((leaf.attribute or "").partition(PATH)[0] for leaf in read)
