"""The deliveries that are due to a subscription with ORDER BY … DELAY … [AHEAD …] [LATE REVISE WITHIN …], from the log of a
history: docs/semantics.md ("Order by value", "Revisions"), written out event by event, with the reference matcher.

    1. an event is ahead, late, late but revising, or held: by its own time and the frontier of those before it
    2. when its block ends, what the frontier has passed is released in the order of times: its relations are delivered
    3. the late events of the block are put into their places; relations that are not found any more are taken back, in the
       order that they had, then those that are new are delivered

So the deliveries, without those that were taken back, are always what sorting finds in the events that take part.

Takes: rules, events in the order in which subscribers read them. Gives: signed deliveries, and those that are final. Never:
uses the machine of production.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.order.event_identity import event_identities
from fairlead.testing.history.values import LoggedEvent
from fairlead.testing.reference import ReferenceMatcher

BLOCK_BITS = 12
"""A position is the number of its block, then 12 bits for the place there (docs/live.md, "One order")."""


@dataclass(frozen=True)
class OrderedDeliveries:
    """`deliveries`: with their signs. `final`: relations that no late event can change any more, in their order."""

    deliveries: Sequence[Relation]
    final: Sequence[Relation]


def in_stored_order(streams: Sequence[tuple[str, Sequence[LoggedEvent]]]) -> list[tuple[tuple[int, str, int], LoggedEvent]]:
    """The events of several streams, by the times at which their blocks were stored, then the name of the stream; each with its
    block."""
    found = []
    for name, events in streams:
        latest = 0
        for each in events:
            latest = max(latest, each.stored)
            found.append(((latest, name, each.position >> BLOCK_BITS), each))
    return sorted(found, key=lambda pair: (pair[0], pair[1].position))


def ordered_deliveries(
    plan: Plan, subscription: str, streams: Sequence[tuple[str, Sequence[LoggedEvent]]]
) -> OrderedDeliveries:
    order = plan.order
    assert order is not None
    events = [(block, each) for block, each in in_stored_order(streams) if each.type in plan[subscription].types]
    made = _identified([each for _, each in events], plan, order)
    machine = _Machine(plan, subscription, order)
    for _, some in groupby(enumerate(events), key=lambda pair: pair[1][0]):
        machine.block([(made[at], each.stored) for at, (_, each) in some])
    final = [each for each in machine.taking_part if _time(each) < machine.frontier - (order.revise_us or 0)]
    return OrderedDeliveries(machine.deliveries, machine.matched(final))


class _Machine:
    """`frontier`: in microseconds. `released`: what was matched, sorted; `held`: what waits."""

    def __init__(self, plan: Plan, subscription: str, order: EventOrder) -> None:
        self._plan, self._subscription, self._order = plan, subscription, order
        self.frontier = -(1 << 62)
        self.released: list[Event] = []
        self.held: list[Event] = []
        self._relations: list[Relation] = []
        self.deliveries: list[Relation] = []

    @property
    def taking_part(self) -> list[Event]:
        return sorted([*self.released, *self.held], key=_place)

    def block(self, events: Sequence[tuple[Event, int]]) -> None:
        late = []
        for event, stored in events:  # 1
            at, ahead = _time(event), self._order.ahead_us
            if ahead is not None and at > stored + ahead:
                continue
            if at >= self.frontier:
                self.held.append(event)
            elif at >= self.frontier - (self._order.revise_us or 0) and self._order.revise_us is not None:
                late.append(event)
            self.frontier = max(self.frontier, at - (self._order.delay_us or 0))
        passed = [each for each in self.held if _time(each) < self.frontier]
        if passed:  # 2
            self.held = [each for each in self.held if _time(each) >= self.frontier]
            self._revise(passed)
        if late:  # 3
            self._revise(late)

    def _revise(self, more: Sequence[Event]) -> None:
        self.released = sorted([*self.released, *more], key=_place)
        before, after = self._relations, self.matched(self.released)
        had, has = {each.id for each in before}, {each.id for each in after}
        self.deliveries += [each.taken_back() for each in before if each.id not in has]
        self.deliveries += [each for each in after if each.id not in had]
        self._relations = after

    def matched(self, events: Sequence[Event]) -> list[Relation]:
        matcher = ReferenceMatcher(self._plan)
        found = [
            relation
            for number, each in enumerate(events)
            for relation in matcher.arrive(replace(each, position=Position(number)))
        ]
        return [each for each in found if each.subscription == self._subscription]


def _identified(events: Sequence[LoggedEvent], plan: Plan, order: EventOrder) -> Mapping[int, Event]:
    found: dict[int, Event] = {}
    for name in sorted({each.type for each in events}):
        rows = [(at, each) for at, each in enumerate(events) if each.type == name]
        schema = plan.catalogue[name]
        times = pa.array([each.time for _, each in rows], pa.timestamp("us", "UTC"))
        origin = {"_source": [each.source for _, each in rows], "_sequence": [each.sequence for _, each in rows]}
        table = pa.table({schema.attributes[schema.time_index or 0].name: times, **origin})
        words = event_identities(schema, table, order)
        for (at, each), (one, other) in zip(rows, words.tolist(), strict=True):
            row = each.row + (None,) * (len(schema.attributes) - len(each.row))
            found[at] = Event(schema, row, Position(0), each.time, each.source, each.sequence, (one, other))
    return found


def _time(event: Event) -> int:
    assert event.time is not None
    return event.time


def _place(event: Event) -> tuple[int, str, int, str]:
    return _time(event), event.source or "", event.sequence or 0, event.type
