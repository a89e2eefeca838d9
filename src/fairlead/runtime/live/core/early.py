"""Early deliveries: what is known now, before DELAY has passed, with corrections as soon as they are known.

What a subscriber has been given early is at any time what is confirmed and what is open: relations among the events that are
held, matched now (event_time/tentative_run.py). So there are two steps:

    step     after blocks are fed: what they confirm is no longer open. What was not open is delivered early first
    settle   when nothing more waits to be read: what is open is compared with what is tentative now. Relations that are gone
             are taken back, new ones are delivered

However many blocks were fed in between, they are settled once. So a subscriber that is behind does not find relations that the
next blocks would take back, and catches up. Which states in between are shown depends on how blocks arrive; what is open after
`settle` does not.

Subscribers of one client with the same lineage use the same tentative run. It may have been given more than some of them have
read, then they are given early what follows from blocks that they are about to read.

Takes: the matcher of a part, its batches, and what it has confirmed. Gives: early deliveries, some of which take relations
back; which subscriptions are certain at once. Never: changes what the matcher finds; is in a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, overload
from weakref import ReferenceType, ref

import numpy as np
import numpy.typing as npt

from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.delivery_order import Interleaved, ids_of, signs_of
from fairlead.model.events.columns import Columns
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.plans.plan import Plan, Subscription
from fairlead.model.relations.identity import Signs, Words
from fairlead.model.relations.relation import MINUS, PLUS, Relation
from fairlead.runtime.event_time import EventTimeMatcher
from fairlead.runtime.event_time.id_differences import differences, places_without
from fairlead.runtime.event_time.tentative_run import (
    NOTHING_TENTATIVE,
    RUN_LIMITS,
    ArrivedBatch,
    RunLimits,
    TentativeRelations,
    TentativeRun,
)
from fairlead.runtime.live.core.routes import reads_no_position, reads_only_events

Check = Callable[[], None]
Turn = Callable[[Check | None], AbstractContextManager[None]]


def no_turns(check: Check | None) -> AbstractContextManager[None]:
    """Where there is one thread."""
    return nullcontext()


class EarlyRelations(Sequence[Relation]):
    """Early deliveries, in parts with one sign each. They become objects on access."""

    def __init__(self, *parts: tuple[Interleaved, int]) -> None:
        self._parts = parts
        self._ends = np.cumsum([len(some) for some, _ in parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __iter__(self) -> Iterator[Relation]:
        for some, sign in self._parts:
            for each in some:
                yield replace(each, early=True, sign=sign)

    @overload
    def __getitem__(self, at: int) -> Relation: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Relation]: ...
    def __getitem__(self, at: int | slice) -> Relation | Sequence[Relation]:
        wanted = range(len(self))[at]
        if isinstance(wanted, int):
            part = int(np.searchsorted(self._ends, wanted, "right"))
            some, sign = self._parts[part]
            return replace(some[wanted - int(self._ends[part]) + len(some)], early=True, sign=sign)
        if wanted.step < 0:
            return [self[each] for each in wanted]
        places = np.array(wanted, dtype=np.int64)
        borders = np.searchsorted(places, [0, *self._ends])
        begins = [0, *self._ends[:-1]]
        chosen = [places[low:high] - begin for low, high, begin in zip(borders, borders[1:], begins, strict=False)]
        return EarlyRelations(*((_chosen(some, mine), sign) for (some, sign), mine in zip(self._parts, chosen, strict=True)))


class LineageRuns:
    """The tentative runs of one lineage, as long as a subscriber uses them. `turn`: matches may run in threads
    (group_task.py), one at a time works on these runs."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._runs: list[ReferenceType[TentativeRun]] = []

    def __iter__(self) -> Iterator[TentativeRun]:
        return iter([run for each in self._runs if (run := each()) is not None])

    def add(self, run: TentativeRun) -> None:
        self._runs = [*(ref(each) for each in self if not each.broken), ref(run)]


class SharedRuns:
    """The tentative runs of one client, by lineage. `turns`: makes what threads take turns by."""

    def __init__(self, turns: Callable[[], Turn] = lambda: no_turns) -> None:
        self._turns = turns
        self._runs: dict[Hashable, LineageRuns] = {}

    def of(self, lineage: Hashable) -> LineageRuns:
        if lineage not in self._runs:
            self._runs[lineage] = LineageRuns(self._turns())
        return self._runs[lineage]


