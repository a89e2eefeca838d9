"""What leaves the queues of a key, event by event: by a match (DISPOSAL), or since it can be in no later relation.

    FIRST PREFIX    what stands up to the first member of its queue
    PREFIX INFIX    up to the last
    INFIX           the members
    otherwise       the members, and what stands after the first of them

An event that is in two queues and a member in one of them leaves both, except under FIRST PREFIX. Kernels have the same in
compiled/codegen/disposal.py.

Takes: queues, and the members of a match. Gives: the queues with what is left. Never: matches anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead.matching.interpreted.dead_events import Needs
from fairlead.matching.interpreted.runs import flat
from fairlead.model.events.event import Event
from fairlead.model.plans.plan import Disposal

Queues = list[list[Event]]


def dispose(queues: Queues, slots: Sequence[tuple[int, ...]], members: Sequence[Any], disposal: Disposal) -> None:
    """After a match. `slots`: those of each queue. `members`: by slot an event, or the tuple of a run."""
    positions = {member.position for member in flat(members)}
    for at, queue in enumerate(queues):
        mine = [member.position for member in flat([members[slot] for slot in slots[at]])]
        if not mine:  # an empty run
            if disposal is not Disposal.FIRST_PREFIX:
                queue[:] = [event for event in queue if event.position not in positions]
            continue
        first, last = min(mine), max(mine)
        if disposal is Disposal.FIRST_PREFIX:
            queue[:] = [event for event in queue if event.position > first]
        elif disposal is Disposal.PREFIX_INFIX:
            queue[:] = [event for event in queue if event.position > last and event.position not in positions]
        elif disposal is Disposal.INFIX:
            queue[:] = [event for event in queue if event.position not in positions]
        else:
            queue[:] = [event for event in queue if event.position < first and event.position not in positions]


def drop_dead(queues: Queues, needs: Sequence[tuple[int, tuple[Needs, ...]]], circular: bool) -> list[tuple[int, Event]]:
    """Drop events that can be in no later relation (dead_events.py). Returns those that left, each with its queue."""
    left: list[tuple[int, Event]] = []
    known = -1
    while known < len(left):
        known = len(left)
        for queue, each in needs:
            events = queues[queue]
            while events and not any(_met(queues, one, events[0]) for one in each):
                left.append((queue, events.pop(0)))
        if not circular:
            break
    return left


def _met(queues: Queues, needs: Needs, event: Event) -> bool:
    """Whether enough events precede this one."""
    return all(len(queues[at]) >= n and queues[at][n - 1].position < event.position for at, n in needs)
