"""The order that a rule text asks for: `ORDER BY at, id DESC DELAY 2 SECONDS`.

Without it, events are in the order of the input: of the log, or of the file. With it, they are ordered by their values,
whatever the order in which they arrive, and ties by their source, its sequence, type and content (order/total.py). Relations
then have ids from the identities of their members instead of positions (order/event_identity.py), so they are the same
wherever and however the events arrive.

Gives: a frozen value, and its canonical text, which is part of the digest of each subscription. Never: orders anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.dataclass import dataclass
from fairlead.model.types import EventType

TIME = "TIME"
"""As an order key: the event time of each type, whatever the name of the attribute."""


@dataclass(frozen=True)
class OrderKey:
    """An attribute that events are ordered by."""

    attribute: str
    descending: bool = False

    def column(self, schema: EventType) -> int | None:
        """The number of the attribute in a type; None if it has no such attribute."""
        found = schema.index.get(self.attribute)
        return schema.time_index if found is None and self.attribute.upper() == TIME else found

    def __str__(self) -> str:
        return f"{self.attribute} DESC" if self.descending else self.attribute


@dataclass(frozen=True)
class EventOrder:
    """The keys by which events are ordered, and how long an event of a stream is held back for earlier ones.

    `delay_us`: how far an event may lag behind the latest; None if the text does not say. `idle_us`: each source has its own
    latest event, and the slowest counts, unless it is behind the fastest by more than this.
    """

    keys: tuple[OrderKey, ...]
    delay_us: int | None = None
    idle_us: int | None = None

    @property
    def descending(self) -> tuple[bool, ...]:
        return tuple(each.descending for each in self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.attribute for each in self.keys)

    def __str__(self) -> str:
        """The statement, in a canonical form: durations in microseconds."""
        text = f"ORDER BY {', '.join(map(str, self.keys))}"
        if self.delay_us is not None:
            text += f" DELAY {self.delay_us} MICROSECONDS"
        if self.idle_us is not None:
            text += f" PER SOURCE IDLE {self.idle_us} MICROSECONDS"
        return text


def by_attributes(names: Sequence[str]) -> EventOrder:
    """The order of the shorthand `order_by=`: ascending, or descending after DESC (`"price DESC"`)."""
    keys = []
    for name in names:
        attribute, _, direction = name.strip().rpartition(" ")
        descending = bool(attribute) and direction.upper() == "DESC"
        keys.append(OrderKey(attribute.strip() if descending else name, descending))
    return EventOrder(tuple(keys))
