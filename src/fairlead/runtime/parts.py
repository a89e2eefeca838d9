"""The conjunctions of a plan, grouped by the types that they read: each such part has its own order.

A conjunction is a function of the events of its types, in their order. So a subscription `A AND B OR B AND C` can be matched in
two parts, one on the order of A and B, the other on that of B and C; their relations are merged afterwards. A subscription to
one of the conjunctions alone gets the same relations for it.

Subscriptions that read derived events or wait for an absence are not split (model/partition.py).

Takes: a plan. Gives: its parts. Never: changes what a conjunction finds, or its ids.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.model.partition import logged_types, needs_one_order
from fairlead.model.plan import Branch, Plan
from fairlead.model.types import HEARTBEAT, Catalogue


@dataclass(frozen=True)
class OrderPart:
    """`types`: the concrete types that it reads, by name."""

    plan: Plan
    types: tuple[str, ...]

    @property
    def name(self) -> str:
        """The types as words: identifies the part in a plan."""
        return " ".join(self.types)


def types_of(branch: Branch, catalogue: Catalogue) -> tuple[str, ...]:
    return tuple(sorted(catalogue.input_of(branch.types) - {HEARTBEAT.name}))


def parts_of(plan: Plan) -> tuple[OrderPart, ...]:
    """The parts, grouped by types."""
    if any(needs_one_order(plan, each) for each in plan.subscriptions):
        return (OrderPart(plan, tuple(sorted(logged_types(plan, (each.name for each in plan.subscriptions))))),)
    read = [[types_of(branch, plan.catalogue) for branch in each.branches] for each in plan.subscriptions]
    found = sorted({types for mine in read for types in mine})
    if len(found) == 1:
        return (OrderPart(plan, found[0]),)
    parts = []
    for types in found:
        numbers = [[at for at, of_branch in enumerate(mine) if of_branch == types] for mine in read]
        chosen = [each.only(mine) for each, mine in zip(plan.subscriptions, numbers, strict=True) if mine]
        parts.append(OrderPart(replace(plan, subscriptions=tuple(chosen), guarantees={}, whole=plan), types))
    return tuple(parts)
