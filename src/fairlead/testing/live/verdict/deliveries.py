"""The deliveries to a subscriber over all its restarts, and whether each process began at the right place.

A relation that was delivered and not acknowledged when a process died is delivered again to the next: the same relation, under
the same number. Acknowledged relations are not delivered again.

Takes: the lines of a record. Gives: deliveries by group, in the order of their numbers, and problems, in words. Never: looks at
the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from fairlead.dataclass import dataclass
from fairlead.testing.live.actors.records import Line


@dataclass(eq=False)
class DeliveredNumbers:
    """The deliveries of one group. `lines`: the first delivery of each number."""

    lines: list[Line] = field(default_factory=list)
    acked: int = 0
    before: int | None = None
    """The last number delivered to this process."""
    again: int = 0

    def take(self, line: Line) -> str | None:
        number = int(line["number"])
        first, last = (self.acked + 1, len(self.lines) + 1) if self.before is None else (self.before + 1, self.before + 1)
        if not first <= number <= last:
            return f"is given number {number} where {first} to {last} should come"
        self.before = number
        if number > len(self.lines):
            self.lines.append(line)
            return None
        self.again += 1
        known, mine = delivery_of(self.lines[number - 1]), delivery_of(line)
        return None if known == mine else f"is given {mine} as number {number}, which was {known} before"


def delivery_of(line: Line) -> str:
    """The id of the relation; with a minus if the delivery takes it back."""
    return f"{'-' if line['sign'] < 0 else ''}{line['id']}"


def given(name: str, lines: Iterable[Line]) -> tuple[dict[str, DeliveredNumbers], list[str]]:
    """By the key of the group."""
    groups: dict[str, DeliveredNumbers] = {}
    problems: list[str] = []
    for line in lines:
        if "begun" in line:
            for each in groups.values():
                each.before = None
        elif "number" in line:
            wrong = groups.setdefault(line["group"], DeliveredNumbers()).take(line)
            problems += [f"{name} {wrong}"] if wrong else []
        elif "acked" in line:
            groups[line["group"]].acked = int(line["acked"])
    return groups, problems
