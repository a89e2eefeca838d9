"""W001, W008 to W010: conditions that do not depend on the events, joins without PER, unused types.

W001: `WHERE a.id = b.id` filters relations, but all ids share the queues, so a match on one id disposes of waiting events of
the others. With `PER id` every id has its own queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from fairlead.language.checking.subscription import Checked
from fairlead.language.checking.where import Placed
from fairlead.language.lint.finding import LintFinding
from fairlead.language.parsing import syntax
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.expressions.expression import Compare, Expression, Field, In, Literal, Predicate
from fairlead.model.plans.plan import Branch


def constant(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W008: a conjunct that reads no event is the same for all of them."""
    for conjunct, predicate in _once(checked, lambda each: not each.slots):
        yield LintFinding("W008", conjunct.span, f"'{predicate.text}' reads no event", "use an attribute, or remove it")


def not_in_null(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W009: `x NOT IN (1, NULL)` is false or unknown, never true."""
    for conjunct, _ in _once(checked, _is_never_true):
        yield LintFinding(
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


KEY_KINDS = frozenset({Kind.STRING, Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.DATE, Kind.BINARY})
"""Equal times, truths and floating-point numbers are rarely keys."""


def equality_without_per(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    if checked.subscription.per:
        return
    said: set[str] = set()
    for branch, placed in zip(checked.subscription.branches, checked.conjuncts, strict=True):
        for conjunct, predicate in placed:
            join = _join(predicate)
            if join is None:
                continue
            if any(field.slot in branch.read for field in join):
                continue  # a table keeps what other values read
            clause, possible = _per(*join, branch, catalogue)
            if clause not in said:
                said.add(clause)
                problem = f"'{predicate.text}' joins without PER: a match on one value disposes of events of all others"
                yield LintFinding("W001", conjunct.span, problem, _fix(join, branch, clause, possible))


def _fix(join: tuple[Field, Field], branch: Branch, clause: str, possible: bool) -> str:
    if possible:
        return f"add {clause}"
    left, right = (branch.slots[field.slot].type for field in join)
    if left == right and join[0].attribute != join[1].attribute:  # a type has one key
        return "add DISPOSAL INFIX and WITHIN: a match then discards only its own events"
    return f"add that key to every type, and {clause}"


def _join(predicate: Predicate) -> tuple[Field, Field] | None:
    match predicate.condition.terms:
        case ((Compare("=", Field() as left, Field() as right),),):
            if left.slot != right.slot and left.kind in KEY_KINDS:
                return left, right
    return None


def _per(left: Field, right: Field, branch: Branch, catalogue: Catalogue) -> tuple[str, bool]:
    """The equivalent PER clause, and whether the types allow it unchanged."""
    names = {left.attribute, right.attribute}
    joined = {branch.slots[field.slot].type for field in (left, right)}
    possible = all(name in joined or any(catalogue[name].attribute(each) for each in names) for name in branch.types)
    if len(names) == 1:
        return f"PER {left.attribute}", possible
    aliases = [branch.slots[field.slot].alias for field in (left, right)]
    return f"PER {aliases[0]}.{left.attribute} = {aliases[1]}.{right.attribute}", possible and len(joined) == 2


def unused_types(checked: Sequence[Checked], catalogue: Catalogue, rules: syntax.Rules) -> Iterator[LintFinding]:
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
