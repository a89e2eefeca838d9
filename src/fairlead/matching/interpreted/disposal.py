"""What leaves the queues of a key, event by event: by matches (DISPOSAL, KEEP), or since it can be in no later relation.

    FIRST PREFIX     what stands up to the first member of its queue
    PREFIX INFIX     up to the last
    ADVANCE n        up to the n-th
    INFIX            the members
    INFIX POSTFIX    the members, and what stands after the first of them
    UPTO x           what stands before x, in every queue
    NONE             nothing

Members that KEEP names stay, and do not count as members; tables stay as they are. An event that is in two queues and a member
in one of them leaves both under PREFIX INFIX, INFIX and INFIX POSTFIX. Kernels have the same in compiled/codegen/disposal.py
and union_disposal.py.

Takes: queues, and the members of the matches of an event. Gives: the queues with what is left. Never: matches anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairlead.matching.interpreted.dead_events import Needs
from fairlead.matching.interpreted.runs import flat
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch, Subscription

Queues = list[list[Event]]


class Disposer:
    """The disposal of a branch."""

    def __init__(self, subscription: Subscription, branch: Branch) -> None:
        self.disposal, self.advance = subscription.disposal_of(branch), subscription.advance
        self.kept, self.upto, self.tables = branch.kept, branch.upto, branch.table_queues
        stay = {*branch.kept, *branch.read}
        self.slots = [tuple(slot for slot in branch.slots_of_type[name] if slot not in stay) for name in branch.queue_types]
        """Those of each queue, without those of KEEP."""
        self.everywhere = self.disposal in (Disposal.PREFIX_INFIX, Disposal.INFIX, Disposal.INFIX_POSTFIX)

    def dispose(self, queues: Queues, found: Sequence[tuple[Any, ...]]) -> None:
        """After the matches of one event; each has by slot an event, or the tuple of a run."""
        if self.disposal is Disposal.NONE:
            return
        kept = _positions(found, self.kept)
        gone = {position for slots in self.slots for position in _positions(found, slots)} - kept
        for at, (queue, slots) in enumerate(zip(queues, self.slots, strict=True)):
            if at in self.tables:
                continue
            mine = sorted(_positions(found, slots))
            leaves = self._leaving(mine, found)
            queue[:] = [
                event
                for event in queue
                if event.position in kept or not (leaves(event.position) or (self.everywhere and event.position in gone))
            ]

    def _leaving(self, mine: list[Position], found: Sequence[tuple[Any, ...]]) -> Callable[[Position], bool]:
        """Which positions of a queue leave, beside those of the members. `mine`: its members, in order."""
        if self.upto:
            places = _positions(found, self.upto)
            place = min(places) if self.disposal is Disposal.UPTO_FIRST else max(places)
            return lambda position: position < place
        if not mine or self.disposal is Disposal.INFIX:
            return lambda position: False
        if self.disposal is Disposal.INFIX_POSTFIX:
            return lambda position: position >= mine[0]
        count = {Disposal.FIRST_PREFIX: 1, Disposal.ADVANCE: self.advance}.get(self.disposal, len(mine))
        end = mine[min(count, len(mine)) - 1]
        return lambda position: position <= end


def _positions(found: Sequence[tuple[Any, ...]], slots: Iterable[int]) -> set[Position]:
    return {member.position for members in found for member in flat([members[slot] for slot in slots])}


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
