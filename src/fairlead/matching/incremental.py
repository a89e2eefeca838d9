"""The engine's matcher: incremental, equal to the reference on every generated case.

Before an arrival no relation is ready, so a new one contains the arriving event, and the search starts from it. That
fails in three cases, which are tracked by `Instance.loose` and answered by a search over everything:
- FIRST PREFIX keeps matched events, so what is left can already be a relation;
- under CONTIGUOUS, an event that leaves the middle of a queue makes neighbours of two that were not;
- an event that sits in two queues (subtypes, unions) can take part in two ways.

Takes: events in order. Gives: matches. State: only what can still match, per branch and key.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fairlead.matching import state
from fairlead.matching.expressions import Check, compile_condition, slot_types
from fairlead.matching.outcome import Due, Match
from fairlead.matching.search import Search
from fairlead.model.event import Event
from fairlead.model.plan import Absence, Branch, Disposal, Negated, NegationBetween, Subscription
from fairlead.model.types import Catalogue, EventType

Key = tuple[Any, ...]


@dataclass(slots=True)
class Pending:
    """A complete relation that waits for its deadline."""

    due: Due
    match: Match
    key: Key
    cancelled: bool = False

    def __lt__(self, other: Pending) -> bool:
        return self.due < other.due


@dataclass(slots=True)
class Instance:
    """One branch for one key: what is queued, noted and waiting."""

    queues: list[list[Event]]
    negated: list[list[Event]]
    clock: int | None = None
    loose: bool = False
    pending: list[Pending] = field(default_factory=list)

    def is_empty(self) -> bool:
        return self.clock is None and not any(self.queues) and not self.pending and not any(self.negated)


@dataclass(frozen=True)
class Clause:
    """A WITHOUT clause, compiled: which events it notes, and when one of them forbids a relation."""

    clause: Negated
    accepts: Check
    forbids: tuple[Check, ...]
    anchor_queue: int

    def inside(self, event: Event, members: tuple[Event, ...] | list[Event]) -> bool:
        clause = self.clause
        if isinstance(clause, NegationBetween):
            return members[clause.left].position < event.position < members[clause.right].position
        anchor = members[clause.anchor]
        return event.position > anchor.position and abs(event.time - anchor.time) <= clause.within_us  # type: ignore[operator]

    def forbidden(self, event: Event, members: tuple[Event, ...] | list[Event], width: int) -> bool:
        """This noted event forbids these members. `width` is the number of slots, negated ones included."""
        if not self.inside(event, members) or any(event.position == member.position for member in members):
            return False
        binding: list[Event | None] = [*members, *[None] * (width - len(members))]
        binding[self.clause.slot] = event
        return all(check(binding) for check in self.forbids)


class Conjunction:
    """One branch, compiled once and shared by all its keys."""

    def __init__(self, subscription: Subscription, branch: Branch, catalogue: Catalogue) -> None:
        self.disposal, self.matching, self.within = subscription.disposal, subscription.matching, subscription.within_us
        self.absences = branch.absences
        self.search = Search(branch, subscription.matching, catalogue)
        types = slot_types(branch, catalogue)
        self.width = len(types)
        self.slots_of_queue = [branch.slots_of_type[name] for name in branch.queue_types]
        self.unary = [_acceptor(branch, slots, types) for slots in self.slots_of_queue]
        self.negated = [_negated(branch, each, types) for each in branch.negated]
        self.between = [at for at, each in enumerate(self.negated) if isinstance(each.clause, NegationBetween)]
        self.absent = [at for at, each in enumerate(self.negated) if isinstance(each.clause, Absence)]
        self.routes = _routes(branch, catalogue)

    def create(self) -> Instance:
        return Instance([[] for _ in self.slots_of_queue], [[] for _ in self.negated])

    def accept(self, route: Route, event: Event) -> tuple[list[int], list[int]]:
        """The queues that the event enters and the WITHOUT clauses that note it."""
        entered = [at for at in route.queues if self.unary[at](event)]
        noted = [at for at in route.negated if self.negated[at].accepts(event)]
        return entered, noted

    def arrive(self, instance: Instance, event: Event, entered: list[int], noted: list[int]) -> tuple[Event, ...] | None:
        # 1. enter and note
        for at in entered:
            instance.queues[at].append(event)
        for at in noted:
            instance.negated[at].append(event)
            if at in self.absent:
                self._cancel(instance, at, event)
        # 2. the window
        if self.within is not None and event.time is not None:
            entered = self._expire(instance, event, entered)
        # 3. match and dispose
        members = self._match(instance, entered) if entered else None
        if members is not None:
            self._dispose(instance, members)
        return members

    def is_forbidden(self, instance: Instance, members: tuple[Event, ...]) -> bool:
        """An event noted so far forbids the absence of these members."""
        return any(
            self.negated[at].forbidden(event, members, self.width) for at in self.absent for event in instance.negated[at]
        )

    def _match(self, instance: Instance, entered: list[int]) -> tuple[Event, ...] | None:
        final = (lambda members: self._unspoilt(instance, members)) if self.between else None
        if not instance.loose and len(entered) == 1:
            found = self.search.find(instance.queues, entered[0], final)
        else:
            found = self.search.find(instance.queues, None, final)
            instance.loose = instance.loose and found is not None
        return None if found is None else tuple(found)

    def _unspoilt(self, instance: Instance, members: list[Event]) -> bool:
        return not any(
            self.negated[at].forbidden(event, members, self.width) for at in self.between for event in instance.negated[at]
        )

    def _expire(self, instance: Instance, event: Event, entered: list[int]) -> list[int]:
        assert self.within is not None
        assert event.time is not None
        instance.clock = event.time if instance.clock is None else max(instance.clock, event.time)
        horizon = instance.clock - self.within
        for queue in instance.queues:
            # Times rise along most streams, so usually only a prefix is behind the horizon.
            if any(each.time < horizon for each in queue):  # type: ignore[operator]
                queue[:] = [each for each in queue if each.time >= horizon]  # type: ignore[operator]
                instance.loose = instance.loose or self.matching.contiguous
        return entered if event.time >= horizon else []

    def _dispose(self, instance: Instance, members: tuple[Event, ...]) -> None:
        positions = {member.position for member in members}
        for at, queue in enumerate(instance.queues):
            mine = [members[slot].position for slot in self.slots_of_queue[at]]
            first, last = min(mine), max(mine)
            if self.disposal is Disposal.FIRST_PREFIX:
                queue[:] = [event for event in queue if event.position > first]
                instance.loose = True
            elif self.disposal is Disposal.PREFIX_INFIX:
                queue[:] = [event for event in queue if event.position > last and event.position not in positions]
            elif self.disposal is Disposal.INFIX:
                queue[:] = [event for event in queue if event.position not in positions]
            else:
                queue[:] = [event for event in queue if event.position < first and event.position not in positions]
        if self.matching.contiguous and (self.disposal is Disposal.INFIX or self.search.overlapping):
            instance.loose = True

    def _cancel(self, instance: Instance, at: int, event: Event) -> None:
        for pending in instance.pending:
            if not pending.cancelled and self.negated[at].forbidden(event, pending.match.members, self.width):
                pending.cancelled = True

    def forget(self, instance: Instance) -> None:
        """Drop the noted events that no queued anchor precedes: no relation to come can be forbidden by them."""
        for compiled, noted in zip(self.negated, instance.negated, strict=True):
            anchors = instance.queues[compiled.anchor_queue]
            if not anchors:
                noted.clear()
            elif noted and noted[0].position < anchors[0].position:
                noted[:] = [event for event in noted if event.position > anchors[0].position]


class IncrementalSubscription:
    """A disjunction at work: its branches in order, an instance of each for every key, and what waits for a deadline."""

    def __init__(self, subscription: Subscription, catalogue: Catalogue) -> None:
        self.subscription, self.catalogue = subscription, catalogue
        self.conjunctions = [Conjunction(subscription, branch, catalogue) for branch in subscription.branches]
        self.instances: list[dict[Key, Instance]] = [{} for _ in self.conjunctions]
        self.pending: list[Pending] = []
        self.seen: int | None = None

    def arrive(self, event: Event) -> list[Match]:
        if event.time is not None:
            self.seen = event.time if self.seen is None else max(self.seen, event.time)
        delivered: list[Match] = []
        for number, conjunction in enumerate(self.conjunctions):
            for route in conjunction.routes.get(event.type, ()):
                key = tuple([event.row[at] for at in route.key])
                if any(value is None or value != value for value in key):
                    continue
                entered, noted = conjunction.accept(route, event)
                if entered or noted:
                    delivered += self._arrive(number, conjunction, key, event, entered, noted)
        return delivered

    def _arrive(
        self, number: int, conjunction: Conjunction, key: Key, event: Event, entered: list[int], noted: list[int]
    ) -> Iterator[Match]:
        instances = self.instances[number]
        instance = instances.get(key)
        if instance is None:
            instance = instances[key] = conjunction.create()
        # 1. the conjunction's turn
        members = conjunction.arrive(instance, event, entered, noted)
        # 2. an absence is judged by what was noted up to its completion: before anything is forgotten
        if members is not None:
            yield from self._complete(number, conjunction, key, instance, members)
        # 3. only what can still match is kept
        conjunction.forget(instance)
        if instance.is_empty():
            del instances[key]

    def _complete(
        self, number: int, conjunction: Conjunction, key: Key, instance: Instance, members: tuple[Event, ...]
    ) -> Iterator[Match]:
        """Deliver now, or wait for the deadline."""
        if not conjunction.absences:
            yield Match(number, members)
            return
        deadline = max((members[each.anchor].time or 0) + each.within_us for each in conjunction.absences)
        match = Match(number, members, deadline)
        if conjunction.is_forbidden(instance, members):
            return
        if self.seen is not None and self.seen > deadline:
            yield match
            return
        pending = Pending((deadline, tuple(member.position for member in members), number), match, key)
        heapq.heappush(self.pending, pending)
        instance.pending.append(pending)

    def next_due(self) -> Due | None:
        return self.pending[0].due if self.pending else None

    def take_due(self) -> Match | None:
        pending = heapq.heappop(self.pending)
        instances = self.instances[pending.match.branch]
        instance = instances[pending.key]
        instance.pending.remove(pending)
        if instance.is_empty():
            del instances[pending.key]
        return None if pending.cancelled else pending.match

    def dump(self) -> dict[str, Any]:
        """The state as plain values, the same for the same history."""
        return {
            "seen": self.seen,
            "branches": [
                sorted(
                    ([[state.plain(value) for value in key], _plain_instance(instance)] for key, instance in instances.items()),
                    key=lambda entry: json.dumps(entry[0]),
                )
                for instances in self.instances
            ],
        }

    def restore(self, content: dict[str, Any]) -> None:
        self.seen = content["seen"]
        self.pending = []
        for number, entries in enumerate(content["branches"]):
            self.instances[number] = {}
            for plain_key, plain_instance in entries:
                key = tuple(map(state.restored, plain_key))
                instance = _restored_instance(plain_instance, number, key, self.catalogue)
                self.instances[number][key] = instance
                self.pending += instance.pending
        heapq.heapify(self.pending)


@dataclass(frozen=True)
class Route:
    """Where an event of one concrete type goes in a branch: its key's places in the row, queues and WITHOUT clauses."""

    key: tuple[int, ...]
    queues: tuple[int, ...]
    negated: tuple[int, ...]


