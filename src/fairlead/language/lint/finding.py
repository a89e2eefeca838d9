"""A finding of a lint rule: the warning before it has a line and a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairlead.dataclass import dataclass
from fairlead.language.checking.subscription import Checked
from fairlead.language.parsing.fault import Span
from fairlead.model.types import Catalogue


@dataclass(frozen=True)
class LintFinding:
    code: str
    span: Span
    problem: str
    fix: str


Rule = Callable[[Checked, Catalogue], Iterator[LintFinding]]
