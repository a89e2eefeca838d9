"""The rule for MATCHING and DISPOSAL: the losses of the cell for a conjunction of this shape, by the table found by search.

    MATCH A a AND B b MATCHING RECENT         loses covering agreement; MATCHING RECENT is to blame
    MATCH A a AND B b WHERE a.x < b.x         loses it too; the condition is to blame, since FIRST does not help

Takes: a subscription, one of its branches, a property. Gives: the loss with the clause to blame, or None.
"""

from __future__ import annotations

from fairlead.guarantees.paper import PAPER
from fairlead.guarantees.reasons import Blame, reason
from fairlead.guarantees.shape import ConjunctionShape, free_slots, links, shape_for_event_validity, shape_of
from fairlead.guarantees.table import LostProperty, Table, load_table
from fairlead.model.events.types import Catalogue
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.plan import Branch, Subscription

_DISPOSALS = {
    Disposal.INFIX: Blame.INFIX,
    Disposal.INFIX_POSTFIX: Blame.INFIX_POSTFIX,
    Disposal.FIRST_PREFIX: Blame.FIRST_PREFIX,
}


def cell_of(subscription: Subscription) -> str:
    return f"{subscription.matching.code}-{subscription.disposal.code}"


def entry_for(
    subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue | None = None
) -> LostProperty | None:
    """The entry of the table that says the branch loses the property, or None."""
    shape = shape_of(branch, catalogue)
    if wanted is Property.EVENT_VALIDITY:
        if not free_slots(branch, subscription.matching, catalogue):
            return None
        if subscription.matching is Matching.FIRST:
            shape = shape_for_event_validity(branch, catalogue)
    return load_table().loss(cell_of(subscription), wanted, shape)


def lost_by_options(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    entry = entry_for(subscription, branch, wanted, catalogue)
    if entry is None:
        return None
    blame = _blame(load_table(), subscription, wanted, entry.shape)
    clause = _clause(subscription, branch, blame, catalogue)
    theorems = [f"theorem {number}" for number in PAPER[entry.cell].get(wanted, ())]
    return Guarantee(
        wanted, Verdict.LOST, clause, reason(wanted, blame), ", ".join([*theorems, entry.name]), trace=entry.full_name
    )


def _blame(table: Table, subscription: Subscription, wanted: Property, shape: ConjunctionShape) -> Blame:
    """The first option whose default would keep the property for the shape that loses it; failing that, the pattern."""
    matching, disposal = subscription.matching, subscription.disposal
    if matching.recent and not table.loss(f"FR-{disposal.code}", wanted, shape):
        return Blame.RECENT
    if matching.contiguous and not table.loss(f"{'MR' if matching.recent else 'FR'}-{disposal.code}", wanted, shape):
        return Blame.CONTIGUOUS
    if disposal in _DISPOSALS and not table.loss(f"{matching.code}-PI", wanted, shape):
        return _DISPOSALS[disposal]
    if not table.loss("FR-PI", wanted, shape):  # either option alone would lose it: the matching is named
        return Blame.RECENT if matching.recent else Blame.CONTIGUOUS if matching.contiguous else _DISPOSALS[disposal]
    return Blame.PATTERN


def _clause(subscription: Subscription, branch: Branch, blame: Blame, catalogue: Catalogue) -> str:
    if blame in (Blame.RECENT, Blame.CONTIGUOUS):
        return f"MATCHING {subscription.matching.words}"
    if blame is not Blame.PATTERN:
        return f"DISPOSAL {subscription.disposal.words}"
    return _pattern_clause(branch, catalogue)


def _pattern_clause(branch: Branch, catalogue: Catalogue) -> str:
    """The words that link members, or else the element whose instances differ."""
    for predicate in branch.predicates:
        if len(predicate.slots) > 1:
            return f"WHERE {predicate.text}" if predicate.text else "WHERE"
    for clause in branch.clauses:
        if not clause.waits:
            return clause.words(branch.alias_names())
    if links(branch, catalogue):
        return f"MATCH {' AND '.join(branch.queue_types)}"
    for element in branch.elements:
        if element.quantifier.most > 1 or len(branch.slots_of_type[element.type]) > 1:
            return f"MATCH {element.type} {element.alias}[{element.quantifier.most}]"
    return "MATCH"
