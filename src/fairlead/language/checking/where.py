"""WHERE and HAVING: which conjunct belongs to which branch, and its predicate there.

A conjunct belongs to every branch that has all the names it uses. It is an error if no single branch has all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.language.checking.runs import check_whole
from fairlead.language.checking.typing.conditions import Conjunct, conjuncts, predicate
from fairlead.language.checking.typing.scope import Scope
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.language.parsing.text import RuleText
from fairlead.model.expressions.expression import Predicate

Placed = tuple[Conjunct, Predicate]


def where(clause: syntax.Where | syntax.Having, scopes: Sequence[Scope], source: RuleText) -> list[list[Placed]]:
    """For each branch its predicates with their conjuncts."""
    placed: list[list[Placed]] = [[] for _ in scopes]
    for conjunct in conjuncts(clause.condition):
        for at in _branches(conjunct, scopes):
            found = predicate(conjunct, scopes[at], source)
            if isinstance(clause, syntax.Having):
                check_whole([atom for term in found.condition.terms for atom in term], scopes[at].runs, conjunct.span)
            placed[at].append((conjunct, found))
    return placed


def _branches(conjunct: Conjunct, scopes: Sequence[Scope]) -> list[int]:
    if len(scopes) == 1:
        return [0]  # unknown names are reported where they are resolved
    names = list(syntax.references(conjunct.node))
    fitting = [at for at, scope in enumerate(scopes) if all(scope.knows(each) for each in names)]
    if fitting:
        return fitting
    for each in names:
        if not any(scope.knows(each) for scope in scopes):
            _everything(scopes).member(each.head)  # raises: no branch knows it
    named = sorted({str(each.head.text) for each in names})
    problem = f"no single branch of the pattern has all of {', '.join(named)}"
    raise Fault("L033", conjunct.span, problem, "write one subscription per branch, or one condition per branch")


def _everything(scopes: Sequence[Scope]) -> Scope:
    members = {alias: member for scope in reversed(scopes) for alias, member in scope.members.items()}
    return Scope(members, {alias: word for scope in scopes for alias, word in scope.hidden.items()})
