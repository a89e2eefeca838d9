"""The two liveness properties, made decidable on a finite trace.

The formulas speak of infinitely many matching events. On a finite trace "infinitely many" becomes `HORIZON` *rounds*: a
round for a conjunction Φ is a shortest stretch of the order that contains events which satisfy Φ together. "Satisfy" takes
in all that Φ asks except contiguity: types, predicates, THEN, WITHOUT, one key, and the order that the matching option
gives the instances of a type (older first under FIRST, newer first under RECENT).

    conjunction validity   violated: since the last delivery of Φ by the process (or since the start), HORIZON rounds
                           have been multicast.
    event validity         violated: e fits a slot that no condition ties to other members and that is the oldest instance
                           of its type; e is not delivered; and since e, rounds that satisfy Φ together with e have been
                           multicast: HORIZON, and one more for every event of its type that was multicast before e
                           and may go first: not delivered before e, or (FIRST PREFIX) not as the oldest instance.

With runs, a stretch satisfies Φ if Φ would have a relation of the events of the stretch alone: each run holds all that it can
hold of them, as many as it takes, and HAVING is true. A run that no condition ties to other members and HAVING does not name
is a slot that event validity is about, and e is in the run then.

WITHIN counts as part of Φ for conjunction validity; for event validity it does not, since no event could have infinitely
many partners within a window: the window is then exactly what loses the event.

A trace of a real system ends with deliveries under way; a larger horizon allows for them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from functools import partial
from math import inf

from fairlead.guarantees.shape import free_slots
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.guarantee import Property
from fairlead.model.plans.options import Disposal
from fairlead.testing.interpreter import holds
from fairlead.testing.properties.clauses import TraceBetween, events_of, unmet
from fairlead.testing.properties.conjunctions import Members, TracedConjunction
from fairlead.testing.properties.safety import Violation
from fairlead.testing.properties.trace import Multicast, Trace, TraceStream

Key = tuple[object, ...]
HORIZON = 3
POOL_MAX = 64
"""Events of a stretch that are tried for one slot, the newest ones. A longer stretch without a round only makes the checker
miss a round (it never invents one), and 64 to the power of the slots is already too long to wait for."""


class RoundCounter:
    """Counts rounds, event by event. `fixed` binds one slot to an event that every round must satisfy Φ with."""

    def __init__(self, conjunction: TracedConjunction, between: TraceBetween, fixed: dict[int, Event], windowed: bool) -> None:
        self.conjunction, self.between, self.fixed, self.windowed = conjunction, between, fixed, windowed
        self.pools: list[list[Event]] = [[] for _ in conjunction.branch.slots]
        self.runs = conjunction.branch.runs
        self.count = 0

    def feed(self, event: Event) -> None:
        if (
            len(self.fixed) == len(self.pools) and not self.runs
        ):  # a single event needs no partner: another of its kind is a round
            self.count += any(self.conjunction.takes(slot, event) for slot in self.fixed)
            return
        slots = range(len(self.pools))
        entered = [at for at in slots if (at in self.runs or at not in self.fixed) and self.conjunction.takes(at, event)]
        for slot in entered:
            self._enter(slot, event)
        if any(self._complete((), {**self.fixed, slot: event}) for slot in entered):
            self.count += 1
            for pool in self.pools:
                pool.clear()

    def _enter(self, slot: int, event: Event) -> None:
        """Of events with equal values, as many as there are slots suffice, unless a run holds them all."""
        pool = self.pools[slot]
        if slot not in self.runs:
            equal = [each for each in pool if each.row == event.row and each.type == event.type]
            if len(equal) >= len(self.pools):
                pool.remove(equal[0])
        pool.append(event)
        del pool[: -(POOL_MAX if slot not in self.runs else max(POOL_MAX, 2 * self.runs[slot].least))]

    def _complete(self, members: Members, bound: dict[int, Event]) -> bool:
        """Some assignment that begins with `members` and keeps to `bound` satisfies Φ. Runs follow from the other members."""
        slot = len(members)
        if slot == len(self.pools):
            return self._runs_complete(members, bound) if self.runs else self._admitted(members)
        if slot in self.runs:
            return self._complete((*members, ()), bound)
        candidates = [bound[slot]] if slot in bound else self.pools[slot]
        return any(self._fits(members, each) and self._complete((*members, each), bound) for each in candidates)

    def _fits(self, members: Members, event: Event) -> bool:
        slot, branch = len(members), self.conjunction.branch
        before = [(at, each) for at, each in enumerate(members) if at not in self.runs]
        if any(event.position == each.position for _, each in before):
            return False
        if before and before[-1][0] == slot - 1 and branch.slots[slot - 1].type == branch.slots[slot].type:
            older = event.position < members[-1].position
            if older != self.conjunction.subscription.matching.recent:
                return False
        if branch.keys and before and self.conjunction.key_of(slot, event) != self.conjunction.key_of(*before[0]):
            return False
        tied = [each for each in self.conjunction.tied(slot) if self.runs.keys().isdisjoint(each.slots)]
        if not tied:
            return True
        binding = dict(enumerate((*members, event)))
        return all(holds(each.condition, binding) for each in tied)

    def _runs_complete(self, members: Members, bound: dict[int, Event]) -> bool:
        """The members and what the runs hold, of the whole stretch or of a shorter one that ends with it: with HAVING, the
        shorter one may satisfy Φ where the longer one does not."""
        if self._whole(members, bound, None):
            return True
        if not self.conjunction.branch.having:
            return False
        single = [each.position for at, each in enumerate(members) if at not in self.runs and at not in self.fixed]
        starts = sorted({each.position for slot in self.runs for each in self.pools[slot]})
        return any(self._whole(members, bound, start) for start in starts[1:] if not single or start <= min(single))

    def _whole(self, members: Members, bound: dict[int, Event], start: Position | None) -> bool:
        """Φ is satisfied by the members and all that runs hold of the events from `start` on."""
        taken = {each.position for at, each in enumerate(members) if at not in self.runs}
        places: list[tuple[Event, ...]] = [() if at in self.runs else (each,) for at, each in enumerate(members)]
        for slot, run in self.runs.items():
            pool = [each for each in self.pools[slot] if start is None or each.position >= start]
            if slot in self.fixed:
                pool = [self.fixed[slot], *pool]
            held = [each for each in pool if each.position not in taken and self._joins(members, slot, each)]
            if run.most is not None:
                held = held[-run.most :] if self.conjunction.subscription.matching.recent else held[: run.most]
            places[slot] = tuple(held)
        if not self.conjunction.lengths_fit(tuple(map(len, places))):
            return False
        if any(self.fixed[slot] not in places[slot] for slot in self.runs if slot in self.fixed):
            return False
        keyed = {self.conjunction.key_of(slot, each) for slot, place in enumerate(places) for each in place}
        whole = self.conjunction.members_of(places)
        having = all(self.conjunction.meets(each, whole) for each in self.conjunction.branch.having)
        return any(places) and len(keyed) == 1 and having and self._admitted(whole)

    def _joins(self, members: Members, slot: int, event: Event) -> bool:
        """The event can be in the run beside the members: conditions, THEN, the key."""
        branch, single = self.conjunction.branch, [at for at in range(len(members)) if at not in self.runs]
        for a, b in branch.orders:
            if (b == slot and a in single and members[a].position >= event.position) or (
                a == slot and b in single and members[b].position <= event.position
            ):
                return False
        if (
            branch.keys
            and single
            and self.conjunction.key_of(slot, event) != self.conjunction.key_of(single[0], members[single[0]])
        ):
            return False
        binding = dict(enumerate(members)) | {slot: event}
        return all(holds(each.condition, binding) for each in branch.predicates if slot in each.slots)

    def _admitted(self, members: Members) -> bool:
        """The conditions that need the whole set: THEN, the window, WITHOUT."""
        within = self.conjunction.subscription.within_us
        times = [event.time for held in members for event in events_of(held) if event.time is not None]
        if self.windowed and within is not None and times and max(times) - min(times) > within:
            return False
        return unmet(self.conjunction, members, self.between) is None


def conjunction_validity(trace: Trace, horizon: int = HORIZON) -> Violation | None:
    """As long as rounds continue, so do relations."""
    between = TraceBetween(trace, for_readers=True)
    for stream in trace.streams:
        since = stream.deliveries[-1].time if stream.deliveries else -1
        rounds = RoundCounter(stream.conjunction, between, {}, windowed=True)
        for multicast in trace.in_order:
            if multicast.time > since:
                rounds.feed(multicast.event)
        if rounds.count >= horizon:
            after = f" after {trace.set_of(stream.deliveries[-1])}" if stream.deliveries else ""
            words = f"{stream.process} delivers nothing{after} although {rounds.count} complete sets are multicast"
            return Violation(Property.CONJUNCTION_VALIDITY, words, stream.deliveries[-1:])
    return None


def event_validity(trace: Trace, horizon: int = HORIZON) -> Violation | None:
    """An event that depends on no other member's values is delivered, as long as partners arrive."""
    between = TraceBetween(trace, for_readers=True)
    for stream in trace.streams:
        conjunction = stream.conjunction
        free = free_slots(conjunction.branch, conjunction.subscription.matching, conjunction.catalogue)
        for slot in free:
            found = _left_behind(trace, stream, slot, horizon, between)
            if found is not None:
                words = f"{stream.process} never delivers {trace.called(found.event)} although partners keep coming"
                return Violation(Property.EVENT_VALIDITY, words, missing=found.event)
    return None


