"""Early deliveries: what is known now, before DELAY has passed, with corrections as soon as they are known.

A second matcher of the same plan waits for nothing. It takes every event at once, in its place among those before it, and takes
relations back that later events change. It accepts the events that the first one accepts, so in the end both have found the
same relations. Its state is made of that of the first one when it is needed: the events that are held there are those that it
would have taken already. So it is in no snapshot.

Takes: the matcher of a part, and its batches. Gives: early deliveries, some of which take relations back; which subscriptions
are certain at once. Never: changes what the first matcher finds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairlead.engine import Engine
from fairlead.matching.results.chunk import Numbers
from fairlead.model.events.columns import Columns
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.plans.plan import Plan, Subscription
from fairlead.order.frontier import NOWHERE
from fairlead.runtime.event_time import EventTimeMatcher, EventVerdicts, OrderedFindings
from fairlead.runtime.event_time.buffer import rows_of
from fairlead.runtime.live.core.routes import reads_only_events

AT_ONCE = -1
"""The delay: the frontier is just after the latest event, so that it is released, too."""


class EarlyMatcher:
    """`first`: the matcher that waits, as it is before the next batch."""

    def __init__(self, first: EventTimeMatcher, round_bits: int, **arguments: Any) -> None:
        assert first.plan.order is not None
        self._plan, waiting = first.plan, first.plan.order
        plan = reordered(self._plan, at_once(waiting))
        engine = Engine.load(plan, first.engine.dump(), **arguments)
        self._matcher = EventTimeMatcher(plan, round_bits, engine=engine, **arguments)
        assert self._matcher.reviser is not None
        if first.reviser is not None:
            self._matcher.reviser.load(first.reviser.dump())
        buffer, frontier = self._matcher.buffer, first.buffer.frontier
        buffer.held, buffer.last = first.buffer.held, first.buffer.last
        reached = frontier.at if waiting.idle_us is None else max(frontier.ends.values(), default=NOWHERE)
        if reached != NOWHERE:
            buffer.frontier.at = reached + (waiting.delay_us or 0) - AT_ONCE

    def step(self, columns: Columns, stored: Numbers | None, verdicts: EventVerdicts) -> OrderedFindings:
        """The next batch of the first matcher, with its verdicts."""
        if len(verdicts):
            taken = ~np.isin(columns.position_array, verdicts.columns.position_array)
            columns = rows_of(columns, np.flatnonzero(taken), self._plan.catalogue)
            stored = None if stored is None else stored[taken]
        return self._matcher.step(columns, stored, closed=True)


def at_once(order: EventOrder) -> EventOrder:
    """The order in which nothing waits, and everything that may still arrive revises. Sources are not distinguished: the
    events of the fastest do not wait for the slowest, which then revises further back."""
    behind = (order.delay_us or 0) + (order.idle_us or 0) + (order.revise_us or 0)
    return replace(order, delay_us=AT_ONCE, idle_us=None, revise_us=behind - AT_ONCE)


def reordered(plan: Plan, order: EventOrder) -> Plan:
    """The plan whose events wait for longer or shorter: it finds relations with the same ids."""
    return replace(plan, subscriptions=tuple(replace(each, order=order) for each in plan.subscriptions))


def certain_at_once(plan: Plan, subscription: Subscription) -> bool:
    """Whether no other event can change a relation of the subscription: each is one event, and is decided by that event."""
    return not plan.derived_types(subscription) and all(
        len(branch.slots) == 1
        and not branch.noting
        and all(each.quantifier.most == 1 for each in branch.elements)
        and all(reads_only_events(each.condition) for each in branch.predicates)
        for branch in subscription.branches
    )
