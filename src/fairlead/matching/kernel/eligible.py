"""Which subscriptions can run on kernels, and why others cannot.

A subscription can if every branch has a kernel, it reads no derived type, and nobody reads what it derives: then its matches
depend on the logged events alone and can be found batch by batch. All others go event by event.
"""

from __future__ import annotations

from fairlead.matching.kernel.shape import Refused, shape_of
from fairlead.model.plan import Plan, Subscription


def reason_against(plan: Plan, subscription: Subscription) -> str | None:
    """Why a subscription goes event by event; None if it can run on kernels."""
    if any(plan.catalogue[name].derived for name in subscription.reads(plan.catalogue)):
        return "it reads a derived type"
    if any(subscription.emits in other.reads(plan.catalogue) for other in plan.subscriptions):
        return "another subscription reads what it emits"
    try:
        for branch in subscription.branches:
            shape_of(subscription, branch, plan.catalogue)
    except Refused as refused:
        return str(refused)
    return None
