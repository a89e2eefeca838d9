"""Assigns the places beside one logged event, in increasing order (see position.py for the numbering)."""

from __future__ import annotations

from dataclasses import replace

from fairlead.errors import require
from fairlead.model.event import Event
from fairlead.model.limits import LIMITS
from fairlead.model.position import Position


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
        require(place.minor not in (0, LIMITS.derived_per_event_max), "too many derived events beside one", place=place)
        self.minor = place.minor
        return replace(event, position=place)
