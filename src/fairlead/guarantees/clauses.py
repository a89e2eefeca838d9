"""The rules for the other clauses: overlapping types, WITHIN, absences, AFTER, LIMIT, PER, runs. Each says which properties its
clause loses.

Takes: a subscription, one of its branches, a property, the catalogue. Gives: a loss (or "kept per key") with the clause in
words, or None. docs/guarantees.md has the arguments and the searches; tests/guarantees/test_clauses.py runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fairlead.guarantees.shape import ConjunctionShape, free_slots, overlaps, shape_of
from fairlead.model.events.types import Catalogue
from fairlead.model.events.values import duration_words
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.plan import Branch, Subscription

Claim = Callable[[Subscription, Branch, Property, Catalogue], Guarantee | None]
PAGE = "docs/guarantees.md"
ORDERS_OF_A_TYPE = frozenset(
    {Property.TYPE_TOTAL_ORDER, Property.TYPE_FIFO_ORDER, Property.TYPE_LOCAL_ORDER, Property.TYPE_CAUSAL_ORDER}
)
ORDERS = ORDERS_OF_A_TYPE | {Property.CONJUNCTION_TOTAL_ORDER}


def lost_by_overlap(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    """One event can be in two queues, and each queue keeps only its own order."""
    pairs = overlaps(branch, catalogue)
    if not pairs:
        return None
    clause, source = f"MATCH {pairs[0][0]} AND {pairs[0][1]}", f"{PAGE}, overlapping types"
    if wanted in ORDERS_OF_A_TYPE:
        why = "an event of both types waits in two queues, so it can be delivered after a newer one"
        return Guarantee(wanted, Verdict.LOST, clause, why, source)
    if wanted is Property.NO_DUPLICATION and subscription.disposal in (Disposal.FIRST_PREFIX, Disposal.ADVANCE):
        why = "an event delivered from one queue stays in the other and is delivered again"
        return Guarantee(wanted, Verdict.LOST, clause, why, source)
    return None


def lost_by_window(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    """Events leave the queue by the clock of the subscriber's own events."""
    if subscription.within_us is None:
        return None
    clause, source = f"WITHIN {duration_words(subscription.within_us)}", f"{PAGE}, WITHIN"
    if wanted is Property.EVENT_VALIDITY and free_slots(branch, subscription.matching, catalogue):
        why = "an event that finds no partner within the window leaves its queue"
    elif wanted is Property.CONJUNCTION_VALIDITY:
        why = "an event far in the future moves the window past those that follow; kept if times never fall back by more"
    elif wanted is Property.COVERING_AGREEMENT and len(branch.slots) > 1:
        why = "an extended pattern has a later clock: its window drops events that the plain pattern matched"
    else:
        return None
    return Guarantee(wanted, Verdict.LOST, clause, why, source)


