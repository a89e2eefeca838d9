"""What THEN makes of queued events: which can never be a member any more.

Every event to come stands behind all that are queued. So an event that needs others in front of it, of which too few are
queued there, has no relation to come: it is dead, and so are all before it in its queue.

Takes: a branch. Gives: for each queue what its events need in front of them. Never: looks at a queue.
"""

from __future__ import annotations

from collections import Counter

from fairlead.model.plan import Branch

Needs = tuple[tuple[int, int], ...]
"""Pairs of a queue and the number of its events that must stand in front."""


def needs_in_front(branch: Branch) -> list[tuple[int, tuple[Needs, ...]]]:
    """The queues of which events can be dead, those in front first, each with the needs of its slots: an event is dead if
    no slot's needs are met. A queue of which some slot needs nothing is left out."""
    queue_of = [branch.queue_types.index(slot.type) for slot in branch.slots]
    pairs = {(a, b) for each in branch.precedences for a in each.left for b in each.right}
    found: dict[int, tuple[Needs, ...]] = {}
    for queue in range(len(branch.queue_types)):
        slots = [slot for slot, each in enumerate(queue_of) if each == queue]
        needs = [
            Counter(queue_of[a] for a, b in pairs if b == slot and queue_of[a] != queue and (b, a) not in pairs)
            for slot in slots
        ]
        if all(needs):
            found[queue] = tuple(dict.fromkeys(tuple(sorted(each.items())) for each in needs))
    in_order: list[int] = []
    while len(in_order) < len(found):
        open_queues = [queue for queue in found if queue not in in_order]
        ready = [
            queue
            for queue in open_queues
            if not any(other in open_queues for needs in found[queue] for other, _ in needs if other != queue)
        ]
        in_order += ready or open_queues  # THEN in a circle: in any order, but again and again
    return [(queue, found[queue]) for queue in in_order]


def is_circular(needs: list[tuple[int, tuple[Needs, ...]]]) -> bool:
    """Some queue needs one that comes after it: what leaves that one can make events of the first dead, so both are looked at
    until nothing leaves any more. What is kept is then a function of what was queued, not of when somebody looked."""
    order = {queue: at for at, (queue, _) in enumerate(needs)}
    return any(order.get(other, -1) > order[queue] for queue, each in needs for one in each for other, _ in one)
