"""What is in a kernel: which names it uses, which functions it calls, which columns its conditions read.

Generators decide by these, never by the text: which parameters a function has, which functions a program needs.

Takes: nodes. Gives: sets of names, or nodes with parts replaced. Never: changes a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fairlead.matching.compiled.representation.expressions import (
    Array,
    Between,
    Binary,
    Boolean,
    Call,
    Choice,
    Comparison,
    Constant,
    Element,
    Expression,
    Intrinsic,
    Length,
    SlotColumn,
    SlotField,
    Unary,
    Variable,
)
from fairlead.matching.compiled.representation.statements import (
    Assign,
    Block,
    Change,
    Evaluate,
    For,
    Function,
    If,
    Prefetch,
    Return,
    Statement,
    While,
)

_CHILDREN: dict[type, Callable[[Any], Iterable[Any]]] = {
    Constant: lambda node: (),
    Variable: lambda node: (),
    Array: lambda node: (),
    SlotColumn: lambda node: (),
    SlotField: lambda node: (),
    Element: lambda node: (node.array, *node.indices),
    Length: lambda node: (node.array,),
    Binary: lambda node: (node.left, node.right),
    Unary: lambda node: (node.operand,),
    Comparison: lambda node: (node.left, node.right),
    Between: lambda node: (node.left, *node.others),
    Boolean: lambda node: node.values,
    Choice: lambda node: (node.yes, node.test, node.no),
    Call: lambda node: node.arguments,
    Intrinsic: lambda node: node.arguments,
}


def parts(node: Expression | Array) -> Iterator[Any]:
    """The expression and all that is in it, from the left, arrays too."""
    open_nodes: list[Any] = [node]
    while open_nodes:
        found = open_nodes.pop()
        yield found
        open_nodes += reversed(tuple(_CHILDREN[type(found)](found)))


def size(node: Expression) -> int:
    """How many expressions it is made of."""
    return sum(1 for each in parts(node) if not isinstance(each, Array))


def same(one: Any, other: Any) -> bool:
    """Whether two expressions say the same."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Expression | Array):
        names = one.__match_args__  # type: ignore[union-attr]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def columns_read(node: Expression) -> set[tuple[int, int]]:
    """The value columns of a condition, each with its slot."""
    return {(each.column, each.slot) for each in parts(node) if isinstance(each, SlotColumn)}


def slots_read(node: Expression) -> set[int]:
    return {each.slot for each in parts(node) if isinstance(each, SlotColumn | SlotField)}


def fields_read(node: Expression) -> set[str]:
    return {each.field for each in parts(node) if isinstance(each, SlotField)}


def replaced(node: Any, place: Callable[[SlotColumn | SlotField], Expression]) -> Any:
    """With the columns and fields of slots where `place` says they are."""
    match node:
        case SlotColumn() | SlotField():
            return place(node)
        case Constant() | Variable() | Array() | Length():
            return node
        case Element():
            return Element(node.array, tuple([replaced(each, place) for each in node.indices]))
        case Binary():
            return Binary(node.operator, replaced(node.left, place), replaced(node.right, place))
        case Unary():
            return Unary(node.operator, replaced(node.operand, place))
        case Comparison():
            return Comparison(replaced(node.left, place), node.sign, replaced(node.right, place))
        case Between():
            return Between(replaced(node.left, place), node.signs, tuple([replaced(each, place) for each in node.others]))
        case Boolean():
            return Boolean(node.operator, tuple([replaced(each, place) for each in node.values]))
        case Choice():
            return Choice(replaced(node.yes, place), replaced(node.test, place), replaced(node.no, place))
        case Call() | Intrinsic():
            return type(node)(node.function, tuple([replaced(each, place) for each in node.arguments]))
    raise TypeError(type(node).__name__)


# Statements


def expressions_of(statement: Statement) -> tuple[Any, ...]:
    """Those of the statement itself, not of the blocks in it."""
    match statement:
        case Assign():
            return (*statement.targets, *statement.values)
        case Change():
            return (statement.target, statement.value)
        case If() | While():
            return (statement.test,)
        case For():
            ends = (statement.end,) if statement.first is None else (statement.first, statement.end)
            return (statement.variable, *ends)
        case Return():
            return statement.values
        case Evaluate():
            return (statement.call,)
        case Prefetch():
            return (statement.place,)
    return ()


def statements_in(block: Block) -> Iterator[Statement]:
    """All of a block, in the order of the text."""
    for each in block:
        yield each
        if isinstance(each, While | For | If):
            yield from statements_in(each.body)
        if isinstance(each, If):
            yield from statements_in(each.otherwise)


def names_in(block: Block) -> set[str]:
    """The variables and arrays that a block uses."""
    return {
        part.name
        for statement in statements_in(block)
        for each in expressions_of(statement)
        for part in parts(each)
        if isinstance(part, Variable | Array)
    }


def calls_in(functions: Iterable[Function]) -> set[str]:
    """The functions that are called."""
    return {
        part.function
        for function in functions
        for statement in statements_in(function.body)
        for each in expressions_of(statement)
        for part in parts(each)
        if isinstance(part, Call)
    }


def element_at(statement: Statement, ordinal: int) -> Element:
    """The so many-th element of an array in a statement."""
    return elements_in(statement)[ordinal]


def elements_in(statement: Statement) -> list[Element]:
    return [part for each in expressions_of(statement) for part in parts(each) if isinstance(part, Element)]
