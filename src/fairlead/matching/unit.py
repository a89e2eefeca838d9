"""Runs the subscriptions of one unit (model/partition.py), event by event until kernels take over.

The steps for one event, whose order is the definition (docs/semantics.md):

    1. Absences whose deadline the event's time has passed are decided, earliest deadline first, of all subscriptions whose
       clock it advances (its readers, and for an event of the input those upstream of what it reaches, model/clocks.py); the
       events that they derive are handled at once and precede the event.
    2. The event is handled by every subscription that reads its type, in the order of the unit's plan.
    3. The events that it derived are handled in the order of derivation, each with steps 1 to 3, directly after the event.

Takes: a unit's plan, and events with increasing positions. Gives: relations in the order of delivery, and the content of the
state. Never: reads a clock, does I/O, reorders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.errors import require
from fairlead.matching.attempt import ARRIVAL, EVENT, USUAL, Attempt, Spent
from fairlead.matching.expressions.closures import Evaluator, slot_types
from fairlead.matching.expressions.emission import compile_field
from fairlead.matching.interpreted.matcher import IncrementalSubscription
from fairlead.matching.interpreted.state import content_of_objects, objects_of_content
from fairlead.matching.outcome import Match, SubscriptionMatcher
from fairlead.matching.results.delivery_order import NOT_DUE
from fairlead.matching.results.relations import Relations
from fairlead.matching.state.content import Content
from fairlead.model.clocks import heard_types
from fairlead.model.columns import Columns, columns_of_event
from fairlead.model.event import Event
from fairlead.model.identity import relation_id
from fairlead.model.places import Places
from fairlead.model.plan import Branch, Plan, Subscription
from fairlead.model.position import Position
from fairlead.model.relation import Relation
from fairlead.model.types import NO_TIME, Catalogue, EventType, Kind

if TYPE_CHECKING:
    from fairlead.matching.compiled.machine_code.interruption import Check
    from fairlead.matching.compiled.running.lane import KernelLane
    from fairlead.matching.compiled.running.shared_columns import Prepared

KERNELS_FROM = 5_000
"""Work after which a plan moves to machine code, in events of the usual cost, 20 steps of about a microsecond each
(matching/attempt.py): a tenth of a second. Long searches count as the events that could have been handled in their time, so a
plan moves after 5,000 events or in the middle of its first search. A kernel costs a tenth to a third of a second the first time
it is compiled on a machine and some milliseconds from then on: with many kernels to make, this is the work for each of them
(`prices` in running/lane.py). Preparing a batch for kernels costs about a millisecond, so batches that take less than a
fiftieth of this (as much as 100 events) do not count."""

KERNELS_FROM_LOADED = 2_000
"""Queued events from which a loaded state moves to kernels at once: as objects they would take longer than the kernels."""

Emitter = tuple[EventType, tuple[tuple[str, Kind, Evaluator], ...]]
"""A derived type and, for each of its attributes, how to compute it from the members."""


@dataclass(frozen=True)
class Running:
    """A running subscription, event by event: its matcher, and its depth in the hierarchy."""

    subscription: Subscription
    matcher: SubscriptionMatcher
    depth: int


Delivered = list[tuple[Relation, int]]
"""Relations in the order of delivery, each with the deadline that decided it (`NOT_DUE` if an event completed it)."""


class UnitEngine:
    """The running subscriptions of one unit (model/partition.py): those whose derived events are in one order. Relations of its
    plan's silent subscriptions are not delivered, and only events that a subscription here reads take a place."""

    def __init__(
        self,
        plan: Plan,
        matcher: Callable[[Subscription, Catalogue], SubscriptionMatcher] = IncrementalSubscription,
        kernels_from: int | None = KERNELS_FROM,
        *,
        check: Check | None = None,
    ) -> None:
        self.plan, self.check = plan, check
        self.kernels_from = kernels_from if matcher is IncrementalSubscription else None
        self.lane: KernelLane | None = None
        self.attempt = Attempt()
        self.owed = 0
        """Steps that kernels would have saved so far."""
        self.price = 1.0
        """The cost of moving, in kernels that have to be compiled, as far as that is known."""
        self.prices: Iterator[float] | None = None
        depths = _depths(plan)
        self.running = tuple(Running(each, matcher(each, plan.catalogue), depths[each.name]) for each in plan.subscriptions)
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
        self.last = Position(-1)

    def feed(
        self, columns: Columns, prepared: Prepared | None = None, events: Callable[[], Iterable[Event]] | None = None
    ) -> Relations | Delivered:
        """Feed a batch of ordered events. `prepared`: the same batch in a form that several engines share; `events`: the same,
        one by one."""
        require(columns.follow(self.last.major), "positions must rise", last=self.last)
        given = events or (lambda: columns.events(self.plan.catalogue))
        delivered = self._delivered(
            lambda: len(columns) * USUAL if self.price == 1 else self._least(columns),
            lambda: [each for event in given() for each in self._logged(event)],
            lambda lane: lane.feed(columns, prepared),
        )
        self.last = Position(columns.last_after(self.last.major))
        return delivered

    def arrive(self, event: Event) -> Relations | Delivered:
        """Feed one event of the log; returns everything that it completes, including through derived events."""
        if self.lane is not None:
            return self.feed(columns_of_event(event))
        require(event.position > self.last, "positions must rise", last=self.last, got=event.position)
        delivered = self._delivered(lambda: USUAL, lambda: self._logged(event), lambda lane: lane.feed(columns_of_event(event)))
        self.last = event.position
        return delivered

    def _delivered(
        self, least: Callable[[], int], by_event: Callable[[], Delivered], on_kernels: Callable[[KernelLane], Relations]
    ) -> Relations | Delivered:
        """The deliveries of a batch: event by event, unless that takes more work than kernels would save (then, or before).
        `least`: the minimum number of steps."""
        if self.lane is None and self.kernels_from is None:
            return by_event()
        while self.lane is None and self.kernels_from is not None:
            uncounted = self.kernels_from * USUAL // 50
            budget = int(self.kernels_from * USUAL * self.price)
            most = max(budget - self.owed, uncounted)
            if least() <= most:
                try:
                    self.attempt.begin(most)
                    delivered = by_event()
                    self.owed = max(0, self.owed + self.attempt.end() - uncounted)
                    return delivered
                except Spent:
                    self.attempt.undo()
            if not self._is_dearer():
                self.owed = budget + 1
                self._promote()
        assert self.lane is not None
        return on_kernels(self.lane)

    def _is_dearer(self) -> bool:
        """Whether moving costs more than assumed: the cost of many kernels is only computed once it matters."""
        from fairlead.matching.compiled.running.lane import prices

        if self.prices is None:
            self.prices = prices(self.plan, self._depths())
        for price in self.prices if self.kernels_from else ():
            if price > self.price:
                self.price = price
                return True
        return False

    def _least(self, columns: Columns) -> int:
        """Steps for these events without any search, and without derived events."""
        counts = np.bincount(columns.code_array, minlength=len(columns.types)).tolist()
        readers = [len(self.readers.get(name, ())) for name in columns.types]
        return sum(count * (EVENT + ARRIVAL * those) for count, those in zip(counts, readers, strict=True))

    def _logged(self, event: Event) -> Delivered:
        delivered: Delivered = []
        self._handle(event, Places(event.position.major), delivered)
        return delivered

    def _promote(self) -> None:
        """Move the plan to kernels, with its state."""
        self._to_kernels(self.content())
        for each in self.running:
            each.matcher.clear()  # type: ignore[attr-defined]

    def _to_kernels(self, content: Content) -> None:
        from fairlead.matching.compiled.running.lane import KernelLane
        from fairlead.matching.compiled.state.plan_state import restore

        self.kernels_from = None
        self.lane = KernelLane(self.plan, self._relation, self._depths(), self.check)
        restore(self.lane, content)

    def _depths(self) -> dict[str, int]:
        return {each.subscription.name: each.depth for each in self.running}

    def finish(self, until: int) -> Relations | Delivered:
        """There are no more events up to and including that time (microseconds)."""
        return self._delivered(
            lambda: 0, lambda: self._decided(until + 1), lambda lane: lane.finish(until + 1, self.last.major)
        )

    def _decided(self, until: int) -> Delivered:
        delivered: Delivered = []
        self._decide(self.running, until, Places(self.last.major + 1), delivered)
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
            # 3. the events that it derived
            waiting += reversed(derived)

    def _decide(self, told: tuple[Running, ...], time: int, places: Places, delivered: Delivered) -> None:
        """Decide what was due before `time`: by deadline, then upstream subscriptions first, then in the order of the plan."""
        while True:
            due = [(d[0], r.depth, at) for at, r in enumerate(told) if (d := r.matcher.next_due()) and d[0] < time]
            if not due:
                return
            running = told[min(due)[2]]
            match = running.matcher.take_due()
            if match is not None:
                for each in self._deliver(running, match, places.free(), delivered, match.deadline):
                    self._handle(each, places, delivered)

    def _deliver(
        self, running: Running, match: Match, at: Position, delivered: Delivered, due: int | None = None
    ) -> list[Event]:
        """Append the relation; return the event it derives, if a subscription reads it (its position is set when it is
        handled)."""
        subscription = running.subscription
        positions = (member.position for member in match.members)
        identity = relation_id(subscription.digest, subscription.number(match.branch), positions)
        relation = self._relation(subscription.name, match, at, identity)
        if subscription.name not in self.plan.silent:
            delivered.append((relation, NOT_DUE if due is None else due))
        if relation.emitted_type not in self.read:
            return []
        schema, row = self.plan.catalogue[relation.emitted_type], tuple(value for _, _, value in relation.emitted_row)
        return [Event(schema, row, at, _derived_time(schema, row, match))]

    def _relation(self, subscription: str, match: Match, at: Position, identity: str) -> Relation:
        emitter, number = self.emitters[subscription][match.branch], self.plan[subscription].number(match.branch)
        if emitter is None:
            return Relation(subscription, number, identity, match.members, at)
        schema, fields = emitter
        emitted = tuple((name, kind, evaluate(match.members)) for name, kind, evaluate in fields)
        return Relation(subscription, number, identity, match.members, at, schema.name, emitted)

    def waiting(self) -> list[str]:
        """The subscriptions with relations that wait for a deadline."""
        if self.lane is not None:
            return self.lane.waiting()
        return [each.subscription.name for each in self.running if each.matcher.next_due() is not None]

    def content(self) -> Content:
        """The state of the matchers."""
        if self.lane is not None:
            from fairlead.matching.compiled.state.plan_state import content_of_lane

            return content_of_lane(self.lane)
        matchers = [each.matcher for each in self.running if isinstance(each.matcher, IncrementalSubscription)]
        require(len(matchers) == len(self.running), "only the engine's own matchers dump their state")
        return content_of_objects([each.held() for each in matchers], self.plan)

    def restore(self, content: Content) -> None:
        """Resume from the state of another unit."""
        if self.kernels_from is not None and len(content) >= KERNELS_FROM_LOADED:
            self._to_kernels(content)
        else:
            for each, held in zip(self.running, objects_of_content(content, self.plan), strict=True):
                each.matcher.restore(held)  # type: ignore[attr-defined]


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
        (each.name, each.type.kind, compile_field(fields[each.name], types, each.type)) for each in schema.attributes
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
    return max((member.time for member in match.members if member.time is not None), default=NO_TIME)