def _left_behind(trace: Trace, stream: TraceStream, slot: int, horizon: int, between: TraceBetween) -> Multicast | None:
    conjunction = stream.conjunction
    mine = partial(_counts, conjunction, slot)
    gone, partners = _gone(stream, slot), _partners(trace, conjunction, slot)
    ahead: dict[Key, list[float]] = {}  # sorted: when each of the earlier ones left
    for multicast in filter(lambda each: mine(each.event), trace.in_order):
        event = multicast.event
        key = conjunction.key_of(slot, event)
        before = ahead.setdefault(key, [])
        if event.position not in stream.first_delivery and conjunction.takes(slot, event):
            needed = horizon + len(before) - bisect_left(before, multicast.time)
            places = [each.get(key, []) for each in partners]
            if all(len(each) - bisect_right(each, event.position) >= needed for each in places):  # a round uses one of each
                rounds = RoundCounter(conjunction, between, {slot: event}, windowed=False)
                if _reaches(rounds, (each.event for each in trace.in_order if each.event.position > event.position), needed):
                    return multicast
        insort(before, gone.get(event.position, inf))
    return None


def _counts(conjunction: TracedConjunction, slot: int, event: Event) -> bool:
    """The event enters the slot's queue: some instance of the type takes it."""
    slots = conjunction.branch.slots_of_type[conjunction.branch.slots[slot].type]
    return any(conjunction.takes(each, event) for each in slots)


