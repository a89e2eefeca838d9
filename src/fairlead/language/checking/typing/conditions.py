"""Conditions: NOT pushed down to the atoms, ANDs at the top split, each part in disjunctive normal form.

    NOT (a < b OR c IS NULL) AND d IN (1, 2)   →   a >= b · c IS NOT NULL · d IN (1, 2)

Distribution holds in three-valued logic, so the result equals the original formula for every value, NULL and NaN included.

Takes: an expression as written and a scope. Gives: predicates. Never: decides which branch a conjunct belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.dataclass import dataclass
from fairlead.language.checking.typing.expressions import formula
from fairlead.language.checking.typing.scope import Scope
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.language.parsing.text import RuleText
from fairlead.model.expressions.expression import Atom, Condition, Logic, Predicate, Truth, condition_slots, slots_of
from fairlead.model.limits import LIMITS


@dataclass(frozen=True)
class Conjunct:
    """One of the top-level ANDs of a WHERE, possibly under NOT."""

    node: syntax.Expression
    negated: bool = False

    @property
    def span(self) -> Span:
        return self.node.span


def conjuncts(node: syntax.Expression, negated: bool = False) -> Iterator[Conjunct]:
    match node:
        case syntax.Not():
            yield from conjuncts(node.operand, not negated)
        case syntax.And() if not negated:
            for part in node.parts:
                yield from conjuncts(part)
        case syntax.Or() if negated:
            for part in node.parts:
                yield from conjuncts(part, negated)
        case _:
            yield Conjunct(node, negated)


def predicate(conjunct: Conjunct, scope: Scope, source: RuleText) -> Predicate:
    condition = normal_form(formula(conjunct.node, scope, conjunct.negated), conjunct.span)
    text = source.shown(conjunct.span)
    return Predicate(condition, condition_slots(condition), f"NOT ({text})" if conjunct.negated else text)


def normal_form(formula: Atom | Logic, span: Span) -> Condition:
    """The disjunctive normal form, each atom and each term once, in the order of the text. A condition on one event that has
    too many alternatives stays as it is: it is evaluated for whole columns, and no search depends on its form."""
    if not isinstance(formula, Logic):
        return Condition(((formula,),))
    terms = _terms(formula)
    if terms is not None:
        return Condition(tuple(dict.fromkeys(tuple(dict.fromkeys(term)) for term in terms)))
    if len(slots_of(formula)) > 1:
        problem = f"the condition has more than {LIMITS.dnf_terms_max} alternatives once its ORs are multiplied out"
        raise Fault("L005", span, problem, "use IN for lists of values, or split the subscription")
    return Condition(((Truth(formula),),))


def _terms(node: Atom | Logic) -> list[tuple[Atom, ...]] | None:
    """Its alternatives; None if they are too many."""
    if not isinstance(node, Logic):
        return [(node,)]
    terms: list[tuple[Atom, ...]] = [] if node.operator == "OR" else [()]
    for part in node.operands:
        assert isinstance(part, Atom | Logic)
        factor = _terms(part)
        if factor is None:
            return None
        terms = terms + factor if node.operator == "OR" else [(*term, *other) for term in terms for other in factor]
        if len(terms) > LIMITS.dnf_terms_max:
            return None
    return terms
