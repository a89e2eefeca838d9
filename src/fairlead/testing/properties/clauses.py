"""What the clauses of a conjunction ask of a set of members in a trace, one function for each clause.

They are written from the definition, apart from the matchers and from what clauses answer to these (model/clauses/).

Takes: a conjunction, members, and the multicasts of a trace. Gives: what is not as a clause asks, or None. Never: knows about
deliveries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping

from fairlead.model.clauses.clause import Clause, NotingClause
from fairlead.model.clauses.then import Precedence
from fairlead.model.clauses.without import Absence, NegationBefore, NegationBetween, Timer
from fairlead.model.events.event import Event
from fairlead.model.plans.key_parts import key_value
from fairlead.testing.interpreter import holds
from fairlead.testing.properties.conjunctions import Members, TracedConjunction
from fairlead.testing.properties.trace import Trace


def events_of(held: Event | tuple[Event, ...]) -> tuple[Event, ...]:
    """The events of one place."""
    return held if isinstance(held, tuple) else (held,)


class TraceBetween:
    """The multicasts by type, in order, and the largest time that they tell a subscription."""

    def __init__(self, trace: Trace) -> None:
        self.all = [each.event for each in trace.in_order]
        self.events: dict[str, list[Event]] = {}
        for each in trace.in_order:
            self.events.setdefault(each.event.type, []).append(each.event)
        self.positions = {name: [event.position for event in events] for name, events in self.events.items()}
        self._told: dict[frozenset[str], int | None] = {}

    def told(self, conjunction: TracedConjunction) -> int | None:
        """By the events that its subscription reads: others do not tell it the time, and decide nothing."""
        read = conjunction.reads
        if read not in self._told:
            times = (each.time for each in self.all if each.type in read and each.time is not None)
            self._told[read] = max(times, default=None)
        return self._told[read]

    def after(self, name: str, left: Event) -> Iterator[Event]:
        yield from self.events.get(name, [])[bisect_right(self.positions.get(name, []), left.position) :]


def follow(conjunction: TracedConjunction, clause: Precedence, members: Members, between: TraceBetween) -> bool:
    """Every member on the left stands before every one on the right."""
    left, right = (
        [event.position for slot in side for event in events_of(members[slot])] for side in (clause.left, clause.right)
    )
    return not left or not right or max(left) < min(right)


def nothing_between(conjunction: TracedConjunction, clause: NegationBetween, members: Members, between: TraceBetween) -> bool:
    """No negated event is strictly between the two members that the clause names."""
    right = members[clause.right].position
    for name in conjunction.catalogue.accepts(clause.type):
        for event in between.after(name, members[clause.left]):
            if event.position >= right:
                break
            if _negates(conjunction, clause, members, event):
                return False
    return True


def nothing_before(conjunction: TracedConjunction, clause: NegationBefore, members: Members, between: TraceBetween) -> bool:
    """No negated event is before the member that the clause names, or none of those within its time."""
    anchor = members[clause.anchor]
    return not any(
        event.position < anchor.position
        and (clause.within_us is None or event.time >= anchor.time - clause.within_us)
        and _negates(conjunction, clause, members, event)
        for name in conjunction.catalogue.accepts(clause.type)
        for event in between.events.get(name, [])
    )


def stays_absent(conjunction: TracedConjunction, absence: Absence | Timer, members: Members, between: TraceBetween) -> bool:
    """The deadline has passed for the subscription within the trace, and no event of the whole trace spoils the absence."""
    anchor, told = members[absence.anchor], between.told(conjunction)
    if anchor.time is None or told is None or told <= anchor.time + absence.within_us:
        return False
    return not any(
        event.time is not None
        and abs(event.time - anchor.time) <= absence.within_us
        and _negates(conjunction, absence, members, event)
        for name in conjunction.catalogue.accepts(absence.type)
        for event in between.after(name, anchor)
    )


def _negates(conjunction: TracedConjunction, negation: NotingClause, members: Members, event: Event) -> bool:
    """The event is no member, has the members' key, and the clause's WHERE is true of it."""
    those = [(slot, each) for slot, held in enumerate(members) for each in events_of(held)]
    if any(event.position == each.position for _, each in those):
        return False
    if conjunction.branch.keys:
        names = dict(conjunction.branch.keys).get(negation.type, ())
        if tuple(key_value(event, name) for name in names) != conjunction.key_of(*those[0]):
            return False
    binding = dict(enumerate(members)) | {negation.slot: event}
    return all(holds(each.condition, binding) for each in negation.predicates)


CHECKS: Mapping[type[Clause], tuple[Callable[..., bool], str]] = {
    Precedence: (follow, "its events do not follow each other as THEN asks"),
    NegationBetween: (nothing_between, "a WITHOUT event stands between its members"),
    NegationBefore: (nothing_before, "a WITHOUT event stands before one of its members"),
    Timer: (stays_absent, "its time has not passed"),
    Absence: (stays_absent, "a WITHOUT event comes within its time, or that has not passed"),
}
"""For each clause whether members meet it, and what is said of those that do not."""


def unmet(conjunction: TracedConjunction, members: Members, between: TraceBetween, waiting: bool = True) -> str | None:
    """What a clause asks and the members do not meet, or None. `waiting` False: clauses that wait for a time are left out."""
    for clause in conjunction.branch.clauses:
        holds_for, problem = CHECKS[type(clause)]
        if (waiting or not clause.waits) and not holds_for(conjunction, clause, members, between):
            return problem
    return None
