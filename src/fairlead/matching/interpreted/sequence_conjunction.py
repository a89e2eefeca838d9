"""A branch that is a sequence, compiled once and shared by all its keys; and when open paths of its keys are closed by a time.

The queues of an instance hold its rows, from the first one on that can begin a relation, each under the types that accept it.
Its search (sequence_search.py) is made of them when it is first needed, so a state needs nothing else.

Takes: rows of a key, times. Gives: relations. Never: delivers.
"""

from __future__ import annotations

import heapq
from typing import Any

from fairlead.matching.attempt import Attempt
from fairlead.matching.interpreted.instance import Instance
from fairlead.matching.interpreted.routes import Routes
from fairlead.matching.interpreted.sequence_program import SequenceProgram
from fairlead.matching.interpreted.sequence_search import LAST_TIME, SequenceRow, SequenceSearch
from fairlead.matching.outcome import Due, too_many_decided
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.limits import LIMITS
from fairlead.model.plans.plan import Branch, Subscription


class SequenceConjunction:
    def __init__(
        self,
        subscription: Subscription,
        branch: Branch,
        catalogue: Catalogue,
        attempt: Attempt | None = None,
        most: int = LIMITS.relations_per_event_max,
    ) -> None:
        """`most`: how many relations one event can decide."""
        self.attempt = attempt or Attempt()
        self.routes = Routes(branch, catalogue)
        self.program = SequenceProgram(subscription, branch, catalogue)
        self.queues, self.name, self.most = len(branch.queue_types), subscription.name, most

    def create(self) -> Instance:
        return Instance([[] for _ in range(self.queues)], [])

    def arrive(self, instance: Instance, event: Event, queues: tuple[int, ...], seen: int | None) -> list[tuple[Any, ...]]:
        """What the event decides, which is a row of these types."""
        search = self.search_of(instance)
        for at in queues:
            instance.queues[at].append(event)
        search.add((event, queues))
        return self.decide(instance, seen if self.program.timed else None)

    def decide(self, instance: Instance, told: int | None) -> list[tuple[Any, ...]]:
        """The relations; the rows that they or nothing began leave the queues."""
        found, gone = [], [0] * self.queues
        for members, left in self.search_of(instance).decided(told):
            for _, queues in left:
                for at in queues:
                    gone[at] += 1
            if members:
                found.append(members)
                if len(found) > self.most:
                    raise too_many_decided(self.name)
        for queue, count in zip(instance.queues, gone, strict=True):
            del queue[:count]
        return found

    def search_of(self, instance: Instance) -> SequenceSearch:
        if instance.search is None:
            search = instance.search = SequenceSearch(self.program, self.attempt)
            search.rows += rows_of(instance)
        found: SequenceSearch = instance.search
        return found

    def begins(self, instance: Instance) -> Position | None:
        """The place of the first row of what is open."""
        search: SequenceSearch | None = instance.search
        return search.rows[0][0].position if search is not None and search.rows else None

    def closes(self, instance: Instance) -> int:
        """The time after which the open path is closed."""
        search = self.search_of(instance)
        if search.open is None:
            return LAST_TIME
        return search.open if self.program.timed else LAST_TIME


def rows_of(instance: Instance) -> list[SequenceRow]:
    """Of the queues, by position."""
    queues: dict[Any, list[int]] = {}
    events: dict[Any, Event] = {}
    for at, queue in enumerate(instance.queues):
        for event in queue:
            events[event.position] = event
            queues.setdefault(event.position, []).append(at)
    return [(events[at], tuple(queues[at])) for at in sorted(events)]


class OpenSequences:
    """When the open paths of instances are closed: the smallest due first. An entry that is not the instance's due any more
    counts no more."""

    def __init__(self) -> None:
        self.heap: list[tuple[Due, Any]] = []
        self.due: dict[tuple[int, Any], Due] = {}

    def put(self, number: int, key: Any, begins: Position | None, closes: int) -> None:
        """Of a branch and key. `begins`: the place of the first row of what is open; None: nothing is."""
        if begins is None:
            self.due.pop((number, key), None)
            return
        due: Due = (closes, (begins,), number)
        if self.due.get((number, key)) != due:
            self.due[number, key] = due
            heapq.heappush(self.heap, (due, key))
            if len(self.heap) > 64 + 2 * len(self.due):  # a key whose limit moves with every row has left an entry for each
                self.heap = [(due, key) for (_, key), due in self.due.items()]
                heapq.heapify(self.heap)

    def first(self) -> tuple[Due, Any] | None:
        while self.heap:
            due, key = self.heap[0]
            if self.due.get((due[2], key)) == due:
                return due, key
            heapq.heappop(self.heap)
        return None