def lost_by_absence(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    """Relations wait for a deadline, and a cancelled one has consumed its members."""
    absence = next((each for each in branch.waiting if each.forbids), None)
    if absence is None or not _can_lose_by_waiting(subscription, branch, wanted, catalogue):
        return None
    return Guarantee(wanted, Verdict.LOST, absence.words(branch.alias_names()), ABSENCE_REASONS[wanted], f"{PAGE}, absences")


def lost_by_timer(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    """Relations wait for a time, which may not come, and have consumed their members."""
    timer = next((each for each in branch.waiting if not each.forbids), None)
    if timer is None or not _can_lose_by_waiting(subscription, branch, wanted, catalogue):
        return None
    return Guarantee(wanted, Verdict.LOST, timer.words(branch.alias_names()), TIMER_REASONS[wanted], f"{PAGE}, AFTER")


_BY_DEADLINE = "relations are delivered by deadline, so events whose times are out of order are delivered out of order"
ABSENCE_REASONS: Mapping[Property, str] = {
    Property.CONJUNCTION_VALIDITY: "a relation that is cancelled has consumed its members, and the same unlucky choice can be "
    "made every time",
    Property.EVENT_VALIDITY: "a relation that is cancelled has consumed its members",
    Property.COVERING_AGREEMENT: "an extended pattern reads more types, decides at an earlier event and can miss a "
    "cancellation",
    **dict.fromkeys(ORDERS, _BY_DEADLINE),
}
TIMER_REASONS: Mapping[Property, str] = {
    Property.CONJUNCTION_VALIDITY: "if every match chooses an event whose time does not pass, all relations wait",
    Property.EVENT_VALIDITY: "a matched event waits with its relation, and is not delivered if no later time comes",
    Property.COVERING_AGREEMENT: "an extended pattern reads more types, so time can pass for it and stand still for the plain "
    "one",
    **dict.fromkeys(ORDERS, _BY_DEADLINE),
}


def _can_lose_by_waiting(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> bool:
    if wanted is Property.EVENT_VALIDITY:
        return bool(free_slots(branch, subscription.matching, catalogue))
    if wanted is Property.CONJUNCTION_VALIDITY:
        return not _pairs_in_turn(subscription, branch, catalogue)
    return wanted in ORDERS or wanted is Property.COVERING_AGREEMENT


def _pairs_in_turn(subscription: Subscription, branch: Branch, catalogue: Catalogue) -> bool:
    """Every event is tried once, in turn, whatever the others are: so an event that nothing cancels, and whose time passes, is
    delivered. True for a single event, and, if one member alone decides, for one instance per type without links under FIRST,
    and for interchangeable instances of one type under FIRST PREFIX, where each is every instance in turn."""
    if len(branch.slots) == 1:
        return True
    if len(frozenset().union(*(each.members(len(branch.slots)) for each in branch.waiting))) > 1:
        return False
    if shape_of(branch, catalogue) is ConjunctionShape.ALIKE:
        return subscription.disposal is Disposal.FIRST_PREFIX
    return (
        shape_of(branch, catalogue) is ConjunctionShape.SINGLES
        and subscription.matching in (Matching.FIRST, Matching.FIRST_CONTIGUOUS)
        and subscription.disposal in (Disposal.PREFIX_INFIX, Disposal.INFIX, Disposal.FIRST_PREFIX)
        and not branch.kept
    )


def lost_by_limit(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    """What is delivered are the first relations: a prefix, over all keys or of each."""
    if subscription.limit is None:
        return None
    if wanted is Property.EVENT_VALIDITY and free_slots(branch, subscription.matching, catalogue):
        why = "an event whose relation is decided after the limit is reached is not delivered"
    elif wanted is Property.CONJUNCTION_VALIDITY:
        why = "after so many relations none is delivered any more"
    elif wanted is Property.COVERING_AGREEMENT and _passes_over(subscription):
        why = "an extended pattern can pass over relations of the plain one, so the first ones of both differ"
    else:
        return None
    return Guarantee(wanted, Verdict.LOST, str(subscription.limit), why, f"{PAGE}, LIMIT")


def lost_by_limit_over_keys(
    subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue
) -> Guarantee | None:
    """Keys complete in another order where the pattern is longer."""
    limit = subscription.limit
    if limit is None or limit.per_key or not subscription.per or wanted is not Property.COVERING_AGREEMENT:
        return None
    why = "keys of an extended pattern complete in another order, so the first ones of both differ"
    return Guarantee(wanted, Verdict.LOST, str(limit), why, f"{PAGE}, LIMIT")


def _passes_over(subscription: Subscription) -> bool:
    """An event that waits for others is passed over: newer ones are chosen, or it is dropped with those after a match."""
    return subscription.matching.recent or subscription.disposal is Disposal.INFIX_POSTFIX


def kept_per_key(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    """Each key has its own queues; orders hold within one. A single event does not wait and stays in order."""
    if all(map(_is_bucket, subscription.per)) or wanted not in ORDERS or len(branch.slots) == 1:
        return None
    why = "each key has its own queues: the order holds within a key; a key that completes sooner delivers sooner"
    return Guarantee(wanted, Verdict.PER_KEY, f"PER {', '.join(subscription.per)}", why, f"{PAGE}, PER")


def kept_per_bucket(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    """A bucket is a key; late events go to their own."""
    if not any(map(_is_bucket, subscription.per)) or wanted not in ORDERS or len(branch.slots) == 1:
        return None
    why = "each bucket has its own queues: the order holds within a bucket; a late event completes one of an earlier bucket"
    return Guarantee(wanted, Verdict.PER_KEY, f"PER {', '.join(subscription.per)}", why, f"{PAGE}, PER")


def _is_bucket(part: str) -> bool:
    return "bucket(" in part


_OLDER_LATER = "an event that a run leaves in its queue can be delivered after newer ones"
RUN_REASONS: Mapping[Property, str] = {
    Property.NO_DUPLICATION: "only the first event of a run leaves its queue, so the others are delivered again",
    Property.NO_DUPLICATION_IN_PLACE: "only the first event of a run leaves its queue; the next run has the others again",
    Property.CONJUNCTION_VALIDITY: "events that a run has to hold stay queued, and no later event makes it fit",
    Property.EVENT_VALIDITY: "a run that is complete without the event does not wait for it, and disposal drops it",
    Property.COVERING_AGREEMENT: "an extended pattern matches later, when its run holds more events than the plain one's",
    Property.CONJUNCTION_TOTAL_ORDER: "two subscribers that extend the same pattern take its runs at different times",
    **dict.fromkeys(ORDERS_OF_A_TYPE, _OLDER_LATER),
}
"""Why a run, or HAVING, can lose the property."""


def lost_by_runs(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    """How many events a run holds depends on when it is asked."""
    if not branch.runs or wanted not in RUN_REASONS:
        return None
    if wanted is Property.EVENT_VALIDITY and not free_slots(branch, subscription.matching, catalogue):
        return None
    slot, run = next(iter(branch.runs.items()))
    clause = f"MATCH {branch.slots[slot].type} {branch.slots[slot].alias}{run.canonical}"
    return Guarantee(wanted, Verdict.LOST, clause, RUN_REASONS[wanted], f"{PAGE}, runs")


def lost_by_having(subscription: Subscription, branch: Branch, wanted: Property, catalogue: Catalogue) -> Guarantee | None:
    """A run that is too long, or has the wrong events, stays so: nothing is delivered, and nothing leaves."""
    said = lost_by_runs(subscription, branch, wanted, catalogue) if branch.having else None
    if said is None:
        return None
    why = "a run for which HAVING is not true can stay in its queue, and no later event makes it true"
    text = branch.having[0].text
    of_validity = wanted in (Property.CONJUNCTION_VALIDITY, Property.EVENT_VALIDITY)
    return replace(said, clause=f"HAVING {text}" if text else "HAVING", reason=why if of_validity else said.reason)


CLAIMS: Mapping[str, Claim] = {
    "overlapping types": lost_by_overlap,
    "WITHIN": lost_by_window,
    "WITHOUT WITHIN": lost_by_absence,
    "AFTER": lost_by_timer,
    "LIMIT": lost_by_limit,
    "LIMIT over keys": lost_by_limit_over_keys,
    "PER": kept_per_key,
    "PER bucket": kept_per_bucket,
    "runs": lost_by_runs,
    "HAVING": lost_by_having,
}
"""The properties that each clause may lose, by the name of the clause in the table of traces."""
