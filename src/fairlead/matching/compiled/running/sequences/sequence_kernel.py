"""A branch that is a sequence, on its kernel: batches of rows in, matches with runs of any length out.

Takes: batches. Gives: what rows decide, and what deadlines decide. Never: makes an object for an event.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlead.matching.compiled.codegen.counters import (
    DIRTY,
    EXCEEDED,
    FOUND_COUNT,
    FULL,
    KEYS,
    MEMBER_COUNT,
)
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout
from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.branch import BranchMatches, KernelBranch, joined_matches
from fairlead.matching.compiled.running.kernel_input import rest_of
from fairlead.matching.compiled.running.pool import LATEST, NEVER
from fairlead.matching.compiled.running.retention import forget_values
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

    def feed(self, batch: KernelBatch, until: int = NEVER, last: int = 0) -> tuple[BranchMatches, BranchMatches]:
        given, rows = self.arguments(batch)
        given |= {"base": batch.first_word, "within": self.within, "until": until, "last": last}
        found: list[BranchMatches] = []
        while True:  # several times where there was no room for what all rows decide
            one, reached = self._search(given, rows)
            found.append(one)
            if reached == rows:
                break
            done = rows if reached < 0 else reached  # below 0: all rows, but not what `until` decides
            given, rows = rest_of(given, self.shape, self.paired, done), rows - done
        forget_values(self)
        both = joined_matches(found)
        assert both.due is not None
        fired = both.due != NOT_FIRED
        if not fired.any():
            return BranchMatches(both.at, both.refs), both.taken(fired)
        made = both.taken(~fired)
        return BranchMatches(made.at, made.refs), both.taken(fired)

    def _search(self, given: dict[str, Any], rows: int) -> tuple[BranchMatches, int]:
        """One call of the kernel: what it decided, and how many rows it handled."""
        pool, size, checked = self.pool, self.shape.size, self.checked
        if self.numbered is not None:
            pool.counters[KEYS] = self.numbered.count
        keys = self.instances() if self.numbered is None else min(self.instances() + rows, len(self.numbered.table))
        pool.room_for(keys, 0, rows, 0)
        pool.room_for_frames()
        members = pool.queued_count() + rows
        relations = members // self._least + 1
        given = given | pool.arguments()
        given |= {
            "searches": pool.searches,
            "frames": pool.frames,
            "listed": pool.listed,
            "ranks": self.texts.ranks() if self.shape.ranked else np.zeros(0, dtype=np.int64),
            "out_ref": unwritten(members, np.int64, checked),
            "out_length": unwritten((relations, size), np.int64, checked),
        }
        given |= {name: unwritten(relations, np.int64, checked) for name in ("out_at", "out_due", "out_start", "out_born")}
        if self.interruption is not None:
            self.interruption.begin(pool.counters)
        found, reached = self.kernel(*(given[name] for name in self.source.arguments))
        if self.interruption is not None:
            self.interruption.end(pool.counters)
        if pool.counters[EXCEEDED]:
            raise too_many_decided(self.subscription.name)
        if self.numbered is not None:
            pool.key_count = self.numbered.count = int(pool.counters[KEYS])
        assert found == pool.counters[FOUND_COUNT]
        words = given["out_ref"][: int(pool.counters[MEMBER_COUNT])].copy()
        lengths = given["out_length"][:found]
        if self.branches[0].runs:
            refs = MemberWords(words, np.concatenate(([0], np.cumsum(lengths.reshape(-1)))), size)
        else:
            refs = MemberWords(words.reshape(-1, size))
        columns = [given[name][:found].copy() for name in ("out_at", "out_due", "out_born", "out_start")]
        at, due, born, start = columns
        return BranchMatches(at, refs, due, born=born, start=start), int(reached)

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
