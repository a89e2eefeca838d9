"""What is kept of whole queues from event to event, so that HAVING costs the same however long a run is.

Exactly what can be added and taken away without rounding: how many values there are, how many different ones, sums of whole
numbers and of DECIMALs of few digits, means of INT. Two things are asked of it before any event is gathered:

1. *Thresholds.* A run in a queue has no more values, and no more different ones, than the queue. So `count(q) >= 100` needs 100
   queued events, whatever the members are.
2. *Entire runs.* A run that nothing limits but the members that it follows or precedes is its whole queue, if all of that
   stands there: then what is kept is what HAVING asks for.

Takes: a shape. Gives: what to keep, and which conditions it decides. Never: makes code (codegen/runs/kept_values.py).
"""

from __future__ import annotations

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.planning.runs.gathered_run import (
    COUNT,
    DISTINCT,
    HALVES,
    MEAN,
    PLAIN,
    SUM,
    GatheredRun,
    RunPlan,
    RunValue,
    Threshold,
    WholeCondition,
)

WORDS = {(COUNT, PLAIN): 1, (DISTINCT, PLAIN): 1, (SUM, PLAIN): 2, (SUM, HALVES): 3, (MEAN, PLAIN): 2}
"""How many words are kept of a value: its total, how many values there were, the upper half."""


@dataclass(frozen=True)
class KeptValue:
    """`column`: the first of its words. `table`: of a count of different values, its number among those."""

    value: RunValue
    queue: int
    column: int
    table: int = -1


class KeptValues:
    def __init__(self, plan: RunPlan, chosen: frozenset[int]) -> None:
        self.plan = plan
        self.entire = [each for each in plan.runs if _can_be_entire(each, chosen)]
        """The runs that can be their whole queue."""
        slots = {each.slot for each in self.entire}
        read = {each.number: each for each in plan.values}
        self.thresholds: list[Threshold] = [
            each for condition in plan.having for each in condition.needed if each.value is None or _words(each.value)
        ]
        self.decided: list[WholeCondition] = [
            each for each in plan.having if each.slots <= slots and all(_words(read[number]) for number in each.values)
        ]
        """The conditions that kept values decide, where runs are entire."""
        wanted = {number for each in self.decided for number in each.values}
        wanted |= {each.value.number for each in self.thresholds if each.value is not None}
        self.values: list[KeptValue] = []
        self.width = self.tables = 0
        queues = {each.slot: each.queue for each in plan.runs}
        for value in (each for each in plan.values if each.number in wanted):
            table = self.tables if value.function == DISTINCT else -1
            self.values.append(KeptValue(value, queues[value.slot], self.width, table))
            self.width += _words(value)
            self.tables += table >= 0

    def __bool__(self) -> bool:
        return bool(self.values)

    def of(self, value: RunValue) -> KeptValue:
        return next(each for each in self.values if each.value is value)

    @property
    def always(self) -> bool:
        """All runs are their whole queues, whatever the members are."""
        return len(self.entire) == len(self.plan.runs) and not any(each.after or each.before for each in self.entire)


def _words(value: RunValue) -> int:
    """0 for what is not kept."""
    if value.function == DISTINCT:
        return 1
    return WORDS.get((value.function, PLAIN if value.is_small else value.form), 0)


def _can_be_entire(run: GatheredRun, chosen: frozenset[int]) -> bool:
    return run.most is None and not run.conditions and not run.others and run.slot not in chosen
