"""The names of what is kept of folded runs, and where it stands: a row of words for each key.

    COUNT, LANE_A, LANE_B    how many events the run has, 0 for none; its id so far
    FIRST, LAST, LAST_TIME   the places of its first and last event
    CLOCK                    of the key, whether or not it has a run
    NUMBER                   of its first count of different values in FOLD_TABLE
    LATEST, LATEST_TIME      the event with the largest time
    then for each value its total, the upper half of a sum, how many there are, and the event that has an extreme

Takes: a plan. Gives: places. Never: makes code.
"""

from __future__ import annotations

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.planning.folds.fold_plan import EXTREMES, FoldPlan
from fairlead.matching.compiled.planning.runs.gathered_run import DISTINCT, RunValue
from fairlead.matching.compiled.representation.formulas import Array

NAMES = ("COUNT", "LANE_A", "LANE_B", "FIRST", "LAST", "LAST_TIME", "CLOCK", "NUMBER", "LATEST", "LATEST_TIME")
COUNT, LANE_A, LANE_B, FIRST, LAST, LAST_TIME, CLOCK, NUMBER, LATEST, LATEST_TIME = range(len(NAMES))
FOLDS, OUT_FOLDS = Array("folds"), Array("out_folds")
SEEDS, IDENTITIES = Array("seeds"), Array("identities")
"""The lanes of an id before its first event; by row of the batch the two words of an event's identity."""
FOLD_TABLE = Array("fold_table")
"""A hash table of the different values of all runs: value, number of the count (0: free), and the first event that has it."""


@dataclass(frozen=True)
class ValuePlace:
    """Where a value stands in the row."""

    value: RunValue
    total: int
    high: int
    counted: int
    event: int
    """Of an extreme; else -1."""
    different: int
    """The number of a count of different values among those; else -1."""


class FoldWords:
    def __init__(self, plan: FoldPlan) -> None:
        self.places: list[ValuePlace] = []
        self.tables = 0
        at = len(NAMES)
        for each in plan.values:
            extreme, different = each.function in EXTREMES, each.function == DISTINCT
            place = ValuePlace(each, at, at + 1, at + 2, at + 3 if extreme else -1, self.tables if different else -1)
            self.places.append(place)
            self.tables += different
            at += 4 if extreme else 3
        self.width = at

    def of(self, plan: FoldPlan, key: tuple[str, str]) -> ValuePlace:
        """By function and attribute."""
        return next(each for each in self.places if each.value is plan.kept[key])
