"""W010: a declared type that no subscription reads or emits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlead.language.checking.subscription import Checked
from fairlead.language.lint.finding import LintFinding
from fairlead.language.parsing import syntax
from fairlead.model.types import Catalogue


def types(checked: Sequence[Checked], catalogue: Catalogue, rules: syntax.Rules) -> Iterator[LintFinding]:
    if not checked:
        return  # a text of types only is a library
    used: set[str] = set()
    for each in checked:
        used |= each.subscription.reads(catalogue) | set(each.subscription.types) | {each.subscription.emits or ""}
    for declared in reversed(catalogue.types):  # subtypes come after their supertypes
        if declared.name in used and declared.supertype:
            used.add(declared.supertype)
    for declaration in rules.declarations:
        if declaration.name.text not in used:
            problem = f"no subscription reads or emits '{declaration.name.text}'"
            yield LintFinding("W010", declaration.name.span, problem, "remove it, or use it")
