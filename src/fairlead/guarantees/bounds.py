"""The rules for RETAIN and TABLE. They are cautious: a property that they might lose is said to be lost also where no trace
shows it.

    RETAIN    only the oldest events of a queue leave: what is delivered stays in order and is not delivered again
    TABLE     an event is delivered as often as it is read, in any order

Takes: a subscription, one of its branches, a property, the catalogue. Gives: a loss, or None.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.guarantees.clauses import CLAIMS, ORDERS_OF_A_TYPE, PAGE, Claim
from fairlead.guarantees.shape import ConjunctionShape, free_slots, shape_of
from fairlead.model.events.types import Catalogue
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.buckets import are_buckets
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.retention import retain_words

_LATER = "an extended pattern matches later, when its queues hold other events"
RETAIN_REASONS: Mapping[Property, str] = {
    Property.CONJUNCTION_VALIDITY: "events leave their queue before the others of the relation come",
    Property.EVENT_VALIDITY: "an event that finds no partner in time leaves its queue",
    Property.COVERING_AGREEMENT: _LATER,
    Property.CONJUNCTION_TOTAL_ORDER: "two subscribers that extend the same pattern find other events in their queues",
}
_YOUNGER_EACH_TIME = (Disposal.PREFIX_INFIX, Disposal.FIRST_PREFIX)
"""The first matched event of every queue is younger than the one before, whatever else leaves."""
TABLE_REASONS: Mapping[Property, str] = {
    Property.NO_DUPLICATION: "an event stays in its table and is delivered with each event that reads it",
    Property.NO_DUPLICATION_IN_PLACE: "an event stays in its table and is delivered in the same place again",
    Property.CONJUNCTION_VALIDITY: "a new event replaces the one of its key in the table",
    Property.EVENT_VALIDITY: "a new event replaces the one of its key in the table, whether or not that was read",
    Property.COVERING_AGREEMENT: "an extended pattern matches later, when its table has other events",
    Property.CONJUNCTION_TOTAL_ORDER: "two subscribers that extend the same pattern read the table at different times",
    **dict.fromkeys(ORDERS_OF_A_TYPE, "an older event of a table can be read after a newer one of another key"),
}


def lost_by_retention(by_time: bool, batch: bool) -> Claim:
    """For bounds of this form."""

    def claim(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
        forms = {(each.count is None, each.batch) for _, each in branch.retained}
        if (by_time, batch) not in forms or wanted not in RETAIN_REASONS or are_buckets(subscription):
            return None
        if wanted is Property.EVENT_VALIDITY and not free_slots(branch, subscription.matching, catalogue):
            return None
        if wanted is Property.CONJUNCTION_TOTAL_ORDER and subscription.disposal in _YOUNGER_EACH_TIME and not branch.runs:
            return None
        if not branch.runs and _leaves_enough(shape_of(branch, catalogue), bool(branch.prompt), by_time, batch, wanted):
            return None
        clause = f"RETAIN {', '.join(retain_words(subscription))}"
        return Guarantee(wanted, Verdict.LOST, clause, RETAIN_REASONS[wanted], f"{PAGE}, RETAIN and TABLE")

    return claim


def _leaves_enough(shape: ConjunctionShape, forbids: bool, by_time: bool, batch: bool, wanted: Property) -> bool:
    """docs/guarantees.md has the argument: a bound leaves what every relation needs. A WITHOUT that forbids events leaves some
    in their queue that are in no relation."""
    single, alike = shape is ConjunctionShape.EVENT, shape is ConjunctionShape.ALIKE
    if wanted is Property.COVERING_AGREEMENT:
        return single
    if by_time or forbids:
        return False
    if wanted is Property.CONJUNCTION_VALIDITY:
        several = shape is ConjunctionShape.SEVERAL_ALIKE and not batch
        return single or alike or shape is ConjunctionShape.SINGLES or several
    return wanted is Property.EVENT_VALIDITY and (single or alike)


def lost_by_table(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    if not branch.tables or wanted not in TABLE_REASONS:
        return None
    name = branch.tables[0][0]
    return Guarantee(wanted, Verdict.LOST, f"TABLE {name}", TABLE_REASONS[wanted], f"{PAGE}, RETAIN and TABLE")


BOUNDS: Mapping[str, Claim] = {
    "RETAIN EVENTS": lost_by_retention(by_time=False, batch=False),
    "RETAIN EVENTS BATCH": lost_by_retention(by_time=False, batch=True),
    "RETAIN TIME": lost_by_retention(by_time=True, batch=False),
    "RETAIN TIME BATCH": lost_by_retention(by_time=True, batch=True),
    "TABLE": lost_by_table,
}
"""By the name of the clause in the table of traces."""
ALL_CLAIMS: Mapping[str, Claim] = {**CLAIMS, **BOUNDS}
