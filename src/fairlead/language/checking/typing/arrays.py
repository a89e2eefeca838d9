"""What is done with an ARRAY or a STRUCT: the functions of arrays, and a field of what a call returns.

    size(o.tags)   array_contains(o.tags, 'x')   element_at(o.lines, 1)   element_at(o.lines, 1).price

Takes: the call as written and its typed arguments. Gives: typed expressions, or a `Fault`. Never: follows the path of an
attribute (scope.py does).
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.language.checking import type_declarations
from fairlead.language.checking.typing import kinds
from fairlead.language.checking.typing.scope import Scope, field_at
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.model.events.types import INTEGER, PATH, DataType, Kind
from fairlead.model.expressions.data_types import data_type_of
from fairlead.model.expressions.expression import Aggregate, Call, Expression, Field, Literal, StructField

FUNCTIONS = ("size", "array_contains", "element_at")


def call(name: str, node: syntax.Call, arguments: Sequence[Expression], scope: Scope) -> Call | Literal:
    """A function of an array. The number of its arguments is right."""
    first, *others = arguments
    array = data_type_of(first, scope.types)
    if array.element is None:
        example = "concat(…) and length(…) are for texts" if first.kind is Kind.STRING else "name an ARRAY"
        raise Fault("L045", node.arguments[0].span, f"{name} needs an ARRAY, got {array}", example)
    if name == "size":
        return Call(name, (first,), Kind.INT)
    other, written = others[0], node.arguments[1]
    if name == "element_at":
        if other.kind not in INTEGER:
            raise Fault(
                "L045", written.span, f"element_at needs a whole number, got {other.kind}", "1 is the first, -1 the last"
            )
        if isinstance(other, Literal) and other.value == 0:
            raise Fault("L045", written.span, "elements count from 1", "1 is the first, -1 the last")
        if isinstance(first, Literal):  # of an element that the branch does not have
            return Literal(None, array.element.kind, array.element if array.element.is_nested else None)
        return Call(name, (first, other), array.element.kind)
    if array.element.is_nested:
        raise Fault(
            "L126",
            written.span,
            f"the elements are {array.element}, and only single values are compared",
            "use size(…), or element_at(…, 1) and a field",
        )
    check_single(written, other, scope)
    if not kinds.comparable(array.element.kind, other.kind):
        problem = f"the elements are {array.element}, the value is {other.kind}"
        raise Fault("L040", written.span, problem, "compare values of one type; numbers compare with numbers")
    return Call(name, (first, other), Kind.BOOLEAN)


def field_of(node: syntax.FieldOf, operand: Expression, scope: Scope) -> Expression:
    """A field of what a call returns; of `first(q.address)`, an attribute of the event that it chooses."""
    of = f"{node.operand.function.text}(…)"
    _, numbers = field_at(of, data_type_of(operand, scope.types), [each.text for each in node.fields], node.span)
    value, found = operand, data_type_of(operand, scope.types)
    for name, at in zip(node.fields, numbers, strict=True):
        found = found.fields[at].type
        value = _field(value, name.text, at, found)
    return value


def _field(operand: Expression, name: str, at: int, type_: DataType) -> Expression:
    match operand:
        case Literal():
            return Literal(None, type_.kind, type_ if type_.is_nested else None)
        case Aggregate(function="first" | "last", attribute=str() as path):
            return Aggregate(operand.function, operand.slots, f"{path}{PATH}{name}", type_.kind)
        case Field():
            return Field(operand.slot, f"{operand.attribute}{PATH}{name}", type_.kind)
    return StructField(operand, name, at, type_.kind)


def check_single(node: syntax.Expression, value: Expression, scope: Scope) -> None:
    """Raises for an ARRAY or STRUCT where values are compared."""
    type_ = data_type_of(value, scope.types)
    named = str(node) if isinstance(node, syntax.Reference) else "the value"
    type_declarations.check_single(type_, node.span, named)
