"""The expressions of a subscription as written, and the names in them that are not inside an aggregate."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.parsing import syntax
from fairlead.model.expression import AGGREGATES


def expressions(node: syntax.Subscription) -> Iterator[syntax.Expression]:
    for clause in node.clauses:
        match clause:
            case syntax.Where():
                yield clause.condition
            case syntax.Emit():
                yield from (each.value for each in clause.assignments)
            case syntax.Without(where=syntax.Where(condition=condition)):
                yield condition


def outside_aggregates(node: syntax.Expression) -> Iterator[syntax.Reference]:
    if isinstance(node, syntax.Reference):
        yield node
    if not (isinstance(node, syntax.Call) and node.function.text.lower() in AGGREGATES):
        for child in syntax.children(node):
            yield from outside_aggregates(child)
