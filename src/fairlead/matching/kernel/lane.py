"""The subscriptions of a plan that run on kernels, side by side over the same batches.

Takes: a plan, then batches. Gives: `Relations`. Never: sees a subscription that eligible.py keeps event by event.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead.matching.kernel.eligible import reason_against
from fairlead.matching.kernel.subscription import KernelSubscription, batch_of
from fairlead.matching.relations import Block, Build, Relations
from fairlead.matching.store import Store, chunk_of_columns, distinct
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

    def feed(self, columns: Columns, others: Sequence[tuple[int, Relation]]) -> Relations:
        """The relations of a batch, merged with those that the other subscriptions found (row, relation)."""
        first_ref = self.store.next_ref
        self.store.add(chunk_of_columns(columns, first_ref))
        batch = batch_of(columns, self.plan.catalogue, first_ref)
        blocks = [
            Block(kernel.subscription, self.numbers[name], branch, found.at, found.refs)
            for name, kernel in self.kernels.items()
            for branch, found in enumerate(kernel.feed(batch))
            if len(found.at)
        ]
        needed = distinct(np.concatenate([block.refs.reshape(-1) for block in blocks] or [np.zeros(0, dtype=np.int64)]))
        members = self.store.select(needed)
        kernels = self.kernels.values()
        queued = sum(branch.pool.queued() for kernel in kernels for branch in kernel.branches)
        self.store.pack(queued, lambda: distinct(np.concatenate([kernel.live() for kernel in kernels])))
        return Relations(blocks, members, columns.position_array, others, self.numbers, self.plan.catalogue, self.build)
