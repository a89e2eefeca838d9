"""Whether the queues of a state hold only events that can still be in a relation (interpreted/dead_events.py).

Both matchers drop dead events as soon as they are dead, each at other occasions: a state that has some would be continued
differently. Events are dead from the first of a queue on, so it is enough to look at the first.

Takes: instances of one kind of branch. Gives: whether all are alive. Never: changes a queue.
"""

from __future__ import annotations

import numpy as np

from fairlead.matching.interpreted.dead_events import QueueNeeds
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.state.content import InstanceTable, Mask


def are_alive(group: InstanceTable, instances: Numbers, needs: QueueNeeds) -> bool:
    """`instances`: rows of the group. `needs`: of their branch."""
    if not needs or not len(group.words):
        return True
    lengths = group.lengths[instances]
    starts = (np.cumsum(group.lengths.reshape(-1)) - group.lengths.reshape(-1)).reshape(group.lengths.shape)[instances]

    def words_at(queue: int, place: int) -> tuple[Mask, Numbers]:
        """Whether a queue has an event at this place, and its word."""
        there = lengths[:, queue] > place
        return there, group.words[np.where(there, starts[:, queue] + place, 0)]

    for queue, slots in needs:
        queued, first = words_at(queue, 0)
        alive = ~queued
        for each in slots:
            met = np.ones(len(instances), dtype=bool)
            for other, count in each:
                there, word = words_at(other, count - 1)
                met &= there & (word < first)
            alive |= met
        if not alive.all():
            return False
    return True
