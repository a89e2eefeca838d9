"""The subscriptions of a plan that run on kernels, side by side over the same batches.

Takes: a plan, then batches. Gives: `Relations`. Never: sees a subscription that eligible.py keeps event by event.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead.matching.kernel.eligible import reason_against
from fairlead.matching.kernel.subscription import KernelSubscription, batch_of
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
        batch = batch_of(columns, self.plan.catalogue)
        blocks = [
            Block(kernel.subscription, self.numbers[name], branch, found.at, found.refs)
            for name, kernel in self.kernels.items()
            for branch, found in enumerate(kernel.feed(batch))
        ]
        found = Relations(blocks, self.store.view(), others, self.numbers, self.plan.catalogue, self.build)
        kernels = self.kernels.values()
        queued = sum(branch.pool.queued() for kernel in kernels for branch in kernel.branches)
        self.store.pack(queued, lambda: np.concatenate([kernel.live() for kernel in kernels]))
        return found
