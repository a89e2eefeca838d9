"""The effect of an order of members on queued events: which can never be a member any more.

Every later event follows all that are queued. So an event that needs others before it, of which too few are queued there, can
be in no later relation: it is dead, and so are all before it in its queue. Beside tables, which complete nothing, the only
other event of a pattern is in a relation when it arrives or never: then its queue is always empty.

Takes: a branch. Gives: for each queue what its events need before them. Never: looks at a queue.
"""

from __future__ import annotations

from collections import Counter

from fairlead.model.plans.plan import Branch

Needs = tuple[tuple[int, int], ...]
"""Pairs of a queue and the number of its events that must precede."""
QueueNeeds = tuple[tuple[int, tuple[Needs, ...]], ...]
"""By queue, the needs of its slots."""


def needs_in_front(branch: Branch) -> QueueNeeds:
    """The queues whose events can be dead, earlier ones first, each with the needs of its slots: an event is dead if no slot's
    needs are met. A queue with a slot that needs nothing is omitted, and so is one whose dead events matter to RETAIN. With no
    needs at all, which nothing meets, an event is dead once it was matched."""
    queue_of = [branch.queue_types.index(slot.type) for slot in branch.slots]
    counted = {branch.queue_types.index(name) for name, each in branch.retained if each.counts_all}
    pairs = set(branch.orders)
    alone = [slot for slot in range(len(branch.slots)) if slot not in branch.read]
    lonely = queue_of[alone[0]] if branch.tables and len(alone) == 1 and not branch.runs else None
    found: dict[int, tuple[Needs, ...]] = {}
    for queue in range(len(branch.queue_types)):
        if queue == lonely and queue not in counted:
            found[queue] = ()
            continue
        slots = [slot for slot, each in enumerate(queue_of) if each == queue]
        needs: list[Counter[int]] = [Counter() for _ in slots]
        for a, b in pairs:
            least = branch.runs[a].least if a in branch.runs else 1
            if least and b in slots and queue_of[a] != queue and (b, a) not in pairs:
                needs[slots.index(b)][queue_of[a]] += least
        if all(needs) and queue not in counted:
            found[queue] = tuple(dict.fromkeys(tuple(sorted(each.items())) for each in needs))
    in_order: list[int] = []
    while len(in_order) < len(found):
        open_queues = [queue for queue in found if queue not in in_order]
        ready = [
            queue
            for queue in open_queues
            if not any(other in open_queues for needs in found[queue] for other, _ in needs if other != queue)
        ]
        in_order += ready or open_queues  # orders in a circle: in any order, but repeated
    return tuple((queue, found[queue]) for queue in in_order)


def is_circular(needs: QueueNeeds) -> bool:
    """Whether some queue needs one that comes after it: events that leave that one can make events of the first dead, so both
    are checked until nothing leaves any more. The result is then a function of what was queued, not of when it was checked."""
    order = {queue: at for at, (queue, _) in enumerate(needs)}
    return any(order.get(other, -1) > order[queue] for queue, each in needs for one in each for other, _ in one)
