"""The search for one relation over the queues of a branch: the reference's depth-first search with the same outcome and less
work.

Three things make it smaller, none changes which relation is found first:
- a predicate is tested as soon as its slots are bound, so a failing prefix is abandoned at once;
- if the relation must contain the newest event (see matcher.py), that event is bound to its slot beforehand. It is
  the last of its queue, so it can only be the last instance of its type (FIRST) or the first one (RECENT);
- once it has taken more steps than a few for each queued event, it is abandoned for the reduced search (reduction.py).

Takes: a branch, compiled once, and queues. Gives: the members in signature order, or None. Never: changes a queue.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from fairlead.matching.attempt import Attempt
from fairlead.matching.expressions.closures import Check, Evaluator, compile_condition, compile_value, slot_types
from fairlead.matching.interpreted.reduced_search import Semijoin
from fairlead.matching.interpreted.runs import Runs
from fairlead.matching.noted_events import is_early
from fairlead.matching.reduction import Constraint, Reduction, SlotComparison, reduced_orders
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue, EventType, Kind
from fairlead.model.expressions.expression import Compare, Predicate, slots_of
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.plan import Branch, Subscription

Queues = Sequence[list[Event]]
STEPS_FIRST, STEPS_EACH = 64, 2
"""Steps of a search before it is abandoned: some, and some for each queued event. A reduced search takes about as many."""


class Exhausted(Exception):
    """The search took too many steps: it is abandoned for the reduced one."""


class Search:
    def __init__(
        self,
        branch: Branch,
        matching: Matching,
        catalogue: Catalogue,
        attempt: Attempt | None = None,
        anchored: bool = False,
    ) -> None:
        self.attempt = attempt or Attempt()
        self.size = len(branch.slots)
        self.recent, self.contiguous = matching.recent, matching.contiguous
        queue_of = {name: at for at, name in enumerate(branch.queue_types)}
        self.queue_of_slot = [queue_of[slot.type] for slot in branch.slots]
        self.follows = [at > 0 and branch.slots[at - 1].type == slot.type for at, slot in enumerate(branch.slots)]
        self.runs = Runs(branch, self.recent, slot_types(branch, catalogue)) if branch.runs else None
        self.is_run = [slot.run is not None for slot in branch.slots]
        self.needed = [
            sum(branch.runs[at].least if at in branch.runs else 1 for at in branch.slots_of_type[name])
            for name in branch.queue_types
        ]
        self.newest_slot = [branch.slots_of_type[name][0 if self.recent else -1] for name in branch.queue_types]
        self.overlapping, self.parted = overlapping(branch, catalogue), overlapping(branch, catalogue, tables=False)
        """Whether an event can be in two queues, and whether it can in two that are no tables."""
        checks = _checks(branch, catalogue)
        self.constraints = [] if branch.runs else _constraints(branch, catalogue, self.recent, self.contiguous, anchored)
        self.reductions: dict[int | None, Reduction] = {}
        """By the slot of the newest event."""
        self.steps = self.most = 0
        """Steps of the last search, and the most it may take."""
        self.free_plan = _schedule(checks, self.size, None)
        self.bound_plans = {slot: _schedule(checks, self.size, slot) for slot in self.newest_slot}

    def find_all(self, queues: Queues, newest: int | None, unspoilt: Sequence[Check], most: int) -> list[tuple[Event, ...]]:
        """Every relation, in the order of the search, but no more than `most`; otherwise as `find`."""
        if any(len(queue) < needed for queue, needed in zip(queues, self.needed, strict=True)):
            return []
        members: list[Event | None] = [None] * self.size
        bound, plan = None, self.free_plan
        if newest is not None:
            bound = self.newest_slot[newest]
            plan = self.bound_plans[bound]
            members[bound] = queues[newest][-1]
            if not all(check(members) for check in plan[-1]):
                return []
        return list(islice(self._every(0, queues, members, [-1] * self.size, bound, plan, unspoilt), most))

    def find(self, queues: Queues, newest: int | None, unspoilt: Sequence[Check] = ()) -> list[Event] | None:
        """The first relation; with `newest`, the first that contains the last event of that queue. `unspoilt`: for each
        clause that decides at once, the test that no noted event forbids the members."""
        if any(len(queue) < needed for queue, needed in zip(queues, self.needed, strict=True)):
            return None
        members: list[Event | None] = [None] * self.size
        places = [-1] * self.size
        bound, plan = None, self.free_plan
        if newest is not None:
            bound = self.newest_slot[newest]
            plan = self.bound_plans[bound]
            members[bound] = queues[newest][-1]
            if not all(check(members) for check in plan[-1]):
                return None
        self.steps, self.most = 0, STEPS_FIRST + STEPS_EACH * sum(map(len, queues))
        try:
            found = self._fill(0, queues, members, places, bound, plan, unspoilt)
        except Exhausted:
            self.attempt.spend(self.steps)
            return self.reduced(queues, newest, unspoilt)
        self.attempt.spend(self.steps)
        return members if found else None  # type: ignore[return-value]

    def find_with_runs(self, queues: Queues, newest: int, event: Event, unspoilt: Sequence[Check] = ()) -> list[Any] | None:
        """The first relation that contains the event, the last of that queue: by slot an event, or the tuple of a run."""
        assert self.runs is not None
        if any(len(queue) < needed for queue, needed in zip(queues, self.needed, strict=True)):
            return None
        free = newest in self.runs.queues or self.parted
        members: list[Event | None] = [None] * self.size
        bound, plan = None, self.free_plan
        if not free:
            bound = self.newest_slot[newest]
            plan, members[bound] = self.bound_plans[bound], event
            if not all(check(members) for check in plan[-1]):
                return None
        made: list[Any] = []

        def whole(found: Sequence[Event | None]) -> bool:
            assert self.runs is not None
            made[:] = self.runs.gathered(found, queues, event) or ()
            return bool(made) and all(check(made) for check in unspoilt)

        self.steps, self.most = 0, sys.maxsize
        is_found = self._fill(0, queues, members, [-1] * self.size, bound, plan, (whole,))
        self.attempt.spend(self.steps)
        return made if is_found else None

    def reduced(self, queues: Queues, newest: int | None, unspoilt: Sequence[Check]) -> list[Event] | None:
        """The same, by the reduced search."""
        bound = None if newest is None else self.newest_slot[newest]
        if bound not in self.reductions:
            self.reductions[bound] = Reduction(self.size, bound, [each for each, *_ in self.constraints])
        mine = [queues[at] if at != newest else queues[at][:-1] for at in self.queue_of_slot]
        event = None if newest is None else queues[newest][-1]
        checks = [*(check for _, check, _ in self.constraints[: len(self.constraints) - len(unspoilt)]), *unspoilt]
        sides = [each for *_, each in self.constraints]
        search = Semijoin(self.reductions[bound], self.recent, mine, checks, sides, event, self.attempt.spend)
        found = search.find()
        self.steps += search.steps
        return found

    def _fill(
        self,
        slot: int,
        queues: Queues,
        members: list[Event | None],
        places: list[int],
        bound: int | None,
        plan: list[list[Check]],
        unspoilt: Sequence[Check],
    ) -> bool:
        if slot == self.size:
            return all(check(members) for check in unspoilt)
        if self.is_run[slot]:  # it follows from the others
            return self._fill(slot + 1, queues, members, places, bound, plan, unspoilt)
        queue = queues[self.queue_of_slot[slot]]
        previous = places[slot - 1] if self.follows[slot] else None
        for at in self._candidates(len(queue), previous, slot == bound):
            self.steps += 1
            if self.steps > self.most:
                raise Exhausted
            event = queue[at]
            if slot != bound:
                if self.overlapping and self._taken(event, members, slot):
                    continue
                members[slot] = event
            places[slot] = at
            if all(check(members) for check in plan[slot]) and self._fill(
                slot + 1, queues, members, places, bound, plan, unspoilt
            ):
                return True
        if slot != bound:
            members[slot] = None
        return False

    def _every(
        self,
        slot: int,
        queues: Queues,
        members: list[Event | None],
        places: list[int],
        bound: int | None,
        plan: list[list[Check]],
        unspoilt: Sequence[Check],
    ) -> Iterator[tuple[Event, ...]]:
        if slot == self.size:
            if all(check(members) for check in unspoilt):
                yield tuple(members)  # type: ignore[arg-type]
            return
        queue = queues[self.queue_of_slot[slot]]
        previous = places[slot - 1] if self.follows[slot] else None
        for at in self._candidates(len(queue), previous, slot == bound):
            self.attempt.spend(1)
            event = queue[at]
            if slot != bound:
                if self.overlapping and self._taken(event, members, slot):
                    continue
                members[slot] = event
            places[slot] = at
            if all(check(members) for check in plan[slot]):
                yield from self._every(slot + 1, queues, members, places, bound, plan, unspoilt)
        if slot != bound:
            members[slot] = None

    def _candidates(self, length: int, previous: int | None, is_bound: bool) -> range:
        """The queue places to try for a slot, in the order of the matching option."""
        if self.recent:
            start = length - 1 if previous is None else previous - 1
            if is_bound:
                start = length - 1  # the first instance: nothing precedes it
                return range(start, start - 1, -1)
            stop = start - 1 if self.contiguous and previous is not None else -1
            return range(start, max(stop, -1), -1)
        start = 0 if previous is None else previous + 1
        if is_bound:
            if self.contiguous and previous is not None and start != length - 1:
                return range(0)
            return range(length - 1, length) if start <= length - 1 else range(0)
        stop = start + 1 if self.contiguous and previous is not None else length
        return range(start, min(stop, length))

    @staticmethod
    def _taken(event: Event, members: list[Event | None], slot: int) -> bool:
        return any(other is not None and other.position == event.position for at, other in enumerate(members) if at != slot)


def overlapping(branch: Branch, catalogue: Catalogue, tables: bool = True) -> bool:
    """Whether an event can be in two queues: through a supertype or a union. `tables` False: in two that are no tables, which
    it enters when all is done; so otherwise the newest event has one place."""
    queues = [each for each in branch.queue_types if tables or each not in dict(branch.tables)]
    accepted = [name for queue in queues for name in catalogue.accepts(queue)]
    return len(accepted) != len(set(accepted))


def can_be_loose(subscription: Subscription, branch: Branch, catalogue: Catalogue) -> bool:
    """Whether, after a match or an expiry, a relation without the newest event may be ready."""
    if subscription.is_anchored(branch):
        return False
    disposal = subscription.disposal_of(branch)
    parts = disposal is Disposal.INFIX or subscription.is_clocked or overlapping(branch, catalogue)
    sliding = disposal in (Disposal.FIRST_PREFIX, Disposal.ADVANCE)
    return sliding or (subscription.matching.contiguous and parts)


def _checks(branch: Branch, catalogue: Catalogue) -> list[tuple[frozenset[int], Check]]:
    """Every predicate and every pair of members that is put in order, with the slots it reads."""
    types = slot_types(branch, catalogue)
    checks = [(frozenset(each.slots), compile_condition(each.condition, types)) for each in branch.predicates]
    checks += [(frozenset(pair), _before(*pair)) for pair in branch.orders]
    return [(slots, check) for slots, check in checks if slots.isdisjoint(branch.runs)]


def _before(a: int, b: int) -> Check:
    return lambda members: members[a].position < members[b].position


def _schedule(checks: list[tuple[frozenset[int], Check]], size: int, bound: int | None) -> list[list[Check]]:
    """For each slot the checks that can run once it is bound; the last entry: those that need only `bound`."""
    plan: list[list[Check]] = [[] for _ in range(size + 1)]
    for slots, check in checks:
        open_slots = slots - {bound} if bound is not None else slots
        if open_slots:
            plan[max(open_slots)].append(check)
        else:
            plan[-1 if bound is not None else 0].append(check)
    return plan


Entry = tuple[Constraint, Check | None, tuple[Evaluator, Evaluator] | None]
"""A constraint with its test (neighbours have none) and, if it is a comparison of one slot with another, its sides."""


def _constraints(branch: Branch, catalogue: Catalogue, recent: bool, contiguous: bool, anchored: bool) -> list[Entry]:
    """Everything that a relation has to satisfy; last, clauses about noted events, whose tests are passed with the queues."""
    types = slot_types(branch, catalogue)
    made: list[Entry] = [_entry(each, types) for each in branch.predicates]
    instances = [(at - 1, at) for at in range(1, len(branch.slots)) if branch.slots[at - 1].type == branch.slots[at].type]
    orders = [*branch.orders]
    orders += [(b, a) if recent else (a, b) for a, b in instances]
    made += [(Constraint(frozenset(pair), order=pair), _before(*pair), None) for pair in reduced_orders(orders)]
    if contiguous:
        made += [(Constraint(frozenset(pair), beside=pair), None, None) for pair in instances]
    accepted = [set(catalogue.accepts(slot.type)) for slot in branch.slots]
    for a, one in enumerate(branch.slots):
        for b in range(a + 1, len(branch.slots)):
            if one.type != branch.slots[b].type and accepted[a] & accepted[b]:
                place = _place(a), _place(b)
                made.append((Constraint(frozenset({a, b}), SlotComparison(a, "!=", b)), _apart(a, b), place))
    for clause in (each for each in branch.prompt if not is_early(branch, each, catalogue)):
        read = {slot for each in clause.predicates for slot in each.slots} - {clause.slot}
        made.append((Constraint(frozenset({*clause.anchors, *read, *branch.twins(clause, catalogue)})), None, None))
    if anchored and overlapping(branch, catalogue, tables=False):  # the newest event is a member
        made.append((Constraint(frozenset(range(len(branch.slots)))), None, None))
    return made


def _entry(predicate: Predicate, types: list[EventType]) -> Entry:
    check, slots = compile_condition(predicate.condition, types), frozenset(predicate.slots)
    match predicate.condition.terms:
        case ((Compare() as atom,),):
            left, right = slots_of(atom.left), slots_of(atom.right)
            if len(left) == len(right) == 1 and left != right:
                one, two = compile_value(atom.left, types), compile_value(atom.right, types)
                if {atom.left.kind, atom.right.kind} == {Kind.DECIMAL, Kind.DOUBLE}:
                    one, two = _as_double(one), _as_double(two)
                return Constraint(slots, SlotComparison(min(left), atom.operator, min(right))), check, (one, two)
    return Constraint(slots), check, None


def _as_double(evaluate: Evaluator) -> Evaluator:
    return lambda binding: None if (value := evaluate(binding)) is None else float(value)


def _place(slot: int) -> Evaluator:
    return lambda binding: binding[slot].position


def _apart(a: int, b: int) -> Check:
    return lambda members: members[a].position != members[b].position
