"""Assigns the places beside one logged event, in increasing order (see position.py for the numbering)."""

from __future__ import annotations

from dataclasses import replace

from fairlead.errors import UnsupportedError
from fairlead.model.event import Event
from fairlead.model.limits import LIMITS
from fairlead.model.position import Position


def too_many(major: int) -> UnsupportedError:
    """The places beside an event do not suffice."""
    problem = f"more than {LIMITS.derived_per_event_max:,} derived events that subscriptions read would be beside event {major}"
    fix = "send heartbeats more often, so that fewer deadlines pass at once, or add a condition to the rule that emits them"
    return UnsupportedError("U004", problem, fix)


class Places:
    """First the places before the event, then its own, then those after it."""

    def __init__(self, major: int) -> None:
        self.major = major
        self.minor = -LIMITS.derived_per_event_max - 1

    def free(self) -> Position:
        """The next free place."""
        return Position(self.major, self.minor + 1)

    def settle(self, event: Event) -> Event:
        """The event at its place: a logged event at its own, a derived one at the next free one."""
        if not event.schema.derived:
            self.minor = 0
            return event
        place = self.free()
        if place.minor == 0 or place.minor > LIMITS.derived_per_event_max:
            raise too_many(self.major)
        self.minor = place.minor
        return replace(event, position=place)
