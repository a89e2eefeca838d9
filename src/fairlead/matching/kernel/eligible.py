"""Which subscriptions have kernels, and why others do not: then the whole plan goes event by event. (Compiles nothing.)"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from fairlead.matching.kernel.family import family_key
from fairlead.matching.kernel.shape import Refused, shape_of
from fairlead.model.plan import Plan, Subscription


def reason_against(plan: Plan, subscription: Subscription) -> str | None:
    """Why a subscription goes event by event; None if it can run on kernels."""
    try:
        for branch in subscription.branches:
            shape_of(subscription, branch, plan.catalogue)
    except Refused as refused:
        return str(refused)
    return None


def refusals(plan: Plan) -> Iterator[tuple[Subscription, str]]:
    """The subscriptions without a kernel, with the reason; of alike ones the first."""
    known: set[Hashable] = set()
    for subscription in plan.subscriptions:
        keys = {family_key(subscription, branch) for branch in subscription.branches}
        if None in keys or not keys <= known:
            known |= keys
            reason = reason_against(plan, subscription)
            if reason is not None:
                yield subscription, reason


def refused(plan: Plan) -> str | None:
    """The first reason in a plan, with the subscription; None if all of it has kernels."""
    return next((f"{subscription.name}: {reason}" for subscription, reason in refusals(plan)), None)