def _gone(stream: TraceStream, slot: int) -> dict[Position, int]:
    """By event, when it left the queue. FIRST PREFIX keeps a delivered event until it is delivered as the oldest instance (so
    does ADVANCE, at least); NONE, UPTO and KEEP may keep it for ever."""
    disposal, branch = stream.conjunction.subscription.disposal, stream.conjunction.branch
    sliding = disposal in (Disposal.FIRST_PREFIX, Disposal.ADVANCE)
    found: dict[Position, int] = {}
    if disposal is Disposal.NONE or disposal.upto or slot in branch.kept:
        return found
    for each in stream.deliveries:  # in the order of time
        left = [event.position for event in each.places[slot]] if sliding else each.members
        for position in left[:1] if sliding else left:
            found.setdefault(position, each.time)
    return found


def _partners(trace: Trace, conjunction: TracedConjunction, slot: int) -> list[dict[Key, list[Position]]]:
    """For each of the other slots, runs that may be empty aside, by key, the events that it takes, in order."""
    found: list[dict[Key, list[Position]]] = []
    for other in range(len(conjunction.branch.slots)):
        run = conjunction.branch.runs.get(other)
        if other != slot and (run is None or run.least):
            found.append({})
            for each in trace.in_order:
                if conjunction.takes(other, each.event):
                    found[-1].setdefault(conjunction.key_of(other, each.event), []).append(each.event.position)
    return found


def _reaches(rounds: RoundCounter, events: Iterable[Event], needed: int) -> bool:
    for event in events:
        rounds.feed(event)
        if rounds.count >= needed:
            return True
    return False
