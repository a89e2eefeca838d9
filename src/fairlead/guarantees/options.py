"""The rule for MATCHING and DISPOSAL: the losses of the cell for a conjunction of this shape, by the table found by search.

    MATCH A a AND B b MATCHING RECENT         loses covering agreement; MATCHING RECENT is to blame
    MATCH A a AND B b WHERE a.x < b.x         loses it too; the condition is to blame, since FIRST does not help

Takes: a subscription, one of its branches, a property. Gives: the loss with the clause to blame, or None.
"""

from __future__ import annotations

from fairlead.guarantees.paper import PAPER
from fairlead.guarantees.reasons import Blame, reason
from fairlead.guarantees.shape import ConjunctionShape, free_slots, is_at_most, links, shape_for_event_validity, shape_of
from fairlead.guarantees.table import LostProperty, cell_options, load_table, table_of
from fairlead.model.events.types import Catalogue
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.options import PAPER_DISPOSALS, Disposal, Matching
from fairlead.model.plans.plan import Branch, Subscription

_DISPOSALS = {
    Disposal.INFIX: Blame.INFIX,
    Disposal.INFIX_POSTFIX: Blame.INFIX_POSTFIX,
    Disposal.FIRST_PREFIX: Blame.FIRST_PREFIX,
    Disposal.ADVANCE: Blame.ADVANCE,
    Disposal.UPTO_FIRST: Blame.UPTO,
    Disposal.UPTO_LAST: Blame.UPTO,
    Disposal.NONE: Blame.NONE,
}
_ONE = {Matching.ALL: Matching.FIRST, Matching.ALL_CONTIGUOUS: Matching.FIRST_CONTIGUOUS}
_ONE |= {Matching.ALL_RECENT: Matching.RECENT, Matching.ALL_RECENT_CONTIGUOUS: Matching.RECENT_CONTIGUOUS}
"""The matching that takes the first of what ALL takes."""


def cell_of(subscription: Subscription, branch: Branch) -> str:
    disposal = subscription.disposal_of(branch)
    return _cell(subscription.matching, disposal, bool(branch.kept))


def _cell(matching: Matching, disposal: Disposal, keeps: bool) -> str:
    return f"{matching.code}-{disposal.code}{'K' if keeps and disposal is not Disposal.NONE else ''}"


def clause_cell(subscription: Subscription, branch: Branch) -> str:
    """The cell of the papers whose traces show what other clauses lose; the nearest, for options that the papers lack."""
    disposal = subscription.disposal_of(branch)
    nearest = disposal if disposal in PAPER_DISPOSALS else Disposal.FIRST_PREFIX
    return _cell(_ONE.get(subscription.matching, subscription.matching), nearest, False)


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
    cell = cell_of(subscription, branch)
    found = table_of(cell).loss(cell, wanted, shape) or _lost_beside(cell, wanted, shape)
    return _cut_off(subscription, branch, wanted, shape) if found is None and subscription.limit_per_event else found


def _lost_beside(cell: str, wanted: Property, shape: ConjunctionShape) -> LostProperty | None:
    """The search of further options tried fewer cases: what one of them loses, others with the same matching are said to lose
    too. Not NONE, which disposes of nothing, nor ADVANCE, which is between FIRST PREFIX and PREFIX INFIX."""
    table, (matching, disposal, _) = table_of(cell), cell_options(cell)
    if table is load_table() or disposal is Disposal.NONE or (disposal is Disposal.ADVANCE and not matching.all):
        return None
    others = [each for each in table.entries if each.loses is wanted and each.cell.split("-")[0] == matching.code]
    return next((each for each in others if is_at_most(each.shape, shape)), None)


def _cut_off(subscription: Subscription, branch: Branch, wanted: Property, shape: ConjunctionShape) -> LostProperty | None:
    """What LIMIT loses: with a limit of one, ALL is the matching that takes the first."""
    cell = _cell(_ONE[subscription.matching], subscription.disposal_of(branch), bool(branch.kept))
    return table_of(cell).loss(cell, wanted, shape)


def lost_by_options(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    entry = entry_for(subscription, branch, wanted, catalogue)
    if entry is None:
        return None
    blame = _blame(subscription, branch, wanted, entry)
    clause = _clause(subscription, branch, blame, catalogue)
    theorems = [f"theorem {number}" for number in PAPER.get(entry.cell, {}).get(wanted, ())]
    return Guarantee(
        wanted, Verdict.LOST, clause, reason(wanted, blame), ", ".join([*theorems, entry.name]), trace=entry.full_name
    )


def _blame(subscription: Subscription, branch: Branch, wanted: Property, entry: LostProperty) -> Blame:
    """The first option whose default would keep the property for the shape that loses it; failing that, the pattern."""
    matching, disposal, keeps = subscription.matching, subscription.disposal_of(branch), bool(branch.kept)
    named = Blame.ALL if matching.all else Blame.RECENT if matching.recent else Blame.CONTIGUOUS

    def kept(matching: Matching, disposal: Disposal = disposal, keeps: bool = keeps) -> bool:
        cell = _cell(matching, disposal, keeps)
        return table_of(cell).loss(cell, wanted, entry.shape) is None

    if subscription.limit_per_event and cell_options(entry.cell)[0] is not matching:
        return Blame.LIMIT
    if matching.all and kept(_ONE[matching]):
        return Blame.ALL
    if matching.recent and kept(Matching.ALL if matching.all else Matching.FIRST):
        return Blame.RECENT
    if matching.contiguous and kept(_spread(matching)):
        return Blame.CONTIGUOUS
    if keeps and kept(matching, keeps=False):
        return Blame.KEEP
    if disposal in _DISPOSALS and kept(matching, Disposal.PREFIX_INFIX):
        return _DISPOSALS[disposal]
    if kept(Matching.FIRST, Disposal.PREFIX_INFIX, False):  # either option alone would lose it: the matching is named
        return named if matching is not Matching.FIRST else _DISPOSALS.get(disposal, Blame.KEEP)
    return Blame.PATTERN


def _spread(matching: Matching) -> Matching:
    """Without CONTIGUOUS."""
    return next(each for each in Matching if each.words == matching.words.removesuffix(" CONTIGUOUS"))


def _clause(subscription: Subscription, branch: Branch, blame: Blame, catalogue: Catalogue) -> str:
    match blame:
        case Blame.RECENT | Blame.CONTIGUOUS | Blame.ALL:
            return f"MATCHING {subscription.matching.words}"
        case Blame.KEEP:
            return f"KEEP {', '.join(subscription.kept_aliases)}"
        case Blame.LIMIT:
            return f"LIMIT {subscription.limit_per_event} PER EVENT"
        case Blame.PATTERN:
            return _pattern_clause(branch, catalogue)
        case _:
            return f"DISPOSAL {subscription.disposal_words}"


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
        if element.quantifier.several or len(branch.slots_of_type[element.type]) > 1:
            return f"MATCH {element.type} {element.alias}[{element.quantifier.least}]"
    return "MATCH"