class EarlyMatcher:
    """`first`: the matcher that waits. `runs`: those of its lineage. `known`: so many of the next deliveries the subscriber has
    acknowledged; nothing is early before the rest. `check`: ends a long search by an exception. `arguments`: those of engines.
    `open`: delivered early, neither confirmed nor taken back."""

    def __init__(
        self,
        first: EventTimeMatcher,
        runs: LineageRuns | None = None,
        *,
        known: int = 0,
        check: Check | None = None,
        limits: RunLimits = RUN_LIMITS,
        **arguments: Any,
    ) -> None:
        self._first, self._runs = first, LineageRuns(no_turns) if runs is None else runs
        self._check, self._limits, self._arguments = check, limits, arguments
        self.open = NOTHING_TENTATIVE
        self.run: TentativeRun | None = None
        self._given = first.buffer.last
        self._arrived: list[ArrivedBatch] = []
        self._known = known

    def step(self, columns: Columns, stored: Numbers | None, confirmed: Sequence[Relation]) -> Sequence[Relation]:
        """The last batch of the first matcher, and what it has delivered for it."""
        repeated = min(self._known, len(confirmed))
        self._known -= repeated
        if self._known:
            self._given = self._first.buffer.last
            return ()
        self._arrived.append((columns, stored))
        confirmed = confirmed[repeated:]
        if not len(confirmed):
            return ()
        ids, signs = ids_of(confirmed), signs_of(confirmed)
        plus = np.arange(len(ids)) if signs is None else np.flatnonzero(_last_of_each(ids, signs, PLUS))
        minus = np.zeros(0, dtype=np.int64) if signs is None else np.flatnonzero(_last_of_each(ids, signs, MINUS))
        before = np.concatenate([self.open.ids, ids[minus]])
        fresh = plus[places_without(ids[plus], before)]
        left = places_without(self.open.ids, ids[plus])
        gone = minus[places_without(ids[minus], np.concatenate([ids[plus], self.open.ids[left]]))]
        brief = np.zeros(0, dtype=np.int64) if signs is None else _passing(ids, signs)
        passing = _chosen(confirmed, brief[places_without(ids[brief], self.open.ids)])
        if len(left) < len(self.open):
            self.open = TentativeRelations(_chosen(self.open.relations, left), self.open.ids[left])
        parts = (passing, PLUS), (passing, MINUS), (_chosen(confirmed, gone), MINUS), (_chosen(confirmed, fresh), PLUS)
        return EarlyRelations(*parts)

    @property
    def is_settled(self) -> bool:
        return bool(self._known) or (self.run is not None and not self._arrived)

    def settle(self) -> Sequence[Relation]:
        """What differs from what is open, after all batches so far."""
        if self.is_settled:
            return ()
        frontier = self._first.buffer.frontier.at
        with self._runs.turn(self._check):
            self.run = self._brought_up(frontier)
            before, now = self.open, self.run.after(frontier)
        self._arrived, self._given = [], self._first.buffer.last
        gone, fresh = differences(before.ids, now.ids)
        self.open = now
        return EarlyRelations((_chosen(before.relations, gone), MINUS), (_chosen(now.relations, fresh), PLUS))

    def _brought_up(self, frontier: int) -> TentativeRun:
        """A run that has been given what the first matcher has, or more."""
        serving = [each for each in self._runs if each.serves(frontier, self._given)]
        run = max(serving, key=lambda each: each.last, default=None)
        if run is not None and run.advance(self._arrived, self._check):
            return run
        made = TentativeRun(self._first, limits=self._limits, **self._arguments)
        self._runs.add(made)
        return made


def _last_of_each(ids: Words, signs: Signs, sign: int) -> npt.NDArray[np.bool_]:
    """Which deliveries are the last ones of their relation, with this sign, if that is not what it was before them: a relation
    that is delivered and taken back among them is neither."""
    made = np.zeros(len(ids), dtype=bool)
    for first, last in _first_and_last(ids):
        made[last] = signs[last] == signs[first] == sign
    return made


def _passing(ids: Words, signs: Signs) -> Numbers:
    """The first deliveries of relations that are delivered and taken back among these."""
    ends = _first_and_last(ids)
    return np.array([first for first, last in ends if signs[first] == PLUS and signs[last] == MINUS], dtype=np.int64)


def _first_and_last(ids: Words) -> list[tuple[int, int]]:
    """Of each relation, the places of its first and its last delivery."""
    first, last = dict[bytes, int](), dict[bytes, int]()
    for at, each in enumerate(ids):
        first.setdefault(each.tobytes(), at)
        last[each.tobytes()] = at
    return [(at, last[name]) for name, at in first.items()]


def _chosen(relations: Sequence[Relation], places: Numbers) -> Interleaved:
    return Interleaved((relations,), np.zeros(len(places), dtype=np.int32), places)


def reordered(plan: Plan, order: EventOrder) -> Plan:
    """The plan whose events wait for longer or shorter: it finds relations with the same ids."""
    return replace(plan, subscriptions=tuple(replace(each, order=order) for each in plan.subscriptions))


def certain_at_once(plan: Plan, subscription: Subscription) -> bool:
    """Whether no other event can change a relation of the subscription: each is one event, and is decided by that event, and so
    is what it emits."""
    return (
        not plan.derived_types(subscription)
        and subscription.limit is None
        and (not subscription.is_clocked or _in_the_order_of_times(plan, subscription))
        and all(
            len(branch.slots) == 1
            and not branch.runs
            and branch.sequence is None
            and not branch.noting
            and all(reads_only_events(each.condition) for each in branch.predicates)
            and (branch.emission is None or all(reads_no_position(value) for _, value in branch.emission.fields))
            for branch in subscription.branches
        )
    )


def _in_the_order_of_times(plan: Plan, subscription: Subscription) -> bool:
    """Whether no event is before another one with an earlier time: then no event leaves its window when it arrives."""
    order, types = (
        subscription.order,
        (plan.catalogue[each] for name in subscription.types for each in plan.catalogue.accepts(name)),
    )
    return (
        order is not None
        and not order.keys[0].descending
        and all(order.keys[0].column(each) == each.time_index for each in types)
    )
