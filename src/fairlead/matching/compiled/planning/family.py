"""Which branches are alike: they share a kernel (branch.py). It imports nothing heavy: every compilation asks
(eligibility.py)."""

from __future__ import annotations

from collections.abc import Hashable

from fairlead.model.events.types import Catalogue
from fairlead.model.plans.plan import Branch, Subscription


def family_key(subscription: Subscription, branch: Branch) -> Hashable:
    """Branches with equal keys differ in conditions on single events only. None for one that runs alone."""
    alone = branch.noting or branch.tables or branch.sequence is not None or branch.folded
    if alone or (subscription.limit is not None and len(subscription.branches) > 1):
        return None  # a LIMIT over several branches is applied to all of them at once (running/delivery_limit.py)
    across = tuple(each.condition for each in branch.predicates if not each.is_unary)
    unary = frozenset(slot for each in branch.predicates if each.is_unary for slot in each.slots)
    options = (subscription.matching, subscription.disposal, subscription.advance, subscription.limit_per_event)
    having = tuple(each.condition for each in branch.having)
    named = (branch.kept, branch.upto, branch.retained, tuple(branch.runs.items()), having)
    return (branch.signature, across, unary, branch.clauses, branch.keys, options, subscription.within_us, named)


def sharing_key(subscription: Subscription, branch: Branch, catalogue: Catalogue) -> Hashable:
    """Branches with equal keys share a kernel: they are alike, and their subscriptions read the same types, so that they stand
    at one level of the hierarchy and have the same clock. None for one that runs alone."""
    key = family_key(subscription, branch)
    return None if key is None else (key, subscription.reads(catalogue))
