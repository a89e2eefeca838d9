"""A plan on kernels: all its subscriptions side by side over the same batches.

Alike branches form families that share a kernel (branch.py). Families are fed in the order of the hierarchy: what one derives
is merged into the batch of those that read it (levels.py).

Takes: a plan, then batches. Gives: `Relations`, and the state in the form that every matcher shares (plan_state.py). Never: an
object for an event. Raises `Refused` where a branch has no kernel.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import groupby

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.machine_code.compiler import unmade
from fairlead.matching.compiled.machine_code.interruption import Check, Interruption
from fairlead.matching.compiled.planning.family import sharing_key
from fairlead.matching.compiled.planning.identity_cache import IdentityCache
from fairlead.matching.compiled.running.batch import KernelBatch, Prepared
from fairlead.matching.compiled.running.branch import BranchMatches, Form, KernelBranch, form_of, key_kinds
from fairlead.matching.compiled.running.delivery_limit import limits_of
from fairlead.matching.compiled.running.folds.fold_kernel import FoldKernel
from fairlead.matching.compiled.running.keys import KeyNumbering
from fairlead.matching.compiled.running.levels import Level, Levels, Merged, Node
from fairlead.matching.compiled.running.paths import widest
from fairlead.matching.compiled.running.pool import NEVER
from fairlead.matching.compiled.running.retention import forget_keys
from fairlead.matching.compiled.running.rounds import before_events, in_order_of_decision, ranks_of
from fairlead.matching.compiled.running.sequences.sequence_kernel import SequenceKernel
from fairlead.matching.results.chunk import Words
from fairlead.matching.results.event_store import Store
from fairlead.matching.results.member_words import MemberWords
from fairlead.matching.results.relations import Build, MatchBlock, Relations, united
from fairlead.model.events.columns import Columns
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.clocks import heard_types
from fairlead.model.plans.plan import Branch, Plan, Subscription
from fairlead.model.relations.identity import position_word


@dataclass(frozen=True)
class FamilyMember:
    """A branch of a family: of which subscription, and where that stands in the plan and in the hierarchy."""

    subscription: Subscription
    number: int
    branch: int
    depth: int


@dataclass(frozen=True)
class Family:
    members: list[FamilyMember]
    kernel: KernelBranch
    reads: frozenset[str]
    clock: frozenset[str]
    """The types that tell it the time: those that it reads, and where it waits those that it hears (model/plans/clocks.py)."""


class KernelLane:
    def __init__(
        self, plan: Plan, build: Build, depths: dict[str, int], check: Check | None = None, *, path_cells: int
    ) -> None:
        self.plan, self.build, self.path_cells = plan, build, path_cells
        self.families = _families(plan, depths, Interruption(check))
        self.numberings: dict[int, tuple[KeyNumbering, list[KernelBranch]]] = {}
        for family in self.families:
            self.numberings.setdefault(id(family.kernel.keys), (family.kernel.keys, []))[1].append(family.kernel)
        self.store = Store()
        read = frozenset().union(*(family.reads for family in self.families)) if self.families else frozenset()
        self.levels = Levels(plan, frozenset(name for name in read if plan.catalogue[name].derived))
        waiting = [each for each in self.families if each.kernel.shape.waits]
        self.sequences = [each for each in self.families if each.kernel.shape.sequence is not None]
        self.clocks = {each.members[0].subscription.name: each.clock for each in (*self.sequences, *waiting)}
        """Of the subscriptions that wait for something, at least for the end of the input."""
        self.seen = dict.fromkeys((each.members[0].subscription.name for each in waiting), NEVER)
        """Likewise, the latest time that each has seen."""
        self.is_alone = len(self.families) == 1 and len(self.families[0].members) == 1 and not self.levels.read
        """What there is comes from one kernel, and nothing reads what it derives."""
        self.limits = limits_of(plan)
        """LIMITs, by subscription."""
        self.rows_at_once = rows_at_once(len(self.families), depths, path_cells)
        """Rows of the input that go through all levels together."""

    def feed(self, columns: Columns, prepared: Prepared | None = None) -> Relations:
        """The relations of a batch. `prepared`: the same columns, as other engines are given them too."""
        if prepared is None or self.levels.needed:
            self.store.add(columns)
            return self._delivered(KernelBatch(columns, self.plan.catalogue), NEVER, 0)
        if len(columns):
            self.store.add_chunk(prepared.chunk)
        return self._delivered(prepared.batch, NEVER, 0)

    def finish(self, until: int, last: int) -> Relations:
        """What absences are decided before the time `until`, beside the place after `last`."""
        nothing = KernelBatch(Columns((), np.zeros(0, dtype=np.int8), range(0), {}), self.plan.catalogue)
        return self._delivered(nothing, until, position_word(Position(last + 1)))

    def waiting(self) -> list[str]:
        """The subscriptions with relations that wait for a deadline."""
        found = {family.members[0].subscription.name for family in self.families if family.kernel.pool.waiting_count()}
        return [each.name for each in self.plan.subscriptions if each.name in found]

    def _delivered(self, logged: KernelBatch, until: int, last: int) -> Relations:
        if not self.levels.needed and (until == NEVER or not self.sequences):
            blocks = self._limited([block for family in self.families for block in self._fed(family, logged)])
        elif self.is_alone:
            blocks = self._limited(self._alone(self.families[0], logged, until, last))
        else:
            blocks = self._by_levels(logged, until, last)
        if self.plan.silent:
            blocks = [block for block in blocks if block.subscription.name not in self.plan.silent]
        found = Relations(blocks, self.store.view(), self.plan.catalogue, self.build)
        for family in self.families if self.limits else ():
            if self._is_done(family) and family.kernel.held():
                family.kernel.clear()
        for numbering, branches in self.numberings.values():
            forget_keys(numbering, branches)
        kernels = [family.kernel for family in self.families]
        self.store.pack(sum(each.held() for each in kernels), lambda: np.concatenate([each.live() for each in kernels]))
        return found

    def _fed(self, family: Family, batch: KernelBatch) -> list[MatchBlock]:
        """Without derived events and absences, what a kernel finds is final, and nothing asks for the time."""
        if self._is_done(family):
            return []
        made, _ = family.kernel.feed(batch)
        return [
            MatchBlock(member.subscription, member.number, member.branch, at, refs) for member, at, refs in _parts(family, made)
        ]

    def _alone(self, family: Family, batch: KernelBatch, until: int, last: int) -> list[MatchBlock]:
        """What one kernel completes and what deadlines decide, where no derived event comes between."""
        if family.kernel.shape.waits:
            self._tell_time(family, batch)
        if self._is_done(family):
            return []
        made, decided = family.kernel.feed(batch, until, last)
        member = family.members[0]
        of = member.subscription, member.number, member.branch
        found = [MatchBlock(*of, made.at, made.refs, 1, made.due)]
        if len(decided.at):
            decided = in_order_of_decision(member.branch, decided)
            found.append(MatchBlock(*of, before_events(decided.at), decided.refs, 0, decided.due))
        return found

    def _is_done(self, family: Family) -> bool:
        """LIMIT is reached, so nothing more is delivered of what the kernel finds."""
        limit = self.limits.get(family.members[0].subscription.name)
        return limit is not None and len(family.members) == 1 and limit.is_reached

    def _limited(self, blocks: list[MatchBlock]) -> list[MatchBlock]:
        """Of what each subscription found, the relations that its LIMIT lets through, by place and branch."""
        for name, limit in self.limits.items():
            mine = [each for each in blocks if each.subscription.name == name and len(each)]
            if mine:
                view = self.store.view()
                numbers = np.concatenate([limit.numbers(each.branch, each.refs, view) for each in mine])
                branches = np.repeat([each.branch for each in mine], [len(each) for each in mine])
                order = np.lexsort((branches, np.concatenate([each.at for each in mine])))
                mask = np.zeros(len(order), dtype=bool)
                mask[order] = limit.admitted(numbers[order])
                parts = np.split(mask, np.cumsum([len(each) for each in mine])[:-1])
                chosen = [each.taken(part) for each, part in zip(mine, parts, strict=True)]
                blocks = [*(each for each in blocks if each.subscription.name != name), *chosen]
        return blocks

    def _tell_time(self, family: Family, batch: KernelBatch) -> None:
        latest = batch.once(
            ("latest", family.clock),
            lambda: max(
                (int(r.times.max()) for n, r in batch.rows.items() if n in family.clock and r.times is not None and len(r)),
                default=NEVER,
            ),
        )
        name = family.members[0].subscription.name
        self.seen[name] = max(self.seen[name], latest)

    def _by_levels(self, logged: KernelBatch, until: int, last: int) -> list[MatchBlock]:
        """Part by part: paths have a number of columns in proportion to the depth of the hierarchy, so for each event of the
        input they take memory in the square of it (paths.py)."""
        found: list[MatchBlock] = []
        delivered, low = 0, 0
        while True:
            high = min(len(logged), low + self.rows_at_once)
            part = logged if high - low == len(logged) else KernelBatch(logged.columns.part(low, high), self.plan.catalogue)
            level = self.levels.begin(part, self.store.view())
            blocks = self._level_by_level(level, until, last)
            found += [each.moved(delivered) for each in blocks] if delivered else blocks
            delivered += sum(map(len, blocks))
            self._adapt(high - low, level.cells)
            if high == len(logged):
                return found if part is logged else united(found)
            low = high

    def _adapt(self, rows: int, cells: int) -> None:
        """The next time as many rows as paths may take cells, by what these took."""
        if cells > self.path_cells:
            self.rows_at_once = max(1, min(self.rows_at_once, rows * self.path_cells // cells))
        elif rows == self.rows_at_once and cells * 4 < self.path_cells:
            self.rows_at_once *= 2

    def _level_by_level(self, level: Level, until: int, last: int) -> list[MatchBlock]:
        nodes: list[Node] = []
        for _, group in groupby(self.families, key=lambda family: family.members[0].number):
            decisions: list[tuple[FamilyMember, BranchMatches, Merged | None]] = []
            found_here: list[Node] = []
            for family in group:
                batch, merged = level.batch_of(family.clock, family.kernel.shape.waits)
                if family.kernel.shape.waits:
                    self._tell_time(family, batch)
                if self._is_done(family):
                    continue
                made, decided = family.kernel.feed(batch, until, last)
                for member, part in parted(family, made):
                    if len(part.at):
                        found_here.append(level.add(member.subscription, member.number, member.branch, part, merged))
                if len(decided.at):  # absences run alone, and all branches of a subscription see the same batch
                    decisions.append((family.members[0], decided, merged))
                if merged is not None:
                    level.moved(family.kernel, merged)
            ranks = ranks_of([(member.branch, found) for member, found, _ in decisions])
            for (member, found, merged), mine in zip(decisions, ranks, strict=True):
                clock, turn = self.clocks[member.subscription.name], (member.depth, member.number, mine)
                found_here.append(level.decide(member.subscription, member.branch, clock, found, turn, merged))
            found_names = [each.block.subscription.name for each in found_here] if self.limits else []
            for name in dict.fromkeys(each for each in found_names if each in self.limits):
                limited = [each for each in found_here if each.block.subscription.name == name]
                found_here = [each for each in found_here if each.block.subscription.name != name]
                found_here += level.limited(limited, self.limits[name])
            nodes += [level.emitted(each) for each in found_here]
        return level.settle(nodes, self.store)


def parted(family: Family, found: BranchMatches) -> list[tuple[FamilyMember, BranchMatches]]:
    """What a family found, by member. Families of several wait for nothing."""
    if found.member is None:
        return [(family.members[0], found)]
    return [(member, BranchMatches(at, refs)) for member, at, refs in _parts(family, found)]


def _parts(family: Family, found: BranchMatches) -> Iterator[tuple[FamilyMember, Words, MemberWords]]:
    """By member, in their order. One after the other: with thousands of members, Python's garbage collector would look through
    the whole plan every time that so many tuples are made."""
    if found.member is None:
        yield family.members[0], found.at, found.refs
        return
    narrow = found.member.astype(np.int16) if len(family.members) <= RADIX_MAX else found.member
    order = np.argsort(narrow, kind="stable")
    which = narrow[order]
    at, refs = found.at[order], found.refs[order]
    starts = np.flatnonzero(np.concatenate(([True], which[1:] != which[:-1]))) if len(which) else np.zeros(0, dtype=np.int64)
    ends = [*starts[1:].tolist(), len(which)]
    for member, low, high in zip(which[starts].tolist(), starts.tolist(), ends, strict=False):
        yield family.members[member], at[low:high], refs[low:high]


RADIX_MAX = 2**15
"""NumPy sorts numbers of two bytes by radix, eight times as fast."""


_FORMS: dict[Hashable, Form] = {}
FORMS_MAX = 256
"""A program has about 0.13 MB. Then all are dropped: a plan that has more is not helped by a part of them."""


def _form_of(member: FamilyMember, branch: Branch, catalogue: Catalogue, several: bool, heard: frozenset[str]) -> Form:
    """Shape and source, once for what the digest of a subscription stands for, of types as they are declared here."""
    subscription = member.subscription
    declared = (str(catalogue[name]) for name in sorted({*subscription.types, *subscription.reads(catalogue)}))
    key = (subscription.digest, subscription.number(member.branch), several, heard, *declared)
    found = _FORMS.get(key)
    if found is None or not member.subscription.digest:
        if len(_FORMS) >= FORMS_MAX:
            _FORMS.clear()
        found = _FORMS[key] = form_of(member.subscription, branch, catalogue, several, heard)
    return found


Group = list[tuple[FamilyMember, Branch]]
"""The branches of a family."""


_GROUPS: IdentityCache[list[Group]] = IdentityCache()


def grouped(plan: Plan, depths: dict[str, int]) -> list[Group]:
    """The families of a plan, in the order of the text."""
    return _GROUPS.of(plan, lambda: _grouped(plan, depths))


def _grouped(plan: Plan, depths: dict[str, int]) -> list[Group]:
    groups: dict[Hashable, Group] = {}
    for number, subscription in enumerate(plan.subscriptions):
        for at, branch in enumerate(subscription.branches):
            member = FamilyMember(subscription, number, at, depths[subscription.name])
            key = sharing_key(subscription, branch, plan.catalogue)
            groups.setdefault(key or ("alone", number, at), []).append((member, branch))
    return list(groups.values())


def formed(plan: Plan, groups: list[Group]) -> Iterator[tuple[Form, frozenset[str]]]:
    """Shape and source of each family, and the types that it hears."""
    hears = heard_types(plan)
    for group in groups:
        first, branch = group[0]
        heard = hears.get(first.subscription.name, frozenset()) if branch.waiting or branch.timed else frozenset()
        yield _form_of(first, branch, plan.catalogue, len(group) > 1, heard), heard


def rows_at_once(families: int, depths: dict[str, int], path_cells: int) -> int:
    """How many rows may go through all levels together, if each leads to a relation and an event of every family."""
    return max(1, path_cells // max(1, 2 * families * widest(max(depths.values(), default=0))))


def prices(plan: Plan, depths: dict[str, int], path_cells: int) -> Iterator[float]:
    """What it costs to move a plan to kernels, in kernels that have to be compiled; better and better known, each
    answer for a small part of what it says. A plan of one kernel is not looked at."""
    groups = grouped(plan, depths)
    if len(groups) > 1:
        deep = max(1, ROWS_FEW / rows_at_once(len(groups), depths, path_cells))
        yield deep * len(groups) / FORMS_A_KERNEL
        compiled, loaded = unmade(form[1].program for form, _ in formed(plan, groups))
        yield deep * (compiled + loaded / LOADS_A_KERNEL)


FORMS_A_KERNEL, LOADS_A_KERNEL = 50, 10
"""Compiling takes 100 milliseconds, making the source 1 to 2, loading what was compiled 5 to 10."""
ROWS_FEW = 64
"""With fewer rows at once kernels save little or nothing, unless there are long searches."""


def _families(plan: Plan, depths: dict[str, int], interruption: Interruption) -> list[Family]:
    """Upstream first, and then in the order of the text. Keys of the same kinds are numbered together."""
    made = []
    numberings: dict[Hashable, KeyNumbering] = {}
    groups = grouped(plan, depths)
    for group, (form, heard) in zip(groups, formed(plan, groups), strict=True):
        (first, branch), others = group[0], [each for _, each in group[1:]]
        kinds = key_kinds(form[0], plan.catalogue)
        keys = numberings.setdefault(kinds, KeyNumbering(len(kinds)))
        of = FoldKernel if branch.folded else KernelBranch if branch.sequence is None else SequenceKernel
        kernel = of(first.subscription, branch, plan.catalogue, others, form, keys, interruption=interruption)
        members = [each for each, _ in group]
        reads = first.subscription.reads(plan.catalogue)
        made.append(Family(members, kernel, reads, reads | heard))
    return sorted(made, key=lambda each: (each.members[0].depth, each.members[0].number, each.members[0].branch))
