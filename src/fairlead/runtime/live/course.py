"""The groups of a subscriber that are followed together, and what it is given of them, in one order.

What all of them find in the same blocks is put in the order of the definition (docs/semantics.md): by the place of completion;
at one place what deadlines decided, by deadline; then in the order of the text. That is a function of the log, wherever each of
them began. Numbers, receipts and states are those of each group.

Takes: groups that have a stream in common, opened. Gives: batches, in the one order; of a delivery, which of each group came
before it. Never: delivers what was acknowledged.
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
    """`followed`: by key, in the order of the text. `plan`: of what they deliver."""

    def __init__(self, plan: Plan, followed: Iterable[Followed], following: Following) -> None:
        self.plan, self.following = plan, following
        self.followed = {each.key: each for each in followed}
        self._open: deque[DeliveryNumbers] = deque()
        """What is not acknowledged, where there are several."""

    def batch_of(self, heard: Sequence[Heard]) -> Batch | None:
        """What is to be delivered of what they found in the same blocks."""
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
        together = by_turn([each.found.relations for each, _ in fresh], [each.turns for each, _ in fresh], known)
        firsts = tuple(each.found.first + count for each, count in fresh)
        return Batch(self.plan, together, DeliveryNumbers(len(together), keys, firsts, together.owner))

    def up_to(self, key: str, number: int) -> Mapping[str, int]:
        """By group, the number of its last delivery up to this one of a group, where there is any."""
        before: dict[str, int] = {}
        for each in self._open:
            if number <= each.lasts.get(key, 0):
                place = each.place_of(key, number)
                return before | ({key: number} if place < 0 else each.lasts_of(place + 1))
            before |= each.lasts
        return {key: number}

    def acknowledge(self, numbers: Mapping[str, int]) -> None:
        """By group, all up to this number."""
        for key, number in numbers.items():
            self.followed[key].ledger.acknowledge(number)
        while self._open and all(last <= self.followed[key].ledger.book.count for key, last in self._open[0].lasts.items()):
            self._open.popleft()
