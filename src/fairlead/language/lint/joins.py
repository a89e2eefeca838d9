"""W001: an equality join without PER.

`WHERE a.id = b.id` filters relations, but all ids share the queues: a match on one id disposes of waiting events of the others.
With `PER id` every id has its own queues.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.checking.subscription import Checked
from fairlead.language.lint.finding import LintFinding
from fairlead.model.expression import Compare, Field, Predicate
from fairlead.model.plan import Branch
from fairlead.model.types import Catalogue, Kind

KEY_KINDS = frozenset({Kind.STRING, Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.BINARY})
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
            clause, possible = _per(*join, branch, catalogue)
            if clause not in said:
                said.add(clause)
                problem = f"'{predicate.text}' joins without PER: a match on one value disposes of events of all others"
                yield LintFinding(
                    "W001",
                    conjunct.span,
                    problem,
                    f"add {clause}" if possible else f"give every type that key, and add {clause}",
                )


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
