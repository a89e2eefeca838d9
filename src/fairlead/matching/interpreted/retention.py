"""What leaves a queue of a key when an event enters it: by RETAIN, or from a TABLE. (What leaves by the clock: conjunction.py.)

Takes: a queue and an event. Gives: the queue with room for the event, or with it. Never: matches anything.
"""

from __future__ import annotations

from typing import Any

from fairlead.dataclass import dataclass
from fairlead.model.events.event import Event
from fairlead.model.plans.retention import Retention


def make_room(queue: list[Event], bound: Retention | None) -> None:
    """For one event more."""
    if bound is None or bound.count is None or len(queue) < bound.count:
        return
    del queue[: len(queue) if bound.batch else len(queue) + 1 - bound.count]


@dataclass(frozen=True)
class LastEvents:
    """A queue with the last event of each key."""

    key: tuple[str, ...]

    def row(self, event: Event) -> tuple[Any, ...]:
        return tuple(map(event.raw, self.key))

    def accepts(self, event: Event) -> bool:
        """Nothing in the key of the event is NULL or NaN."""
        return all(value is not None and value == value for value in self.row(event))

    def put(self, queue: list[Event], event: Event) -> None:
        row = self.row(event)
        at = next((at for at, each in enumerate(queue) if self.row(each) == row), None)
        if at is not None:
            del queue[at]
        queue.append(event)
