"""A relation: one delivered composite event. Its id is a function of the subscription and the members' positions (see
identity.py)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import jsonable, shown

PLUS, MINUS = 1, -1
"""The signs of deliveries: a relation is delivered, or one that was delivered before is taken back."""


@dataclass(frozen=True, slots=True)
class FoldedSpan:
    """Where a folded run lies in the order: its slot in the signature, and the place and time of its first and last event."""

    slot: int
    first: Position
    last: Position
    first_time: int | None = None
    last_time: int | None = None
    latest_time: int | None = field(default=None, compare=False, repr=False)
    """The largest time of its events, if it is kept."""

    def to_json(self) -> dict[str, Any]:
        """The span as a dict for JSON: times only if the events have them."""
        made: dict[str, Any] = {"slot": self.slot, "first": self.first.shown, "last": self.last.shown}
        for name, time in (("first_time", self.first_time), ("last_time", self.last_time)):
            if time is not None:
                made[name] = jsonable(time, Kind.TIMESTAMP)
        return made


@dataclass(frozen=True, slots=True)
class Relation:
    """A composite event: the events that matched a subscription together, its members.

    Members are in signature order: by type name, then by instance number.
    """

    subscription: str
    branch: int
    id: str
    members: tuple[Event, ...]
    completed_at: Position
    """The place in the order at which it was delivered: the completing event's, or for an absence the place just
    before the event that passed the deadline."""
    emitted_type: str | None = None
    emitted_row: tuple[tuple[str, DataType, Any], ...] = field(default=())
    runs: tuple[int, ...] | None = None
    """How many events each slot holds, in this order; None if the pattern tells it. They are the members, but for folded
    runs."""
    folded: tuple[FoldedSpan, ...] = ()
    """Where the runs that FOLD names lie: their events are not among the members."""
    sign: int = PLUS
    """1, or -1 if this delivery takes the relation back. Both have the same id."""
    early: bool = field(default=False, repr=False)
    """Delivered live before the delay of ORDER BY has passed; it is delivered again when that has, unless it was taken back."""

    @property
    def latest_time(self) -> int | None:
        """The largest time of its members, and of the events of folded runs where an emitted event needs it."""
        times = [*(member.time for member in self.members), *(each.latest_time for each in self.folded)]
        return max((time for time in times if time is not None), default=None)

    @property
    def positions(self) -> tuple[int | str, ...]:
        """The positions of the members."""
        return tuple(member.position.shown for member in self.members)

    @property
    def events(self) -> tuple[Event, ...]:
        """The members as events."""
        return self.members

    @property
    def emitted(self) -> dict[str, Any]:
        """The attributes of the derived event; empty without EMIT."""
        return {name: shown(value, form) for name, form, value in self.emitted_row}

    def taken_back(self) -> Relation:
        """The delivery that takes this one back."""
        return replace(self, sign=MINUS)

    def to_json(self) -> dict[str, Any]:
        """The relation as a dict for JSON. It has runs only if the pattern does not tell them, folded only if a run is, and a
        sign only if the delivery takes the relation back, and `early` only if it is early."""
        made = {
            "subscription": self.subscription,
            "id": self.id,
            "branch": self.branch,
            "completed_at": self.completed_at.shown,
            "positions": list(self.positions),
            "events": [member.to_json() for member in self.members],
            "emitted": {name: jsonable(value, form) for name, form, value in self.emitted_row},
        }
        if self.runs is not None:
            made["runs"] = list(self.runs)
        if self.folded:
            made["folded"] = [each.to_json() for each in self.folded]
        if self.sign != PLUS:
            made["sign"] = self.sign
        if self.early:
            made["early"] = True
        return made
