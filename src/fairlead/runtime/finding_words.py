"""The words of a finding of `why`: what an event needs, what it waits for, what forbids its relation.

Takes: instances of a branch and their events. Gives: texts. Never: runs a matcher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlead.errors import UsageError
from fairlead.matching.interpreted.conjunction import Conjunction
from fairlead.matching.interpreted.instance import Instance, Pending
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import HEARTBEAT, Kind
from fairlead.model.events.values import jsonable
from fairlead.model.plans.plan import Subscription


def not_read(subscription: Subscription, number: int, event: Event) -> str:
    if event.type == HEARTBEAT.name:
        return "a heartbeat only moves clocks"
    return f"it reads {', '.join(subscription.branches[number].types)}; the event is of type {event.type}"


def nothing_there(position: Position, last: Position) -> UsageError:
    if position.minor == 0 and 0 <= position.major <= last.major:
        problem = f"the record at position {position} is a duplicate or was rejected, so it is not an event"
        return UsageError("A007", problem, fix="use the position of the event that it repeats")
    return UsageError("A007", f"there is no event at position {position}", fix=f"use a position from 0 to {last.major}")


def limited(subscription: Subscription) -> str:
    """Why LIMIT did not let a relation through."""
    of = "of its key " if subscription.limit is not None and subscription.limit.per_key else ""
    return f"{subscription.limit}: as many relations {of}were delivered before it"


def unmet(subscription: Subscription, number: int, conjunction: Conjunction, instance: Instance, queue: int) -> Iterator[str]:
    """What an event of the queue needs before it; beside tables, it may be that only what is there before it counts."""
    branch = subscription.branches[number]
    if not dict(conjunction.needs)[queue]:
        yield "TABLE: no later event completes a relation with it"
        return
    types, word = branch.queue_types, next(each.keyword for each in branch.clauses if each.orders)
    for needs in dict(conjunction.needs)[queue]:
        wanted = " and ".join(f"{n} {types[at]} ({len(instance.queues[at])} queued)" for at, n in needs)
        yield f"{word}: {types[queue]} needs {wanted} before it, and later events stand after it"


def forbidding(conjunction: Conjunction, instance: Instance, members: tuple[Event, ...]) -> list[tuple[str, Event]]:
    """The noted events that forbid these members, each with the word of the clause that noted it."""
    return [
        (noting.clause.keyword, event)
        for noting, events in ((conjunction.noting[at], instance.noted[at]) for at in conjunction.patient)
        for event in events
        if noting.forbidden(event, members, conjunction.width)
    ]


def has_queued(instance: Instance, position: Position) -> bool:
    return any(event.position == position for queue in instance.queues for event in queue)


def waits(pending: Pending) -> str:
    return f"which waits for its deadline {time_words(pending.match.deadline)}"


def in_relation(members: tuple[Event, ...]) -> str:
    return f"in the relation [{shown(members)}]"


def shown(members: tuple[Event, ...]) -> str:
    return ", ".join(str(member.position) for member in members)


def keyless_words(event: Event, at: int) -> str:
    return f"{event.schema.attributes[at].name} is {'NULL' if event.row[at] is None else 'NaN'}"


def stands_before(event: Event) -> str:
    return f"the event at {event.position} stands before it, and no later event can change that"


def time_words(clock: int | None) -> str:
    return "unknown" if clock is None else str(jsonable(clock, Kind.TIMESTAMP))


def leaving_words(
    conjunction: Conjunction, instance: Instance | None, event: Event, entered: Sequence[int]
) -> list[tuple[int, Event, str]]:
    """What leaves since the event comes, before anything is matched: each with its queue, and why."""
    if instance is None:
        return []
    found = []
    if conjunction.clocked and event.time is not None and (instance.clock is None or event.time > instance.clock):
        for queue, events in enumerate(instance.queues):
            bound = conjunction.horizons[queue]
            for each in events:
                if bound and each.time is not None and each.time < bound.at(event.time):
                    word = "WITHIN" if bound.span_us is None else "RETAIN"
                    found.append((queue, each, f"expired ({word}) when event {event.position} came"))
    for queue, each in conjunction.displaced(instance, event, entered):
        word = "TABLE" if queue in conjunction.tables else "RETAIN"
        found.append((queue, each, f"left ({word}) when event {event.position} came"))
    return found
