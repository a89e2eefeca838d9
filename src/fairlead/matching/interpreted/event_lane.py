"""Matches the subscriptions of one unit event by event: the lane without start-up cost, and the definition of the other one.

The steps for one event, whose order is the definition (docs/semantics.md):

    1. Absences whose deadline the event's time has passed are decided, earliest deadline first, of all subscriptions whose
       clock it advances (its readers, and for an event of the input those upstream of what it reaches, model/plans/clocks.py);
       the events that they derive are handled at once and precede the event.
    2. The event is handled by every subscription that reads its type, in the order of the unit's plan.
    3. The events that it derived are handled in the order of derivation, each with steps 1 to 3, directly after the event.

Takes: a unit's plan, a matcher for each subscription, and events with increasing positions. Gives: relations in the order of
delivery, and the content of the state. Never: reads a clock, does I/O, reorders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.errors import require
from fairlead.matching.attempt import ARRIVAL, EVENT, Attempt
from fairlead.matching.expressions.closures import Evaluator, slot_types
from fairlead.matching.expressions.emission import compile_field
from fairlead.matching.interpreted.matcher import IncrementalSubscription
from fairlead.matching.interpreted.state import content_of_objects, objects_of_content
from fairlead.matching.outcome import Match, SubscriptionMatcher
from fairlead.matching.results.delivery_order import NOT_DUE
from fairlead.matching.results.folded_members import held_by_slots, visible
from fairlead.matching.state.content import Content
from fairlead.model.events.columns import Columns
from fairlead.model.events.event import Event, Places
from fairlead.model.events.position import Position
from fairlead.model.events.types import NO_TIME, Catalogue, DataType, EventType
from fairlead.model.plans.clocks import heard_types
from fairlead.model.plans.plan import Branch, Plan, Subscription
from fairlead.model.relations.identity import id_of_lanes, pair_of, relation_id, rolled
from fairlead.model.relations.relation import Relation

Make = Callable[[Subscription, Catalogue], SubscriptionMatcher]
Emitter = tuple[EventType, tuple[tuple[str, DataType, Evaluator], ...]]
"""A derived type and, for each of its attributes, how to compute it from the members."""


@dataclass(frozen=True)
class Running:
    """A running subscription, event by event: its matcher, and its depth in the hierarchy."""

    subscription: Subscription
    matcher: SubscriptionMatcher
    depth: int


Delivered = list[tuple[Relation, int]]
"""Relations in the order of delivery, each with the deadline that decided it (`NOT_DUE` if an event completed it)."""


class EventLane:
    """A unit's subscriptions, one matcher each. Relations of its plan's silent subscriptions are not delivered, and only events
    that a subscription here reads take a place. `attempt` counts the steps, and restores what they changed."""

    def __init__(self, plan: Plan, matcher: Make = IncrementalSubscription) -> None:
        self.plan, self.attempt = plan, Attempt()
        self.depths = _depths(plan)
        self.running = tuple(
            Running(each, matcher(each, plan.catalogue), self.depths[each.name]) for each in plan.subscriptions
        )
        for each in self.running:
            if isinstance(each.matcher, IncrementalSubscription):
                each.matcher.attempt = self.attempt
        self.emitters = {
            each.name: [_emitter(branch, plan.catalogue) for branch in each.branches] for each in plan.subscriptions
        }
        reads = {each.name: each.reads(plan.catalogue) for each in plan.subscriptions}
        heard = heard_types(plan)
        self.readers = _by_type(self.running, reads)
        self.hearers = _by_type(self.running, heard)
        """For each type of the input, the subscriptions that do not read it and whose clock it advances."""
        told = {name: types | heard.get(name, frozenset()) for name, types in reads.items()}
        self.told = _by_type(self.running, told) if heard else self.readers
        self.read = frozenset(name for each in plan.subscriptions for name in plan.derived_types(each))

    def feed(self, events: Iterable[Event]) -> Delivered:
        """Events of the log; returns everything that each completes, including through derived events."""
        delivered: Delivered = []
        for event in events:
            self._handle(event, Places(event.position.major), delivered)
        return delivered

    def finish(self, until: int, last: Position) -> Delivered:
        """There are no more events before that time (microseconds); the last event was at `last`."""
        delivered: Delivered = []
        self._decide(self.running, until, Places(last.major + 1), delivered)
        return delivered

    def _handle(self, event: Event, places: Places, delivered: Delivered) -> None:
        """Depth first, with an explicit stack: a chain of ten thousand is valid."""
        waiting = [event]
        while waiting:
            event = waiting.pop()
            readers = self.readers.get(event.type, ())
            self.attempt.spend(EVENT + ARRIVAL * len(readers))
            # 1. absences whose deadline this event's time has passed
            if event.time is not None and readers:
                self._decide(self.told[event.type], event.time, places, delivered)
                for running in self.hearers.get(event.type, ()):
                    running.matcher.tell(event.time)
            # 2. the event itself, at its place
            event = places.settle(event)
            derived: list[Event] = []
            for running in readers:
                for match in running.matcher.arrive(event):
                    derived += self._deliver(running, match, event.position, delivered)
            # 3. what it derived
            waiting += reversed(derived)

    def _decide(self, told: tuple[Running, ...], time: int, places: Places, delivered: Delivered) -> None:
        """Decide what was due before `time`: by deadline, then upstream subscriptions first, then in the order of the plan."""
        while True:
            due = [(d[0], r.depth, at) for at, r in enumerate(told) if (d := r.matcher.next_due()) and d[0] < time]
            if not due:
                return
            deadline, _, at = min(due)
            match = told[at].matcher.take_due()
            if match is not None:
                for each in self._deliver(told[at], match, places.free(), delivered, deadline):
                    self._handle(each, places, delivered)

    def _deliver(
        self, running: Running, match: Match, at: Position, delivered: Delivered, due: int | None = None
    ) -> list[Event]:
        """Append the relation; return the event it derives, if a subscription reads it (its position is set when it is
        handled)."""
        subscription = running.subscription
        identity = _identity(subscription, match)
        relation = self.relation(subscription.name, match, at, identity)
        if subscription.name not in self.plan.silent:
            delivered.append((relation, NOT_DUE if due is None else due))
        if relation.emitted_type not in self.read:
            return []
        schema, row = self.plan.catalogue[relation.emitted_type], tuple(value for _, _, value in relation.emitted_row)
        own = None if subscription.order is None else pair_of(identity)
        return [Event(schema, row, at, _derived_time(schema, row, match), identity=own)]

    def relation(self, subscription: str, match: Match, at: Position, identity: str) -> Relation:
        emitter, number = self.emitters[subscription][match.branch], self.plan[subscription].number(match.branch)
        branch = self.plan[subscription].branches[match.branch]
        held = held_by_slots(branch, match)
        members, folded = visible(branch, held) if branch.folded else (match.members, ())
        if emitter is None:
            return Relation(subscription, number, identity, members, at, runs=match.runs, folded=folded)
        schema, fields = emitter
        emitted = tuple((name, form, evaluate(held)) for name, form, evaluate in fields)
        return Relation(subscription, number, identity, members, at, schema.name, emitted, match.runs, folded)

    def waiting(self) -> list[str]:
        """The subscriptions with relations that wait for a deadline."""
        return [each.subscription.name for each in self.running if each.matcher.next_due() is not None]

    def content(self) -> Content:
        """The state of the matchers."""
        matchers = [each.matcher for each in self.running if isinstance(each.matcher, IncrementalSubscription)]
        require(len(matchers) == len(self.running), "only the engine's own matchers dump their state")
        return content_of_objects([each.held() for each in matchers], self.plan)

    def restore(self, content: Content) -> None:
        """Resume from the state of another unit."""
        for each, held in zip(self.running, objects_of_content(content, self.plan), strict=True):
            each.matcher.restore(held)  # type: ignore[attr-defined]

    def clear(self) -> None:
        """Forget everything: the kernels have the state now."""
        for each in self.running:
            each.matcher.clear()  # type: ignore[attr-defined]

    def least_steps(self, columns: Columns) -> int:
        """Steps for these events without any search, and without derived events."""
        counts = np.bincount(columns.code_array, minlength=len(columns.types)).tolist()
        readers = [len(self.readers.get(name, ())) for name in columns.types]
        return sum(count * (EVENT + ARRIVAL * those) for count, those in zip(counts, readers, strict=True))


def _identity(subscription: Subscription, match: Match) -> str:
    if match.folded:
        (run,) = match.folded
        return id_of_lanes(rolled(run.lanes, len(run)))
    words = [member.words for member in match.members]
    return relation_id(subscription.id_digest, subscription.number(match.branch), words, match.runs)


def _by_type(running: Iterable[Running], types: Mapping[str, frozenset[str]]) -> Mapping[str, tuple[Running, ...]]:
    """For each type, the subscriptions that have it among theirs, in the order of the text."""
    found: dict[str, list[Running]] = {}
    for each in running:
        for name in sorted(types.get(each.subscription.name, ())):
            found.setdefault(name, []).append(each)
    return {name: tuple(those) for name, those in found.items()}


def _depths(plan: Plan) -> dict[str, int]:
    """The number of subscriptions upstream of each on the longest path."""
    found: dict[str, int] = {}
    of_type: dict[str, int] = {}
    for each in plan.emitters_first:
        depth = max((of_type[name] + 1 for name in plan.derived_types(each)), default=0)
        found[each.name] = depth
        if each.emits is not None:
            of_type[each.emits] = max(depth, of_type.get(each.emits, 0))
    return found


def _emitter(branch: Branch, catalogue: Catalogue) -> Emitter | None:
    if branch.emission is None:
        return None
    schema, types = catalogue[branch.emission.type], slot_types(branch, catalogue)
    fields = dict(branch.emission.fields)
    return schema, tuple(
        (each.name, each.type, compile_field(fields[each.name], types, each.type)) for each in schema.attributes
    )


def _derived_time(schema: EventType, row: tuple[Any, ...], match: Match) -> int | None:
    """The TIME attribute if there is one; else the deadline of an absence; else the largest time of the members. Whether events
    of a type have a time at all is known from the text (language/checking/emission.py)."""
    if not schema.timed:
        return None
    if schema.time_index is not None and row[schema.time_index] is not None:
        return int(row[schema.time_index])
    if match.deadline is not None:
        return match.deadline
    times = [*(member.time for member in match.members), *(run.latest for run in match.folded)]
    return max((time for time in times if time is not None), default=NO_TIME)
