"""Order is a type: the place of an event in the one agreed order.

A position is the pair (major, minor). `major` is assigned once, by the log or by counting a finite input from 0. `minor` is 0
for the event itself. Derived events are beside a logged event, in the order of their derivation:

    minor  1, 2, 3 …                 directly after it: relations that it completed
    minor  -D, -D+1, … (D = limit)   directly before it: absences whose deadline it passed

Users see plain integers for logged events; a derived event's position prints as ``7+1`` or ``7-1``.
"""

from __future__ import annotations

from typing import NamedTuple

from fairlead.model.limits import LIMITS


class Position(NamedTuple):
    """The position of an event in the order. `minor` is 0 for an event of the input; derived events stand beside it."""

    major: int
    minor: int = 0

    @property
    def shown(self) -> int | str:
        """What users see: an int for a logged event, a string for a derived one."""
        if self.minor == 0:
            return self.major
        if self.minor > 0:
            return f"{self.major}+{self.minor}"
        return f"{self.major}-{self.minor + LIMITS.derived_per_event_max + 1}"

    def __str__(self) -> str:
        return str(self.shown)


def parse_position(shown: int | str) -> Position:
    """The inverse of `Position.shown`."""
    if isinstance(shown, int):
        return Position(shown)
    for sign, base in (("+", 0), ("-", -LIMITS.derived_per_event_max - 1)):
        major, found, minor = shown.partition(sign)
        if found:
            return Position(int(major), base + int(minor))
    return Position(int(shown))
