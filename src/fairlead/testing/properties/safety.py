"""Safety and agreement over a trace: duplication, creation, admission, conjunction and covering agreement.

Takes: a trace. Gives: the first violation, named in words, or None. Each checker reads every delivery once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fairlead.model.events.event import Event
from fairlead.model.guarantee import Property
from fairlead.testing.properties.clauses import TraceBetween, unmet
from fairlead.testing.properties.conjunctions import TracedConjunction
from fairlead.testing.properties.sequences import SequenceReading, keys_of, rows_of
from fairlead.testing.properties.trace import Trace, TraceDelivery, TraceStream


@dataclass(frozen=True)
class Violation:
    """Which property, why in one sentence, the deliveries that show it, and the event that should have been in one."""

    property: Property
    words: str
    deliveries: tuple[TraceDelivery, ...] = ()
    missing: Event | None = None

    def __str__(self) -> str:
        return f"{self.property}: {self.words}"


def no_duplication(trace: Trace) -> Violation | None:
    """A process delivers an event at most once for a conjunction."""
    for stream in trace.streams:
        places = [(event.position, event, delivery) for delivery in stream.deliveries for event in delivery.events]
        if (again := _repeated(places)) is not None:
            event, one, other = again
            both = f"{trace.set_of(one)} and in {trace.set_of(other)}"
            words = f"{stream.process} delivers {trace.called(event)} twice, in {both}"
            return Violation(Property.NO_DUPLICATION, words, (one, other))
    return None


def no_duplication_in_place(trace: Trace) -> Violation | None:
    """A process never delivers an event twice in the same place of a conjunction. A run is one place."""
    for stream in trace.streams:
        places = [
            ((slot, event.position), event, delivery)
            for delivery in stream.deliveries
            for slot, place in enumerate(delivery.places)
            for event in place
        ]
        if (again := _repeated(places)) is not None:
            event, one, other = again
            both = f"{trace.set_of(one)} and in {trace.set_of(other)}"
            words = f"{stream.process} delivers {trace.called(event)} twice in one place, in {both}"
            return Violation(Property.NO_DUPLICATION_IN_PLACE, words, (one, other))
    return None


def _repeated(places: Sequence[tuple[Hashable, Event, TraceDelivery]]) -> tuple[Event, TraceDelivery, TraceDelivery] | None:
    seen: dict[Hashable, TraceDelivery] = {}
    for place, event, delivery in places:
        if place in seen:
            return event, seen[place], delivery
        seen[place] = delivery
    return None


def no_creation(trace: Trace) -> Violation | None:
    """Every delivered event was multicast before, with the same type and values. Derived events (minor position not 0) are made
    by a subscription, not multicast, and are not checked."""
    for delivery in trace.deliveries:
        for event in delivery.events:
            if event.position.minor != 0:
                continue
            origin = trace.multicast_of.get(event.position)
            if origin is None or (origin.event.type, origin.event.row) != (event.type, event.row):
                words = f"{trace.told(delivery)} but nobody multicast {trace.called(event)}"
                return Violation(Property.NO_CREATION, words, (delivery,))
            if origin.time >= delivery.time:
                words = f"{trace.told(delivery)} before {trace.called(event)} was multicast"
                return Violation(Property.NO_CREATION, words, (delivery,))
    return None


def admission(trace: Trace) -> Violation | None:
    """A delivered relation belongs to a conjunction of the process's subscription, fits its signature and satisfies it:
    distinct members, types, predicates, THEN, one key, within the window, nothing in a WITHOUT … BETWEEN; each run with as many
    events as it takes, HAVING true; of a sequence, a way through the rows of its key. Whether a run has all that were queued is
    not checked, since a trace does not tell what is. Absences depend on when they were decided and are not checked here."""
    known = {(stream.process, stream.conjunction.identity): stream.conjunction for stream in trace.streams}
    between = TraceBetween(trace)
    for delivery in trace.deliveries:
        conjunction = known.get((delivery.process, delivery.conjunction))
        problem = "does not subscribe to that" if conjunction is None else _misfit(conjunction, delivery, between)
        if problem:
            return Violation(Property.ADMISSION, f"{trace.told(delivery)} but {problem}", (delivery,))
    return None


def _misfit(conjunction: TracedConjunction, delivery: TraceDelivery, between: TraceBetween) -> str | None:
    """Why the events are no relation of the conjunction, or None."""
    branch, within, places = conjunction.branch, conjunction.subscription.within_us, delivery.places
    if sum(map(len, places)) != len(delivery.events) or not conjunction.lengths_fit(tuple(map(len, places))):
        return _asked(conjunction)
    if len(set(delivery.members)) < len(delivery.members):
        return "an event stands in it twice"
    if branch.sequence is not None:
        return None if _is_way(conjunction, delivery, between) else "its pattern has no such way through the rows"
    for slot, place in enumerate(places):
        if any(event.type not in conjunction.accepted[slot] for event in place):
            return f"place {slot + 1} takes {branch.slots[slot].type}"
    members = conjunction.members_of(places)
    for predicate in (*branch.predicates, *branch.having):
        if not conjunction.meets(predicate, members):
            return f"{predicate.text or 'a predicate'} is not true of it"
    if branch.keys and len({conjunction.key_of(slot, event) for slot, place in enumerate(places) for event in place}) > 1:
        return "its events have different keys"
    times = [event.time for event in delivery.events if event.time is not None]
    if within is not None and times and max(times) - min(times) > within:
        return "its events lie further apart than WITHIN allows"
    return unmet(conjunction, members, between, waiting=False)


def _is_way(conjunction: TracedConjunction, delivery: TraceDelivery, between: TraceBetween) -> bool:
    """Some key has all of its events among its rows, and they are a way through the pattern. The rows are those from its first
    event to its last."""
    first, last = min(delivery.members), max(delivery.members)
    events = [each for each in between.all if first <= each.position <= last]
    keys = dict.fromkeys(key for event in delivery.events for key in keys_of(conjunction, event))
    rows = [rows_of(conjunction, events, key) for key in keys]
    mine = set(delivery.members)
    return any(
        mine <= {each.position for each in some} and SequenceReading(conjunction, some).admits(delivery) for some in rows
    )


def _asked(conjunction: TracedConjunction) -> str:
    """How many members a conjunction has."""
    slots, runs = conjunction.branch.slots, conjunction.branch.runs
    if not runs:
        return f"the conjunction has {len(slots)} members"
    counts = [runs[at].canonical if at in runs else "1" for at in range(len(slots))]
    return f"the conjunction has {len(slots)} places, of {', '.join(counts)} events"


def conjunction_agreement(trace: Trace) -> Violation | None:
    """What one process delivers for Φ, every process that has Φ delivers too."""
    sharing: dict[str, list[TraceStream]] = {}
    for stream in trace.streams:
        sharing.setdefault(stream.conjunction.identity, []).append(stream)
    for streams in sharing.values():
        for one, other in pairwise(streams):  # equality of sets is transitive: neighbours suffice
            for source, target in ((one, other), (other, one)):
                found = _undelivered(source, target, len(source.conjunction.branch.slots))
                if found is not None:
                    words = f"{trace.told(found)} but {target.process}, with the same conjunction, does not"
                    return Violation(Property.CONJUNCTION_AGREEMENT, words, (found,))
    return None


def covering_agreement(trace: Trace) -> Violation | None:
    """What a process delivers for Φ ∧ Φ' (Φ extended to the right by other types, nothing tying the two parts), every other
    process that has Φ delivers as far as Φ goes. Φ' may be empty: conjunction agreement is contained."""
    for extended in trace.streams:
        for plain in trace.streams:
            length = extended.conjunction.prefixes.get(plain.conjunction.identity)
            if length is None or plain.process == extended.process:
                continue
            found = _undelivered(extended, plain, length)
            if found is not None:
                words = f"{trace.told(found)} but {plain.process} never delivers {trace.set_of(found, length)}"
                return Violation(Property.COVERING_AGREEMENT, words, (found,))
    return None


def _undelivered(source: TraceStream, target: TraceStream, length: int) -> TraceDelivery | None:
    """The first delivery of `source` whose first `length` places `target` never delivers together."""
    delivered = {delivery.part(length) for delivery in target.deliveries}
    return next((each for each in source.deliveries if each.part(length) not in delivered), None)
