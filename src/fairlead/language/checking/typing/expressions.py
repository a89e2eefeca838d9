"""Expressions as written to typed expressions over slots.

Takes: a syntax node and the scope of one branch. Gives: a `model.expression` tree in which every node knows its kind, or a
`Fault`. NOT is pushed down to the tests: De Morgan holds in three-valued logic, and the negation of a test is unknown exactly
where the test is. Never: puts a condition into normal form (conditions.py does).
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.language.checking.type_declarations import data_type
from fairlead.language.checking.typing import arrays, calls, kinds, literals
from fairlead.language.checking.typing.scope import Scope
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.model.events.types import INTEGER, NUMERIC, Kind
from fairlead.model.expressions.expression import (
    COMPARISONS,
    Arithmetic,
    Atom,
    Call,
    CaseWhen,
    Cast,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Logic,
    Negative,
    Truth,
    slots_of,
)

OPERATORS = {"==": "=", "<>": "!="}
"""Alternative spellings."""


def typed(node: syntax.Expression, scope: Scope, wanted: Kind | None = None) -> Expression:
    """The value of an expression. NULL becomes a NULL of the wanted kind; without one, it is an error."""
    match node:
        case syntax.Number():
            return literals.number(node)
        case syntax.Text():
            return Literal(node.value, Kind.STRING)
        case syntax.Boolean():
            return Literal(node.value, Kind.BOOLEAN)
        case syntax.Null():
            if wanted is None:
                raise Fault("L042", node.span, "NULL has no type here", "use IS NULL to test, or leave it out")
            return Literal(None, wanted)
        case syntax.Prefixed():
            return literals.prefixed(node)
        case syntax.Duration():
            return Literal(literals.microseconds(node), Kind.INTERVAL)
        case syntax.Reference():
            return scope.value(node)
        case syntax.Negative():
            return _negative(node, scope)
        case syntax.Arithmetic():
            return _arithmetic(node, scope)
        case syntax.Call():
            return _call(node, scope)
        case syntax.FieldOf():
            return arrays.field_of(node, typed(node.operand, scope), scope)
        case syntax.Cast():
            return _cast(node, scope)
        case syntax.Case():
            return _case(node, scope, wanted)
    return formula(node, scope)


def formula(node: syntax.Expression, scope: Scope, negated: bool = False) -> Atom | Logic:
    """A condition, or its negation, with NOT only inside its atoms."""
    match node:
        case syntax.Not():
            return formula(node.operand, scope, not negated)
        case syntax.And() | syntax.Or():
            operator = "AND" if isinstance(node, syntax.And) != negated else "OR"
            return Logic(operator, tuple(formula(part, scope, negated) for part in node.parts))
        case syntax.Between():
            opposite = node.negated != negated
            return Logic("OR" if opposite else "AND", _between(node, scope, opposite))
        case syntax.Compare() | syntax.IsNull() | syntax.IsTruth() | syntax.In() | syntax.Like() | syntax.Rlike():
            return _atom(node, scope, negated)
    return Truth(_condition(node, scope), negated)


def _condition(node: syntax.Expression, scope: Scope) -> Expression:
    value = typed(node, scope)
    if value.kind is not Kind.BOOLEAN:
        problem = f"expected a condition, got a value of type {value.kind}"
        raise Fault("L048", node.span, problem, "compare it, such as … = 1")
    return value


def _atom(node: syntax.Test, scope: Scope, negated: bool) -> Atom:
    """One atom of a condition, or its negation."""
    match node:
        case syntax.IsTruth():
            known = Call("coalesce", (_condition(node.operand, scope), Literal(not node.wanted, Kind.BOOLEAN)), Kind.BOOLEAN)
            return Truth(known, node.wanted == (node.negated != negated))
        case syntax.Rlike():
            matches = calls.rlike(typed(node.operand, scope), node.operand.span, node.pattern)
            return Truth(matches, node.negated != negated)
        case syntax.Compare():
            operator = OPERATORS.get(node.operator.text, node.operator.text)
            return _compare(COMPARISONS[operator] if negated else operator, node.left, node.right, scope)
        case syntax.IsNull():
            return IsNull(typed(node.operand, scope), node.negated != negated)
        case syntax.In():
            return _in(node, scope, negated)
        case syntax.Like():
            return _like(node, scope, negated)


def _between(node: syntax.Between, scope: Scope, negated: bool) -> tuple[Atom, Atom]:
    """`low <= x` and `x <= high`, or their negations."""
    low, high = ("<", ">") if negated else (">=", "<=")
    return _compare(low, node.operand, node.low, scope), _compare(high, node.operand, node.high, scope)


def _compare(operator: str, left: syntax.Expression, right: syntax.Expression, scope: Scope) -> Compare:
    for node in (left, right):
        if isinstance(node, syntax.Null):
            fix = "write IS NOT NULL" if operator == "!=" else "write IS NULL"
            raise Fault("L042", node.span, "a comparison with NULL is never true", fix)
    one, other = typed(left, scope), typed(right, scope)
    _check_comparable(left, one, right, other, scope)
    return Compare(operator, one, other)


def _check_comparable(
    left: syntax.Expression, one: Expression, right: syntax.Expression, other: Expression, scope: Scope
) -> None:
    for node, value in ((left, one), (right, other)):
        arrays.check_single(node, value, scope)
    if not kinds.comparable(one.kind, other.kind):
        odd = left if isinstance(left, syntax.Constant) and not isinstance(right, syntax.Constant) else right
        problem = f"{_named(left, one)} and {_named(right, other)} have different types"
        raise Fault("L040", odd.span, problem, _comparison_fix(odd, {one.kind, other.kind}))
    if one == other and slots_of(one):
        raise Fault("L041", right.span, "this compares a value with itself", "name another instance or another attribute")


def _comparison_fix(odd: syntax.Expression, sides: set[Kind]) -> str:
    if isinstance(odd, syntax.Text) and Kind.TIMESTAMP in sides:
        return f"write TIMESTAMP '{odd.value[:40]}'"
    if isinstance(odd, syntax.Text) and Kind.DATE in sides:
        return f"write DATE '{odd.value[:40]}'"
    if sides == {Kind.DATE, Kind.TIMESTAMP}:
        return "write cast(… AS DATE) for the day of the TIMESTAMP, or cast(… AS TIMESTAMP) for the midnight of the DATE"
    if isinstance(odd, syntax.Text) and sides & NUMERIC:
        return "write the number without quotes"
    if isinstance(odd, syntax.Number) and Kind.INTERVAL in sides:
        return f"write a duration, such as {odd.text} SECONDS"
    if isinstance(odd, syntax.Number) and Kind.STRING in sides:
        return f"write '{odd.text[:40]}' in quotes"
    if isinstance(odd, syntax.Number) and Kind.TIMESTAMP in sides:
        return "write TIMESTAMP '…'"
    return "compare values of one type; numbers compare with numbers"


def _named(node: syntax.Expression, value: Expression) -> str:
    return f"{node} ({value.kind})" if isinstance(node, syntax.Reference) else f"a value of type {value.kind}"


def _in(node: syntax.In, scope: Scope, negated: bool) -> In:
    operand = typed(node.operand, scope)
    if not node.options:
        raise Fault("L059", node.span, "IN needs at least one option", "write IN (…, …)")
    options = []
    for each in node.options:
        option = typed(each, scope, wanted=operand.kind)
        _check_comparable(node.operand, operand, each, option, scope)
        options.append(option)
    return In(operand, tuple(options), node.negated != negated)


def _like(node: syntax.Like, scope: Scope, negated: bool) -> Like:
    operand = typed(node.operand, scope)
    if operand.kind is not Kind.STRING:
        raise Fault("L049", node.operand.span, f"LIKE needs a STRING, got {operand.kind}", "compare it with = or <")
    pattern = node.pattern.value
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        raise Fault("L049", node.pattern.span, "the pattern ends with a lone backslash", "write \\\\ for a backslash")
    return Like(operand, pattern, node.negated != negated)


def _negative(node: syntax.Negative, scope: Scope) -> Expression:
    if isinstance(node.operand, syntax.Number):
        return literals.number(node.operand, negative=True)
    operand = typed(node.operand, scope)
    if operand.kind not in NUMERIC and operand.kind is not Kind.INTERVAL:
        raise Fault("L043", node.operand.span, f"a minus sign needs a number, got {operand.kind}", "remove the sign")
    if isinstance(operand, Literal) and operand.kind is Kind.INTERVAL and operand.value is not None:
        return Literal(-operand.value, Kind.INTERVAL)
    return Negative(operand, Kind.BIGINT if operand.kind in INTEGER else operand.kind)


def _arithmetic(node: syntax.Arithmetic, scope: Scope) -> Expression:
    left, right = typed(node.left, scope), typed(node.right, scope)
    if node.operator.text == "||":
        return calls.joined(node, left, right)
    if left.kind is right.kind is Kind.DATE and node.operator.text == "-":
        left, right = kinds.midnight(left), kinds.midnight(right)
    kind = kinds.arithmetic(node.operator.text, left.kind, right.kind)
    if kind is None:
        problem = f"{left.kind} {node.operator.text} {right.kind} is not defined"
        raise Fault("L043", node.operator.span, problem, _arithmetic_fix(left.kind, right.kind))
    return Arithmetic(node.operator.text, left, right, kind)


def _arithmetic_fix(left: Kind, right: Kind) -> str:
    if Kind.TIMESTAMP in (left, right) and (left in NUMERIC or right in NUMERIC):
        return "write a duration with its unit, such as 5 SECONDS"
    if Kind.DATE in (left, right):
        return "DATE - DATE is a duration; for a time some days later, write cast(… AS TIMESTAMP) + 5 DAYS"
    return "arithmetic takes numbers, or a TIMESTAMP and a duration"


def _call(node: syntax.Call, scope: Scope) -> Expression:
    name = node.function.lower
    if name in calls.OF_EVENTS or node.distinct:
        return calls.of_events(name, node, scope)
    calls.check_call(node)
    if name in arrays.FUNCTIONS:
        return arrays.call(name, node, [typed(each, scope) for each in node.arguments], scope)
    arguments = _together(node.arguments, scope)
    if name == "coalesce":
        for each, value in zip(node.arguments, arguments, strict=True):
            arrays.check_single(each, value, scope)
    return calls.call(node, arguments)


def _cast(node: syntax.Cast, scope: Scope) -> Expression:
    name = node.function.text
    if node.function.lower not in calls.CASTS:
        fix = did_you_mean(name, ("cast",), "write cast(x AS BIGINT)")
        raise Fault("L044", node.function.span, f"'{name}(… AS …)' is not a function", fix)
    wanted = data_type(node.type)
    operand = typed(node.operand, scope, wanted.kind)
    if not kinds.castable(operand.kind, wanted.kind):
        problem = f"{operand.kind} cannot be converted to {wanted}"
        raise Fault("L045", node.span, problem, "docs/language.md lists the conversions under cast")
    return Cast(operand, wanted)


def _case(node: syntax.Case, scope: Scope, wanted: Kind | None) -> Expression:
    conditions = tuple(formula(condition, scope) for condition, _ in node.steps)
    written = [*(value for _, value in node.steps), node.otherwise or syntax.Null(node.span)]
    values = _together(written, scope, wanted)
    for each, value in zip(written, values, strict=True):
        arrays.check_single(each, value, scope)
    common = kinds.widest([each.kind for each in values])
    if common is None:
        found = listed(dict.fromkeys(each.kind for each in values), "and")
        raise Fault("L040", node.span, f"the values of this CASE have different types: {found}", "use cast(… AS …)")
    return CaseWhen(conditions, tuple(kinds.widened(each, common) for each in values), common)


def _together(nodes: Sequence[syntax.Expression], scope: Scope, wanted: Kind | None = None) -> list[Expression]:
    """Arguments of one call, each typed once; a NULL among them takes the kind of the first that has one, or the wanted."""
    found = [None if isinstance(each, syntax.Null) else typed(each, scope) for each in nodes]
    known = next((each.kind for each in found if each is not None), wanted)
    return [typed(node, scope, known) if each is None else each for node, each in zip(nodes, found, strict=True)]
