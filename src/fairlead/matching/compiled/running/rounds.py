"""When absences have their turn. In the engine rounds are nested in rounds; a kernel sees one row after the other.

An event that tells the time opens a *round* (event_lane.py, step 1): what was due in the subscriptions that it serves as a
clock is decided, the earliest first, and all that a decision leads to is handled before the next one, rounds of derived events
included. Two things follow:

    1. What waited when a decision was made, and was due before it, had its turn already; whatever the times of the events that
       the decision led to. What began to wait because of that decision had not: the round continues only after them.
    2. Something that began to wait because of a decision may be due before that decision. It is then the next of the round,
       before all others. In a path such decisions follow one another, -1 2 2 …, with falling deadlines: a later
       decision stands after the last one that was due after it.

Deadlines are enough to compare by: a subscription that waits for an event stands further down the hierarchy than the one that
derives it, so at one deadline it is decided later.

Takes: paths of the rows that a kernel sees, and what it decided. Gives: what is to be decided before a row, paths of decisions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead.matching.compiled.running.batch import UNTOLD, KernelBatch
from fairlead.matching.compiled.running.branch import BranchMatches
from fairlead.matching.compiled.running.paths import (
    BEFORE,
    DERIVED,
    FOLLOWS,
    STEP,
    Mask,
    Paths,
    earlier,
    firsts,
    inverse,
    levels_of,
    number,
    put,
    steps,
    used,
)
from fairlead.matching.results.chunk import Words
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import MINOR_BITS, majors_of

DEADLINE = 1
"""In the step of a decision."""


class Emitters:
    """What each subscription of a plan emits, as numbers."""

    def __init__(self, plan: Plan) -> None:
        emitted = [each.emits for each in plan.subscriptions]
        self.types = list(dict.fromkeys(emitted))
        numbers = {name: at for at, name in enumerate(self.types)}
        self.type_of = np.array([numbers[name] for name in emitted], dtype=np.int64)


class Rounds:
    """The rounds of a batch in which those subscriptions take part that these types tell the time."""

    def __init__(self, emitters: Emitters, logged: KernelBatch, clock: frozenset[str]) -> None:
        self.emitters, self.logged, self.clock = emitters, logged, clock

    def told(self, paths: Paths) -> Words:
        """Up to when a kernel decides what is due before each of these rows, which are all derived ones that it sees. Only the
        first row below a decision tells: what begins to wait there or later does so because of the decision (1)."""
        made, taking_part = np.full(len(paths), UNTOLD), np.zeros(len(paths), dtype=bool)
        for level, first in enumerate(firsts(paths)):
            taking_part = self._enters(paths, level) | (taking_part & (number(paths, level) == FOLLOWS))
            telling = taking_part & first
            made[telling] = np.maximum(made[telling], number(paths, level, DEADLINE)[telling])
        return made

    def decided(self, at: Paths, born: Paths, due: Words, *rest: int | Words) -> Paths:
        """The paths of decisions. A kernel makes them at the first row that tells, `at`; their turn was in the round of that
        row, or in one of those around it: the outermost in which it comes before the row. `born`: the rows since which they
        waited. `rest`: of their steps, after the deadline."""
        step, length, left = steps(len(at), BEFORE, due, *rest), used(at), np.ones(len(at), dtype=bool)
        made = np.zeros((len(at), at.shape[1] + STEP), dtype=np.int64)
        for level in range(levels_of(at) + 1):
            rows = np.flatnonzero(left & ((length == level) | self._enters(at, level)))
            turn = _turn(at[rows], born[rows], level, step[rows])
            mine = (length[rows] == level) | earlier(turn, at[rows])
            made[rows[mine]], left[rows[mine]] = turn[mine], False
        return made

    def _enters(self, paths: Paths, level: int) -> Mask:
        """Which paths lead, on this level, into a round whose event tells the time. At the end of the input everybody takes
        part."""
        if level == levels_of(paths):
            return np.zeros(len(paths), dtype=bool)
        enters: Mask = number(paths, level) == BEFORE
        rows = np.flatnonzero(enters)
        if level > 0:
            last = paths[rows, 1 + STEP * (level - 1) : 1 + STEP * level]
            emitter = np.where(last[:, 0] == DERIVED, last[:, 1], last[:, 3])
            enters[rows] = self._tells(self.emitters.types)[self.emitters.type_of[emitter]]
        elif len(self.logged):
            codes = self.logged.codes[np.searchsorted(self.logged.words, paths[rows, 0])]
            enters[rows] = self._tells(self.logged.columns.types)[codes]
        return enters

    def _tells(self, types: Sequence[str | None]) -> Mask:
        return np.array([name in self.clock for name in types], dtype=bool)


def _turn(at: Paths, born: Paths, level: int, step: Paths) -> Paths:
    """The paths of decisions in the rounds of the events that end on this level of `at` (2)."""
    low, behind = 1 + STEP * level, np.zeros(len(at), dtype=np.int64)
    going = (born[:, :low] == at[:, :low]).all(axis=1)
    for below in range(level, levels_of(born)):
        going &= number(born, below) == (BEFORE if below == level else FOLLOWS)
        going &= number(born, below, DEADLINE) > step[:, DEADLINE]
        behind += going
    columns = np.arange(at.shape[1])
    made = np.zeros((len(at), at.shape[1] + STEP), dtype=np.int64)
    made[:, columns] = np.where(columns < low, at, np.where(columns < low + STEP * behind[:, None], born, 0))
    step = step.copy()
    step[behind > 0, 0] = FOLLOWS
    return put(made, level + behind, step)


def ranks_of(decisions: list[tuple[int, BranchMatches]]) -> list[Words]:
    """What absences decided in the branches of one subscription, ranked together: by members, then by branch. What ended in a
    sequence is ranked by the first row of its search, and then stays as it was found."""
    if not decisions:
        return []
    width = max(int(np.max(found.refs.widths, initial=0)) if found.start is None else 1 for _, found in decisions)
    padded = [
        found.refs.padded(width)
        if found.start is None
        else np.pad(found.start[:, None], ((0, 0), (0, width - 1)), constant_values=-1)
        for _, found in decisions
    ]
    refs = np.concatenate(padded)
    branches = np.concatenate([np.full(len(found.at), branch) for branch, found in decisions])
    ranks = inverse(np.lexsort((branches, *reversed(refs.T))))
    return np.split(ranks, np.cumsum([len(found.at) for _, found in decisions])[:-1])


def in_order_of_decision(branch: int, found: BranchMatches) -> BranchMatches:
    """What deadlines decided in one branch, where nothing else is decided: by row, deadline and rank."""
    assert found.due is not None
    if found.start is not None and _is_sorted(found.at, found.due, found.start):
        return found
    (ranks,) = ranks_of([(branch, found)])
    order = np.lexsort((ranks, found.due, found.at))
    return found if (order[1:] > order[:-1]).all() else found.taken(order)


def _is_sorted(*columns: Words) -> bool:
    """Whether the rows of these columns rise, or repeat, as tuples."""
    rises = np.ones(max(len(columns[0]) - 1, 0), dtype=bool)
    for each in reversed(columns):
        rises = (each[1:] > each[:-1]) | ((each[1:] == each[:-1]) & rises)
    return bool(rises.all())


def before_events(at: Words) -> Words:
    """The places of decisions before these rows, where nothing is derived."""
    return majors_of(at) << MINOR_BITS
