"""One event in the order: its type, its values, its source and its position.

`row` holds the canonical values in the order of the type's attributes (see values.py); `values` and indexing return them as
users know them. `Places` assigns the positions of derived events, which stand beside a logged one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fairlead.errors import UnsupportedError
from fairlead.model.events.nested_values import inner
from fairlead.model.events.position import Position
from fairlead.model.events.types import EventType
from fairlead.model.events.values import jsonable, shown
from fairlead.model.limits import LIMITS
from fairlead.model.relations.identity import position_word


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its type, its values, its position in the order, and the source and sequence that its publisher gave it."""

    schema: EventType
    row: tuple[Any, ...]
    position: Position
    time: int | None = None
    source: str | None = None
    sequence: int | None = None
    identity: tuple[int, int] | None = None
    """What it is, independent of its place, if the events are in an order by value (order/event_identity.py)."""

    @property
    def words(self) -> tuple[int, ...]:
        """What it contributes to the ids of relations: its identity, or else its position."""
        return (position_word(self.position),) if self.identity is None else self.identity

    @property
    def type(self) -> str:
        """The name of the event type."""
        return self.schema.name

    def raw(self, name: str) -> Any:
        """The canonical value of an attribute, or of a field of one by its path."""
        at = self.schema.index.get(name)
        return self.row[at] if at is not None else inner(self.row, self._place(name))

    def _place(self, name: str) -> tuple[int, ...]:
        place = self.schema.place(name)
        if not place:
            raise KeyError(name)
        return place

    @property
    def values(self) -> dict[str, Any]:
        """The values by attribute, as Python objects."""
        return {each.name: shown(value, each.type) for each, value in zip(self.schema.attributes, self.row, strict=True)}

    def __getitem__(self, name: str) -> Any:
        return shown(inner(self.row, self._place(name)), self.schema.type_of(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.schema.index)

    def to_json(self) -> dict[str, Any]:
        """The event as a dict for JSON."""
        return {"type": self.type} | {
            each.name: jsonable(value, each.type) for each, value in zip(self.schema.attributes, self.row, strict=True)
        }

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"{self.type}({values})@{self.position}"


def too_many(major: int) -> UnsupportedError:
    """The places beside an event do not suffice."""
    problem = f"more than {LIMITS.derived_per_event_max:,} derived events that subscriptions read would be beside event {major}"
    fix = "send heartbeats more often, so that fewer deadlines pass at once, or add a condition to the rule that emits them"
    return UnsupportedError("U004", problem, fix)


class Places:
    """The places beside one logged event, in increasing order (position.py has the numbering): first those before the event,
    then its own, then those after it."""

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
