"""The vocabulary of runs on kernels: which events a run holds beside chosen members, and what is made of them for HAVING.

Gives: `GatheredRun`, `RunValue` and `RunPlan`. Never: decides whether there is a kernel (run_plan.py) or makes code.
"""

from __future__ import annotations

from dataclasses import field

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.representation.formulas import FLOAT, WHOLE, WIDE, Formula, Variable

COUNT, DISTINCT, SUM, MEAN, LEAST, MOST, FIRST, LAST, ANY = (
    "count", "count distinct", "sum", "avg", "min", "max", "first", "last", "any",
)  # fmt: skip
"""What is made of the values of a run's events; ANY: the same value of every event, a constant that has its number there."""
PLAIN, HALVES, DOUBLE, LARGE, ROUNDED, TEXT = "plain", "halves", "double", "large", "rounded", "text"
"""How values are added and compared: as whole numbers of 64 bits; in halves, where a sum can have more; as DOUBLEs; as wide
numbers; likewise, where a sum is rounded to 38 digits at each step; by the ranks of texts."""


@dataclass(frozen=True, eq=False)
class RunValue:
    """An aggregate of HAVING over the events of the run at `slot`."""

    number: int
    slot: int
    function: str
    form: str
    code: Formula
    """Of one event of the run, at that slot; `known`: where it is not NULL."""
    known: Formula
    text: str = ""
    """What people wrote."""
    is_small: bool = False
    """A mean of INT values: as long as there are few, no sum of them is rounded."""

    @property
    def total(self) -> Variable:
        kind = {DOUBLE: FLOAT, LARGE: WIDE, ROUNDED: WIDE}.get(self.form, WHOLE)
        return Variable(f"total{self.number}", WHOLE if self.function in (COUNT, DISTINCT) else kind)

    @property
    def high(self) -> Variable:
        """The upper half of a sum."""
        return Variable(f"upper{self.number}", WHOLE)

    @property
    def counted(self) -> Variable:
        """How many values were not NULL; of `first` and `last`, whether theirs is not."""
        return Variable(f"counted{self.number}", WHOLE)


@dataclass(frozen=True, eq=False)
class GatheredRun:
    slot: int
    queue: int
    least: int
    most: int | None
    after: tuple[int, ...]
    before: tuple[int, ...]
    """The members that its events have to follow and to precede."""
    others: tuple[int, ...]
    """The members that are in its queue too, or can be: they are not in the run."""
    conditions: tuple[Formula, ...]
    """Of each event with the other members."""
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class WholeCondition:
    """A condition of HAVING. `needed`: what has to hold of whole queues, or it holds of no run in them."""

    condition: Formula
    values: frozenset[int]
    """The numbers of the values that it reads."""
    slots: frozenset[int]
    """The runs that it is about."""
    needed: tuple[Threshold, ...]
    is_threshold: bool = False
    """It says no more than `needed` does."""
    text: str = ""


@dataclass(frozen=True, eq=False)
class Threshold:
    """A count that grows with the events: of all events, of values, of different values. `value` None: of events."""

    slot: int
    value: RunValue | None
    least: int


@dataclass
class RunPlan:
    """The runs of a branch, in the order of their slots, and HAVING."""

    runs: list[GatheredRun] = field(default_factory=list)
    values: list[RunValue] = field(default_factory=list)
    having: list[WholeCondition] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.runs)

    @property
    def slots(self) -> frozenset[int]:
        return frozenset(each.slot for each in self.runs)

    @property
    def queues(self) -> frozenset[int]:
        return frozenset(each.queue for each in self.runs)

    @property
    def formulas(self) -> list[Formula]:
        """What is read of events."""
        made = [each for run in self.runs for each in run.conditions]
        made += [part for each in self.values for part in (each.code, each.known)]
        return made + [each.condition for each in self.having]

    def values_of(self, slot: int) -> list[RunValue]:
        return [each for each in self.values if each.slot == slot]

    @property
    def counts_different(self) -> bool:
        """Some value counts different values: a kernel needs tables for them."""
        return any(each.function == DISTINCT for each in self.values)


def count_of_run(slot: int) -> Variable:
    """How many events the run at a slot holds."""
    return Variable(f"length{slot}", WHOLE)
