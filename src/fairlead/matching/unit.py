"""Runs one unit of a plan (model/plans/partition.py), on one of two lanes.

    EventLane   event by event, no start-up cost (interpreted/event_lane.py): every unit begins here
        │       after about a tenth of a second of work, counted in steps: the batch is undone, the state moves over, once
        ▼
    KernelLane  batch by batch in machine code, level by level (compiled/running/lane.py): gets that batch and all after it

Both deliver the same relations and have the same state, byte for byte, so only the speed depends on when a unit moves.

Takes: a unit's plan, and events with increasing positions. Gives: relations in the order of delivery, and the content of the
state.
Never: reads a clock, does I/O, reorders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from fairlead.errors import require
from fairlead.matching.attempt import Spent
from fairlead.matching.compiled.planning.eligibility import has_slow_runs
from fairlead.matching.interpreted.event_lane import Delivered, EventLane, Make, Running
from fairlead.matching.interpreted.matcher import IncrementalSubscription
from fairlead.matching.results.relations import Relations
from fairlead.matching.state.content import Content
from fairlead.matching.thresholds import THRESHOLDS, Thresholds
from fairlead.model.events.columns import Columns, columns_of_event
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.plans.plan import Plan

if TYPE_CHECKING:
    from fairlead.matching.compiled.machine_code.interruption import Check
    from fairlead.matching.compiled.running.batch import Prepared
    from fairlead.matching.compiled.running.lane import KernelLane

KERNELS_FROM = 5_000
"""Work after which a plan moves to machine code, in events of the usual cost, 20 steps of about a microsecond each
(matching/attempt.py): a tenth of a second. Long searches count as the events that could have been handled in their time, so a
plan moves after 5,000 events or in the middle of its first search. A kernel costs a tenth to a third of a second the first time
it is compiled on a machine and some milliseconds from then on: with many kernels to make, this is the work for each of them
(`prices` in running/lane.py). Preparing a batch for kernels costs about a millisecond, so batches that take less than a
fiftieth of this (as much as 100 events) do not count."""


class UnitEngine:
    """The running subscriptions of one unit: those whose derived events are in one order."""

    def __init__(
        self,
        plan: Plan,
        matcher: Make = IncrementalSubscription,
        kernels_from: int | None = KERNELS_FROM,
        *,
        check: Check | None = None,
        thresholds: Thresholds = THRESHOLDS,
    ) -> None:
        self.plan, self.check, self.thresholds = plan, check, thresholds
        self.event_lane = EventLane(plan, matcher)
        self.event_lane.attempt.check = check
        self.lane: KernelLane | None = None
        """Kernels, once the unit has moved to them."""
        movable = matcher is IncrementalSubscription and kernels_from is not None and not has_slow_runs(plan)
        self.kernels_from = kernels_from if movable else None
        """The amount of work after which it moves; None: never, or it has moved."""
        self.owed = 0
        """Steps that kernels would have saved so far."""
        self.price = 1.0
        """The cost of moving, in kernels that have to be compiled, as far as that is known."""
        self.prices: Iterator[float] | None = None
        self.last = Position(-1)

    @property
    def running(self) -> tuple[Running, ...]:
        """The subscriptions with their event-by-event matchers."""
        return self.event_lane.running

    def feed(
        self, columns: Columns, prepared: Prepared | None = None, events: Callable[[], Iterable[Event]] | None = None
    ) -> Relations | Delivered:
        """Feed a batch of ordered events. `prepared`: the same batch in a form that several engines share; `events`: the same,
        one by one."""
        require(columns.follow(self.last.major), "positions must rise", last=self.last)
        given = events or (lambda: columns.events(self.plan.catalogue))
        delivered = self._delivered(
            lambda: len(columns) * self.thresholds.event_steps if self.price == 1 else self.event_lane.least_steps(columns),
            lambda lane: lane.feed(given()),
            lambda lane: lane.feed(columns, prepared),
        )
        self.last = Position(columns.last_after(self.last.major))
        return delivered

    def arrive(self, event: Event) -> Relations | Delivered:
        """Feed one event of the log; returns everything that it completes, including through derived events."""
        if self.lane is not None:
            return self.feed(columns_of_event(event))
        require(event.position > self.last, "positions must rise", last=self.last, got=event.position)
        delivered = self._delivered(
            lambda: self.thresholds.event_steps,
            lambda lane: lane.feed((event,)),
            lambda lane: lane.feed(columns_of_event(event)),
        )
        self.last = event.position
        return delivered

    def finish(self, until: int) -> Relations | Delivered:
        """There are no more events up to and including that time (microseconds)."""
        return self._delivered(
            lambda: 0,
            lambda lane: lane.finish(until + 1, self.last),
            lambda lane: lane.finish(until + 1, self.last.major),
        )

    def _delivered(
        self,
        least: Callable[[], int],
        by_event: Callable[[EventLane], Delivered],
        on_kernels: Callable[[KernelLane], Relations],
    ) -> Relations | Delivered:
        """The deliveries of a batch. 1. A unit that has moved uses its kernels, one that never moves works event by event. 2.
        Any other unit tries event by event, with its remaining steps. `least`: the minimum number of steps of the batch; if
        that is already too much, it does not try. 3. If the steps do not suffice, the attempt is undone, the unit moves, and
        kernels get the whole batch; unless moving costs more than assumed: then it tries again, with more steps."""
        if self.lane is None and self.kernels_from is None:  # 1
            return by_event(self.event_lane)
        attempt = self.event_lane.attempt
        while self.lane is None and self.kernels_from is not None:
            steps = self.kernels_from * self.thresholds.event_steps
            uncounted, budget = steps // 50, int(steps * self.price)
            most = max(budget - self.owed, uncounted)
            if least() <= most:  # 2
                try:
                    attempt.begin(most)
                    delivered = by_event(self.event_lane)
                    self.owed = max(0, self.owed + attempt.end() - uncounted)
                    return delivered
                except Spent:
                    attempt.undo()
            if not self._is_dearer():  # 3
                self.owed = budget + 1
                self._to_kernels(self.event_lane.content())
                self.event_lane.clear()
        assert self.lane is not None
        return on_kernels(self.lane)

    def _is_dearer(self) -> bool:
        """Whether moving costs more than assumed: the cost of many kernels is only computed once it matters."""
        from fairlead.matching.compiled.running.lane import prices

        if self.prices is None:
            self.prices = prices(self.plan, self.event_lane.depths, self.thresholds.path_cells)
        for price in self.prices if self.kernels_from else ():
            if price > self.price:
                self.price = price
                return True
        return False

    def _to_kernels(self, content: Content) -> None:
        """Move to kernels, with that state."""
        from fairlead.matching.compiled.running.lane import KernelLane
        from fairlead.matching.compiled.state.plan_state import restore

        self.kernels_from = None
        depths, cells = self.event_lane.depths, self.thresholds.path_cells
        self.lane = KernelLane(self.plan, self.event_lane.relation, depths, self.check, path_cells=cells)
        restore(self.lane, content)

    def waiting(self) -> list[str]:
        """The subscriptions with relations that wait for a deadline."""
        return (self.lane or self.event_lane).waiting()

    def content(self) -> Content:
        """The state of the matchers: the same on either lane."""
        if self.lane is None:
            return self.event_lane.content()
        from fairlead.matching.compiled.state.plan_state import content_of_lane

        return content_of_lane(self.lane)

    def restore(self, content: Content) -> None:
        """Resume from the state of another unit, of either lane."""
        if self.kernels_from == 0 or (self.kernels_from is not None and len(content) >= self.thresholds.loaded_events):
            self._to_kernels(content)
        else:
            self.event_lane.restore(content)
