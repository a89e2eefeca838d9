"""Expressions evaluated by walking the tree, one case per node: the definition that compiled evaluators must equal.

Takes: an expression and the events bound to its slots. Gives: a canonical value, or None for NULL and for unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.matching.expressions.casts import cast
from fairlead.matching.expressions.functions import aggregate, arithmetic, comparison, negative, scalar, unknown
from fairlead.model.events.event import Event
from fairlead.model.expressions.expression import (
    Aggregate,
    Arithmetic,
    Call,
    CaseWhen,
    Cast,
    Compare,
    Condition,
    Expression,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Logic,
    Negative,
    PositionOf,
    Previous,
    StructField,
    TimeOf,
    Truth,
)

Binding = Mapping[int, Event]


def holds(condition: Condition, binding: Binding) -> bool:
    """True, as opposed to false or unknown."""
    return any(all(value(atom, binding) is True for atom in term) for term in condition.terms)


def value(node: Expression, binding: Binding) -> Any:
    match node:
        case Literal():
            return node.value
        case Field():
            return binding[node.slot].raw(node.attribute)
        case PositionOf():
            return binding[node.slot].position.major
        case TimeOf():
            return binding[node.slot].time
        case Previous():
            raise AssertionError("it is asked in the form of model/plans/sequence.py, as_asked")
        case Arithmetic():
            left, right = value(node.left, binding), value(node.right, binding)
            return None if left is None or right is None else arithmetic(node.operator, node.kind)(left, right)
        case Negative():
            operand = value(node.operand, binding)
            return None if operand is None else negative(operand, node.kind)
        case Call(function="coalesce"):
            return next((each for each in (value(a, binding) for a in node.arguments) if each is not None), None)
        case Call():
            arguments = [value(each, binding) for each in node.arguments]
            return None if None in arguments else scalar(node.function, node.kind)(*arguments)
        case StructField():
            struct = value(node.operand, binding)
            return None if struct is None else struct[node.at]
        case Logic():
            found = [value(each, binding) for each in node.operands]
            decisive = node.operator == "OR"
            return decisive if decisive in found else None if None in found else not decisive
        case CaseWhen():
            pairs = zip(node.conditions, node.values[:-1], strict=True)
            chosen = next((each for condition, each in pairs if value(condition, binding) is True), node.values[-1])
            return value(chosen, binding)
        case Cast():
            operand = value(node.operand, binding)
            return None if operand is None else cast(node.operand.kind, node.type)(operand)
        case Aggregate():
            held = [binding[slot] for slot in node.slots]
            events = held if len(held) != 1 or not isinstance(held[0], tuple) else held[0]  # a run is one slot
            if node.attribute is None:
                return len(events)
            values = [event.raw(node.attribute) for event in events]
            return aggregate(node.function, values, node.kind)
        case Compare():
            return _compare(node.operator, node.left, node.right, binding)
        case IsNull():
            return (value(node.operand, binding) is None) != node.negated
        case In():
            found = [_compare("=", node.operand, option, binding) for option in node.options]
            return _negate(True if True in found else None if None in found else False, node.negated)
        case Like():
            text = value(node.operand, binding)
            return None if text is None else _negate(is_like(text, node.pattern), node.negated)
        case Truth():
            return _negate(value(node.operand, binding), node.negated)


def is_like(text: str, pattern: str) -> bool:
    """Character by character: `reached` are the places of the pattern that the text so far can lead to."""
    escaped, signs = False, list[str]()
    for letter in pattern:
        if letter == "\\" and not escaped:
            escaped = True
            continue
        signs.append("any" if letter == "%" and not escaped else "one" if letter == "_" and not escaped else f"={letter}")
        escaped = False
    if escaped:
        signs.append("=\\")

    def passed(places: set[int]) -> set[int]:
        """A % may match nothing."""
        found = set(places)
        for at, sign in enumerate(signs):
            if at in found and sign == "any":
                found.add(at + 1)
        return found

    reached = passed({0})
    for letter in text:
        fits = {at for at in reached if at < len(signs) and signs[at] in ("any", "one", f"={letter}")}
        reached = passed({at if signs[at] == "any" else at + 1 for at in fits})
    return len(signs) in reached


def _compare(sign: str, left: Expression, right: Expression, binding: Binding) -> bool | None:
    a, b = value(left, binding), value(right, binding)
    return None if unknown(a) or unknown(b) else comparison(sign, left.kind, right.kind)(a, b)


def _negate(truth: bool | None, negated: bool) -> bool | None:
    return truth if truth is None or not negated else not truth
