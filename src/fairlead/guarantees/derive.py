"""The fourteen verdicts of every subscription of a plan.

    1. For each branch the rules are asked in turn: matching × disposal, overlapping types, WITHIN, absences, PER.
    2. A disjunction keeps what all its branches keep: the properties speak of one conjunction at a time.
    3. A subscription keeps no more than the subscriptions whose derived events it reads (intersection along the hierarchy).

A verdict speaks of the subscription together with others that keep the property themselves: an order kept by one side and
lost by the other is the other's loss. Covering agreement is judged for the subscription as the plain side and as the extension.

Takes: a plan. Gives: guarantees in the order of Property, by subscription name. Never: runs or searches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fairlead.guarantees.clauses import kept_per_key, lost_by_absence, lost_by_overlap, lost_by_window
from fairlead.guarantees.options import entry_for, lost_by_options
from fairlead.guarantees.shape import free_slots
from fairlead.guarantees.table import Counterexample, load_table
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plan import Branch, Plan, Subscription
from fairlead.model.types import Catalogue

Rule = Callable[[Subscription, Branch, Property, Catalogue], Guarantee | None]
RULES: tuple[Rule, ...] = (lost_by_options, lost_by_overlap, lost_by_window, lost_by_absence, kept_per_key)
_SEVERITY = {Verdict.LOST: 0, Verdict.PER_KEY: 1, Verdict.KEPT: 2}


def derive(plan: Plan) -> dict[str, tuple[Guarantee, ...]]:
    found: dict[str, tuple[Guarantee, ...]] = {}
    emitters: dict[str, list[Subscription]] = {}
    for each in plan.subscriptions:
        if each.emits is not None:
            emitters.setdefault(each.emits, []).append(each)

    def of(subscription: Subscription) -> tuple[Guarantee, ...]:
        if subscription.name not in found:
            own = [_own(subscription, wanted, plan.catalogue) for wanted in Property]
            for name in sorted(subscription.reads(plan.catalogue)):
                for emitter in emitters.get(name, ()):
                    own = [_worse(mine, _inherited(theirs, name)) for mine, theirs in zip(own, of(emitter), strict=True)]
            found[subscription.name] = tuple(own)
        return found[subscription.name]

    return {each.name: of(each) for each in plan.subscriptions}


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


def _inherited(upstream: Guarantee, name: str) -> Guarantee:
    return replace(upstream, clause=f"{name} ← {upstream.clause}" if upstream.clause else name)


def _kept(subscription: Subscription, wanted: Property, catalogue: Catalogue) -> Guarantee:
    """Kept, with the condition under which it is worth something where there is one."""
    why = ""
    if wanted is Property.EVENT_VALIDITY and not any(
        free_slots(branch, subscription.matching, catalogue) for branch in subscription.branches
    ):
        why = "every member depends on others, so no single event is promised a delivery"
    if wanted is Property.DISJUNCTION_TOTAL_ORDER and len(subscription.branches) > 1:
        why = "among subscribers that list the branches they share in the same order"
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
