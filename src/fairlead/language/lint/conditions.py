"""W008, W009: conditions that do not depend on the events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fairlead.language.checking.subscription import Checked
from fairlead.language.checking.where import Placed
from fairlead.language.lint.finding import Finding
from fairlead.model.expression import Expression, In, Literal, Predicate
from fairlead.model.types import Catalogue


def constant(checked: Checked, catalogue: Catalogue) -> Iterator[Finding]:
    """W008: a conjunct that reads no event is the same for all of them."""
    for conjunct, predicate in _once(checked, lambda each: not each.slots):
        yield Finding("W008", conjunct.span, f"'{predicate.text}' reads no event", "use an attribute, or remove it")


def not_in_null(checked: Checked, catalogue: Catalogue) -> Iterator[Finding]:
    """W009: `x NOT IN (1, NULL)` is false or unknown, never true."""
    for conjunct, _ in _once(checked, _is_never_true):
        yield Finding(
            "W009", conjunct.span, "NOT IN with NULL among the options is never true", "remove NULL, and add IS NOT NULL"
        )


def _once(checked: Checked, odd: Callable[[Predicate], bool]) -> Iterable[Placed]:
    """The conjuncts whose predicate is odd, each once, however many branches have it."""
    return dict.fromkeys(each for placed in checked.conjuncts for each in placed if odd(each[1]))


def _is_never_true(predicate: Predicate) -> bool:
    atoms = (atom for term in predicate.condition.terms for atom in term)
    return any(isinstance(atom, In) and atom.negated and any(map(_is_null, atom.options)) for atom in atoms)


def _is_null(option: Expression) -> bool:
    return isinstance(option, Literal) and option.value is None
