"""The rules for RETAIN and TABLE. They are cautious: a property that they might lose is said to be lost also where no trace
shows it. Where docs/guarantees.md argues that it is kept, they claim nothing.

    RETAIN    only the oldest events of a queue leave: what is delivered stays in order and is not delivered again
    TABLE     an event is delivered as often as it is read, and a newer one of its key takes its place

Takes: a subscription, one of its branches, a property, the catalogue. Gives: a loss, or None.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.guarantees.clauses import CLAIMS, ORDERS_OF_A_TYPE, PAGE, Claim
from fairlead.guarantees.shape import ConjunctionShape, free_slots, links, shape_of
from fairlead.model.events.types import Catalogue
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.buckets import are_buckets
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.retention import retain_words

_LATER = "an extended pattern matches later, when its queues hold other events"
RETAIN_REASONS: Mapping[Property, str] = {
    Property.CONJUNCTION_VALIDITY: "events leave their queue before the others of the relation come",
    Property.EVENT_VALIDITY: "an event that finds no partner in time leaves its queue",
    Property.COVERING_AGREEMENT: _LATER,
    Property.CONJUNCTION_TOTAL_ORDER: "two subscribers that extend the same pattern find other events in their queues",
}
_YOUNGER_EACH_TIME = (Disposal.PREFIX_INFIX, Disposal.FIRST_PREFIX, Disposal.ADVANCE)
"""The first matched event of every queue is younger than the one before, whatever else leaves."""
_OLDEST_FIRST = (Matching.FIRST, Matching.FIRST_CONTIGUOUS)
TABLE_REASONS: Mapping[Property, str] = {
    Property.NO_DUPLICATION: "an event stays in its table and is delivered with each event that reads it",
    Property.NO_DUPLICATION_IN_PLACE: "an event stays in its table and is delivered in the same place again",
    Property.CONJUNCTION_VALIDITY: "a new event replaces the one of its key in the table",
    Property.EVENT_VALIDITY: "a new event replaces the one of its key in the table, whether or not that was read",
    Property.COVERING_AGREEMENT: "an extended pattern matches later, when its table has other events",
    Property.CONJUNCTION_TOTAL_ORDER: "two subscribers that extend the same pattern read the table at different times",
    **dict.fromkeys(
        ORDERS_OF_A_TYPE, "an older event can be read, or wait for what a table lacks, until newer ones are delivered"
    ),
}


def lost_by_retention(by_time: bool, batch: bool) -> Claim:
    """For bounds of this form."""

    def claim(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
        forms = {(each.count is None, each.batch) for _, each in branch.retained}
        if (by_time, batch) not in forms or wanted not in RETAIN_REASONS or are_buckets(subscription):
            return None
        if wanted is Property.EVENT_VALIDITY and not free_slots(branch, subscription.matching, catalogue):
            return None
        if not branch.runs and _is_harmless(subscription, branch, wanted, catalogue, by_time, batch):
            return None
        clause = f"RETAIN {', '.join(retain_words(subscription))}"
        return Guarantee(wanted, Verdict.LOST, clause, RETAIN_REASONS[wanted], f"{PAGE}, RETAIN and TABLE")

    return claim


def _is_harmless(
    subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue, by_time: bool, batch: bool
) -> bool:
    """docs/guarantees.md argues that the bound takes nothing that the property needs, in a pattern without runs."""
    match wanted:
        case Property.CONJUNCTION_TOTAL_ORDER:
            return _keeps_parts_in_order(subscription, branch)
        case Property.COVERING_AGREEMENT:
            return _leaves_what_others_have(subscription, branch, catalogue, by_time, batch)
    return not by_time and _leaves_enough(branch, catalogue, batch, wanted)


def _keeps_parts_in_order(subscription: Subscription, branch: Branch) -> bool:
    """A single type waits for nobody. Otherwise what is selected first decides: it is younger each time, or FIRST finds it."""
    if len(branch.queue_types) == 1 or subscription.disposal in _YOUNGER_EACH_TIME:
        return True
    leaving = subscription.disposal in (Disposal.INFIX, Disposal.INFIX_POSTFIX) and not branch.kept
    return leaving and subscription.matching in _OLDEST_FIRST


def _leaves_what_others_have(
    subscription: Subscription, branch: Branch, catalogue: Catalogue, by_time: bool, batch: bool
) -> bool:
    """One type: an extension finds nothing in its queue that the plain subscriber did not find there."""
    if len(branch.slots) == 1:
        return True
    if len(branch.queue_types) > 1 or branch.kept:
        return False
    if by_time:
        return batch
    neighbours = subscription.matching.contiguous and not batch
    sliding = subscription.disposal is Disposal.FIRST_PREFIX and not subscription.matching.all
    return sliding and (neighbours or shape_of(branch, catalogue) is ConjunctionShape.ALIKE)


def _leaves_enough(branch: Branch, catalogue: Catalogue, batch: bool, wanted: Property) -> bool:
    """A bound by number leaves what every relation needs. A WITHOUT that forbids events leaves some in their queue that are in
    no relation."""
    shape = shape_of(branch, catalogue)
    alone = shape in (ConjunctionShape.EVENT, ConjunctionShape.ALIKE)
    if branch.prompt:
        return False
    if wanted is Property.CONJUNCTION_VALIDITY:
        batches = [name for name, each in branch.retained if each.batch and len(branch.slots_of_type[name]) > 1]
        several = shape is ConjunctionShape.SEVERAL_ALIKE and len(batches) < 2
        return alone or shape is ConjunctionShape.SINGLES or several
    return wanted is Property.EVENT_VALIDITY and alone


def lost_by_table(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    if not branch.tables or wanted not in TABLE_REASONS:
        return None
    if wanted is Property.EVENT_VALIDITY and not free_slots(branch, subscription.matching, catalogue):
        return None
    if not branch.runs and not branch.kept and _reads_in_order(subscription, branch, wanted, catalogue):
        return None
    name = branch.tables[0][0]
    return Guarantee(wanted, Verdict.LOST, f"TABLE {name}", TABLE_REASONS[wanted], f"{PAGE}, RETAIN and TABLE")


def _reads_in_order(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> bool:
    """docs/guarantees.md has the argument: of a table that nothing ties to other members FIRST reads the oldest event, which is
    younger each time, and what leaves the queues keeps them in order."""
    first, disposal = subscription.matching in _OLDEST_FIRST, subscription.disposal_of(branch)
    if subscription.matching.all:
        return False
    tied = links(branch, catalogue)
    if wanted is Property.CONJUNCTION_TOTAL_ORDER:
        leading = _leading_tables(branch)
        return disposal in _YOUNGER_EACH_TIME and (not leading or (first and not any(len(each & leading) > 1 for each in tied)))
    if wanted not in ORDERS_OF_A_TYPE or not first or any(each & branch.read for each in tied):
        return False
    single = all(len(slots) == 1 for slots in branch.slots_of_type.values())
    sliding = disposal is Disposal.FIRST_PREFIX and (single or subscription.matching.contiguous)
    return disposal is Disposal.PREFIX_INFIX or sliding


def _leading_tables(branch: Branch) -> frozenset[int]:
    """The tables that the signature begins with: what another pattern extends can be made of these alone."""
    queued = next((at for at in range(len(branch.slots)) if at not in branch.read), len(branch.slots))
    return frozenset(range(queued))


BOUNDS: Mapping[str, Claim] = {
    "RETAIN EVENTS": lost_by_retention(by_time=False, batch=False),
    "RETAIN EVENTS BATCH": lost_by_retention(by_time=False, batch=True),
    "RETAIN TIME": lost_by_retention(by_time=True, batch=False),
    "RETAIN TIME BATCH": lost_by_retention(by_time=True, batch=True),
    "TABLE": lost_by_table,
}
"""By the name of the clause in the table of traces."""
ALL_CLAIMS: Mapping[str, Claim] = {**CLAIMS, **BOUNDS}
