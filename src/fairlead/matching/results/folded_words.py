"""Folded runs of many relations as columns: what kernels give of them, for tables, ids and emitted attributes.

Takes: columns by relation. Gives: values of aggregates, and single runs as objects. Never: has the events of a run beside those
that stand for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.matching.folded_run import FoldedRun, joined, value_of_total
from fairlead.matching.results.chunk import Numbers, Words
from fairlead.model.events.event import Event
from fairlead.model.expressions.expression import DISTINCT, Aggregate
from fairlead.model.plans.folding import Folding, Key, Total
from fairlead.model.relations.identity import Words as Ids
from fairlead.model.relations.identity import mixed_columns


@dataclass(frozen=True, eq=False)
class FoldedWords:
    """`lanes`: of the ids, rolled up to the last event. `events`: the words of those that stand for the run, by role, -1 for an
    extreme of NULLs. `totals`: as a state has them."""

    folding: Folding
    counts: Numbers
    lanes: Ids
    events: Words
    totals: Numbers
    different: Numbers
    """By attribute, how many different values there are."""

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, rows: Numbers | npt.NDArray[np.bool_] | slice) -> FoldedWords:
        counts, lanes, events = self.counts[rows], self.lanes[rows], self.events[rows]
        return FoldedWords(self.folding, counts, lanes, events, self.totals[rows], self.different[rows])

    def ids(self) -> Ids:
        """Of relations that have nothing but the run."""
        return mixed_columns(self.lanes, [self.counts.astype(np.uint64)], len(self))

    def role(self, role: str | Key) -> Words:
        return np.ascontiguousarray(self.events[:, self.folding.roles.index(role)])

    @property
    def needed(self) -> Words:
        """The events that are referred to."""
        found = self.events.reshape(-1)
        return found[found >= 0]

    def numbers_of(self, node: Aggregate) -> list[Any]:
        """The values of an aggregate that no single event has."""
        if node.attribute is None:
            return list(self.counts.tolist())
        if node.function == DISTINCT:
            return list(self.different[:, self.folding.different.index(node.attribute)].tolist())
        of, known, parts = self._total((node.function, node.attribute))
        pairs = zip(known.tolist(), parts.tolist(), strict=True)
        return [value_of_total(of, count, joined(of, each) if each else 0, node.kind) for count, each in pairs]

    def _total(self, key: Key) -> tuple[Total, Numbers, Numbers]:
        at = 0
        for each in self.folding.totals:
            if each.key == key:
                return each, self.totals[:, at], self.totals[:, at + 1 : at + each.width]
            at += each.width
        raise AssertionError(key)

    def run(self, row: int, event_of: Any) -> FoldedRun:
        """One of them as an object. `event_of`: the event of a word."""
        made = FoldedRun(self.folding, (int(self.lanes[row, 0]), int(self.lanes[row, 1])))
        made.set_numbers([int(self.counts[row]), *made.lanes, *self.totals[row].tolist()])
        for role, word in zip(self.folding.roles, self.events[row].tolist(), strict=True):
            made.events[role] = event_of(word) if word >= 0 else None
        some: Event = made.first
        for attribute, count in zip(self.folding.different, self.different[row].tolist(), strict=True):
            made.different[attribute] = dict.fromkeys(range(count), some)
        return made


def joined_folds(parts: Sequence[FoldedWords]) -> FoldedWords:
    """Those of several blocks of one branch, one after the other."""
    names = ("counts", "lanes", "events", "totals", "different")
    return FoldedWords(parts[0].folding, *(np.concatenate([getattr(each, name) for each in parts]) for name in names))
