"""What is in a kernel: which names it uses, which functions it calls, which columns its conditions read.

Generators decide by these, never by the text: which parameters a function has, which functions a program needs.

Takes: nodes. Gives: sets of names, or nodes with parts replaced. Never: changes a node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from fairlead.matching.compiled.representation.formulas import (
    Array,
    ArrayElement,
    Between,
    Binary,
    Boolean,
    ChosenValue,
    Constant,
    Formula,
    FunctionCall,
    Intrinsic,
    Length,
    NumberComparison,
    SlotColumn,
    SlotField,
    Unary,
    Variable,
)
from fairlead.matching.compiled.representation.statements import (
    Assign,
    Block,
    Evaluate,
    For,
    If,
    Leave,
    Prefetch,
    Proceed,
    Return,
    Statement,
    Update,
    While,
)

_CHILDREN: dict[type, Callable[[Any], Iterable[Any]]] = {
    Constant: lambda node: (),
    Variable: lambda node: (),
    Array: lambda node: (),
    SlotColumn: lambda node: (),
    SlotField: lambda node: (),
    ArrayElement: lambda node: (node.array, *node.indices),
    Length: lambda node: (node.array,),
    Binary: lambda node: (node.left, node.right),
    Unary: lambda node: (node.operand,),
    NumberComparison: lambda node: (node.left, node.right),
    Between: lambda node: (node.left, *node.others),
    Boolean: lambda node: node.values,
    ChosenValue: lambda node: (node.yes, node.test, node.no),
    FunctionCall: lambda node: node.arguments,
    Intrinsic: lambda node: node.arguments,
}


def parts(node: Formula | Array) -> Iterator[Any]:
    """The formula and all that is in it, from the left, arrays too."""
    open_nodes: list[Any] = [node]
    while open_nodes:
        found = open_nodes.pop()
        yield found
        open_nodes += reversed(tuple(_CHILDREN[type(found)](found)))


def size(node: Formula) -> int:
    """How many formulas it is made of."""
    return sum(1 for each in parts(node) if not isinstance(each, Array))


def same(one: Any, other: Any) -> bool:
    """Whether two formulas say the same, by whatever name."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Constant):
        return type(one.value) is type(other.value) and one.value == other.value
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Formula | Array):
        names = one.__match_args__  # type: ignore[union-attr]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def content(node: Any) -> Hashable:
    """A key that is equal for expressions that are the same."""
    if isinstance(node, Constant):
        return Constant, type(node.value), node.value
    if isinstance(node, tuple):
        return tuple(map(content, node))
    if isinstance(node, Formula | Array):
        names = node.__match_args__  # type: ignore[union-attr]
        return type(node), *(content(getattr(node, name)) for name in names)
    return node  # type: ignore[no-any-return]


def columns_read(node: Formula) -> set[tuple[int, int]]:
    """The value columns of a condition, each with its slot."""
    return {(each.column, each.slot) for each in parts(node) if isinstance(each, SlotColumn)}


def slots_read(node: Formula) -> set[int]:
    return {each.slot for each in parts(node) if isinstance(each, SlotColumn | SlotField)}


def fields_read(node: Formula) -> set[str]:
    return {each.field for each in parts(node) if isinstance(each, SlotField)}


def replaced(node: Any, place: Callable[[SlotColumn | SlotField], Formula]) -> Any:
    """With the columns and fields of slots where `place` says they are."""
    match node:
        case SlotColumn() | SlotField():
            return place(node)
        case Constant() | Variable() | Array() | Length():
            return node
        case ArrayElement():
            return ArrayElement(node.array, tuple([replaced(each, place) for each in node.indices]))
        case Binary():
            return Binary(node.operator, replaced(node.left, place), replaced(node.right, place))
        case Unary():
            return Unary(node.operator, replaced(node.operand, place))
        case NumberComparison():
            return NumberComparison(replaced(node.left, place), node.sign, replaced(node.right, place))
        case Between():
            return Between(replaced(node.left, place), node.signs, tuple([replaced(each, place) for each in node.others]))
        case Boolean():
            return Boolean(node.operator, tuple([replaced(each, place) for each in node.values]))
        case ChosenValue():
            return ChosenValue(replaced(node.yes, place), replaced(node.test, place), replaced(node.no, place))
        case FunctionCall() | Intrinsic():
            return type(node)(node.function, tuple([replaced(each, place) for each in node.arguments]))
    raise TypeError(type(node).__name__)


# Statements


_EXPRESSIONS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Assign: lambda node: (*node.targets, *node.values),
    Update: lambda node: (node.target, node.value),
    If: lambda node: (node.test,),
    While: lambda node: (node.test,),
    For: lambda node: (node.variable, node.end) if node.first is None else (node.variable, node.first, node.end),
    Return: lambda node: node.values,
    Evaluate: lambda node: (node.call,),
    Prefetch: lambda node: (node.place,),
    Leave: lambda node: (),
    Proceed: lambda node: (),
}


def expressions_of(statement: Statement) -> tuple[Any, ...]:
    """Those of the statement itself, not of the blocks in it."""
    return _EXPRESSIONS[type(statement)](statement)


def statements_in(block: Block) -> list[Statement]:
    """All of a block, blocks in it too."""
    found: list[Statement] = []
    open_blocks = [block]
    while open_blocks:
        block = open_blocks.pop()
        found += block
        for each in block:
            if isinstance(each, While | For | If):
                open_blocks.append(each.body)
                if isinstance(each, If):
                    open_blocks.append(each.otherwise)
    return found


class Uses(NamedTuple):
    """What a block uses: variables and arrays by their names, and the functions that it calls."""

    names: set[str]
    calls: set[str]


def uses_of(*blocks: Block) -> Uses:
    found, seen = Uses(set(), set()), set()
    open_nodes = [each for block in blocks for statement in statements_in(block) for each in expressions_of(statement)]
    while open_nodes:
        node = open_nodes.pop()
        kind = type(node)
        if kind is Constant or id(node) in seen:
            continue
        if kind is Variable or kind is Array:
            found.names.add(node.name)
            continue
        if kind is FunctionCall:
            found.calls.add(node.function)
        seen.add(id(node))
        open_nodes += _CHILDREN[kind](node)
    return found


def elements_in(statement: Statement) -> list[ArrayElement]:
    return [part for each in expressions_of(statement) for part in parts(each) if isinstance(part, ArrayElement)]
