"""A folded run, event by event: what is kept of it, and what its aggregates come to.

    add              an event that enters the run
    value            an aggregate, equal to `functions.aggregate` over all events that were added
    representatives  the events that are kept: adding them alone, in their order, to an empty run finds all of them again, so
                     states have these and the numbers (`numbers`, `set_numbers`)

Takes: events in their order. Gives: values, and events that stand for the others. Never: decides when the run is complete.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from fairlead.matching.expressions.functions import in_range
from fairlead.model.events.event import Event
from fairlead.model.events.types import Kind
from fairlead.model.events.values import DECIMAL_CONTEXT
from fairlead.model.expressions.expression import DISTINCT, Aggregate
from fairlead.model.plans.folding import HALF, HEAD, Folding, Key, Total
from fairlead.model.relations.identity import MASK, Lanes, rolled

NAN_BITS = 0x7FF8000000000000


class FoldedRun:
    """`lanes`: of the id, rolled up to the last event. `events`: by role (`Folding.roles`), None for an extreme of NULLs."""

    __slots__ = ("count", "different", "events", "folding", "lanes", "totals")

    def __init__(self, folding: Folding, lanes: Lanes) -> None:
        self.folding, self.lanes, self.count = folding, lanes, 0
        self.events: dict[str | Key, Event | None] = dict.fromkeys(folding.roles)
        self.totals: dict[Key, list[Any]] = {each.key: [0, 0.0 if each.is_double else 0] for each in folding.totals}
        """How many values were not NULL, and what they come to; DECIMALs as whole numbers at their scale."""
        self.different: dict[str, dict[Any, Event]] = {each: {} for each in folding.different}

    def copy(self) -> FoldedRun:
        made = FoldedRun(self.folding, self.lanes)
        made.count, made.events = self.count, {**self.events}
        made.totals = {key: [*each] for key, each in self.totals.items()}
        made.different = {name: {**each} for name, each in self.different.items()}
        return made

    def __len__(self) -> int:
        return self.count

    @property
    def first(self) -> Event:
        return self._role("first")

    @property
    def last(self) -> Event:
        return self._role("last")

    @property
    def latest(self) -> int | None:
        """The largest time, where it is kept."""
        event = self.events.get("latest")
        return None if event is None else event.time

    def _role(self, role: str) -> Event:
        event = self.events[role]
        assert event is not None
        return event

    # An event

    def add(self, event: Event) -> None:
        for word in event.words:
            self.lanes = rolled(self.lanes, word)
        self.count += 1
        self._keep(event)
        for each in self.folding.totals:
            value = event.raw(each.attribute)
            if value is not None:
                _add(each, self.totals[each.key], value)

    def _keep(self, event: Event) -> None:
        """The events that stand for others."""
        events = self.events
        if events["first"] is None:
            events["first"] = event
        events["last"] = event
        if self.folding.timed and event.time is not None and (self.latest is None or event.time > self.latest):
            events["latest"] = event
        for key in self.folding.extremes:
            value = event.raw(key[1])
            if value is not None:
                known = events[key]
                if known is None or _is_better(key[0], value, known.raw(key[1])):
                    events[key] = event
        for attribute, values in self.different.items():
            value = event.raw(attribute)
            if value is not None:
                values.setdefault(None if value != value else value, event)

    # What is read

    def value(self, node: Aggregate) -> Any:
        if node.attribute is None:
            return self.count
        key = node.function, node.attribute
        if node.function in ("first", "last"):
            return self._role(node.function).raw(node.attribute)
        if key in self.events:
            event = self.events[key]
            return None if event is None else event.raw(node.attribute)
        if node.function == DISTINCT:
            return len(self.different[node.attribute])
        known, total = self.totals[key]
        of = next(each for each in self.folding.totals if each.key == key)
        return value_of_total(of, known, total, node.kind)

    # A state

    def representatives(self) -> list[Event]:
        kept = [event for event in self.events.values() if event is not None]
        kept += [event for values in self.different.values() for event in values.values()]
        return [event for _, event in sorted({event.position: event for event in kept}.items())]

    def numbers(self) -> list[int]:
        """Of 64 bits, with a sign."""
        made = [self.count, *self.lanes]
        for each in self.folding.totals:
            known, total = self.totals[each.key]
            made += [known] if each.width == 1 else [known, *split(each, total)]
        return [number - (1 << 64) if number >> 63 == 1 else number for number in made]

    def set_numbers(self, numbers: Sequence[int]) -> None:
        """In place of what the representatives come to."""
        self.count, self.lanes = numbers[0], (numbers[1] & MASK, numbers[2] & MASK)
        at = HEAD
        for each in self.folding.totals:
            known, *parts = numbers[at : at + each.width]
            self.totals[each.key] = [known, joined(each, parts) if parts else 0]
            at += each.width


def _add(of: Total, sums: list[Any], value: Any) -> None:
    known, total = sums
    sums[0] = known + 1
    if of.function == "count":
        return
    if of.is_double:
        sums[1] = float(value) if not known else total + float(value)  # not 0 + x: that would lose the sign of -0.0
    else:
        sums[1] = total + (int(value.scaleb(of.type.scale, DECIMAL_CONTEXT)) if of.type.kind is Kind.DECIMAL else value)


def _is_better(function: str, value: Any, known: Any) -> bool:
    """NaN is both: it propagates."""
    if known != known:
        return False
    return bool(value != value or (value < known if function == "min" else value > known))


def split(of: Total, total: Any) -> list[int]:
    """What a sum is in numbers of 64 bits. All NaNs are one."""
    if of.is_double:
        return [NAN_BITS if total != total else struct.unpack("<q", struct.pack("<d", total))[0]]
    return [total >> HALF, total & ((1 << HALF) - 1)]


def joined(of: Total, parts: Sequence[int]) -> Any:
    if of.is_double:
        return struct.unpack("<d", struct.pack("<q", parts[0]))[0]
    return (parts[0] << HALF) + parts[1]


def value_of_total(of: Total, known: int, total: Any, kind: Kind) -> Any:
    """What users are given."""
    if of.function == "count":
        return known
    if not known:
        return None
    if of.function == "avg":
        return math.nan if total != total else total / known
    if of.type.kind is Kind.DECIMAL:
        return Decimal(total).scaleb(-of.type.scale, DECIMAL_CONTEXT)
    return math.nan if total != total else in_range(total, kind)
