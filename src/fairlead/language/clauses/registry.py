"""The clauses with modules of their own: what the parser and lint take from each.

A clause's module has its syntax node, `BUILDERS` (by rule of the grammar) and `LINT` (its rules). The node checks itself
(`syntax.NotingNode.planned`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairlead.language.clauses import limit, without
from fairlead.language.lint.finding import Rule
from fairlead.language.parsing.fault import Span

BUILDERS: Mapping[str, Callable[[Span, list[Any]], Any]] = {**without.BUILDERS, **limit.BUILDERS}
LINT: tuple[Rule, ...] = (*without.LINT,)
