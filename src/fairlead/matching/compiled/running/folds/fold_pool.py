"""The state of a kernel of folded runs: a row of words for each key, and the different values of all runs.

Takes: the places of words. Gives: arrays that grow by doubling. Never: an event beside those that stand for a run.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.codegen.counters import KEYS
from fairlead.matching.compiled.codegen.folds.fold_loop import FoldLayout
from fairlead.matching.compiled.codegen.folds.fold_words import CLOCK, COUNT, FIRST, LAST, LATEST, NUMBER, FoldWords
from fairlead.matching.compiled.running.pool import NEVER, Numbers, Pool, grown

VALUE, OWNER, EVENT = range(3)
"""Columns of the table of different values."""
TABLE_LEAST = 1 << 10


class FoldPool(Pool):
    def __init__(self, words: FoldWords, layout: FoldLayout) -> None:
        super().__init__(1, 1, layout)
        self.words = words
        self.empty = tuple(NEVER if at == CLOCK else 0 for at in range(words.width))
        self.folds = np.zeros((0, words.width), dtype=np.int64)
        self.table = np.zeros((0, 3), dtype=np.int64)
        self.noted = 0
        """Rows of the table that can be in use."""
        self.roles = [FIRST, LAST, LATEST, *(each.event for each in words.places if each.event >= 0)]
        """The columns with the places of events; -1 where there is none."""

    def room_for(self, keys: int, buckets: int, nodes: int, waits: int) -> None:
        """At least `keys` keys."""
        if keys > len(self.folds):
            self.folds = grown(self.folds, max(16, keys + keys // 2), self.empty)
        self.key_count = max(self.key_count, keys)

    def room_for_values(self, rows: int) -> None:
        """For the different values of so many rows more. Values of runs that have left go when there is no room."""
        self.noted += rows * self.words.tables
        if not self.words.tables or (len(self.table) and 2 * self.noted <= len(self.table)):
            return
        self.set_values(self.values(), rows * self.words.tables)

    def set_values(self, rows: Numbers, more: int = 0) -> None:
        """These are all, and there is room for more."""
        self.noted = len(rows) + more
        self.table = np.zeros((max(TABLE_LEAST, 1 << (4 * self.noted).bit_length()), 3), dtype=np.int64)
        place_all(self.table, rows)

    @property
    def active(self) -> Numbers:
        """The keys that have a run."""
        found: Numbers = np.flatnonzero(self.folds[: self.key_count, COUNT] > 0)
        return found

    def values(self) -> Numbers:
        """The rows of the table that belong to a run that there is."""
        if not self.words.tables or not len(self.table):
            return np.zeros((0, 3), dtype=np.int64)
        starts = self.folds[self.active, NUMBER]
        alive = (starts[:, None] + np.arange(self.words.tables)).reshape(-1)
        mine: Numbers = self.table[(self.table[:, OWNER] != 0) & np.isin(self.table[:, OWNER], alive)]
        return mine

    def events(self) -> Numbers:
        """The words of the events that stand for runs, in any order, some of them repeated."""
        found = self.folds[self.active][:, self.roles].reshape(-1)
        return np.concatenate([found[found >= 0], self.values()[:, EVENT]])

    def keep_keys(self, kept: Numbers, new_number: Numbers) -> None:
        """Only these keys, all that have a run among them; `new_number`: of each key, -1 if it goes."""
        size = int(new_number.max(initial=-1)) + 1
        rows = self.folds[kept]
        self.folds, self.key_count = np.zeros((0, self.words.width), dtype=np.int64), 0
        self.room_for(max(size, 1), 0, 0, 0)
        self.folds[new_number[kept]] = rows
        self.key_count = size
        self.counters[KEYS] = size


def place_all(table: Numbers, rows: Numbers) -> None:
    """Each row where `value_added` (codegen/folds/fold_loop.py) looks for it: round by round those that are still in the way
    of another go one place further."""
    mask = len(table) - 1
    at = table_place(rows[:, VALUE] + rows[:, OWNER] * np.int64(0x632BE5AB), mask)
    left = np.arange(len(rows))
    while len(left):
        free = table[at[left], OWNER] == 0
        candidates = left[free]
        _, first = np.unique(at[candidates], return_index=True)
        chosen = candidates[first]
        table[at[chosen]] = rows[chosen]
        left = np.setdiff1d(left, chosen, assume_unique=True)
        occupied = table[at[left], OWNER] != 0
        at[left[occupied]] = (at[left[occupied]] + 1) & mask


def table_place(values: Numbers, mask: int) -> Numbers:
    """As `place` in codegen/runs/run_tables.py."""
    with np.errstate(over="ignore"):
        z = values.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = z ^ (z >> np.uint64(32))
    made: npt.NDArray[np.int64] = (z & np.uint64(mask)).astype(np.int64)
    return made