def _routes(branch: Branch, catalogue: Catalogue) -> dict[str, tuple[Route, ...]]:
    """By concrete type. There is one route unless overlapping types of the branch name different key attributes."""
    keys = dict(branch.keys)
    routes: dict[str, dict[tuple[int, ...], tuple[list[int], list[int]]]] = {}
    targets = [(name, at, 0) for at, name in enumerate(branch.queue_types)]
    targets += [(each.type, at, 1) for at, each in enumerate(branch.negated)]
    for name, at, side in targets:
        for concrete in catalogue.accepts(name):
            key = tuple(catalogue[concrete].index[attribute] for attribute in keys.get(name, ()))
            routes.setdefault(concrete, {}).setdefault(key, ([], []))[side].append(at)
    return {
        concrete: tuple(Route(key, tuple(queues), tuple(negated)) for key, (queues, negated) in found.items())
        for concrete, found in routes.items()
    }


def _acceptor(branch: Branch, slots: tuple[int, ...], types: list[EventType]) -> Check:
    """At least one instance of the type has all its unary predicates true."""
    by_slot = [
        (slot, [compile_condition(each.condition, types) for each in branch.predicates if each.slots == (slot,)])
        for slot in slots
    ]
    if any(not checks for _, checks in by_slot):
        return lambda event: True
    binding: list[Event | None] = [None] * len(types)

    def accepts(event: Event) -> bool:
        for slot, checks in by_slot:
            binding[slot] = event
            if all(check(binding) for check in checks):
                return True
        return False

    return accepts


