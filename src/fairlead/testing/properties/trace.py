"""A trace: the subscriptions of each process, and what it multicast and delivered when.

Time is global and discrete; the processes do not see it. Events are identified by their position.

Takes: a plan with its events and relations (`trace_of`), or the parts by hand. Gives: frozen values, indexes over them for the
checkers, and one readable line per step:

    p1 multicasts A(2)
    p2 delivers [A(2), B(3)]

Never: decides a property (checkers.py does).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.testing.properties.conjunctions import TracedConjunction, conjunctions_of

Members = tuple[Position, ...]


@dataclass(frozen=True)
class Process:
    """A process and its subscription: conjunctions in the order in which it lists them. A mere publisher has none."""

    name: str
    subscription: tuple[TracedConjunction, ...] = ()


@dataclass(frozen=True)
class Multicast:
    process: str
    time: int
    event: Event


@dataclass(frozen=True)
class TraceDelivery:
    process: str
    time: int
    conjunction: str
    """The identity of the conjunction (see conjunctions.py)."""
    events: tuple[Event, ...]
    runs: tuple[int, ...] | None = None
    """How many of the events each place holds, for a conjunction with runs."""

    @cached_property
    def members(self) -> Members:
        return tuple(event.position for event in self.events)

    @cached_property
    def places(self) -> tuple[tuple[Event, ...], ...]:
        """The events of each place of the conjunction: one, or those of a run."""
        if self.runs is None:
            return tuple((event,) for event in self.events)
        rest = iter(self.events)
        return tuple(tuple(islice(rest, length)) for length in self.runs)

    def part(self, places: int) -> tuple[Members, ...]:
        """What is in the first places: two deliveries are equal there if these are."""
        return tuple(tuple(event.position for event in place) for place in self.places[:places])


@dataclass(frozen=True)
class TraceStream:
    """The deliveries of one process for one of its conjunctions, in the order of time."""

    process: str
    conjunction: TracedConjunction
    deliveries: tuple[TraceDelivery, ...]

    @cached_property
    def first_delivery(self) -> Mapping[Position, TraceDelivery]:
        """For each event its first delivery; a sliding window repeats it later."""
        found: dict[Position, TraceDelivery] = {}
        for delivery in self.deliveries:
            for position in delivery.members:
                found.setdefault(position, delivery)
        return found


@dataclass(frozen=True)
class Trace:
    processes: tuple[Process, ...]
    multicasts: tuple[Multicast, ...]
    deliveries: tuple[TraceDelivery, ...]

    @cached_property
    def multicast_of(self) -> Mapping[Position, Multicast]:
        return {each.event.position: each for each in reversed(self.multicasts)}

    @cached_property
    def in_order(self) -> tuple[Multicast, ...]:
        """The multicasts in the one order that all processes receive: by position."""
        return tuple(sorted(self.multicasts, key=lambda each: each.event.position))

    @cached_property
    def streams(self) -> tuple[TraceStream, ...]:
        """One for every conjunction of every process, even without deliveries."""
        found: dict[tuple[str, str], list[TraceDelivery]] = {}
        for delivery in sorted(self.deliveries, key=lambda each: each.time):
            found.setdefault((delivery.process, delivery.conjunction), []).append(delivery)
        return tuple(
            TraceStream(process.name, each, tuple(found.get((process.name, each.identity), ())))
            for process in self.processes
            for each in process.subscription
        )

    @cached_property
    def _names(self) -> Mapping[Position, str]:
        """`A(2)`: the type and the values; with its position, `A(2)#7`, if several events read the same."""
        events = {each.event.position: each.event for each in self.multicasts}
        plain = {position: shown(event) for position, event in events.items()}
        count = Counter(plain.values())
        return {at: name if count[name] == 1 else f"{name}#{events[at].position}" for at, name in plain.items()}

    def called(self, *events: Event) -> str:
        """The events as people read them."""
        return ", ".join(self._names.get(event.position, shown(event)) for event in events)

    def set_of(self, delivery: TraceDelivery, places: int | None = None) -> str:
        """The first places of a delivery as people read them; with runs, each place that does not hold one event in
        parentheses: `[(A(1), A(2)), B(3)]`."""
        shown = [self.called(*each) if len(each) == 1 else f"({self.called(*each)})" for each in delivery.places[:places]]
        return f"[{', '.join(shown)}]"

    def told(self, step: Multicast | TraceDelivery) -> str:
        if isinstance(step, Multicast):
            return f"{step.process} multicasts {self.called(step.event)}"
        return f"{step.process} delivers {self.set_of(step)}"

    def lines(self) -> list[str]:
        """The steps in the order of time."""
        steps: list[Multicast | TraceDelivery] = [*self.multicasts, *self.deliveries]
        return [self.told(step) for step in sorted(steps, key=lambda step: step.time)]


def shown(event: Event) -> str:
    """`A(1, @5s)`: the values; the time of the event in seconds."""
    values = [
        f"@{event.time / 1_000_000:g}s" if event.time is not None and name == event.schema.time_attribute else str(value)
        for name, value in event.values.items()
    ]
    return f"{event.type}({', '.join(values)})"


def trace_of(plan: Plan, events: Sequence[Event], relations: Iterable[Relation], publishers: Sequence[str] = ()) -> Trace:
    """The trace of processes that each have one subscription of the plan (and its name), fed with the same order. Event i is
    multicast by publishers[i] (default `source`); a relation is delivered right after its completing event."""
    processes = [Process(each.name, conjunctions_of(each, plan.catalogue)) for each in plan.subscriptions]
    identities = {each.name: [one.identity for one in each.subscription] for each in processes}
    names = list(publishers) or [event.source or "source" for event in events]
    steps: list[tuple[Position, int, str, Event | Relation]] = [
        (event.position, 0, name, event) for event, name in zip(events, names, strict=True)
    ]
    steps += [(each.completed_at, 1, each.subscription, each) for each in relations]
    steps.sort(key=lambda step: step[:2])  # stable: relations that complete together stay in the order of delivery
    multicasts, deliveries = [], []
    for time, (_, _, name, step) in enumerate(steps):
        if isinstance(step, Event):
            multicasts.append(Multicast(name, time, step))
        else:
            deliveries.append(TraceDelivery(name, time, identities[name][step.branch], step.members, step.runs))
    known = {each.name for each in processes}
    processes += [Process(name) for name in dict.fromkeys(names) if name not in known]
    return Trace(tuple(processes), tuple(multicasts), tuple(deliveries))


def trace_of_orders(
    plan: Plan,
    events: Sequence[Event],
    publishers: Sequence[str],
    orders: Mapping[str, Sequence[int]],
    run: Callable[[Plan, Sequence[Event]], Iterable[Relation]],
) -> Trace:
    """The trace of processes that each read the events in their own order. `events` are in the order of multicast; `orders`: by
    process the numbers of the events that it reads. A process delivers a relation as soon as everything that it has read until
    then was multicast."""
    steps: list[tuple[tuple[int, int, int], str, Event | Relation]] = [
        ((at, 0, 0), name, event) for at, (event, name) in enumerate(zip(events, publishers, strict=True))
    ]
    for number, (name, order) in enumerate(orders.items(), 1):
        read = [replace(events[at], position=Position(rank)) for rank, at in enumerate(order)]
        own = replace(plan, subscriptions=(plan[name],))
        for relation in run(own, read):
            members = tuple(events[order[member.position.major]] for member in relation.members)
            latest = max(order[: relation.completed_at.major + 1])
            steps.append(((latest, number, relation.completed_at.major), name, replace(relation, members=members)))
    steps.sort(key=lambda step: step[0])
    processes = [Process(name, conjunctions_of(plan[name], plan.catalogue)) for name in orders]
    identities = {each.name: [one.identity for one in each.subscription] for each in processes}
    multicasts = [Multicast(name, time, step) for time, (_, name, step) in enumerate(steps) if isinstance(step, Event)]
    deliveries = [
        TraceDelivery(name, time, identities[name][step.branch], step.members, step.runs)
        for time, (_, name, step) in enumerate(steps)
        if isinstance(step, Relation)
    ]
    processes += [Process(name) for name in dict.fromkeys(publishers) if name not in orders]
    return Trace(tuple(processes), tuple(multicasts), tuple(deliveries))
