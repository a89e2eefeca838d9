"""The search for one relation over the queues of a branch: the reference's depth-first search with the same outcome, less work.

Two things make it smaller, neither changes which relation is found first:
- a predicate is tested as soon as its slots are bound, so a failing prefix is abandoned at once;
- where the relation must contain the newest event (see incremental.py), that event is bound to its slot beforehand. It is
  the last of its queue, so it can only be the last instance of its type (FIRST) or the first one (RECENT).

Takes: a branch, compiled once, and queues. Gives: the members in signature order, or None. Never: changes a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead.matching.attempt import Attempt
from fairlead.matching.expressions import Check, compile_condition, slot_types
from fairlead.model.event import Event
from fairlead.model.plan import Branch, Matching
from fairlead.model.types import Catalogue

Queues = Sequence[list[Event]]
Final = Callable[[list[Event]], bool]


class Search:
    def __init__(self, branch: Branch, matching: Matching, catalogue: Catalogue, attempt: Attempt | None = None) -> None:
        self.attempt = attempt or Attempt()
        self.size = len(branch.slots)
        self.recent, self.contiguous = matching.recent, matching.contiguous
        queue_of = {name: at for at, name in enumerate(branch.queue_types)}
        self.queue_of_slot = [queue_of[slot.type] for slot in branch.slots]
        self.follows = [at > 0 and branch.slots[at - 1].type == slot.type for at, slot in enumerate(branch.slots)]
        self.needed = [len(branch.slots_of_type[name]) for name in branch.queue_types]
        self.newest_slot = [branch.slots_of_type[name][0 if self.recent else -1] for name in branch.queue_types]
        self.overlapping = overlapping(branch, catalogue)
        checks = _checks(branch, catalogue)
        self.free_plan = _schedule(checks, self.size, None)
        self.bound_plans = {slot: _schedule(checks, self.size, slot) for slot in self.newest_slot}

    def find(self, queues: Queues, newest: int | None, final: Final | None) -> list[Event] | None:
        """The first relation; with `newest`, the first that contains the last event of that queue. `final` tests a
        whole assignment beyond the predicates."""
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
        found = self._fill(0, queues, members, places, bound, plan, final)
        return members if found else None  # type: ignore[return-value]

    def _fill(
        self,
        slot: int,
        queues: Queues,
        members: list[Event | None],
        places: list[int],
        bound: int | None,
        plan: list[list[Check]],
        final: Final | None,
    ) -> bool:
        if slot == self.size:
            return final is None or final(members)  # type: ignore[arg-type]
        queue = queues[self.queue_of_slot[slot]]
        previous = places[slot - 1] if self.follows[slot] else None
        candidates = self._candidates(len(queue), previous, slot == bound)
        for at in candidates:
            event = queue[at]
            if slot != bound:
                if self.overlapping and self._taken(event, members, slot):
                    continue
                members[slot] = event
            places[slot] = at
            if all(check(members) for check in plan[slot]) and self._fill(
                slot + 1, queues, members, places, bound, plan, final
            ):
                self.attempt.spend(abs(at - candidates[0]))
                return True
        self.attempt.spend(len(candidates) + 1)
        if slot != bound:
            members[slot] = None
        return False

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


def overlapping(branch: Branch, catalogue: Catalogue) -> bool:
    """An event can sit in two queues: through a supertype or a union."""
    accepted = [name for queue in branch.queue_types for name in catalogue.accepts(queue)]
    return len(accepted) != len(set(accepted))


def _checks(branch: Branch, catalogue: Catalogue) -> list[tuple[frozenset[int], Check]]:
    """Every predicate and every pair that a THEN orders, with the slots it reads."""
    types = slot_types(branch, catalogue)
    checks = [(frozenset(each.slots), compile_condition(each.condition, types)) for each in branch.predicates]
    for precedence in branch.precedences:
        checks += [(frozenset({a, b}), _before(a, b)) for a in precedence.left for b in precedence.right]
    return checks


def _before(a: int, b: int) -> Check:
    return lambda members: members[a].position < members[b].position


def _schedule(checks: list[tuple[frozenset[int], Check]], size: int, bound: int | None) -> list[list[Check]]:
    """For each slot the checks that can run once it is bound; the last entry: those that `bound` alone satisfies."""
    plan: list[list[Check]] = [[] for _ in range(size + 1)]
    for slots, check in checks:
        open_slots = slots - {bound} if bound is not None else slots
        if open_slots:
            plan[max(open_slots)].append(check)
        else:
            plan[-1 if bound is not None else 0].append(check)
    return plan
