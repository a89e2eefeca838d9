"""The rule for sequences: lost where a trace shows it, kept where docs/guarantees.md argues it and no case violates it, and
otherwise not promised.

    1. a trace of the cell with no more constructs: lost, and those constructs are named
    2. an argument: kept, within a key if a trace shows that PER loses an order across keys
    3. neither: lost, "not shown to be kept", without a trace

Takes: a subscription, one of its branches, which is a sequence, a property. Gives: a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.guarantees.clauses import ORDERS, ORDERS_OF_A_TYPE, PAGE
from fairlead.guarantees.constructs import (
    LIMITS_OF_TIME,
    Construct,
    begins_anew_after_the_first,
    begins_with_a_row,
    constructs_of,
    effective_disposal,
    free_beginnings,
    is_adjacent,
    is_of_elements,
    is_of_steps,
    is_straight,
    rows_max,
    sequence_cell,
)
from fairlead.guarantees.sequence_traces import SequenceLoss, load_sequence_traces
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.plan import Branch, Subscription

ALWAYS = frozenset({Property.NO_CREATION, Property.ADMISSION, Property.CONJUNCTION_AGREEMENT, Property.DISJUNCTION_TOTAL_ORDER})
_LOOKING_BACK = frozenset({Construct.LINK, Construct.PREV, Construct.AGGREGATE, Construct.HAVING})
UNSHOWN = "not shown to be kept: no trace shows a loss, and no argument covers these constructs"
_AGAIN = "matched events stay among the rows, and later relations begin at them"
_ACROSS_KEYS = "each key has its own rows: the order holds within a key; a key that completes sooner delivers sooner"
_OLDER_LATER = "a later relation can take an event that an earlier one left out, after newer ones were delivered"
REASONS: Mapping[Property, str] = {
    Property.NO_DUPLICATION: _AGAIN,
    Property.NO_DUPLICATION_IN_PLACE: f"{_AGAIN}, with the same event in the same place",
    Property.CONJUNCTION_VALIDITY: "a relation that has begun and can still be completed holds back all later ones",
    Property.EVENT_VALIDITY: "an event leaves if the rows next to it do not fit, or a relation passes over it",
    Property.COVERING_AGREEMENT: "an extended pattern ends later or takes other rows, and its next relation begins elsewhere",
    Property.CONJUNCTION_TOTAL_ORDER: "two subscribers that extend a pattern that can be empty have it at different times",
    **dict.fromkeys(ORDERS_OF_A_TYPE, _OLDER_LATER),
}
_BY_CONSTRUCT: tuple[tuple[Construct, Property, str], ...] = (
    (Construct.LIMIT, Property.CONJUNCTION_VALIDITY, "after so many relations none is delivered any more"),
    (
        Construct.LIMIT,
        Property.EVENT_VALIDITY,
        "an event whose relation is decided after the limit is reached is not delivered",
    ),
    (
        Construct.WITHIN,
        Property.CONJUNCTION_VALIDITY,
        "after an event far in the future no time passes, so what it has begun stays open",
    ),
    (Construct.ENDLESS, Property.CONJUNCTION_VALIDITY, "a run that has no last event is never delivered"),
    (Construct.ENDLESS, Property.EVENT_VALIDITY, "a run that has no last event is never delivered"),
    (Construct.PER, Property.CONJUNCTION_VALIDITY, "a key of which no further event comes does not decide what it has begun"),
    *(
        (
            Construct.PER,
            order,
            _ACROSS_KEYS,
        )
        for order in sorted(ORDERS, key=list(Property).index)
    ),
)


def of_sequence(subscription: Subscription, branch: Branch, wanted: Property) -> Guarantee:
    traces, cell = load_sequence_traces(), sequence_cell(subscription, branch)
    constructs = constructs_of(subscription, branch)
    if wanted is Property.EVENT_VALIDITY and not free_beginnings(branch):
        return Guarantee(wanted, Verdict.KEPT, source=f"{PAGE}, sequences")
    shown = traces.loss(cell, wanted, constructs - {Construct.PER})
    if shown is not None:
        return _lost(subscription, wanted, shown, Verdict.LOST)
    shown = traces.loss(cell, wanted, constructs)
    if not is_argued(subscription, branch, wanted):
        if shown is not None:
            return _lost(subscription, wanted, shown, Verdict.LOST)
        return Guarantee(wanted, Verdict.LOST, "a sequence", UNSHOWN, f"{PAGE}, sequences")
    if shown is None and subscription.per and wanted in ORDERS and rows_max(branch) != 1:
        shown = traces.across_keys(wanted)
    if shown is not None:
        return _lost(subscription, wanted, shown, Verdict.PER_KEY if wanted in ORDERS else Verdict.LOST)
    cases = traces.judged(cell, wanted)
    return Guarantee(wanted, Verdict.KEPT, "", "", f"{PAGE}, sequences; none found in {cases:,} cases")


def is_argued(subscription: Subscription, branch: Branch, wanted: Property) -> bool:
    """docs/guarantees.md has an argument that a sequence of this form keeps the property, within a key."""
    if wanted in ALWAYS:
        return True
    limited = subscription.limit is not None
    straight, single = is_straight(branch), rows_max(branch) == 1
    disposal = effective_disposal(subscription, branch)
    match wanted:
        case Property.NO_DUPLICATION:
            return disposal is Disposal.PREFIX_INFIX
        case Property.NO_DUPLICATION_IN_PLACE:
            return disposal is Disposal.PREFIX_INFIX or straight
        case Property.CONJUNCTION_TOTAL_ORDER:
            return begins_with_a_row(branch)
        case Property.CONJUNCTION_VALIDITY:
            return not limited and (straight or single or _always_delivers(subscription, branch))
        case Property.EVENT_VALIDITY:
            return single and not limited
        case Property.COVERING_AGREEMENT:
            each_start = begins_anew_after_the_first(subscription, branch) or single
            choice = straight or (subscription.matching.stepwise and is_of_elements(branch))
            return each_start and choice and not limited
    return disposal is Disposal.PREFIX_INFIX or is_adjacent(subscription, branch)


def _always_delivers(subscription: Subscription, branch: Branch) -> bool:
    """Whatever has begun is decided by the time that later events complete a relation."""
    constructs, stepwise = constructs_of(subscription, branch), subscription.matching.stepwise
    if not stepwise and is_adjacent(subscription, branch):  # after so many rows
        return rows_max(branch) is not None and not branch.timed and not subscription.per
    if constructs & (_LOOKING_BACK | LIMITS_OF_TIME) or not is_of_steps(branch):
        return False
    return not stepwise or Construct.NEXT not in constructs  # by the same events, each step at the first that fits


def _lost(subscription: Subscription, wanted: Property, shown: SequenceLoss, verdict: Verdict) -> Guarantee:
    clause = _to_blame(subscription, wanted, shown)
    said = (why for construct, lost, why in _BY_CONSTRUCT if lost is wanted and construct in shown.constructs)
    return Guarantee(wanted, verdict, clause, next(said, REASONS.get(wanted, "")), shown.title, trace=shown.name)


def _to_blame(subscription: Subscription, wanted: Property, shown: SequenceLoss) -> str:
    """The option whose default would keep the property with these constructs; failing that, the constructs."""
    traces = load_sequence_traces()
    matching, disposal = shown.cell.split("-")

    def kept(matching: str, disposal: str) -> bool:
        return traces.loss(f"{matching}-{disposal}", wanted, shown.constructs) is None

    if disposal != Disposal.PREFIX_INFIX.code and kept(matching, Disposal.PREFIX_INFIX.code):
        return f"DISPOSAL {subscription.disposal_words}"
    if matching == Matching.FIRST_STEPWISE.code and kept(Matching.FIRST.code, disposal):
        return f"MATCHING {subscription.matching.words}"
    own = [each.code for each in Construct if each in shown.constructs and each is not Construct.PER]
    if Construct.PER in shown.constructs and (wanted in ORDERS or not own):
        return f"PER {', '.join(subscription.per)}"
    return ", ".join(own) or "a sequence"
