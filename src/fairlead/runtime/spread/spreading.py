"""Whether a run uses several processes, from when on, and its one order of delivery.

A run begins in its own process. If matching is dear and there is much of it, its state goes to workers, all of it to each, and
from the next batch on each worker gets the events of its keys: a key is an instance of its own (`PER`), so a worker finds for
its keys what the run would find. Their relations are put in the order in which one engine would deliver them: by place of
completion, then by the subscription's number; of one subscription all relations of an event are of one key, and so of one
worker.

Takes: batches of a run. Gives: relations, batch by batch, the same as without workers. Never: lets what is delivered depend on
the number of workers, or on when they begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import thread_time
from types import TracebackType
from typing import Self

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.matching.results.delivery_order import Interleaved
from fairlead.matching.results.transferred import TransferredRelations, Wanted
from fairlead.model.events.columns import Columns
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.embedded import Run
from fairlead.runtime.spread.shares import keyed_groups, shares
from fairlead.runtime.spread.worker import Assignment
from fairlead.runtime.spread.workers import Workers


@dataclass(frozen=True)
class SpreadLimits:
    """`run_seconds`: CPU time of matching, spent and in sight, from which workers pay: starting one takes a third of a second.
    `event_seconds`: of an event; below it reading and writing take longer than matching, and threads do both beside it already
    (Q1 to Q3 of the benchmarks take a twentieth of it). `guess_seconds`: of an event of rules without kernels, until there is a
    measurement. `ahead`: batches that are given to workers before the first has all its replies."""

    run_seconds: float = 1.0
    event_seconds: float = 2e-6
    guess_seconds: float = 20e-6
    ahead: int = 3


SPREAD_LIMITS = SpreadLimits()


def can_spread(run: Run) -> bool:
    """Whether all subscriptions have keys, and nothing needs one engine: a state for the next run, an order by value, several
    streams."""
    is_plain = run.matcher is None and run.plan.order is None and run.resumed is None and not run.keep and len(run.engines) == 1
    return is_plain and bool(keyed_groups(run.plan))


class Spreading:
    """`command` starts a worker, `jobs` is how many there may be, `wanted` what the output needs of what they find. As a
    context manager it ends its workers."""

    def __init__(
        self,
        run: Run,
        command: Sequence[str],
        jobs: int,
        wanted: Wanted,
        limits: SpreadLimits = SPREAD_LIMITS,
    ) -> None:
        self.run, self.command, self.jobs, self.wanted, self.limits = run, command, jobs, wanted, limits
        self.workers: Workers | None = None
        self._may = jobs > 1 and can_spread(run)
        self._waiting: list[Columns] = []
        self._spent, self._events = 0.0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.workers is not None:
            self.workers.end()

    def feed(self, columns: Columns, part: int = 0) -> Iterator[Sequence[Relation]]:
        """The relations of batches that are done; of each batch once, in order."""
        if self._may and self.workers is None and columns.identities is None and self._pays(columns):
            self._begin()
        if self.workers is None:
            began = thread_time()
            found = self.run.feed(columns, part)
            self._spent, self._events = self._spent + thread_time() - began, self._events + len(columns)
            yield found
            return
        self.workers.give(shares(columns, self._groups, len(self.workers)))
        self._waiting.append(columns)
        if len(self._waiting) > self.limits.ahead:
            yield self._next(self.workers)

    def rest(self) -> Iterator[Sequence[Relation]]:
        """The relations of batches that are still with the workers."""
        while self._waiting and self.workers is not None:
            yield self._next(self.workers)

    def _pays(self, columns: Columns) -> bool:
        """Whether matching is dear, and takes long enough for workers to begin."""
        dear = self.limits.guess_seconds if self._never_compiles else 0.0
        each = self._spent / self._events if self._events else dear
        return each >= self.limits.event_seconds and self._spent + each * len(columns) >= self.limits.run_seconds

    @property
    def _never_compiles(self) -> bool:
        return any(unit.kernels_from is None and unit.lane is None for unit in self.run.engine.units)

    def _begin(self) -> None:
        run = self.run
        self._groups = keyed_groups(run.plan)
        numbers = {each.name: number for number, each in enumerate(run.plan.subscriptions)}
        state = run.engine.dump() if self._events else None
        plans: list[Plan] = [each.plan for each in self._groups]
        assignment = Assignment(plans, state, run.kernels_from, numbers, self.wanted)
        self.workers = Workers(self.command, self.jobs, assignment)

    def _next(self, workers: Workers) -> Sequence[Relation]:
        return self.run.matched_elsewhere(self._waiting.pop(0), in_turn(workers.replies()))


def in_turn(parts: Sequence[TransferredRelations]) -> Interleaved:
    """The relations of all workers in one order of delivery."""
    if not parts:
        return Interleaved((), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))
    at, due, number = (np.concatenate(each) for each in zip(*(part.turns() for part in parts), strict=True))
    owner = np.repeat(np.arange(len(parts), dtype=np.int32), [len(each) for each in parts])
    place = np.concatenate([np.arange(len(each)) for each in parts])
    order = np.lexsort((number, due, at))
    return Interleaved(parts, owner[order], place[order])
