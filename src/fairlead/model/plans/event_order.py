"""The order that a rule text asks for: `ORDER BY at, id DESC DELAY 2 SECONDS AHEAD 1 MINUTE LATE REVISE WITHIN 1 HOUR`.

Without it, events are in the order of the input: of the log, or of the file. With it, they are ordered by their values,
whatever the order in which they arrive, and ties by their source, its sequence, type and content (order/total.py). Relations
then have ids from the identities of their members instead of positions (order/event_identity.py), so they are the same
wherever and however the events arrive.

Gives: a frozen value, and its canonical text, which is part of the digest of each subscription. Never: orders anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead.dataclass import dataclass
from fairlead.model.events.types import EventType
from fairlead.model.events.values import duration_words

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
        return schema.time_index if found is None and self.attribute.isascii() and self.attribute.upper() == TIME else found

    def __str__(self) -> str:
        return f"{self.attribute} DESC" if self.descending else self.attribute


@dataclass(frozen=True)
class EventOrder:
    """The keys by which events are ordered, and how long an event of a stream is held back for earlier ones.

    `delay_us`: how far an event may lag behind the latest; None if the text does not say. `idle_us`: each source has its own
    latest event, and the slowest counts, unless it is behind the fastest by more than this. `ahead_us`: how far the time of an
    event may be after that at which the log stored it; None if that does not matter. `revise_us`: LATE REVISE, how far before
    the frontier a late event revises what was delivered; None for LATE TAG: late events are reported, and change nothing.
    """

    keys: tuple[OrderKey, ...]
    delay_us: int | None = None
    idle_us: int | None = None
    ahead_us: int | None = None
    revise_us: int | None = None

    @property
    def descending(self) -> tuple[bool, ...]:
        return tuple(each.descending for each in self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.attribute for each in self.keys)

    @property
    def canonical(self) -> str:
        """The statement as digests have it: durations in microseconds."""
        return self._stated(lambda duration: f"{duration} MICROSECONDS")

    def __str__(self) -> str:
        """The statement: durations in the largest unit in which they are whole."""
        return self._stated(duration_words)

    def _stated(self, written: Callable[[int], str]) -> str:
        clauses = (
            ("DELAY", self.delay_us),
            ("PER SOURCE IDLE", self.idle_us),
            ("AHEAD", self.ahead_us),
            ("LATE REVISE WITHIN", self.revise_us),
        )
        said = [f"{clause} {written(duration)}" for clause, duration in clauses if duration is not None]
        return " ".join([f"ORDER BY {', '.join(map(str, self.keys))}", *said])


def by_attributes(names: Sequence[str]) -> EventOrder:
    """The order of the shorthand `order_by=`: ascending, or descending after DESC (`"price DESC"`)."""
    keys = []
    for name in names:
        attribute, _, direction = name.strip().rpartition(" ")
        descending = bool(attribute) and direction.upper() == "DESC"
        keys.append(OrderKey(attribute.strip() if descending else name, descending))
    return EventOrder(tuple(keys))
