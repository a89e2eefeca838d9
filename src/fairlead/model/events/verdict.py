"""What becomes of an arriving event, and of a relation that was delivered: one set of words on every runtime."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.model.events.event import Event
from fairlead.model.events.types import Kind
from fairlead.model.events.values import jsonable


class EventVerdict(StrEnum):
    """`IN_ORDER`: it takes part; with LATE REVISE, a late event that revises does, too. `LATE`: events after it were released
    before it arrived. `REPEATED`: its source has sent it before. `REJECTED`: it fits no type. `OUT_OF_ORDER`: a publisher has
    stored it after events that depend on it. `AHEAD`: its time is too far after that at which the log stored it."""

    IN_ORDER = "in order"
    LATE = "late"
    REPEATED = "repeated"
    REJECTED = "rejected"
    OUT_OF_ORDER = "out of order"
    AHEAD = "ahead"


class RevisionVerdict(StrEnum):
    """What late events do to relations: `RETRACTED`: one that was delivered is taken back. `ADDED`: one is delivered after
    all."""

    RETRACTED = "retracted"
    ADDED = "added"


@dataclass(frozen=True)
class EventReport:
    """An event that took no part, and why. `subscriptions`: those for which it did not."""

    verdict: EventVerdict
    event: Event
    subscriptions: tuple[str, ...] = ()

    @property
    def time(self) -> str | None:
        """The event time as ISO 8601; None if its type has none."""
        return None if self.event.time is None else str(jsonable(self.event.time, Kind.TIMESTAMP))

    def to_json(self) -> dict[str, Any]:
        """The report as a dict for JSON. It has the key `verdict`, which no relation has."""
        return {
            "verdict": self.verdict.value,
            "type": self.event.type,
            "source": self.event.source,
            "sequence": None if self.event.sequence is None else int(self.event.sequence),  # it may be one of NumPy's
            "position": self.event.position.shown,
            "time": self.time,
            "subscriptions": list(self.subscriptions),
            "event": self.event.to_json(),
        }

    def __str__(self) -> str:
        """`late: Reading 12 of plc-1, 2026-01-31T10:00:00Z, position 40960`."""
        number = "" if self.event.sequence is None else f" {self.event.sequence}"
        source = "" if self.event.source is None else f" of {self.event.source}"
        time = "" if self.time is None else f", {self.time}"
        return f"{self.verdict}: {self.event.type}{number}{source}{time}, position {self.event.position}"
