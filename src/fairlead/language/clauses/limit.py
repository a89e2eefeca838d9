"""LIMIT in the language: `LIMIT count [PER KEY]`.

Gives: the syntax node and its builder, and the checks that make a Limit of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.model.clauses.limit import Limit, LimitScope

COUNT_MAX = 1_000_000_000_000
"""Relations of a subscription of ten thousand a second after three years."""


@syntax.node
class LimitNode(syntax.Clause):
    word: ClassVar[str] = "LIMIT"

    count: str
    per_key: bool
    span: Span


def _limit(span: Span, parts: list[Any]) -> LimitNode:
    return LimitNode(parts[0].text, len(parts) > 1, span)


BUILDERS: Mapping[str, Callable[[Span, list[Any]], Any]] = {"limit": _limit}


def limit(node: syntax.Subscription) -> Limit | None:
    clause = next((each for each in node.clauses if isinstance(each, LimitNode)), None)
    if clause is None:
        return None
    count = int(clause.count) if len(clause.count) <= len(str(COUNT_MAX)) else COUNT_MAX + 1
    if not 1 <= count <= COUNT_MAX:
        problem = f"a LIMIT is a whole number from 1 to {COUNT_MAX:,}"
        raise Fault("L065", clause.span, problem, "write LIMIT 1, or leave it out to deliver all relations")
    if clause.per_key and not any(isinstance(each, syntax.Per) for each in node.clauses):
        raise Fault("L066", clause.span, "LIMIT … PER KEY counts by key, and the subscription has no PER", _per_fix(clause))
    return Limit(count, LimitScope.KEY if clause.per_key else LimitScope.SUBSCRIPTION)


def _per_fix(clause: LimitNode) -> str:
    return f"add PER before LIMIT, also if the attribute is called key (PER key LIMIT {clause.count}), or leave out PER KEY"