def _negated(branch: Branch, clause: Negated, types: list[EventType]) -> Clause:
    own = [compile_condition(each.condition, types) for each in clause.predicates if each.slots == (clause.slot,)]
    rest = tuple(compile_condition(each.condition, types) for each in clause.predicates if each.slots != (clause.slot,))
    binding: list[Event | None] = [None] * len(types)

    def accepts(event: Event) -> bool:
        binding[clause.slot] = event
        return all(check(binding) for check in own)

    anchor = clause.left if isinstance(clause, NegationBetween) else clause.anchor
    return Clause(clause, accepts, rest, branch.queue_types.index(branch.slots[anchor].type))


def _plain_instance(instance: Instance) -> dict[str, Any]:
    return {
        "queues": [[state.plain_event(event) for event in queue] for queue in instance.queues],
        "negated": [[state.plain_event(event) for event in noted] for noted in instance.negated],
        "clock": instance.clock,
        "loose": instance.loose,
        "pending": [
            [each.match.deadline, [state.plain_event(event) for event in each.match.members], each.cancelled]
            for each in sorted(instance.pending)
        ],
    }


def _restored_instance(content: dict[str, Any], branch: int, key: Key, catalogue: Catalogue) -> Instance:
    def events(entries: list[Any]) -> list[Event]:
        return [state.restored_event(entry, catalogue) for entry in entries]

    pending = []
    for deadline, members, cancelled in content["pending"]:
        match = Match(branch, tuple(events(members)), deadline)
        due = (deadline, tuple(member.position for member in match.members), branch)
        pending.append(Pending(due, match, key, cancelled))
    queues, negated = [events(each) for each in content["queues"]], [events(each) for each in content["negated"]]
    return Instance(queues, negated, content["clock"], content["loose"], pending)
