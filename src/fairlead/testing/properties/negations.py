"""The events between two events of a trace: the lookups that WITHOUT clauses need.

Takes: the multicasts of a trace. Gives: whether a negated event spoils a set of members. Never: knows about deliveries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from fairlead.model.event import Event
from fairlead.model.plan import Absence, NegationBetween
from fairlead.testing.interpreter import holds
from fairlead.testing.properties.conjunctions import TracedConjunction
from fairlead.testing.properties.trace import Trace

Members = tuple[Event, ...]


class TraceBetween:
    """The multicasts by type, in order, and the largest time among them."""

    def __init__(self, trace: Trace) -> None:
        self.events: dict[str, list[Event]] = {}
        for each in trace.in_order:
            self.events.setdefault(each.event.type, []).append(each.event)
        self.positions = {name: [event.position for event in events] for name, events in self.events.items()}
        self.last_time = max((each.event.time for each in trace.multicasts if each.event.time is not None), default=None)

    def after(self, name: str, left: Event) -> Iterator[Event]:
        yield from self.events.get(name, [])[bisect_right(self.positions.get(name, []), left.position) :]


def interferes(conjunction: TracedConjunction, negation: NegationBetween, members: Members, between: TraceBetween) -> bool:
    """A negated event is strictly between the two members that the clause names."""
    right = members[negation.right].position
    for name in conjunction.catalogue.accepts(negation.type):
        for event in between.after(name, members[negation.left]):
            if event.position >= right:
                break
            if _negates(conjunction, negation, members, event):
                return True
    return False


def stays_absent(conjunction: TracedConjunction, absence: Absence, members: Members, between: TraceBetween) -> bool:
    """The deadline has passed within the trace and no event of the whole trace spoils the absence."""
    anchor = members[absence.anchor]
    if anchor.time is None or between.last_time is None or between.last_time <= anchor.time + absence.within_us:
        return False
    return not any(
        event.time is not None
        and abs(event.time - anchor.time) <= absence.within_us
        and _negates(conjunction, absence, members, event)
        for name in conjunction.catalogue.accepts(absence.type)
        for event in between.after(name, anchor)
    )


def _negates(conjunction: TracedConjunction, negation: NegationBetween | Absence, members: Members, event: Event) -> bool:
    """The event is no member, has the members' key, and the clause's WHERE is true of it."""
    if any(event.position == member.position for member in members):
        return False
    if conjunction.branch.keys:
        names = dict(conjunction.branch.keys).get(negation.type, ())
        if tuple(event.raw(name) for name in names) != conjunction.key_of(0, members[0]):
            return False
    binding = dict(enumerate(members)) | {negation.slot: event}
    return all(holds(each.condition, binding) for each in negation.predicates)
