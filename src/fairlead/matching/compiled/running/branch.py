"""Branches on one kernel: batches of rows in, matches as columns of places out.

Takes: batches. Gives: for each match the place at which it was completed and the places of its members; and what absences
decided. Never: makes an object for an event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.codegen.counters import EXCEEDED, FIRED, KEYS
from fairlead.matching.compiled.codegen.loop import Source, source_of
from fairlead.matching.compiled.machine_code.checked_build import is_checked, unwritten
from fairlead.matching.compiled.machine_code.compiler import kernel_of
from fairlead.matching.compiled.machine_code.interruption import Interruption
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.planning.shape_builder import shape_of
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.kernel_input import NOTHING, KernelInput, rest_of
from fairlead.matching.compiled.running.keys import (
    KeyNumbering,
    paired,
)
from fairlead.matching.compiled.running.pool import NEVER, Pool
from fairlead.matching.compiled.running.retention import forget_values
from fairlead.matching.compiled.running.run_output import gathered_members, room_for_runs, room_to_keep
from fairlead.matching.outcome import too_many_relations
from fairlead.matching.results.member_words import MemberWords, joined_members
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.plans.key_parts import part_of
from fairlead.model.plans.plan import Branch, Subscription

Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BranchMatches:
    """Matches in order: where each was completed, the places of its members, and for absences its deadline."""

    at: Words
    refs: MemberWords
    due: Words | None = None
    member: npt.NDArray[np.int64] | None = None
    """Which branch of the family matched."""
    born: Words | None = None
    """For what absences decided: the event that had completed it."""
    start: Words | None = None
    """For what ended in a sequence: the first row of the search, by which those of one deadline are ordered."""

    def taken(self, mask: npt.NDArray[np.bool_] | Words | slice) -> BranchMatches:
        """Some of them, of one branch, or all in another order."""
        due, born, start = (None if each is None else each[mask] for each in (self.due, self.born, self.start))
        return BranchMatches(self.at[mask], self.refs[mask], due, born=born, start=start)


EACH, ROOM = 4, 1 << 16
"""Where an event can complete many relations: how many there is room for, for each row and at least."""


def joined_matches(parts: Sequence[BranchMatches]) -> BranchMatches:
    """Of consecutive rows."""
    if len(parts) == 1:
        return parts[0]

    def one(columns: Sequence[Words | None]) -> Words | None:
        return None if columns[0] is None else np.concatenate([each for each in columns if each is not None])

    at, refs = np.concatenate([each.at for each in parts]), joined_members([each.refs for each in parts])
    due, member, born, start = (one([getattr(each, name) for each in parts]) for name in ("due", "member", "born", "start"))
    return BranchMatches(at, refs, due, member, born, start)


class KernelBranch(KernelInput):
    """The branches of a family, one, or several with equal `family_key`: their kernel, with its memory."""

    def __init__(
        self,
        subscription: Subscription,
        branch: Branch,
        catalogue: Catalogue,
        others: Sequence[Branch] = (),
        form: Form | None = None,
        keys: KeyNumbering | None = None,
        checked: bool | None = None,
        interruption: Interruption | None = None,
    ) -> None:
        shape, self.source = form or form_of(subscription, branch, catalogue, bool(others))
        super().__init__(shape, [branch, *others], keys)
        self.subscription, self.catalogue = subscription, catalogue
        self.checked = is_checked(checked)
        self.kernel = kernel_of(self.source.program, checked=self.checked)
        self.interruption = interruption
        self.within = subscription.within_us or 0
        self.pool = self.made_pool()

    def made_pool(self) -> Pool:
        return Pool(self.shape.stride, self.shape.size, self.source.layout)

    # Batches

    def feed(self, batch: KernelBatch, until: int = NEVER, last: int = 0) -> tuple[BranchMatches, BranchMatches]:
        """What the batch completes, and what absences it decides. `until`: what is due before is decided too, at `last`."""
        made, decided = zip(*self.parts(batch, until, last), strict=True)
        return joined_matches(made), joined_matches(decided)

    def parts(self, batch: KernelBatch, until: int, last: int) -> list[tuple[BranchMatches, BranchMatches]]:
        """What it completes and decides: in several parts where there was no room for what all rows complete."""
        given, rows = self.arguments(batch)
        given |= {"base": batch.first_word, "within": self.within, "until": until, "last": last}
        found: list[tuple[BranchMatches, BranchMatches]] = []
        while True:
            made, decided, reached = self._run(given, rows)
            found.append((made, decided))
            if reached == rows or not self.is_parted:
                break
            done = rows if reached < 0 else reached  # below 0: all rows, but not what `until` decides
            given, rows = rest_of(given, self.shape, self.paired, done), rows - done
        forget_values(self)
        return found

    @property
    def is_parted(self) -> bool:
        """A batch can end before its last row."""
        return self.shape.parted

    def instances_after(self, rows: int) -> int:
        """How many instances the kernel can have after so many rows. It numbers those of whole numbers by itself."""
        if self.numbered is None:
            return self.instances()
        self.pool.counters[KEYS] = self.numbered.count
        return min(self.instances() + rows, len(self.numbered.table))

    def called(self, given: dict[str, Any], exceeded: Callable[[str], Exception]) -> tuple[int, int]:
        """What the kernel returns: how much it found, and how many rows it handled."""
        if self.interruption is not None:
            self.interruption.begin(self.pool.counters)
        found, reached = self.kernel(*(given[name] for name in self.source.arguments))
        if self.interruption is not None:
            self.interruption.end(self.pool.counters)
        if self.pool.counters[EXCEEDED]:
            raise exceeded(self.subscription.name)
        if self.numbered is not None:
            self.pool.key_count = self.numbered.count = int(self.pool.counters[KEYS])
        return int(found), int(reached)

    def _run(self, given: dict[str, Any], rows: int) -> tuple[BranchMatches, BranchMatches, int]:
        """One call of the kernel: what it completed and decided, and how many rows it handled."""
        size, pool, shape = self.shape.size, self.pool, self.shape
        most = max((len(lane.queues) for lane in shape.lanes), default=1)
        relations = rows if not shape.every else min(rows * shape.relations_max, max(EACH * rows, ROOM)) + shape.relations_max
        waits = relations if shape.waits else 0
        pool.room_for(self.instances_after(rows), self.buckets(), rows * most + size * waits, waits)
        room_to_keep(self, most)
        if len(self.source.plans):
            pool.room_to_reduce(rows)
        if shape.anchored:
            pool.room_to_choose(shape.relations_max)
        fired = pool.waiting_count() + waits if shape.waits else 0
        checked = self.checked
        rows_out = 0 if shape.runs else relations
        out_at, out_ref = unwritten(relations, np.int64, checked), unwritten((rows_out, size), np.int64, checked)
        given = given | pool.arguments() | (room_for_runs(shape, pool, relations, most, checked) if shape.runs else {})
        given |= {
            "plans": self.source.plans,
            "ranks": self.texts.ranks() if shape.ranked else NOTHING,
            "out_at": out_at,
            "out_ref": out_ref,
            "out_key": unwritten(relations if self.paired else 0, np.int32, checked),
            "out_due": unwritten(waits, np.int64, checked),
            "fired_at": unwritten(fired, np.int64, checked),
            "fired_ref": unwritten((fired, size), np.int64, checked),
            "fired_due": unwritten(fired, np.int64, checked),
            "fired_born": unwritten(fired, np.int64, checked),
        }
        found, reached = self.called(given, too_many_relations)
        n = int(pool.counters[FIRED]) if shape.waits else 0
        fired_ones = (given[name][:n] for name in ("fired_at", "fired_ref", "fired_due", "fired_born"))
        at, refs, due_at, born = fired_ones
        decided = BranchMatches(at, MemberWords(refs), due_at, born=born)
        due = given["out_due"][:found] if shape.waits else None
        member = self._members(given["out_key"][:found]) if len(self.branches) > 1 else None
        out_at.resize(found, refcheck=False)  # gives back what was not filled, where it lies: nobody else has seen them
        if shape.runs:
            return BranchMatches(out_at, gathered_members(given, pool, found), due, member), decided, reached
        out_ref.resize((found, size), refcheck=False)
        made = BranchMatches(out_at, MemberWords(out_ref), due, member)
        return made, decided, reached

    def clear(self) -> None:
        """Forget what is queued and waits."""
        self.pool = Pool(self.shape.stride, self.shape.size, self.source.layout)

    def forget_texts(self) -> None:
        """Of a kernel without queues: texts that nothing refers to."""

    def instances(self) -> int:
        """How many instances the kernel has: keys, or pairs of key and branch."""
        if len(self.branches) == 1:
            return len(self.keys)
        return len(self.member_keys) if self.keys.parts else len(self.branches)

    @property
    def is_keyed(self) -> bool:
        """Chains of the hash index belong to one instance each."""
        return bool(self.keys.parts) or len(self.branches) > 1

    def _members(self, keys: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        return self.member_keys.all()[keys] & 0xFFFFFFFF if self.keys.parts else keys.astype(np.int64)

    def buckets(self) -> int:
        """How many chains the hash index has."""
        if not self.shape.equal:
            return 0
        return len(self.equal_pairs) if self.is_keyed else len(self.equal_values)

    def live(self) -> Words:
        """The words of what is queued or waits, in any order."""
        words: Words = self.pool.nodes[self.pool.live(), self.source.layout["REF"]]
        return words

    def held(self) -> int:
        """How many nodes are in use."""
        return self.pool.queued_count() + self.pool.waiting_count() * self.pool.size

    def renumber(self, old: Words, new: Words) -> None:
        """Events that were queued by provisional words (rising) get their final ones, which keep the order."""
        nodes, at = self.pool.live(), self.source.layout["REF"]
        words = self.pool.nodes[nodes, at]
        found = np.minimum(np.searchsorted(old, words), len(old) - 1)
        mine = old[found] == words
        self.pool.nodes[nodes[mine], at] = new[found[mine]]

    # A state that is dumped or loaded (dump.py, load.py)

    def origin(self, instances: Words) -> tuple[Words, Words]:
        """Of the kernel's instances, the number of the key and the branch of the family."""
        if len(self.branches) == 1:
            return instances, np.zeros(len(instances), dtype=np.int64)
        if not self.keys.parts:
            return np.zeros(len(instances), dtype=np.int64), instances
        pairs = self.member_keys.all()[instances]
        return pairs >> 32, pairs & 0xFFFFFFFF

    def instances_of(self, keys: Sequence[pa.Array], which: Words) -> Words:
        """The inverse of `origin`, for keys as columns; new ones are numbered."""
        numbers = self.keys.of_columns(keys, len(which)).astype(np.int64)
        if len(self.branches) == 1:
            return numbers
        return paired(self.member_keys, numbers, which).astype(np.int64) if self.keys.parts else which


Form = tuple[Shape, Source]
"""What all branches of a family share."""


def key_kinds(shape: Shape, catalogue: Catalogue) -> tuple[Kind, ...]:
    """Branches with equal kinds of keys can share their numbers."""
    for lane in shape.lanes:
        for name in lane.types:
            if lane.key:
                found = [catalogue[name].attribute(part_of(each).attribute) for each in lane.key]
                kinds = [attribute.type.kind for attribute in found if attribute is not None]
                return tuple(Kind.BIGINT if kind is Kind.INT else kind for kind in kinds)
    return ()


def form_of(
    subscription: Subscription,
    branch: Branch,
    catalogue: Catalogue,
    several: bool = False,
    heard: frozenset[str] = frozenset(),
) -> Form:
    shape = shape_of(subscription, branch, catalogue, heard)
    return shape, source_of(shape, shape.paired or several)
