"""The subscriptions of a plan on kernels, side by side over the same batches.

Takes: a plan, then batches. Gives: `Relations`. Never: an object for an event.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead.matching.kernel.batch import Batch
from fairlead.matching.kernel.branch import Found
from fairlead.matching.kernel.eligible import reason_against
from fairlead.matching.kernel.subscription import KernelSubscription
from fairlead.matching.relations import Block, Build, Relations
from fairlead.matching.store import Store
from fairlead.model.columns import Columns
from fairlead.model.plan import Plan
from fairlead.model.relation import Relation


class KernelLane:
    def __init__(self, plan: Plan, build: Build) -> None:
        self.plan, self.build = plan, build
        self.numbers = {each.name: at for at, each in enumerate(plan.subscriptions)}
        self.kernels = {
            each.name: KernelSubscription(each, plan.catalogue)
            for each in plan.subscriptions
            if reason_against(plan, each) is None
        }
        self.store = Store()

    def feed(self, columns: Columns, others: Sequence[Relation]) -> Relations:
        """The relations of a batch, merged with those that the other subscriptions found."""
        self.store.add(columns)
        batch = Batch(columns, self.plan.catalogue)
        blocks: list[Block] = []
        for name, kernel in self.kernels.items():
            for branch, (made, decided) in enumerate(kernel.feed(batch)):
                blocks += self._blocks(name, branch, made, decided)
        found = Relations(blocks, self.store.view(), others, self.numbers, self.plan.catalogue, self.build)
        kernels = self.kernels.values()
        self.store.pack(sum(kernel.queued() for kernel in kernels), lambda: np.concatenate([each.live() for each in kernels]))
        return found

    def _blocks(self, name: str, branch: int, made: Found, decided: Found) -> list[Block]:
        kernel, number = self.kernels[name], self.numbers[name]
        return [
            Block(kernel.subscription, number, branch, made.at, made.refs, 1, made.due),
            Block(kernel.subscription, number, branch, decided.at, decided.refs, 0, decided.due),
        ]
