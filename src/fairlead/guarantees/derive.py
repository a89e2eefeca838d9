"""The fourteen verdicts of every subscription of a plan.

    1. For each branch the rules are asked in turn: matching × disposal, overlapping types, WITHIN, absences, PER.
    2. A disjunction keeps what all its branches keep: the properties speak of one conjunction at a time.
    3. A subscription keeps no more than the subscriptions whose derived events it reads (intersection along the hierarchy).

A verdict speaks of the subscription together with others that keep the property themselves: an order kept by one side and
lost by the other is the other's loss. Covering agreement is judged for the subscription as the plain side and as the extension.

Subscriptions of which the rules read the same are judged once and share their verdicts.

Takes: a plan. Gives: guarantees in the order of Property, by subscription name. Never: runs or searches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import reduce

from fairlead.guarantees.clauses import kept_per_key, lost_by_absence, lost_by_overlap, lost_by_window
from fairlead.guarantees.options import entry_for, lost_by_options
from fairlead.guarantees.shape import free_slots
from fairlead.guarantees.table import Counterexample, load_table
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plan import Branch, Plan, Subscription
from fairlead.model.types import Catalogue

Rule = Callable[[Subscription, Branch, Property, Catalogue], Guarantee | None]
RULES: tuple[Rule, ...] = (lost_by_options, lost_by_overlap, lost_by_window, lost_by_absence, kept_per_key)
Verdicts = tuple[Guarantee, ...]
"""One for each Property, in their order."""
_SEVERITY = {Verdict.LOST: 0, Verdict.PER_KEY: 1, Verdict.KEPT: 2}


def derive(plan: Plan) -> dict[str, tuple[Guarantee, ...]]:
    judged: dict[Hashable, Verdicts] = {}
    found: dict[str, Verdicts] = {}
    inherited: dict[str, Verdicts] = {}
    for each in plan.emitters_first:
        asked = _asked(each)
        if asked not in judged:
            judged[asked] = tuple(_own(each, wanted, plan.catalogue) for wanted in Property)
        verdicts = judged[asked]
        for name in plan.derived_types(each):
            if name not in inherited:
                worst = reduce(_worst, (found[emitter.name] for emitter in plan.emitters[name]))
                inherited[name] = tuple(_inherited(verdict, name) for verdict in worst)
            verdicts = _worst(verdicts, inherited[name])
        found[each.name] = verdicts
    return {each.name: found[each.name] for each in plan.subscriptions}


def _asked(subscription: Subscription) -> Hashable:
    """All that the rules read of a subscription: a thousand that differ in their constants are judged once."""
    branches = tuple(map(_asked_of_branch, subscription.branches))
    return subscription.matching, subscription.disposal, subscription.per, subscription.within_us, branches


def _asked_of_branch(branch: Branch) -> Hashable:
    """A condition on one event says something only where several instances of a type can differ in it (shape.alike)."""
    several = len(branch.queue_types) < len(branch.slots)
    conditions = tuple(each if several or len(each.slots) > 1 else each.slots for each in branch.predicates)
    return branch.elements, branch.slots, conditions, branch.precedences, branch.negations, branch.absences


def _own(subscription: Subscription, wanted: Property, catalogue: Catalogue) -> Guarantee:
    """The worst that any rule says of any branch; the first such one in the order of branches and rules."""
    verdict = _kept(subscription, wanted, catalogue)
    for branch in subscription.branches:
        for rule in RULES:
            said = rule(subscription, branch, wanted, catalogue)
            if said is not None:
                verdict = _worse(verdict, said)
    return verdict


def _worse(one: Guarantee, other: Guarantee) -> Guarantee:
    return other if _SEVERITY[other.verdict] < _SEVERITY[one.verdict] else one


def _worst(some: Verdicts, others: Verdicts) -> Verdicts:
    return tuple(map(_worse, some, others))


def _inherited(upstream: Guarantee, name: str) -> Guarantee:
    return replace(upstream, clause=f"{name} ← {upstream.clause}" if upstream.clause else name)


def _kept(subscription: Subscription, wanted: Property, catalogue: Catalogue) -> Guarantee:
    """Kept, with the condition under which it is worth something where there is one."""
    why = ""
    if wanted is Property.EVENT_VALIDITY and not any(
        free_slots(branch, subscription.matching, catalogue) for branch in subscription.branches
    ):
        why = "every member depends on others, so no single event is promised a delivery"
    if wanted is Property.CONJUNCTION_AGREEMENT and any(branch.absences for branch in subscription.branches):
        why = "among subscribers that read the same types, since each of their events can decide an absence"
    return Guarantee(wanted, Verdict.KEPT, "", why, f"none found in {load_table().judged(wanted):,} cases")


def counterexample(source: Plan | Subscription, wanted: Property, subscription: str | None = None) -> Counterexample | None:
    """The stored trace for the first branch (of the subscription; of a plan, of its first one that has one) whose matching,
    disposal and shape lose the property. None where they keep it: what WITHIN, PER or WITHOUT lose has no stored trace."""
    if isinstance(source, Plan):
        chosen = source.subscriptions if subscription is None else (source[subscription],)
        catalogue: Catalogue | None = source.catalogue
    else:
        chosen, catalogue = (source,), None
    for each in chosen:
        for branch in each.branches:
            entry = entry_for(each, branch, wanted, catalogue)
            if entry is not None:
                return load_table().counterexample(entry)
    return None
