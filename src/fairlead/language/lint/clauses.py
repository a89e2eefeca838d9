"""W006, W007, W011, W012: clauses that reach further than they look."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.checking.subscription import Checked
from fairlead.language.lint.finding import LintFinding
from fairlead.language.parsing import syntax
from fairlead.model.plan import Absence, Disposal, NegationBetween
from fairlead.model.types import Catalogue, Kind


def anything_cancels(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W006: a WITHOUT with neither WHERE nor PER is about every event of its type."""
    for clause in checked.node.withouts:
        if clause.where is None and not checked.subscription.per:
            name = clause.type.text
            fix = f"add WHERE {clause.alias.text}.… = …, or PER"
            yield LintFinding("W006", clause.span, f"any {name} counts here: the WITHOUT has neither WHERE nor PER", fix)


def condition_beside_the_absent_event(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W007: a conjunct of a WITHOUT's WHERE that is about members only does not restrict the pattern."""
    said: set[str] = set()
    clauses = {each.alias.text: each for each in checked.node.withouts}
    for branch in checked.subscription.branches:
        negations: tuple[NegationBetween | Absence, ...] = (*branch.negations, *branch.absences)
        for negation in negations:
            where = clauses[negation.alias].where
            for predicate in negation.predicates:
                if where and predicate.slots and negation.slot not in predicate.slots and predicate.text not in said:
                    said.add(predicate.text)
                    problem = f"'{predicate.text}' does not name '{negation.alias}': if it is false, no event is ruled out"
                    yield LintFinding(
                        "W007", where.condition.span, problem, "move it to the WHERE of the pattern, before WITHOUT"
                    )


def floating_key(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W011: keys that are equal on paper may differ in their last bit."""
    clause = next((each for each in checked.node.clauses if isinstance(each, syntax.Per)), None)
    if clause is None:
        return
    for at, key in enumerate(clause.keys):
        used = {(name, parts[at]) for branch in checked.subscription.branches for name, parts in branch.keys}
        attributes = [catalogue[name].attribute(attribute) for name, attribute in sorted(used)]
        if any(each and each.type.kind is Kind.DOUBLE for each in attributes):
            yield LintFinding(
                "W011",
                key.span,
                "a DOUBLE is a fragile key: values must be equal to the last bit",
                "use a whole number or text",
            )


def unbounded_queues(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W012: a disposal that leaves older events queued, and no window that drops them."""
    subscription = checked.subscription
    clause = next((each for each in checked.node.clauses if isinstance(each, syntax.DisposalClause)), None)
    if clause and subscription.disposal is not Disposal.PREFIX_INFIX and subscription.within_us is None:
        problem = f"DISPOSAL {clause.words} leaves events in the queues, and nothing limits how long they stay"
        yield LintFinding("W012", clause.span, problem, "add WITHIN if memory matters")
