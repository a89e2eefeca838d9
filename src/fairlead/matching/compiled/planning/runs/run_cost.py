"""What runs add to the cost of a search, beside the members of the relation that it finds, each of which costs a step.

    nothing              runs are whole queues, and what is kept of these decides HAVING
    n at the end         they are walked once, since no other member is open
    n each time          they are walked for every combination of the other members, until HAVING is true

Thresholds are asked before a search. With FIRST, if they are all that HAVING says and nothing but THEN limits members and runs,
the first combination is a relation: the oldest members leave the runs all that is queued, since events before are dropped.

Takes: a shape and its accesses. Gives: bounds, and what to say of runs. Never: runs anything.
"""

from __future__ import annotations

from collections.abc import Collection

from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.arrival import Gathered
from fairlead.matching.compiled.planning.costs.cost_bound import ONE, Cost, N
from fairlead.matching.compiled.planning.shape import Shape


class RunCosts:
    def __init__(self, shape: Shape, accesses: Accesses) -> None:
        self.shape, self.kept, self.plan = shape, accesses.kept, shape.runs

    def each(self, newest: int | None, opened: Collection[int]) -> Cost:
        """To gather the runs beside chosen members and to ask HAVING, until a relation is found. An event that is in a run is
        tested first: if one event is enough, only those runs are walked that it completes."""
        beside = {other for each in self.plan.runs for other in (*each.after, *each.before)}
        entire = len(self.kept.entire) == len(self.plan.runs) and beside.isdisjoint(opened)
        decided = entire and len(self.kept.decided) == len(self.plan.having)
        tested = newest is None and not self.shape.overlapping and self._is_one_enough
        return ONE if decided or tested else N

    @property
    def _is_one_enough(self) -> bool:
        runs = self.plan.runs
        return len(runs) == 1 and not self.plan.having and not any(each.least > 1 or each.most or each.others for each in runs)

    @property
    def last(self) -> Cost:
        """Once, of the runs that are found."""
        return ONE if len(self.kept.entire) == len(self.plan.runs) else N

    @property
    def can_fail(self) -> bool:
        """Other members can be better than the first ones."""
        plain = all(each.is_threshold for each in self.plan.having)
        entire = len(self.kept.entire) == len(self.plan.runs)
        return bool(self.plan) and (self.shape.recent or self.shape.overlapping or not (plain and entire))

    def notes(self) -> list[Gathered]:
        return [self._note(each.slot) for each in self.plan.runs]

    def _note(self, slot: int) -> Gathered:
        run = next(each for each in self.plan.runs if each.slot == slot)
        mine = [each for each in self.plan.having if slot in each.slots]
        decided = [each.text for each in self.kept.decided if slot in each.slots]
        before = [each.text for each in mine if each.needed and each.text not in decided]
        walked = [*run.texts, *(each.text for each in mine if each.text not in decided)]
        alias = self.shape.branch.alias_names()[slot]
        return Gathered(alias, tuple(decided), tuple(before), tuple(walked))
