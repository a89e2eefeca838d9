"""A Plan: the checked, compiled form of a rule text, the input of every matcher and runtime.

    Plan ─ Subscription ─ Branch (a conjunction) ─ Slot, Predicate, Clause, Emission

Gives: frozen values with the signature already in order (types by name, then instance number), branches in canonical order, and
a digest that equivalent subscriptions share, whatever their names (canonical.py).
Never: parses, checks or evaluates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import islice
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.model.clauses.clause import Clause, NotingClause, Pair
from fairlead.model.clauses.limit import Limit
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Predicate
from fairlead.model.guarantee import Guarantee
from fairlead.model.lint_warning import LintWarning
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.pattern import Element, Emission, Quantifier, Slot
from fairlead.model.plans.retention import Retention
from fairlead.model.plans.sequence import SequencePart


@dataclass(frozen=True)
class Branch:
    """One conjunction with its own queues. `slots` is the signature."""

    elements: tuple[Element, ...]
    slots: tuple[Slot, ...]
    predicates: tuple[Predicate, ...] = ()
    clauses: tuple[Clause, ...] = ()
    """Those that note events come last, by their slots."""
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For each type of the branch (those of noted events too) the attributes of its key; empty without PER."""
    emission: Emission | None = None
    kept: tuple[int, ...] = ()
    """The slots of KEEP: their events do not leave by a match."""
    upto: tuple[int, ...] = ()
    """The slots of the element that DISPOSAL UPTO names."""
    having: tuple[Predicate, ...] = ()
    """Conditions on whole runs: what they read of a run are aggregates."""
    sequence: SequencePart | None = None
    """The pattern over the rows of a key, if the branch is a sequence."""
    timed: bool = False
    """A sequence that can end because a time passes."""
    folded: tuple[int, ...] = ()
    """The slots of FOLD: runs whose events are kept as what is read of them (folding.py)."""
    retained: tuple[tuple[str, Retention], ...] = ()
    """The bounds of RETAIN, by the types of the queues, sorted."""
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The queues that are tables, by type and sorted, each with the attributes of its key."""

    @cached_property
    def retention(self) -> Mapping[str, Retention]:
        return dict(self.retained)

    @cached_property
    def read(self) -> frozenset[int]:
        """The slots of tables: their members are read, and nothing else happens to them."""
        tables = dict(self.tables)
        return frozenset(at for at, slot in enumerate(self.slots) if slot.type in tables)

    @cached_property
    def table_queues(self) -> Mapping[int, tuple[str, ...]]:
        """The key of each queue that is a table, by its number."""
        return {self.queue_types.index(name): key for name, key in self.tables}

    @cached_property
    def runs(self) -> Mapping[int, Quantifier]:
        """The slots that hold runs, in their order, and how many events each takes."""
        return {at: slot.run for at, slot in enumerate(self.slots) if slot.run is not None}

    def grouped(self, members: Sequence[Any], lengths: Sequence[int] | None) -> Sequence[Any]:
        """What each slot holds, of members one after the other: an event, or for a run a tuple of events."""
        if lengths is None:
            return members
        rest = iter(members)
        runs = [tuple(islice(rest, length)) for length in lengths]
        return [run if at in self.runs else run[0] for at, run in enumerate(runs)]

    @cached_property
    def queue_types(self) -> tuple[str, ...]:
        """The types that have a queue, in signature order."""
        return tuple(dict.fromkeys(slot.type for slot in self.slots))

    @cached_property
    def slots_of_type(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tuple(at for at, slot in enumerate(self.slots) if slot.type == name) for name in self.queue_types}

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Every type that the branch reads, those of noted events last."""
        return tuple(dict.fromkeys((*self.queue_types, *(each.type for each in self.noting))))

    @cached_property
    def orders(self) -> tuple[Pair, ...]:
        """Pairs of members that clauses put in order."""
        return tuple(pair for each in self.clauses for pair in each.orders)

    @cached_property
    def noting(self) -> tuple[NotingClause, ...]:
        """The clauses that note events, in the order of their slots."""
        return tuple(each for each in self.clauses if isinstance(each, NotingClause))

    @cached_property
    def prompt(self) -> tuple[NotingClause, ...]:
        """Those of them that decide on a relation when its members are found."""
        return tuple(each for each in self.noting if not each.waits)

    @cached_property
    def waiting(self) -> tuple[NotingClause, ...]:
        """Those of them that decide on a relation when their time has passed."""
        return tuple(each for each in self.noting if each.waits)

    def twins(self, clause: NotingClause, catalogue: Catalogue) -> frozenset[int]:
        """The slots whose members the clause can have noted too: one that is a member forbids nothing."""
        mine = set(catalogue.accepts(clause.type))
        return frozenset(slot for slot, each in enumerate(self.slots) if mine & set(catalogue.accepts(each.type)))

    @cached_property
    def signature(self) -> tuple[str, ...]:
        return tuple(slot.type for slot in self.slots)

    def alias_names(self) -> list[str]:
        """The name of each slot for users, those of noted events at the end."""
        counted = {element.alias for element in self.elements if element.quantifier.several}
        members = [s.alias if s.alias not in counted or s.run else f"{s.alias}[{s.alias_index}]" for s in self.slots]
        return members + [each.alias for each in self.noting]

    def canonical_names(self) -> list[str]:
        """Names that do not depend on aliases, for digests."""
        return [f"{slot.type}[{slot.instance}]" + (slot.run.canonical if slot.run else "") for slot in self.slots] + [
            f"!{each.slot}" for each in self.noting
        ]


