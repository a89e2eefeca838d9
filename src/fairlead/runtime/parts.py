"""The conjunctions of a plan, grouped by the topics that they read: each such part has its own order.

A conjunction is a function of the events of its types, in their order. So if A, B and C are in different topics, a subscription
`A AND B OR B AND C` can be matched in two parts, one on the order of A and B, the other on that of B and C; their relations are
merged afterwards. A subscription to one of the conjunctions alone gets the same relations for it.

Subscriptions that read derived events, wait for an absence or count the relations of several conjunctions (LIMIT) are not split
(model/plans/partition.py), nor are those whose events are in an order by value, which is one for all topics.

Takes: a plan. Gives: its parts. Never: changes what a conjunction finds, or its ids.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.model.plans.partition import logged_types, needs_one_stream
from fairlead.model.plans.plan import Branch, Plan


@dataclass(frozen=True)
class OrderPart:
    """`types`: the concrete types that it reads, by name. `topics`: theirs, by name."""

    plan: Plan
    types: tuple[str, ...]
    topics: tuple[str, ...]

    @property
    def name(self) -> str:
        """The topics as words: identifies the part in a plan."""
        return " ".join(self.topics)


def types_of(branch: Branch, catalogue: Catalogue) -> tuple[str, ...]:
    return tuple(sorted(catalogue.input_of(branch.types) - {HEARTBEAT.name}))


def parts_of(plan: Plan) -> tuple[OrderPart, ...]:
    """The parts, by the names of their topics."""
    topics_of = plan.catalogue.topics_of
    if plan.order is not None or any(needs_one_stream(plan, each) for each in plan.subscriptions):
        types = tuple(sorted(logged_types(plan, (each.name for each in plan.subscriptions))))
        return (OrderPart(plan, types, topics_of(types)),)
    read = [[types_of(branch, plan.catalogue) for branch in each.branches] for each in plan.subscriptions]
    found = sorted({topics_of(types) for mine in read for types in mine})
    parts = []
    for topics in found:
        numbers = [[at for at, types in enumerate(mine) if topics_of(types) == topics] for mine in read]
        types = tuple(sorted({name for mine in read for each in mine if topics_of(each) == topics for name in each}))
        if len(found) == 1:
            return (OrderPart(plan, types, topics),)
        chosen = [each.only(mine) for each, mine in zip(plan.subscriptions, numbers, strict=True) if mine]
        parts.append(OrderPart(replace(plan, subscriptions=tuple(chosen), guarantees={}, whole=plan), types, topics))
    return tuple(parts)
