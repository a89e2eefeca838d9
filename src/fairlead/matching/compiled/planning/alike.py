"""Which branches of a plan share a kernel, and which of their conditions an interval index serves (acceptance.py).

Takes: a plan. Gives: families, in words too. Never: compiles anything.
"""

from __future__ import annotations

from collections.abc import Hashable

from fairlead.matching.compiled.planning.family import sharing_key
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.running.acceptance import interval_of, own
from fairlead.model.expressions.expression import render
from fairlead.model.plans.plan import Branch, Plan, Subscription


class Alike:
    """The families of a plan, by number of members."""

    def __init__(self, plan: Plan) -> None:
        self.catalogue = plan.catalogue
        self.sizes: dict[Hashable, int] = {}
        for subscription in plan.subscriptions:
            for branch in subscription.branches:
                key = sharing_key(subscription, branch, plan.catalogue)
                if key is not None:
                    self.sizes[key] = self.sizes.get(key, 0) + 1

    def others(self, subscription: Subscription, branch: Branch) -> int:
        """How many further branches run on the same kernel."""
        key = sharing_key(subscription, branch, self.catalogue)
        return 0 if key is None else self.sizes[key] - 1


def indexed_conditions(shape: Shape, branch: Branch) -> list[tuple[str, str]]:
    """For each member with conditions of its own: its name, and the value whose interval index serves them (or nothing)."""
    names, found = branch.alias_names(), []
    for slot, queue in enumerate(shape.queue_of_slot):
        conditions = [own(each.condition) for each in branch.predicates if each.slots == (slot,)]
        if conditions:
            lanes = [lane for lane in shape.lanes if queue in lane.queues]
            alone = all(len([each for each in shape.queue_of_slot if each in lane.queues]) == 1 for lane in lanes)
            interval = interval_of(conditions) if alone else None
            found.append((names[slot], "" if interval is None else render(interval.expression, [names[slot]])))
    return found


def in_words(others: int, conditions: list[tuple[str, str]]) -> str:
    """`shared with 3 alike subscriptions; conditions on a: interval index on a.price`"""
    parts = [f"shared with {others:,} alike {'branch' if others == 1 else 'branches'} of the plan"]
    for member, index in conditions:
        how = f"interval index on {index}" if index else "evaluated for whole columns, once for each of them"
        parts.append(f"conditions on {member}: {how}")
    return "; ".join(parts)
