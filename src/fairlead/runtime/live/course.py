"""The groups of a subscriber that are followed together, and their deliveries in one order.

The relations that all groups complete in the same blocks are sorted as docs/semantics.md defines: by the position of
completion; at one position, relations decided by deadlines come first, by deadline; then the order of the text. If events are
in an order by value, by the event of the log that released them; then the order of the text. This order is a function of the
log, wherever each group began. Each group has its own numbers, receipts and states.

Takes: opened groups that have a stream in common. Gives: batches in the one order; for a delivery, the earlier deliveries of
each group. Never: delivers what was acknowledged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from fairlead.dataclass import dataclass
from fairlead.matching.results.delivery_order import by_turn
from fairlead.model.plan import Plan
from fairlead.runtime.live.batch import Batch, DeliveryNumbers
from fairlead.runtime.live.follower import Follower, Heard
from fairlead.runtime.live.following import Following
from fairlead.runtime.live.grouping import StreamGroup
from fairlead.runtime.live.ledger import Ledger
from fairlead.transport.log.protocol import Stream


@dataclass(eq=False)
class Followed:
    """A group of the subscriber."""

    group: StreamGroup
    streams: Sequence[Stream]
    key: str
    follower: Follower
    ledger: Ledger


class Course:
    """`followed`: the groups by key, in the order of the text. `plan`: the plan of the relations that they deliver."""

    def __init__(self, plan: Plan, followed: Iterable[Followed], following: Following) -> None:
        self.plan, self.following = plan, following
        self.followed = {each.key: each for each in followed}
        self._open: deque[DeliveryNumbers] = deque()
        """Deliveries that are not acknowledged; kept only if there are several groups."""

    def batch_of(self, heard: Sequence[Heard]) -> Batch | None:
        """The relations to deliver, of those that the groups completed in the same blocks."""
        fresh = list[tuple[Heard, int]]()
        for each in heard:
            found = each.found
            known = self.followed[each.key].ledger.found(found.first, found.ids, found.digests, silent=each.silent)
            if known < len(found.relations):
                fresh.append((each, known))
        if not fresh:
            return None
        batch = self._joined(fresh)
        if len(self.followed) > 1:
            self._open.append(batch.numbering)
        return batch

    def _joined(self, fresh: Sequence[tuple[Heard, int]]) -> Batch:
        keys = tuple(each.key for each, _ in fresh)
        if len(fresh) == 1:
            ((one, count),) = fresh
            numbering = DeliveryNumbers(len(one.found.relations), keys, (one.found.first,))
            return Batch(self.plan, one.found.relations, numbering).behind(count)
        known = [count for _, count in fresh]
        by = [each.found.by for each, _ in fresh]
        together = by_turn([each.found.relations for each, _ in fresh], [each.turns for each, _ in fresh], known, by)
        firsts = tuple(each.found.first + count for each, count in fresh)
        return Batch(self.plan, together, DeliveryNumbers(len(together), keys, firsts, together.owner))

    def up_to(self, key: str, number: int) -> Mapping[str, int]:
        """By group, the number of its last delivery up to the given delivery; groups without one are absent."""
        before: dict[str, int] = {}
        for each in self._open:
            if number <= each.lasts.get(key, 0):
                place = each.place_of(key, number)
                return before | ({key: number} if place < 0 else each.lasts_of(place + 1))
            before |= each.lasts
        return {key: number}

    def acknowledge(self, numbers: Mapping[str, int]) -> None:
        """Acknowledge all deliveries up to these numbers, by group."""
        for key, number in numbers.items():
            self.followed[key].ledger.acknowledge(number)
        while self._open and all(last <= self.followed[key].ledger.book.count for key, last in self._open[0].lasts.items()):
            self._open.popleft()
