"""Which subscriptions have no kernel, and why: the one place that decides. (Compiles nothing.)

A unit with runs that have none works event by event, and they are warned of (W025). What else has no kernel is warned of when
rules are compiled (W013) and refused when they are to run (U001), unless somebody asked for the matcher that goes event by
event. What a kernel can take long for is warned of too (W014).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from fairlead.errors import Place, UnsupportedError
from fairlead.matching.compiled.planning.family import family_key
from fairlead.matching.compiled.planning.shape_builder import Refused, shape_of
from fairlead.matching.interpreted.search import overlapping
from fairlead.model.lint_warning import LintWarning
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch, Plan, Subscription

FIX = "rewrite that condition, or ask for the slow matcher: event_by_event=True, --event-by-event"


@dataclass(frozen=True)
class Refusal:
    """A subscription without a kernel; `text` is the condition it lacks one for, if it is a condition."""

    subscription: Subscription
    reason: str
    text: str = ""

    @property
    def problem(self) -> str:
        return f"'{self.subscription.name}' cannot be compiled to machine code ({self.reason})"


def refusal_of(plan: Plan, subscription: Subscription) -> Refusal | None:
    try:
        for branch in subscription.branches:
            shape_of(subscription, branch, plan.catalogue)
    except Refused as refused:
        return Refusal(subscription, str(refused), refused.text)
    return None


def refusals(plan: Plan) -> tuple[Refusal, ...]:
    """In the order of the text; of alike subscriptions the first. Compiling and running a plan both ask, so the answer stays
    with the catalogue, which the plans of one compilation share."""
    kept: tuple[object, tuple[Refusal, ...]] | None = vars(plan.catalogue).get("_refusals")
    if kept is None or kept[0] is not plan.subscriptions:
        kept = vars(plan.catalogue)["_refusals"] = (plan.subscriptions, tuple(_refusals(plan)))
    return kept[1]


def _refusals(plan: Plan) -> Iterator[Refusal]:
    known: set[Hashable] = set()
    for subscription in plan.subscriptions:
        if subscription.by_event:  # without a kernel they are matched event by event
            continue
        keys = {family_key(subscription, branch) for branch in subscription.branches}
        if None in keys or not keys <= known:
            known |= keys
            found = refusal_of(plan, subscription)
            if found is not None:
                yield found


@dataclass(frozen=True)
class Expense:
    """A subscription in which an arriving event can take more than O(n log n) steps."""

    subscription: Subscription
    arrives: str
    bound: str
    cause: str
    remedy: str
    text: str = ""


def expenses(plan: Plan) -> Iterator[Expense]:
    """In the order of the text; of alike subscriptions the first."""
    known: set[Hashable] = set()
    for subscription in plan.subscriptions:
        for branch in (each for each in subscription.branches if each.sequence is None):
            key = family_key(subscription, branch)
            if not _is_suspect(plan, subscription, branch) or (key is not None and key in known):
                continue
            known.add(key)
            found = _expense(plan, subscription, branch)
            if found is not None:
                yield found
                break


def _is_suspect(plan: Plan, subscription: Subscription, branch: Branch) -> bool:
    """Whether it is worth a look: with one member, only where events before it count; with two, where events between them do,
    or everything may be searched."""
    if len(branch.slots) != 2 or branch.runs:
        return len(branch.slots) >= 2 or bool(branch.prompt)
    loose = subscription.disposal in (Disposal.FIRST_PREFIX, Disposal.ADVANCE) or subscription.matching.contiguous
    return loose or bool(branch.prompt) or overlapping(branch, plan.catalogue)


def _expense(plan: Plan, subscription: Subscription, branch: Branch) -> Expense | None:
    from fairlead.matching.compiled.planning.costs.cost import excess
    from fairlead.matching.compiled.planning.costs.cost_words import expense_words

    try:
        found = excess(shape_of(subscription, branch, plan.catalogue), plan.catalogue)
    except Refused:
        return None
    return None if found is None else Expense(subscription, *expense_words(found))


def too_expensive(plan: Plan) -> tuple[LintWarning, ...]:
    """W014: searches whose steps multiply with the queued events."""
    return tuple(
        LintWarning(
            "W014",
            f"'{each.subscription.name}': an arriving {each.arrives} can cost {each.bound} for n queued events: {each.cause}",
            _remedy(each),
            place_of(plan, each),
            each.subscription.name,
        )
        for each in expenses(plan)
    )


def _remedy(expense: Expense) -> str:
    subscription = expense.subscription
    remedies = [] if subscription.per else ["add PER, so that n is the queue of one key"]
    remedies += [] if subscription.within_us is not None else ["add WITHIN to bound n"]
    return "; ".join([*remedies, f"or {expense.remedy}" if remedies else expense.remedy])


def refused(plan: Plan) -> str | None:
    """The first reason in a plan, with the subscription; None if all of it has kernels."""
    return next((f"{each.subscription.name}: {each.reason}" for each in refusals(plan)), None)


def require_kernels(plan: Plan) -> None:
    """Raises UnsupportedError (U001) unless all of the plan can be compiled to machine code."""
    for each in refusals(plan):
        place = place_of(plan, each)
        line = plan.text.split("\n")[place.line - 1] if place is not None and each.text else None
        raise UnsupportedError("U001", each.problem, FIX, place or f"subscription {each.subscription.name}", line)


def without_kernels(plan: Plan) -> tuple[LintWarning, ...]:
    """W013: what a run will refuse; alike subscriptions are said once."""
    return tuple(
        LintWarning(
            "W013",
            f"{each.problem}: a run refuses the plan unless it goes event by event",
            FIX,
            place_of(plan, each),
            each.subscription.name,
        )
        for each in refusals(plan)
    )


def has_slow_runs(plan: Plan) -> bool:
    """Some subscription with runs, or some sequence, has no kernel."""
    return any(each.by_event and refusal_of(plan, each) is not None for each in plan.subscriptions)


def _kind(subscription: Subscription) -> str:
    return "is a sequence that is" if subscription.has_sequences else "has runs, such as q+, that are"


def slow(plan: Plan) -> tuple[LintWarning, ...]:
    """W025: sequences, and subscriptions with runs, that have no kernel."""
    found = [refusal_of(plan, each) for each in plan.subscriptions if each.by_event]
    return tuple(
        LintWarning(
            "W025",
            f"'{each.subscription.name}' {_kind(each.subscription)} matched event by event ({each.reason}): 20,000 to 40,000 "
            "events/s",
            "if that is too slow, rewrite that condition",
            place_of(plan, each),
            each.subscription.name,
        )
        for each in found
        if each is not None
    )


def place_of(plan: Plan, refusal: Refusal | Expense) -> Place | None:
    """Where the condition stands, or else the subscription; None for a plan without its text."""
    start = plan.text.find(refusal.subscription.text) if refusal.subscription.text else -1
    if start < 0:
        return None
    width = len(refusal.subscription.text.split("\n")[0])
    pattern = r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", refusal.text)))
    found = re.compile(pattern).search(plan.text, start) if pattern else None
    if found is not None:
        start, width = found.start(), len(found[0].split("\n")[0])
    return Place(plan.text.count("\n", 0, start) + 1, start - (plan.text.rfind("\n", 0, start) + 1) + 1, width, plan.file)
