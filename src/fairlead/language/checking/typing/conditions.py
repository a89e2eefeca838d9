"""Conditions: NOT pushed down to the atoms, ANDs at the top split, each part in disjunctive normal form.

    NOT (a < b OR c IS NULL) AND d IN (1, 2)   →   a >= b · c IS NOT NULL · d IN (1, 2)

De Morgan and distribution hold in three-valued logic, and every atom's negation is unknown exactly where the atom is, so the
result equals the original formula for every value, NULL and NaN included.

Takes: an expression as written and a scope. Gives: predicates. Never: decides which branch a conjunct belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.dataclass import dataclass
from fairlead.language.checking.typing.expressions import atom, between, typed
from fairlead.language.checking.typing.scope import Scope
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.language.parsing.text import RuleText
from fairlead.model.events.types import Kind
from fairlead.model.limits import LIMITS
from fairlead.model.plans.expression import Atom, Condition, Predicate, Truth, condition_slots


@dataclass(frozen=True)
class Every:
    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Some:
    parts: tuple[Formula, ...]


Formula = Atom | Every | Some


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


def formula(node: syntax.Expression, scope: Scope, negated: bool = False) -> Formula:
    """The typed condition, with NOT only inside its atoms."""
    match node:
        case syntax.Not():
            return formula(node.operand, scope, not negated)
        case syntax.And() | syntax.Or():
            parts = tuple(formula(part, scope, negated) for part in node.parts)
            return Every(parts) if isinstance(node, syntax.And) != negated else Some(parts)
        case syntax.Between():
            opposite = node.negated != negated
            bounds = between(node, scope, opposite)
            return Some(bounds) if opposite else Every(bounds)
        case syntax.Compare() | syntax.IsNull() | syntax.In() | syntax.Like():
            return atom(node, scope, negated)
    value = typed(node, scope)
    if value.kind is not Kind.BOOLEAN:
        problem = f"expected a condition, got a value of type {value.kind}"
        raise Fault("L048", node.span, problem, "compare it, such as … = 1")
    return Truth(value, negated)


def normal_form(formula: Formula, span: Span) -> Condition:
    """The disjunctive normal form, each atom and each term once, in the order of the text."""
    if not isinstance(formula, Every | Some):
        return Condition(((formula,),))
    return Condition(tuple(dict.fromkeys(tuple(dict.fromkeys(term)) for term in _terms(formula, span))))


def _terms(formula: Formula, span: Span) -> list[tuple[Atom, ...]]:
    match formula:
        case Some():
            terms = [term for part in formula.parts for term in _terms(part, span)]
            _check_size(len(terms), span)
        case Every():
            terms = [()]
            for part in formula.parts:
                factor = _terms(part, span)
                _check_size(len(terms) * len(factor), span)
                terms = [(*term, *other) for term in terms for other in factor]
        case _:
            terms = [(formula,)]
    return terms


def _check_size(count: int, span: Span) -> None:
    if count > LIMITS.dnf_terms_max:
        problem = f"the condition has more than {LIMITS.dnf_terms_max} alternatives once its ORs are multiplied out"
        raise Fault("L005", span, problem, "use IN for lists of values, or split the subscription")
