"""The rules for RETAIN and TABLE. They are cautious: no search has tried these clauses, so a property that they might lose is
said to be lost, without a trace.

    RETAIN    only the oldest events of a queue leave: what is delivered stays in order and is not delivered again
    TABLE     an event is delivered as often as it is read, in any order

Takes: a subscription, one of its branches, a property, the catalogue. Gives: a loss, or None.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.guarantees.clauses import ORDERS_OF_A_TYPE, PAGE, Claim
from fairlead.guarantees.shape import free_slots
from fairlead.model.events.types import Catalogue
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.buckets import are_buckets
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.retention import retain_words

_LATER = "an extended pattern matches later, when its queues hold other events"
RETAIN_REASONS: Mapping[Property, str] = {
    Property.CONJUNCTION_VALIDITY: "events leave their queue before the others of the relation come",
    Property.EVENT_VALIDITY: "an event that finds no partner in time leaves its queue",
    Property.COVERING_AGREEMENT: _LATER,
    Property.CONJUNCTION_TOTAL_ORDER: "two subscribers that extend the same pattern find other events in their queues",
}
TABLE_REASONS: Mapping[Property, str] = {
    Property.NO_DUPLICATION: "an event stays in its table and is delivered with each event that reads it",
    Property.NO_DUPLICATION_IN_PLACE: "an event stays in its table and is delivered in the same place again",
    Property.CONJUNCTION_VALIDITY: "a new event replaces the one of its key in the table",
    Property.EVENT_VALIDITY: "a new event replaces the one of its key in the table, whether or not that was read",
    Property.COVERING_AGREEMENT: "an extended pattern matches later, when its table has other events",
    Property.CONJUNCTION_TOTAL_ORDER: "two subscribers that extend the same pattern read the table at different times",
    **dict.fromkeys(ORDERS_OF_A_TYPE, "an older event of a table can be read after a newer one of another key"),
}


def lost_by_retention(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    if not branch.retained or wanted not in RETAIN_REASONS or are_buckets(subscription):
        return None
    if wanted is Property.EVENT_VALIDITY and not free_slots(branch, subscription.matching, catalogue):
        return None
    clause = f"RETAIN {', '.join(retain_words(subscription))}"
    return Guarantee(wanted, Verdict.LOST, clause, RETAIN_REASONS[wanted], f"{PAGE}, RETAIN and TABLE")


def lost_by_table(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    if not branch.tables or wanted not in TABLE_REASONS:
        return None
    name = branch.tables[0][0]
    return Guarantee(wanted, Verdict.LOST, f"TABLE {name}", TABLE_REASONS[wanted], f"{PAGE}, RETAIN and TABLE")


CAUTIOUS: tuple[Claim, ...] = (lost_by_retention, lost_by_table)
"""Rules whose claims need no trace."""
