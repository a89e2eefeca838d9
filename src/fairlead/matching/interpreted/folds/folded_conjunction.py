"""A branch whose run is folded, event by event: a key has a folded run in place of queues.

    1. the clock of the key moves; a run of a bucket before that of the clock leaves; an event of such a bucket does not enter
    2. with `RETAIN n EVENTS BATCH`, a run of n events leaves
    3. the event is added; if the run is long enough and HAVING is true, it is a relation, and the key has no run any more

That is what `conjunction.py` does with the queue of the run, whose events all leave together.

Takes: an instance and an event. Gives: the folded run of the relation that it completes, or None. Never: keeps an event that
stands for no other.
"""

from __future__ import annotations

from typing import Any

from fairlead.matching.attempt import Attempt
from fairlead.matching.expressions.closures import compile_condition, slot_types
from fairlead.matching.folded_run import FoldedRun
from fairlead.matching.interpreted.conjunction import acceptor
from fairlead.matching.interpreted.instance import Instance
from fairlead.matching.interpreted.routes import Route, Routes
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.folding import Folding, folding_of
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.retention import horizons
from fairlead.model.relations.identity import Lanes, seeds_of_branch


class FoldedConjunction:
    """Compiled once and shared by all keys of the branch."""

    def __init__(self, subscription: Subscription, branch: Branch, catalogue: Catalogue, attempt: Attempt) -> None:
        self.attempt, self.clocked = attempt, subscription.is_clocked
        self.folding, self.seeds = folded_start(subscription, branch, catalogue)
        (self.horizon,) = horizons(subscription, branch)
        bound = branch.retention.get(branch.queue_types[0])
        self.most = None if bound is None else bound.count
        types = slot_types(branch, catalogue)
        self.least = branch.runs[self.folding.slot].least
        self.accepts = acceptor(branch, (self.folding.slot,), types)
        self.having = [compile_condition(each.condition, types) for each in branch.having]
        self.routes = Routes(branch, catalogue)

    def create(self) -> Instance:
        return Instance([[]], [])

    def accept(self, route: Route, event: Event) -> bool:
        return self.accepts(event)

    def arrive(self, instance: Instance, event: Event) -> FoldedRun | None:
        if self.clocked and event.time is not None:  # 1
            if instance.clock is None or event.time > instance.clock:
                instance.clock = event.time
            if self.horizon:
                cut = self.horizon.at(instance.clock)
                if instance.folded is not None and (instance.folded.last.time or 0) < cut:
                    instance.folded = None
                if event.time < cut:
                    return None
        run = instance.folded
        if run is None or run.count == self.most:  # 2
            run = instance.folded = FoldedRun(self.folding, self.seeds)
        run.add(event)  # 3
        binding: list[Any] = [run]
        if run.count < self.least or not all(check(binding) for check in self.having):
            return None
        instance.folded = None
        return run


def folded_start(subscription: Subscription, branch: Branch, catalogue: Catalogue) -> tuple[Folding, Lanes]:
    """What is kept of the run of a branch, and the lanes of its id before its first event."""
    folding = folding_of(branch, catalogue)
    assert folding is not None
    number = subscription.number(subscription.branches.index(branch))
    return folding, seeds_of_branch(subscription.id_digest, number)
