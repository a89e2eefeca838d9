"""W008, W009: conditions that do not depend on the events."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.lint.finding import Finding
from fairlead.language.subscription import Checked
from fairlead.model.expression import Expression, In, Literal
from fairlead.model.types import Catalogue


def constant(checked: Checked, catalogue: Catalogue) -> Iterator[Finding]:
    """W008: a conjunct that reads no event is the same for all of them."""
    for conjunct, predicate in dict.fromkeys(each for placed in checked.conjuncts for each in placed):
        if not predicate.slots:
            yield Finding("W008", conjunct.span, f"'{predicate.text}' reads no event", "name an attribute, or leave it out")


def not_in_null(checked: Checked, catalogue: Catalogue) -> Iterator[Finding]:
    """W009: `x NOT IN (1, NULL)` is false or unknown, never true."""
    for conjunct, predicate in dict.fromkeys(each for placed in checked.conjuncts for each in placed):
        atoms = [atom for term in predicate.condition.terms for atom in term]
        if any(isinstance(atom, In) and atom.negated and any(map(_is_null, atom.options)) for atom in atoms):
            yield Finding(
                "W009", conjunct.span, "NOT IN with NULL among the options is never true", "leave out NULL, and add IS NOT NULL"
            )


def _is_null(option: Expression) -> bool:
    return isinstance(option, Literal) and option.value is None
