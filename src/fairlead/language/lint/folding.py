"""W031: a run that has to become long, of which nothing but aggregates is read."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.checking.subscription import Checked
from fairlead.language.clauses.fold import against
from fairlead.language.lint.finding import LintFinding
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Aggregate, Compare, Expression, Literal
from fairlead.model.plans.plan import Branch

LONG = 100_000
"""Events of a run: about 10 MB, and a state of that size."""


def long_run(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    subscription = checked.subscription
    for branch, shape in zip(subscription.branches, checked.shapes, strict=False):
        for slot, run in branch.runs.items():
            name, least = branch.slots[slot].alias, max(run.least, _asked(branch, slot))
            within = subscription.within_us is not None
            if least < LONG or branch.folded or against(branch, slot, name, subscription.disposal, within) is not None:
                continue
            span = next((each.span for each in shape.nodes if each.alias.text == name), shape.pattern.span)
            problem = f"'{name}' has at least {least:,} events, and all of them are queued until then"
            fix = f"add FOLD {name}, if you need no more of it than its aggregates: then memory does not grow with it"
            yield LintFinding("W031", span, problem, fix)


def _asked(branch: Branch, slot: int) -> int:
    """How many events HAVING asks for."""
    atoms = [each.condition.terms[0] for each in branch.having if len(each.condition.terms) == 1]
    return max((_least(atom, slot) for term in atoms for atom in term if isinstance(atom, Compare)), default=0)


def _least(atom: Compare, slot: int) -> int:
    for count, sign, number in ((atom.left, atom.operator, atom.right), (atom.right, _turned(atom.operator), atom.left)):
        if _is_count(count, slot) and sign in (">", ">=", "=") and isinstance(number, Literal):
            return int(number.value) if isinstance(number.value, int) else 0
    return 0


def _is_count(node: Expression, slot: int) -> bool:
    return isinstance(node, Aggregate) and (node.function, node.slots) == ("count", (slot,))


def _turned(operator: str) -> str:
    return {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
