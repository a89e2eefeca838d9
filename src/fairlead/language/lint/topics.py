"""W017: clauses about an order that a log does not keep: the one between topics."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.checking.subscription import Checked
from fairlead.language.lint.finding import LintFinding
from fairlead.model.clauses.clause import NotingClause
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.plan import Branch, Subscription


def order_between_topics(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W017: live, what stands before what is decided by arrival if the events are in different topics."""
    if checked.subscription.order is not None:
        return
    for branch in checked.subscription.branches:
        clause = _about_order(checked.subscription, branch, catalogue)
        if clause is not None:
            topics = catalogue.topics_of(branch.types)
            problem = (
                f"{clause} depends on the order between the topics {' and '.join(topics)}: live, that is the order of arrival"
            )
            fix = "declare the types in one TOPIC, or order events by time: ORDER BY TIME DELAY 2 SECONDS"
            yield LintFinding("W017", checked.node.name.span, problem, fix)
            return


def _about_order(subscription: Subscription, branch: Branch, catalogue: Catalogue) -> str | None:
    """The clause of a branch that depends on the order of events in different topics, as it is written."""
    topic = [catalogue[slot.type].topic for slot in branch.slots]
    if branch.sequence is not None and len(set(topic)) > 1:
        return "a sequence"
    for each in branch.clauses:
        involved = {topic[slot] for slot in each.anchors}
        if isinstance(each, NotingClause):
            involved.add(catalogue[each.type].topic)
        if not each.waits and len(involved) > 1:
            return each.keyword
    if len(set(topic)) > 1 and (subscription.matching.recent or subscription.matching.contiguous):
        return f"MATCHING {subscription.matching.words}"
    return None