@dataclass(frozen=True)
class Subscription:
    """One compiled subscription: its branches, clauses and what it emits."""

    name: str
    branches: tuple[Branch, ...]
    per: tuple[str, ...] = ()
    within_us: int | None = None
    matching: Matching = Matching.FIRST
    disposal: Disposal = Disposal.PREFIX_INFIX
    advance: int = 0
    """The n of DISPOSAL ADVANCE n."""
    limit_per_event: int | None = None
    """The n of LIMIT n PER EVENT."""
    emits: str | None = None
    digest: str = ""
    text: str = ""
    unfolded: str = ""
    """The digest that it has without FOLD, here and upstream; empty if that is its digest."""
    numbers: tuple[int, ...] = ()
    """The numbers of the branches, if these are some of the subscription's; otherwise all of them, from 0."""
    written: tuple[int, ...] = ()
    """For each branch of the text, its number; empty if that is the order of the numbers."""
    order: EventOrder | None = None
    """By what its events are ordered, if that is not the order of the input: then ids are made of the members' identities."""
    limit: Limit | None = None
    """How many relations are delivered at most."""

    @property
    def id_digest(self) -> str:
        """Of which the ids of its relations are made: FOLD changes what is kept of a run, not which relation it is in."""
        return self.unfolded or self.digest

    @property
    def in_text_order(self) -> Sequence[int]:
        """The numbers of the branches in the order of the text; a repeated branch appears as often as it is written."""
        return self.written or range(len(self.branches))

    def number(self, branch: int) -> int:
        """The number of a branch in the whole subscription, where this has some of its branches (`only`)."""
        return self.numbers[branch] if self.numbers else branch

    def signatures(self) -> list[tuple[str, ...]]:
        """The signatures of the branches, in the order of the text."""
        return [self.branches[at].signature for at in self.in_text_order]

    def only(self, numbers: Sequence[int]) -> Subscription:
        """The subscription with some of its branches: they find the same relations, with the same ids."""
        return replace(self, branches=tuple(self.branches[at] for at in numbers), numbers=tuple(map(self.number, numbers)))

    @property
    def disposal_words(self) -> str:
        """Its disposal, as the text says it."""
        if self.disposal is Disposal.ADVANCE:
            return f"{self.disposal.words} {self.advance}"
        if self.disposal.upto:
            branch = self.branches[0]
            return f"{self.disposal.words} {branch.slots[branch.upto[0]].alias}"
        return self.disposal.words

    @property
    def kept_aliases(self) -> tuple[str, ...]:
        """The elements of KEEP."""
        return tuple(dict.fromkeys(branch.slots[slot].alias for branch in self.branches for slot in branch.kept))

    @property
    def folded_aliases(self) -> tuple[str, ...]:
        """The elements of FOLD."""
        return tuple(dict.fromkeys(branch.slots[slot].alias for branch in self.branches for slot in branch.folded))

    def disposal_of(self, branch: Branch) -> Disposal:
        """ADVANCE n is PREFIX INFIX where a match has no more than n events of a type."""
        if self.disposal is not Disposal.ADVANCE or self.matching.all or branch.sequence is not None:
            return self.disposal
        most = max(map(len, branch.slots_of_type.values()))
        return Disposal.PREFIX_INFIX if self.advance >= most else self.disposal

    def is_anchored(self, branch: Branch) -> bool:
        """A relation of this branch contains the arriving event, because a match may leave all its members queued."""
        stays = self.disposal is Disposal.NONE or self.disposal.upto or bool(branch.kept)
        return self.matching.all or stays or bool(branch.tables)

    @cached_property
    def is_clocked(self) -> bool:
        """Its keys have clocks, by which queued events leave."""
        spans = any(each.span_us is not None for branch in self.branches for _, each in branch.retained)
        return spans or self.within_us is not None

    @cached_property
    def waits(self) -> bool:
        """Some of its relations wait until a time has passed, so it needs the time."""
        return any(branch.waiting or branch.timed for branch in self.branches)

    @property
    def by_time(self) -> bool:
        """A time can decide relations; of sequences that are not timed, the end of everything."""
        return self.waits or self.has_sequences

    @cached_property
    def has_sequences(self) -> bool:
        return any(branch.sequence is not None for branch in self.branches)

    @cached_property
    def has_runs(self) -> bool:
        return any(branch.runs for branch in self.branches)

    @cached_property
    def has_folds(self) -> bool:
        return any(branch.folded for branch in self.branches)

    @property
    def by_event(self) -> bool:
        """There may be no machine code for it; then it is matched event by event."""
        return self.has_runs or self.has_sequences

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Every type named by the subscription, sorted; those that only tell it the time too."""
        named = {name for branch in self.branches for name in branch.types}
        return tuple(sorted(named.union(*(each.clock for branch in self.branches for each in branch.waiting))))

    def reads(self, catalogue: Catalogue) -> frozenset[str]:
        """The concrete event types that the subscription reads; heartbeats are always among them."""
        return catalogue.input_of(self.types)


@dataclass(frozen=True)
class Plan:
    """The compiled rules: types and subscriptions, in the order of the text.

    `guarantees` maps the name of a subscription to its guarantees; `warnings` has the findings of lint.
    """

    catalogue: Catalogue
    subscriptions: tuple[Subscription, ...]
    warnings: tuple[LintWarning, ...] = ()
    guarantees: Mapping[str, tuple[Guarantee, ...]] = field(default_factory=dict, compare=False)
    text: str = ""
    file: str | None = field(default=None, compare=False)
    """The name of the file of the text, for messages."""
    whole: Plan | None = field(default=None, compare=False)
    """For a part of a plan: that plan, whose tables it fills."""
    silent: frozenset[str] = frozenset()
    """Subscriptions that run only for the readers of the events that they emit: their relations are not delivered."""

    def __repr__(self) -> str:
        return (
            f"Plan(types {[each.name for each in self.catalogue]}, subscriptions {[each.name for each in self.subscriptions]})"
        )

    @property
    def order(self) -> EventOrder | None:
        """By what the events are ordered; None for the order of the input."""
        return self.subscriptions[0].order if self.subscriptions else None

    @property
    def revises(self) -> bool:
        """Whether relations can be taken back (LATE REVISE)."""
        return self.order is not None and self.order.revise_us is not None

    @property
    def unfolded(self) -> Plan:
        """Without FOLD: the same relations, with all their members."""
        if not any(each.has_folds for each in self.subscriptions):
            return self
        plain = [
            replace(each, branches=tuple(replace(branch, folded=()) for branch in each.branches)) for each in self.subscriptions
        ]
        return replace(self, subscriptions=tuple(plain), whole=None)

    @property
    def types(self) -> Catalogue:
        """The declared and derived event types."""
        return self.catalogue

    def __getitem__(self, name: str) -> Subscription:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> Mapping[str, Subscription]:
        return {each.name: each for each in self.subscriptions}

    @cached_property
    def emitters(self) -> Mapping[str, tuple[Subscription, ...]]:
        """For each emitted type the subscriptions that emit it, in the order of the text."""
        found: dict[str, list[Subscription]] = {}
        for each in self.subscriptions:
            if each.emits is not None:
                found.setdefault(each.emits, []).append(each)
        return {name: tuple(emitting) for name, emitting in found.items()}

    def derived_types(self, subscription: Subscription) -> list[str]:
        """The types that a subscription reads and other subscriptions emit, sorted."""
        return sorted(subscription.reads(self.catalogue) & self.emitters.keys()) if self.emitters else []

    @cached_property
    def emitters_first(self) -> tuple[Subscription, ...]:
        """All subscriptions, each after those whose events it reads, otherwise in the order of the text. Depth-first with an
        explicit stack: a chain of ten thousand is valid."""
        done: dict[str, Subscription] = {}
        made: set[str] = set()
        """Types whose emitters are all done. (It is not enough that a type is on the stack: it may be further down.)"""

        def is_made(name: str) -> bool:
            if name not in made and all(each.name in done for each in self.emitters[name]):
                made.add(name)
            return name in made

        for start in self.subscriptions:
            stack = [(start, False)]
            while stack:
                each, ready = stack.pop()
                if each.name in done:
                    continue
                waiting = [] if ready else [name for name in self.derived_types(each) if not is_made(name)]
                if not waiting:
                    done[each.name] = each
                    continue
                stack.append((each, True))
                stack.extend((one, False) for name in reversed(waiting) for one in reversed(self.emitters[name]))
        return tuple(done.values())

    @cached_property
    def digest(self) -> str:
        """The digest of its subscriptions, in this order; if there is one, its digest. It identifies what a run delivers as a
        whole; states belong to subscriptions."""
        digests = [each.digest for each in self.subscriptions if each.name not in self.silent]
        return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()

    @cached_property
    def input_types(self) -> tuple[str, ...]:
        """The concrete types that events of the input may have: all declared ones that are not derived or unions."""
        return tuple(each.name for each in self.catalogue if not each.is_union and not each.derived)

    def _repr_html_(self) -> str:
        from fairlead.model.html import plan_html

        return plan_html(self)
