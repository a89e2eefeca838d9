"""W011, W012, W030: clauses that reach further than they look."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.checking.subscription import Checked
from fairlead.language.lint.finding import LintFinding
from fairlead.language.parsing import syntax
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.plans.buckets import are_buckets, in_order
from fairlead.model.plans.key_parts import part_of
from fairlead.model.plans.options import Disposal


def floating_key(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W011: keys that are equal on paper may differ in their last bit."""
    clause = next((each for each in checked.node.clauses if isinstance(each, syntax.Per)), None)
    if clause is None:
        return
    for at, key in enumerate(clause.keys):
        used = {(name, parts[at]) for branch in checked.subscription.branches for name, parts in branch.keys}
        attributes = [catalogue[name].attribute(part_of(each).attribute) for name, each in sorted(used)]
        if any(each and each.type.kind is Kind.DOUBLE for each in attributes):
            yield LintFinding(
                "W011",
                key.span,
                "a DOUBLE is a fragile key: values must be equal to the last bit",
                "use a whole number or text",
            )


def endless_buckets(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W030: without an order by time, an event of any bucket can still come."""
    clause = next((each for each in checked.node.clauses if isinstance(each, syntax.Per)), None)
    subscription = checked.subscription
    if clause is None or all(each.parts[0].duration is None for each in clause.keys):
        return
    if subscription.order is None or not are_buckets(in_order(subscription, subscription.order, catalogue)):
        key = next(each for each in clause.keys if each.parts[0].duration is not None)
        problem = "the events of every bucket stay queued until a match disposes of them: nothing says when a bucket ends"
        fix = "add ORDER BY with the time of the buckets, or write RETAIN with a duration and BATCH in place of the bucket"
        yield LintFinding("W030", key.span, problem, fix)


def unbounded_queues(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W012: a disposal that leaves older events queued, and no window that drops them."""
    subscription = checked.subscription
    bounded = all(set(each.queue_types) <= each.retention.keys() for each in subscription.branches)
    if subscription.within_us is not None or bounded:
        return
    for clause in checked.node.clauses:
        match clause:
            case syntax.DisposalClause() if subscription.disposal is not Disposal.PREFIX_INFIX:
                what = f"DISPOSAL {clause.words} leaves events"
            case syntax.Keeping():
                what = f"KEEP {', '.join(each.text for each in clause.aliases)} leaves matched events"
            case _:
                continue
        problem = f"{what} in the queues, and nothing limits how long they stay"
        yield LintFinding("W012", clause.span, problem, "add WITHIN, or RETAIN for each type, if memory matters")
