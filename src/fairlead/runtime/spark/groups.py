"""Which subscriptions run together in one task, and which of them can be spread over many.

    keyed     `PER`: every key is an instance of its own, so keys are spread over buckets, as many as the user wants
    ordered   no `PER`: one total order, one task. Those that read the same types share one, others run beside them
    nested    what reads derived events, makes them for others or waits for an absence: it needs one order. All of these are one
              task, whose engine runs them in the units that model/partition.py says

A relation is the same wherever its subscription runs: its id is made of the subscription's digest and its members' positions,
and a group gets every event that its subscriptions read, at its position in the whole order.

Takes: a plan. Gives: groups, each with a plan of its own and the reason for its form. Never: knows Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairlead.matching.kernel.branch import key_kinds
from fairlead.matching.kernel.shape import shape_of
from fairlead.model.partition import needs_one_order
from fairlead.model.plan import Plan, Subscription
from fairlead.model.types import HEARTBEAT, Kind

Keys = Mapping[str, tuple[str, ...]]
"""By concrete type, the attributes that make the key."""
ORDERED_MAX = 8
"""Groups without keys: every one of them is sent all events that it reads."""


@dataclass(frozen=True)
class Group:
    """`plan` has its subscriptions alone; `numbers` says which they are in the whole plan."""

    form: str
    plan: Plan
    numbers: tuple[int, ...]
    reads: frozenset[str]
    keys: Keys = field(default_factory=dict)
    reason: str = ""

    @property
    def is_keyed(self) -> bool:
        return bool(self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.plan.subscriptions)


def groups_of(plan: Plan) -> tuple[Group, ...]:
    """All subscriptions of the plan, each in one group."""
    nested = nested_reasons(plan)
    keyed: dict[tuple[tuple[str, tuple[str, ...]], ...], list[int]] = {}
    ordered: dict[frozenset[str], list[int]] = {}
    for number, each in enumerate(plan.subscriptions):
        if number in nested:
            continue
        keys = _keys(each, plan)
        if keys is not None:
            keyed.setdefault(keys, []).append(number)
        else:
            ordered.setdefault(each.reads(plan.catalogue), []).append(number)
    made = []
    for numbers, together in _merged(keyed, plan):
        of = ", ".join(sorted({attribute for attributes in together.values() for attribute in attributes}))
        made.append(_group("keyed", plan, numbers, together, f"PER: keys ({of}) are spread over buckets"))
    for numbers in _few(list(ordered.values())):
        several = any(plan.subscriptions[number].per for number in numbers)
        reason = "one of its types enters under two different keys" if several else "no PER: one total order, one task"
        made.append(_group("ordered", plan, numbers, {}, reason))
    if nested:
        made.append(_group("nested", plan, sorted(nested), {}, nested[min(nested)]))
    return tuple(sorted(made, key=lambda each: each.numbers[0]))


def _group(form: str, plan: Plan, numbers: Sequence[int], keys: Keys, reason: str) -> Group:
    chosen = tuple(plan.subscriptions[number] for number in numbers)
    own = replace(plan, subscriptions=chosen, warnings=(), guarantees={}, text="")
    reads = frozenset(name for each in chosen for name in each.reads(plan.catalogue) if not plan.catalogue[name].derived)
    if form != "nested":
        reads -= {HEARTBEAT.name}  # they decide absences and nothing else
    return Group(form, own, tuple(numbers), reads, keys, reason)


def nested_reasons(plan: Plan) -> dict[int, str]:
    """By number, why a subscription needs one order of all that it reads (model/partition.py)."""
    read = {name for each in plan.subscriptions for name in plan.derived_types(each)}
    found = {}
    for number, each in enumerate(plan.subscriptions):
        if plan.derived_types(each):
            found[number] = "it reads derived events, which stand in the one order of what derived them"
        elif needs_one_order(plan, each):
            found[number] = "an absence is decided by the next event of any key: one total order, one task"
        elif each.emits in read:
            found[number] = "others read what it derives, so it runs with them"
    return found


def _keys(subscription: Subscription, plan: Plan) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    """By concrete type the key of a keyed subscription; None without PER, or where a type enters under two different keys."""
    if not subscription.per:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for branch in subscription.branches:
        for named, attributes in branch.keys:
            for name in plan.catalogue.accepts(named):
                if found.setdefault(name, attributes) != attributes:
                    return None
    return tuple(sorted(found.items()))


def _kinds(number: int, plan: Plan) -> tuple[Kind, ...]:
    subscription = plan.subscriptions[number]
    return key_kinds(shape_of(subscription, subscription.branches[0], plan.catalogue), plan.catalogue)


def _merged(
    keyed: Mapping[tuple[tuple[str, tuple[str, ...]], ...], list[int]], plan: Plan
) -> list[tuple[list[int], dict[str, tuple[str, ...]]]]:
    """Subscriptions whose keys agree wherever they read the same type, and some type is the same, share a group."""
    made: list[tuple[list[int], dict[str, tuple[str, ...]]]] = []
    for keys, numbers in keyed.items():
        mine = dict(keys)
        for there, together in made:
            shared = mine.keys() & together.keys()
            if (
                shared
                and all(mine[name] == together[name] for name in shared)
                and _kinds(there[0], plan) == _kinds(numbers[0], plan)
            ):
                there += numbers
                together |= mine
                break
        else:
            made.append((list(numbers), mine))
    return [(sorted(numbers), together) for numbers, together in made]


def _few(groups: list[list[int]]) -> list[list[int]]:
    """At most ORDERED_MAX groups: the rest joins them in turn."""
    kept = [list(each) for each in groups[:ORDERED_MAX]]
    for at, each in enumerate(groups[ORDERED_MAX:]):
        kept[at % ORDERED_MAX] += each
    return [sorted(each) for each in kept]
