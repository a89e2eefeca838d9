"""Which conjunctions are the same, and which one extends which: the meaning of Φ, Φ ∧ Φ' and "Φ in Ψ" for a checker.

The *identity* of a conjunction is a text of its content, free of names and aliases; two processes have the same conjunction
exactly if the texts are equal. Its *prefixes* are the conjunctions that it extends to the right: the first types of the
signature, cut where nothing links the two sides (no predicate, THEN or WITHOUT across the cut, no event that fits types on both
sides).

A conjunction with an absence, or a sequence that a time can end, is decided by all events of its subscription's input, so the
types of that input belong to its identity.

A *sequence* has its pattern in its identity, and it extends what it begins with: the first parts of a chain, whether NEXT or
THEN follows. It is tied to the rest by the order alone; the types of the rest are others, and come after its own in the
signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fairlead.guarantees.shape import links
from fairlead.model.clauses.clause import Clause, NotingClause
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Predicate, render_condition
from fairlead.model.plans.key_parts import key_value
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.sequence import Chain, SequencePart, Take, canonical_text, ends_by_time, takes
from fairlead.testing.interpreter import holds

Members = tuple[Any, ...]
"""What each place of a conjunction holds: an event, or a tuple of events (a run)."""


@dataclass(frozen=True)
class TracedConjunction:
    subscription: Subscription
    branch: Branch
    catalogue: Catalogue = field(compare=False, repr=False)

    @cached_property
    def identity(self) -> str:
        return self._text(len(self.branch.slots))

    @cached_property
    def prefixes(self) -> Mapping[str, int]:
        """The identities of what it extends, itself last, with how many members each has."""
        slots = self.branch.slots
        cuts = [at for at in range(1, len(slots)) if slots[at - 1].type != slots[at].type and self._splits(at)]
        if self.branch.sequence is not None:
            cuts = [at for at in cuts if at in self._beginnings]
        return {self._text(at): at for at in (*cuts, len(slots))}

    @cached_property
    def _beginnings(self) -> Mapping[int, SequencePart]:
        """What the sequence begins with, by the number of slots, if those are the first of the signature; the whole too."""
        tree = self.branch.sequence
        assert tree is not None
        found: dict[int, SequencePart] = {len(self.branch.slots): tree}
        if not isinstance(tree, Chain):
            return found
        for count in range(1, len(tree.parts)):
            part = Chain(tree.parts[:count], tree.skips[: count - 1]) if count > 1 else tree.parts[0]
            slots = {each.slot for each in takes(part)}
            if slots == set(range(len(slots))):
                found[len(slots)] = part
        return found

    @cached_property
    def reads(self) -> frozenset[str]:
        """The concrete types that its subscription reads."""
        return self.subscription.reads(self.catalogue)

    @cached_property
    def accepted(self) -> tuple[frozenset[str], ...]:
        """For each slot the concrete types that fit it."""
        return tuple(frozenset(self.catalogue.accepts(slot.type)) for slot in self.branch.slots)

    @cached_property
    def names_of(self) -> Mapping[str, tuple[str, ...]]:
        """By concrete type, the types that the conjunction names for its events: itself, supertypes, unions."""
        found: dict[str, tuple[str, ...]] = {}
        for name in self.branch.queue_types:
            for concrete in self.catalogue.accepts(name):
                found[concrete] = (*found.get(concrete, ()), name)
        return found

    def takes(self, slot: int, event: Event) -> bool:
        """The event is of the slot's type and satisfies the conditions on this slot alone."""
        return event.type in self.accepted[slot] and all(holds(each.condition, {slot: event}) for each in self.unary[slot])

    @cached_property
    def unary(self) -> tuple[tuple[Predicate, ...], ...]:
        predicates = self.branch.predicates
        return tuple(tuple(p for p in predicates if p.slots == (slot,)) for slot in range(len(self.branch.slots)))

    def lengths_fit(self, lengths: Sequence[int]) -> bool:
        """One event for each place, and for a run as many as it takes."""
        return len(lengths) == len(self.branch.slots) and all(self._fits(at, length) for at, length in enumerate(lengths))

    def _fits(self, at: int, length: int) -> bool:
        run = self.branch.runs.get(at)
        if run is None:
            return length == 1
        return length >= run.least and (run.most is None or length <= run.most)

    def members_of(self, places: Sequence[tuple[Event, ...]]) -> Members:
        """What each place holds: an event, or the tuple of a run."""
        return tuple(place if at in self.branch.runs else place[0] for at, place in enumerate(places))

    def meets(self, predicate: Predicate, members: Members) -> bool:
        """A condition of HAVING is about whole runs, one of WHERE about each event of the run that it names."""
        binding = dict(enumerate(members))
        run = next((slot for slot in predicate.slots if slot in self.branch.runs), None)
        if run is None or predicate in self.branch.having:
            return holds(predicate.condition, binding)
        return all(holds(predicate.condition, binding | {run: event}) for event in members[run])

    def tied(self, slot: int) -> tuple[Predicate, ...]:
        """The predicates over several members of which `slot` is the last: they can be tested once it is filled."""
        return self._tied[slot]

    @cached_property
    def _tied(self) -> tuple[tuple[Predicate, ...], ...]:
        predicates = [each for each in self.branch.predicates if len(each.slots) > 1]
        return tuple(tuple(p for p in predicates if p.slots[-1] == slot) for slot in range(len(self.branch.slots)))

    def key_of(self, slot: int, event: Event) -> tuple[object, ...]:
        return tuple(key_value(event, name) for name in self._keys.get(self.branch.slots[slot].type, ()))

    @cached_property
    def _keys(self) -> Mapping[str, tuple[str, ...]]:
        return dict(self.branch.keys)

    def _splits(self, at: int) -> bool:
        left, right = frozenset(range(at)), frozenset(range(at, len(self.branch.slots)))
        if any(link & left and link & right for link in links(self.branch, self.catalogue)):
            return False
        return not any(self._members(each) & left and self._members(each) & right for each in self.branch.waiting)

    def _members(self, clause: Clause) -> frozenset[int]:
        return clause.members(len(self.branch.slots))

    def _text(self, members: int) -> str:
        """The content of the first `members` slots."""
        options, branch = self.subscription, self.branch
        names = [f"{slot.type}[{slot.instance}]{slot.run.canonical if slot.run else ''}" for slot in branch.slots]
        names += ["!"] * len(branch.noting)
        inside = frozenset(range(members))
        lines = [" ".join(names[:members]), f"{options.matching.code}-{options.disposal.code} {options.within_us}"]
        named = options.advance, branch.kept, branch.upto, options.limit_per_event
        lines += [str(named)] if any(named) else []
        lines += [] if options.limit is None else [f"{options.limit} {self._counted_beside()}"]
        lines += sorted(render_condition(p.condition, names) for p in branch.predicates if inside.issuperset(p.slots))
        lines += sorted(f"having {render_condition(p.condition, names)}" for p in branch.having if inside.issuperset(p.slots))
        placed = [each for each in branch.clauses if inside.issuperset(self._members(each))]
        lines += sorted(each.line for each in placed if not isinstance(each, NotingClause))
        for each in sorted((each for each in placed if isinstance(each, NotingClause)), key=lambda each: each.waits):
            lines.append(self._noting_text(each, names, members))
        types = {slot.type for slot in branch.slots[:members]}
        lines += sorted(f"key {name} {attributes}" for name, attributes in branch.keys if name in types)
        lines += [f"retain {name} {each.canonical}" for name, each in branch.retained if name in types]
        lines += [f"table {name} {key}" for name, key in branch.tables if name in types]
        if branch.sequence is not None and not isinstance(self._beginnings[members], Take):
            lines.append(self._sequence_text(self._beginnings[members], names))
        return "\n".join(lines)

    def _sequence_text(self, part: SequencePart, names: list[str]) -> str:
        conditions = {
            each.slot: render_condition(each.until.condition, names) for each in takes(part) if each.until is not None
        }
        beside = sorted({name for each in self.subscription.branches if each != self.branch for name in each.types})
        waits = f" beside {beside}" if ends_by_time(part, self.subscription.within_us is not None) else ""
        return f"sequence {canonical_text(part, names, conditions)}{waits}"

    def _counted_beside(self) -> list[str]:
        """The other branches whose relations a LIMIT counts: with others it is another conjunction."""
        return sorted(str(each) for each in self.subscription.branches if each != self.branch)

    def _noting_text(self, clause: NotingClause, names: list[str], members: int) -> str:
        where = sorted(render_condition(each.condition, names) for each in clause.predicates)
        if not clause.waits:
            return f"{clause.line} {where}"
        beside = {name for each in self.subscription.branches if each != self.branch for name in each.types}
        reads = sorted({slot.type for slot in self.branch.slots[:members]} | beside)
        return f"{clause.line} {where} reading {reads}"


def conjunctions_of(subscription: Subscription, catalogue: Catalogue) -> tuple[TracedConjunction, ...]:
    return tuple(TracedConjunction(subscription, branch, catalogue) for branch in subscription.branches)
