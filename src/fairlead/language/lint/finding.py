"""A finding of a lint rule, before it has a line and a column; and the expressions of a subscription as written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairlead.dataclass import dataclass
from fairlead.language.checking.subscription import Checked
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Span
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import AGGREGATES


@dataclass(frozen=True)
class LintFinding:
    code: str
    span: Span
    problem: str
    fix: str


Rule = Callable[[Checked, Catalogue], Iterator[LintFinding]]


def expressions(node: syntax.Subscription) -> Iterator[syntax.Expression]:
    for clause in node.clauses:
        yield from clause.expressions


def outside_aggregates(node: syntax.Expression) -> Iterator[syntax.Reference]:
    if isinstance(node, syntax.Reference):
        yield node
    if not (isinstance(node, syntax.Call) and node.function.lower in AGGREGATES):
        for child in syntax.children(node):
            yield from outside_aggregates(child)
