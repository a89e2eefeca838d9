"""Which subscriptions run together in one task, and which can be distributed over many.

    keyed     `PER`: every key is an instance of its own, so keys are distributed over any number of buckets
    ordered   no `PER`, or a LIMIT over all keys: one total order, one task. Subscriptions to the same types share one, others
              run beside them
    nested    subscriptions that read derived events or wait for an absence need one order. All of these are one task; its
              engine runs them, and those upstream, in the units of model/plans/partition.py

A relation is the same wherever its subscription runs: its id is made of the subscription's digest and its members' positions,
and a group gets every event that its subscriptions read, at its position in the whole order. The group of a subscription
depends on it alone, so a stream's state stays where it is when other rules change.

On a stream of rules with ORDER BY … DELAY, subscriptions that read other types, alone with their upstream, have another
frontier, and so another order (runtime/event_time/frontier_groups.py): these are never in one group.

Takes: a plan. Gives: groups, each with its own plan and the reason for its form. Never: knows Spark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairlead.matching.compiled.planning.shape_builder import shape_of
from fairlead.matching.compiled.running.branch import key_kinds
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.plans.key_parts import is_bucket
from fairlead.model.plans.partition import alone, logged_types, needs_one_order
from fairlead.model.plans.plan import Plan, Subscription

Keys = Mapping[str, tuple[str, ...]]
"""By concrete type, the attributes that make the key."""
ORDERED_MAX = 16
"""Groups without keys: each receives all events that it reads. Subscriptions to the same types share one."""


@dataclass(frozen=True)
class TargetGroup:
    """`plan` has its subscriptions, with silent copies of those upstream; `numbers`: their numbers in the whole plan.
    `identity` names the group, independently of other rules. `frontier`: the types whose events move its frontier, by name;
    None if there is one for everything."""

    identity: str
    form: str
    plan: Plan
    numbers: tuple[int, ...]
    reads: frozenset[str]
    keys: Keys = field(default_factory=dict)
    reason: str = ""
    frontier: tuple[str, ...] | None = None

    @property
    def is_keyed(self) -> bool:
        return bool(self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the subscriptions that it delivers, in the order of the text."""
        return tuple(each.name for each in self.plan.subscriptions if each.name not in self.plan.silent)

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(self.plan[name].digest for name in self.names)


def groups_of(plan: Plan) -> tuple[TargetGroup, ...]:
    """All subscriptions of the plan, each in one group. The group depends on the subscription alone, so it is the same with
    other rules."""
    found: dict[str, list[int]] = {}
    for number, each in enumerate(plan.subscriptions):
        if each.name not in plan.silent:
            found.setdefault(_identity(each, plan), []).append(number)
    return tuple(_group(identity, plan, numbers) for identity, numbers in found.items())


def stream_groups(plan: Plan) -> tuple[TargetGroup, ...]:
    """The same on a stream that is in the order of the rules: subscriptions with different frontiers are in different groups,
    and those with the same one are next to each other."""
    if plan.order is None or plan.order.delay_us is None:
        return groups_of(plan)
    from fairlead.runtime.event_time.frontier_groups import frontier_groups  # with pyarrow.compute: only where there is DELAY

    numbers = {each.name: number for number, each in enumerate(plan.subscriptions)}
    made = []
    for front in frontier_groups(plan):
        for each in groups_of(front.plan):
            identity = f"{each.identity} of {' '.join(front.types)}"
            own = tuple(numbers[name] for name in each.names)
            made.append(replace(each, identity=identity, numbers=own, frontier=front.types))
    return tuple(made)


def _identity(subscription: Subscription, plan: Plan) -> str:
    if needs_one_order(plan, subscription):
        return "nested"
    keys = _keys(subscription, plan)
    if keys is None:
        told = " ".join(sorted(subscription.reads(plan.catalogue)))
        return f"ordered {int.from_bytes(hashlib.sha256(told.encode()).digest()[:4], 'big') % ORDERED_MAX}"
    parts = {attributes for _, attributes in keys}
    said = ",".join(*parts) if len(parts) == 1 else ";".join(f"{name} {','.join(attributes)}" for name, attributes in keys)
    kinds = key_kinds(shape_of(subscription, subscription.branches[0], plan.catalogue), plan.catalogue)
    return f"keyed {said} as {','.join(kinds)}"


def _group(identity: str, plan: Plan, numbers: Sequence[int]) -> TargetGroup:
    form = identity.partition(" ")[0]
    chosen = [plan.subscriptions[number] for number in numbers]
    own = replace(alone(plan, [each.name for each in chosen]), warnings=(), text="")
    reads = logged_types(own, (each.name for each in own.subscriptions))
    if form == "nested":
        reasons = nested_reasons(plan)
        return TargetGroup(identity, form, own, tuple(numbers), reads | {HEARTBEAT.name}, reason=reasons[numbers[0]])
    keys = {name: attributes for each in chosen for name, attributes in _keys(each, plan) or ()}
    if form == "keyed":
        of = ", ".join(sorted({attribute for attributes in keys.values() for attribute in attributes}))
        return TargetGroup(identity, form, own, tuple(numbers), reads, keys, f"PER: keys ({of}) are spread over buckets")
    if any(each.per and each.limit is not None for each in chosen):
        reason = "LIMIT counts the relations of all keys: one total order, one task (LIMIT … PER KEY is spread over buckets)"
    elif any(each.per and _has_buckets_only(each) for each in chosen):
        reason = "PER has buckets of time only: one total order, one task"
    elif any(each.per for each in chosen):
        reason = "one of its types enters under two different keys"
    else:
        reason = "no PER: one total order, one task"
    return TargetGroup(identity, form, own, tuple(numbers), reads, {}, reason)


def nested_reasons(plan: Plan) -> dict[int, str]:
    """By number, why a subscription needs one order of all that it reads (model/plans/partition.py)."""
    found = {}
    for number, each in enumerate(plan.subscriptions):
        if plan.derived_types(each):
            found[number] = "it reads derived events, which stand in the one order of what derived them"
        elif needs_one_order(plan, each):
            found[number] = "an absence is decided by the next event of any key: one total order, one task"
    return found


def _keys(subscription: Subscription, plan: Plan) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    """By concrete type the key of a keyed subscription, without buckets of time; None if it has no other key, if a LIMIT counts
    over all keys, or if a type enters under two different keys."""
    if not subscription.per or (subscription.limit is not None and not subscription.limit.per_key):
        return None
    found: dict[str, tuple[str, ...]] = {}
    for branch in subscription.branches:
        for named, parts in branch.keys:
            attributes = tuple(each for each in parts if not is_bucket(each))
            if not attributes:
                return None
            for name in plan.catalogue.accepts(named):
                if found.setdefault(name, attributes) != attributes:
                    return None
    return tuple(sorted(found.items())) or None


def _has_buckets_only(subscription: Subscription) -> bool:
    """Also if the order of the events made bounds of them (model/plans/buckets.py)."""
    return all(is_bucket(part) for branch in subscription.branches for _, key in branch.keys for part in key)
