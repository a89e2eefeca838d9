"""The data type of an expression. Its kind is enough for what is not nested; an ARRAY or STRUCT also says what it is made of.

Takes: an expression, and the type of each slot. Gives: its data type. Never: decides what is allowed (language/checking does).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.model.events.types import DataType, EventType, Kind
from fairlead.model.expressions.expression import (
    Aggregate,
    Call,
    Cast,
    Expression,
    Field,
    Literal,
    Previous,
    StructField,
)

Types = Mapping[int, EventType] | Sequence[EventType]


def data_type_of(node: Expression, types: Types) -> DataType:
    """Attributes, and what is taken out of them, have their declared type; other results that of their kind."""
    match node:
        case Literal(type=DataType() as known):
            return known
        case Field() | Previous():
            return types[node.slot].type_of(node.attribute)
        case Aggregate(function="collect", attribute=str() as name):
            return DataType(Kind.ARRAY, element=types[node.slots[0]].type_of(name))
        case Aggregate(function="first" | "last" | "min" | "max", attribute=str() as name):
            return types[node.slots[0]].type_of(name)
        case Call(function="element_at"):
            element = data_type_of(node.arguments[0], types).element
            return DataType(node.kind) if element is None else element
        case StructField():
            fields = data_type_of(node.operand, types).fields
            return fields[node.at].type if fields else DataType(node.kind)
        case Cast():
            return node.type
    return DataType(node.kind)
