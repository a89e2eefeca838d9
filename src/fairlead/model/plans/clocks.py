"""Which events advance a subscription's clock, beside those that it reads: they decide its absences too.

    Missing: MATCH A a WITHOUT B b WITHIN 1 SECOND OF a EMIT M        Chain: MATCH M m THEN C c

Missing does not read C. If C came after the deadline and did not advance Missing's clock, M would not precede C, and Chain
would miss it. So an event of the input advances the clock of every subscription that is upstream of one that the event can
reach by another path: because that one reads it, or reads what others derive from it. A derived event advances the clock of its
readers only: it comes from events of the input, which have already advanced all the others.

Takes: a plan. Gives: types by subscription. Never: looks at an event.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.model.plans.plan import Plan, Subscription


def heard_types(plan: Plan) -> Mapping[str, frozenset[str]]:
    """By subscription, the types of the input that it does not read and that advance its clock; only if there are some."""
    upstream = [each for each in plan.subscriptions if each.emits is not None and each.waits]
    if not upstream:
        return {}
    reads = {each.name: each.reads(plan.catalogue) for each in plan.subscriptions}
    readers: dict[str, list[str]] = {}
    for name, types in reads.items():
        for each in types & plan.emitters.keys():
            readers.setdefault(each, []).append(name)
    found = {each.name: _heard(plan, each, reads, readers) for each in upstream}
    return {name: types for name, types in found.items() if types}


def _heard(
    plan: Plan, subscription: Subscription, reads: Mapping[str, frozenset[str]], readers: Mapping[str, list[str]]
) -> frozenset[str]:
    # 1. the subscriptions downstream
    downstream: set[str] = set()
    emitting = [subscription]
    while emitting:
        for name in readers.get(emitting.pop().emits or "", ()):
            if name not in downstream:
                downstream.add(name)
                emitting.append(plan[name])
    # 2. what reaches them, directly or through others, but not through this subscription
    types: set[str] = set()
    reached, left = {subscription.name, *downstream}, [*downstream]
    while left:
        for each in reads[left.pop()]:
            emitters = [emitter.name for emitter in plan.emitters.get(each, ())]
            if not emitters:
                types.add(each)
            left += [name for name in emitters if name not in reached]
            reached.update(emitters)
    return frozenset(types - reads[subscription.name])
