"""A branch that is a sequence, on its kernel: batches of rows in, matches with runs of any length out.

Takes: batches. Gives: what rows decide, and what deadlines decide. Never: makes an object for an event.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlead.matching.compiled.codegen.counters import (
    DIRTY,
    FOUND_COUNT,
    FULL,
    MEMBER_COUNT,
)
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout
from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.branch import BranchMatches, KernelBranch, joined_matches
from fairlead.matching.compiled.running.pool import LATEST, NEVER
from fairlead.matching.compiled.running.sequences.sequence_pool import SequencePool
from fairlead.matching.outcome import too_many_decided
from fairlead.matching.results.member_words import MemberWords
from fairlead.model.plans.sequence import Chain, Choice, Loop, SequencePart

NOT_FIRED = -LATEST


class SequenceKernel(KernelBranch):
    pool: SequencePool

    def made_pool(self) -> SequencePool:
        layout = self.source.layout
        assert isinstance(layout, SequenceLayout)
        return SequencePool(self.shape, layout)

    is_parted = True
    """Rows can decide any number of relations."""

    def feed(self, batch: KernelBatch, until: int = NEVER, last: int = 0) -> tuple[BranchMatches, BranchMatches]:
        both = joined_matches([made for made, _ in self.parts(batch, until, last)])
        assert both.due is not None
        fired = both.due != NOT_FIRED
        if not fired.any():
            return BranchMatches(both.at, both.refs), both.taken(fired)
        if fired.all():
            made = both.taken(slice(0, 0))
            return BranchMatches(made.at, made.refs), both
        made = both.taken(~fired)
        return BranchMatches(made.at, made.refs), both.taken(fired)

    def _run(self, given: dict[str, Any], rows: int) -> tuple[BranchMatches, BranchMatches, int]:
        """One call of the kernel: what rows and deadlines decided, in one order; and how many rows it handled."""
        pool, size, checked = self.pool, self.shape.size, self.checked
        pool.room_for(self.instances_after(rows), 0, rows, 0)
        pool.room_for_frames()
        members = pool.queued_count() + rows
        relations = members // self._least + 1
        given = given | pool.arguments()
        given |= {
            "searches": pool.searches,
            "frames": pool.frames,
            "listed": pool.listed,
            "ring": pool.ring,
            "ranks": self.texts.ranks() if self.shape.ranked else np.zeros(0, dtype=np.int64),
            "out_ref": unwritten(members, np.int64, checked),
            "out_length": unwritten((relations, size), np.int64, checked),
        }
        given |= {name: unwritten(relations, np.int64, checked) for name in ("out_at", "out_due", "out_start", "out_born")}
        found, reached = self.called(given, too_many_decided)
        assert found == pool.counters[FOUND_COUNT]
        words = given["out_ref"][: int(pool.counters[MEMBER_COUNT])].copy()
        lengths = given["out_length"][:found]
        if self.branches[0].runs:
            refs = MemberWords(words, np.concatenate(([0], np.cumsum(lengths.reshape(-1)))), size)
        else:
            refs = MemberWords(words.reshape(-1, size))
        columns = [given[name][:found].copy() for name in ("out_at", "out_due", "out_born", "out_start")]
        at, due, born, start = columns
        made = BranchMatches(at, refs, due, born=born, start=start)
        return made, made, reached

    @property
    def _least(self) -> int:
        """The fewest members of a relation."""
        assert self.branches[0].sequence is not None
        return max(1, fewest(self.branches[0].sequence))

    def is_full(self) -> bool:
        return bool(self.pool.counters[FULL])

    def clear(self) -> None:
        self.pool = self.made_pool()

    def held(self) -> int:
        return self.pool.queued_count()

    def restart(self) -> None:
        """Rows were loaded: the searches find again what was open."""
        self.pool.counters[DIRTY] = 1


def fewest(part: SequencePart) -> int:
    """Rows that the part takes at least."""
    match part:
        case Chain(parts=parts):
            return sum(map(fewest, parts))
        case Choice(parts=parts):
            return min(map(fewest, parts))
        case Loop():
            return part.least * fewest(part.body)
    return 1
