"""A branch whose run is folded, on its kernel: batches of rows in, relations without the events of their runs out.

Takes: batches. Gives: matches. Never: makes an object for an event, or keeps one that stands for no other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.codegen.folds.fold_loop import FoldLayout
from fairlead.matching.compiled.codegen.folds.fold_words import (
    COUNT,
    FIRST,
    FOLD_TABLE,
    FOLDS,
    IDENTITIES,
    LANE_A,
    LANE_B,
    LAST,
    LATEST,
    NUMBER,
    OUT_FOLDS,
    SEEDS,
    FoldWords,
)
from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.branch import BranchMatches, KernelBranch
from fairlead.matching.compiled.running.folds.fold_pool import OWNER, VALUE, FoldPool
from fairlead.matching.compiled.running.pool import Numbers
from fairlead.matching.folded_run import NAN_BITS
from fairlead.matching.outcome import too_many_relations
from fairlead.matching.results.folded_words import FoldedWords
from fairlead.matching.results.member_words import MemberWords
from fairlead.model.plans.folding import HALF, Folding, Total
from fairlead.model.relations.identity import seeds_of_branch

FEW_TEXTS = 4096
"""Numbers of texts that are not worth forgetting."""


class FoldKernel(KernelBranch):
    pool: FoldPool

    def made_pool(self) -> FoldPool:
        assert self.shape.fold is not None
        assert isinstance(self.source.layout, FoldLayout)
        self.plan, self.words = self.shape.fold, FoldWords(self.shape.fold)
        at = self.subscription.branches.index(self.branches[0])
        seeds = seeds_of_branch(self.subscription.id_digest, self.subscription.number(at))
        self.seeds = np.array(seeds, dtype=np.uint64).view(np.int64)
        return FoldPool(self.words, self.source.layout)

    @property
    def folding(self) -> Folding:
        return self.plan.folding

    def arguments(self, batch: KernelBatch) -> tuple[dict[str, Any], int]:
        given, rows = super().arguments(batch)
        identities = batch.columns.identities
        none = np.zeros((0, 2), dtype=np.int64)
        return given | {IDENTITIES.name: none if identities is None else identities.view(np.int64)}, rows

    def _run(self, given: dict[str, Any], rows: int) -> tuple[BranchMatches, BranchMatches, int]:
        pool = self.pool
        pool.room_for(self.instances_after(rows), 0, 0, 0)
        pool.room_for_values(rows)
        out_at = unwritten(rows, np.int64, self.checked)
        out_folds = unwritten((rows, self.words.width), np.int64, self.checked)
        given = given | pool.arguments() | {FOLDS.name: pool.folds, FOLD_TABLE.name: pool.table, SEEDS.name: self.seeds}
        given |= {"out_at": out_at, OUT_FOLDS.name: out_folds, "ranks": self._ranks()}
        found, reached = self.called(given, too_many_relations)
        made = BranchMatches(out_at[:found].copy(), self.members(out_folds[:found]))
        none = np.zeros(0, dtype=np.int64)
        nothing = self.members(out_folds[:0])
        return made, BranchMatches(none, nothing, none, born=none), reached

    @property
    def is_parted(self) -> bool:
        return False

    def _ranks(self) -> Numbers:
        return self.texts.ranks() if self.shape.ranked else np.zeros(0, dtype=np.int64)

    def members(self, rows: Numbers) -> MemberWords:
        """What relations have of their runs, by what was kept of them."""
        lanes = rows[:, [LANE_A, LANE_B]].view(np.uint64)
        events = rows[:, [*self.roles.values()]]
        different = rows[:, [self.words.of(self.plan, ("count distinct", each)).total for each in self.folding.different]]
        folds = FoldedWords(self.folding, rows[:, COUNT].copy(), lanes, events, self.totals(rows), different)
        return MemberWords.of_folds(folds)

    @property
    def roles(self) -> dict[Any, int]:
        """The column of each event that stands for a run, by its role."""
        found: dict[Any, int] = {"first": FIRST, "last": LAST}
        if self.folding.timed:
            found["latest"] = LATEST
        return found | {key: self.words.of(self.plan, key).event for key in self.folding.extremes}

    def totals(self, rows: Numbers) -> Numbers:
        """The numbers of a state, without those of every run (FoldedRun.numbers)."""
        made: list[Numbers] = []
        for each in self.folding.totals:
            place = self.words.of(self.plan, each.key)
            made += _numbers_of(each, rows[:, place.total], rows[:, place.high], rows[:, place.counted])
        return np.stack(made, axis=1) if made else np.zeros((len(rows), 0), dtype=np.int64)

    def set_totals(self, keys: Numbers, numbers: Numbers) -> None:
        """The reverse of `totals`."""
        at, folds = 0, self.pool.folds
        for each in self.folding.totals:
            place, mine = self.words.of(self.plan, each.key), numbers[:, at : at + each.width]
            if each.width == 1:
                folds[keys, place.total] = mine[:, 0]
            else:
                folds[keys, place.counted] = mine[:, 0]
                folds[keys, place.total] = mine[:, -1]
                folds[keys, place.high] = mine[:, 1] if each.width == 3 else 0
            at += each.width

    def clear(self) -> None:
        self.pool = self.made_pool()

    def live(self) -> npt.NDArray[np.int64]:
        return self.pool.events()

    def held(self) -> int:
        values = min(self.pool.noted, len(self.pool.table) // 2)
        return self.pool.queued_count() * len(self.pool.roles) + values

    def forget_texts(self) -> None:
        """Texts that nothing kept refers to."""
        if len(self.texts) < FEW_TEXTS:
            return
        pool, active = self.pool, self.pool.active
        columns = [each.total for each in self.words.places if each.value.number in self.plan.texts and each.different < 0]
        counts = [each for each in self.words.places if each.value.number in self.plan.texts and each.different >= 0]
        values = pool.values()
        owners = np.concatenate([pool.folds[active, NUMBER] + each.different for each in counts] or [active[:0]])
        textual = np.isin(values[:, OWNER], owners)
        used = np.zeros(len(self.texts), dtype=bool)
        for numbers in (*(pool.folds[active, at] for at in columns), values[textual, VALUE]):
            used[numbers[numbers >= 0]] = True
        if 2 * int(used.sum()) + FEW_TEXTS > len(self.texts):
            return
        new_number = np.append(np.cumsum(used) - 1, -1)
        for at in columns:
            pool.folds[active, at] = new_number[pool.folds[active, at]]
        values[textual, VALUE] = new_number[values[textual, VALUE]]
        pool.set_values(values)
        self.texts.keep(used)


def _numbers_of(of: Total, total: Numbers, high: Numbers, counted: Numbers) -> list[Numbers]:
    if of.width == 1:
        return [total]
    if of.is_double:
        return [counted, np.where(np.isnan(total.view(np.float64)), NAN_BITS, total)]
    return [counted, high + (total >> HALF), total & ((1 << HALF) - 1)]
