"""The engine's matcher for one event at a time: incremental, equal to the reference on every generated case.

Takes: events in order. Gives: matches. State: only what can still match, per branch and key (see conjunction.py for why
searching from the newest event is enough, and when it is not).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from fairlead.matching.attempt import Attempt
from fairlead.matching.folded_run import FoldedRun
from fairlead.matching.interpreted.conjunction import Conjunction
from fairlead.matching.interpreted.folds.folded_conjunction import FoldedConjunction
from fairlead.matching.interpreted.folds.folded_sequence import FoldedSequence
from fairlead.matching.interpreted.instance import Held, Instance, Key, Pending
from fairlead.matching.interpreted.runs import flat, lengths
from fairlead.matching.interpreted.sequence_conjunction import OpenSequences, SequenceConjunction
from fairlead.matching.outcome import Due, Match
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.plan import Branch, Subscription


class IncrementalSubscription:
    """A running disjunction: its branches in order, an instance of each for every key, and the relations that wait for a
    deadline."""

    def __init__(self, subscription: Subscription, catalogue: Catalogue) -> None:
        self.subscription, self.catalogue = subscription, catalogue
        self.instances: list[dict[Key, Instance]] = [{} for _ in subscription.branches]
        self.pending: list[Pending] = []
        self.seen: int | None = None
        self.counts: dict[Key, int] = {}
        """With LIMIT, how many relations were delivered: of each key that it counts apart, or of the empty one."""
        self.attempt = Attempt()
        self.opens = OpenSequences()
        self.ended: list[tuple[Due, Match, Key]] = []
        """What a time has decided of a sequence, and is not yet taken."""

    @cached_property
    def conjunctions(self) -> list[Conjunction | SequenceConjunction | FoldedConjunction]:
        """Compiled at the first event: of ten thousand subscriptions most move to kernels before one arrives."""
        return [self._compiled(branch) for branch in self.subscription.branches]

    def _compiled(self, branch: Branch) -> Conjunction | SequenceConjunction | FoldedConjunction:
        if branch.folded:
            folded = FoldedConjunction if branch.sequence is None else FoldedSequence
            return folded(self.subscription, branch, self.catalogue, self.attempt)
        kind = Conjunction if branch.sequence is None else SequenceConjunction
        return kind(self.subscription, branch, self.catalogue, self.attempt)

    def arrive(self, event: Event) -> list[Match]:
        if event.time is not None:
            self.attempt.keep_seen(self, self.seen)
            self.seen = event.time if self.seen is None else max(self.seen, event.time)
        if self.is_done:
            self._drop_all()
            return []
        delivered: list[Match] = []
        for number, conjunction in enumerate(self.conjunctions):
            if isinstance(conjunction, SequenceConjunction):
                for key, route in conjunction.routes.arrivals(event):
                    delivered += self._row(number, conjunction, key, event, route.queues)
                continue
            if isinstance(conjunction, FoldedConjunction):
                for key, _ in conjunction.routes.arrivals(event):
                    if conjunction.accepts(event):
                        delivered += self._fold(number, conjunction, key, event)
                continue
            for key, route in conjunction.arrivals(event):
                entered, noted = conjunction.accept(route, event)
                if entered or noted:
                    delivered += self._arrive(number, conjunction, key, event, entered, noted)
        return delivered

    def _arrive(
        self, number: int, conjunction: Conjunction, key: Key, event: Event, entered: list[int], noted: list[int]
    ) -> Iterator[Match]:
        instances = self.instances[number]
        instance = instances.get(key)
        self.attempt.keep(self, number, key, instance)
        if instance is None:
            instance = instances[key] = conjunction.create()
        # 1. the conjunction's turn
        found = conjunction.arrive(instance, event, entered, noted)
        # 2. an absence is decided by the events noted up to its completion: before any is forgotten
        for members in found:
            yield from self._complete(number, conjunction, key, instance, members)
        # 3. keep only events that can still match
        self._forget(number, conjunction, key, instance)
        if instance.is_empty():
            del instances[key]

    def _row(
        self, number: int, conjunction: SequenceConjunction, key: Key, event: Event, queues: tuple[int, ...]
    ) -> Iterator[Match]:
        """A row of a sequence."""
        instances = self.instances[number]
        instance = instances.get(key)
        self.attempt.keep(self, number, key, instance)
        if instance is None:
            instance = instances[key] = conjunction.create()
        for members in conjunction.arrive(instance, event, queues, self.seen):
            if self._admits(key):
                yield self._sequence(number, members)
        self._settle_sequence(number, conjunction, key, instance)

    def _fold(self, number: int, conjunction: FoldedConjunction, key: Key, event: Event) -> Iterator[Match]:
        """An event of a run that is folded."""
        instances = self.instances[number]
        instance = instances.get(key)
        self.attempt.keep(self, number, key, instance)
        if instance is None:
            instance = instances[key] = conjunction.create()
        run = conjunction.arrive(instance, event)
        if run is not None and self._admits(key):
            yield Match(number, (), runs=(len(run),), folded=(run,))
        if instance.is_empty():
            del instances[key]

    def _settle_sequence(self, number: int, conjunction: SequenceConjunction, key: Key, instance: Instance) -> None:
        if instance.is_empty():
            self.instances[number].pop(key, None)
        self.opens.put(number, key, conjunction.begins(instance), conjunction.closes(instance))

    def _sequence(self, number: int, members: tuple[Any, ...]) -> Match:
        (first, *_) = members
        if isinstance(first, FoldedRun):
            return Match(number, (), runs=(len(first),), folded=(first,))
        return Match(number, flat(members), runs=lengths(members) if self.subscription.branches[number].runs else None)

    def _forget(self, number: int, conjunction: Conjunction, key: Key, instance: Instance) -> None:
        conjunction.forget(instance)

    def _complete(
        self, number: int, conjunction: Conjunction, key: Key, instance: Instance, members: tuple[Any, ...]
    ) -> Iterator[Match]:
        """Deliver now, or wait for the deadline."""
        if conjunction.search.runs is not None:
            if self._admits(key):
                yield Match(number, flat(members), runs=lengths(members))
            return
        if not conjunction.waiting:
            if self._admits(key):
                yield Match(number, members)
            return
        deadline = max((members[each.anchors[0]].time or 0) + (each.apart_us or 0) for each in conjunction.waiting)
        match = Match(number, members, deadline)
        if conjunction.is_forbidden(instance, members):
            return
        if self.seen is not None and self.seen > deadline:
            if self._admits(key):
                yield match
            return
        pending = Pending((deadline, tuple(member.position for member in members), number), match, key)
        heapq.heappush(self.pending, pending)
        instance.pending.append(pending)

    def _admits(self, key: Key) -> bool:
        """Whether LIMIT allows one more relation of the key; it is then counted."""
        limit = self.subscription.limit
        if limit is None:
            return True
        counted = key if limit.per_key else ()
        count = self.counts.get(counted, 0)
        if count >= limit.count:
            return False
        self.attempt.keep_count(self, counted, count)
        self.counts[counted] = count + 1
        return True

    @property
    def is_done(self) -> bool:
        """Nothing more is delivered: LIMIT counts all relations, and is reached."""
        limit = self.subscription.limit
        return limit is not None and not limit.per_key and self.counts.get((), 0) >= limit.count

    def _drop_all(self) -> None:
        """What is queued and waits can no longer be delivered."""
        for number, instances in enumerate(self.instances):
            for key, instance in instances.items():
                self.attempt.keep(self, number, key, instance)
            instances.clear()
        self.pending, self.opens, self.ended = [], OpenSequences(), []

    def tell(self, time: int) -> None:
        self.seen = time if self.seen is None else max(self.seen, time)

    def next_due(self) -> Due | None:
        if self.is_done:
            return None
        if self.ended:
            return self.ended[0][0]
        opens = self.opens.first()
        if opens is not None and (not self.pending or opens[0] < self.pending[0].due):
            return opens[0]
        return self.pending[0].due if self.pending else None

    def take_due(self) -> Match | None:
        opens = None if self.ended else self.opens.first()
        if opens is not None and (not self.pending or opens[0] < self.pending[0].due):
            self._close(*opens)
            if not self.ended:
                return None
        if self.ended:
            _, match, key = self.ended.pop(0)
            return match if self._admits(key) else None
        pending = heapq.heappop(self.pending)
        number, key = pending.match.branch, pending.key
        instances = self.instances[number]
        instance = instances[key]
        self.attempt.keep(self, number, key, instance)
        instance.pending.remove(pending)
        if instance.is_empty():
            del instances[key]
        return pending.match if not pending.cancelled and self._admits(key) else None

    def _close(self, due: Due, key: Key) -> None:
        """The time of a due has passed."""
        number = due[2]
        conjunction, instance = self.conjunctions[number], self.instances[number][key]
        assert isinstance(conjunction, SequenceConjunction)
        self.attempt.keep(self, number, key, instance)
        self.ended += [(due, self._sequence(number, each), key) for each in conjunction.decide(instance, due[0] + 1)]
        self._settle_sequence(number, conjunction, key, instance)

    def clear(self) -> None:
        """Forget everything, after the state was moved."""
        self.instances, self.pending, self.seen, self.counts = [{} for _ in self.subscription.branches], [], None, {}
        self.opens, self.ended = OpenSequences(), []

    def held(self) -> Held:
        """The state itself, not a copy."""
        return Held([{} for _ in self.instances] if self.is_done else self.instances, self.seen, self.counts)

    def restore(self, held: Held) -> None:
        self.instances, self.counts = held.instances, held.counts
        self.settle(held.seen)

    def put_back(self, number: int, key: Key, instance: Instance | None) -> None:
        if instance is None:
            self.instances[number].pop(key, None)
        else:
            self.instances[number][key] = instance

    def put_back_count(self, key: Key, count: int) -> None:
        if count:
            self.counts[key] = count
        else:
            self.counts.pop(key, None)

    def settle(self, seen: int | None) -> None:
        self.seen = seen
        self.pending = [each for instances in self.instances for instance in instances.values() for each in instance.pending]
        heapq.heapify(self.pending)
        self.opens, self.ended = OpenSequences(), []
        for number, branch in enumerate(self.subscription.branches):
            for key, instance in [*self.instances[number].items()] if branch.sequence is not None else ():
                conjunction = self.conjunctions[number]
                assert isinstance(conjunction, SequenceConjunction)
                conjunction.decide(instance, seen if branch.timed else None)  # nothing that was not decided before
                self._settle_sequence(number, conjunction, key, instance)
