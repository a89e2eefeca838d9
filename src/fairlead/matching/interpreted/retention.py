"""What leaves a queue of a key when one more event enters it than RETAIN allows. (What leaves by the clock: conjunction.py.)

Takes: a queue and its bound. Gives: the queue with room for an event. Never: looks at an event.
"""

from __future__ import annotations

from fairlead.model.events.event import Event
from fairlead.model.plans.retention import Retention


def make_room(queue: list[Event], bound: Retention | None) -> None:
    if bound is None or bound.count is None or len(queue) < bound.count:
        return
    del queue[: len(queue) if bound.batch else len(queue) + 1 - bound.count]
