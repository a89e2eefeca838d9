"""A program as Python: what runs without machine code, what names a program in the cache, and what people read.

Parentheses stand only where Python needs them. `named` shows the names of fields and counters instead of their numbers; that
text is for people, not to be run.

Takes: nodes. Gives: text, and the lines on which statements stand. Never: changes what a node means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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
    KernelFunction,
    Leave,
    Prefetch,
    Proceed,
    Program,
    Return,
    Statement,
    Update,
    While,
)

CHOICE, EITHER, BOTH, NOT, COMPARED, SIGN, ATOM = 0, 1, 2, 3, 4, 11, 12
BINARY = {"|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10}
"""How tightly operators bind."""
INDENT = "    "
RARE = "# not inlined"
"""Stands in the text since it decides what machine code is made: programs of one text are one program."""


def text_of(node: Formula, least: int = CHOICE, named: bool = False) -> str:
    """In parentheses if it binds less tightly than `least`."""
    text, level = _EXPRESSIONS[type(node)](node, named)
    return text if level >= least else f"({text})"


def _constant(node: Constant, named: bool) -> tuple[str, int]:
    if named and node.name:
        return node.name, ATOM
    value = node.value
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return ("1e999", ATOM) if value > 0 else ("-1e999", SIGN)
    return repr(value), ATOM if value >= 0 else SIGN


def _element(node: ArrayElement, named: bool) -> tuple[str, int]:
    return f"{node.array.name}[{', '.join([text_of(each, CHOICE, named) for each in node.indices])}]", ATOM


def _length(node: Length, named: bool) -> tuple[str, int]:
    return f"{node.array.name}.shape[{node.dimension}]" if node.dimension else f"len({node.array.name})", ATOM


def _binary(node: Binary, named: bool) -> tuple[str, int]:
    level = BINARY[node.operator]
    return f"{text_of(node.left, level, named)} {node.operator} {text_of(node.right, level + 1, named)}", level


def _unary(node: Unary, named: bool) -> tuple[str, int]:
    if node.operator == "not":
        return f"not {text_of(node.operand, NOT, named)}", NOT
    return f"{node.operator}{text_of(node.operand, SIGN, named)}", SIGN


def _comparison(node: NumberComparison, named: bool) -> tuple[str, int]:
    return f"{text_of(node.left, COMPARED + 1, named)} {node.sign} {text_of(node.right, COMPARED + 1, named)}", COMPARED


def _between(node: Between, named: bool) -> tuple[str, int]:
    rest = [f" {sign} {text_of(each, COMPARED + 1, named)}" for sign, each in zip(node.signs, node.others, strict=True)]
    return text_of(node.left, COMPARED + 1, named) + "".join(rest), COMPARED


def _boolean(node: Boolean, named: bool) -> tuple[str, int]:
    level = BOTH if node.operator == "and" else EITHER
    return f" {node.operator} ".join([text_of(each, level + 1, named) for each in node.values]), level


def _choice(node: ChosenValue, named: bool) -> tuple[str, int]:
    yes, test = text_of(node.yes, EITHER, named), text_of(node.test, EITHER, named)
    return f"{yes} if {test} else {text_of(node.no, CHOICE, named)}", CHOICE


def _call(node: FunctionCall | Intrinsic, named: bool) -> tuple[str, int]:
    given = [each.name if isinstance(each, Array) else text_of(each, CHOICE, named) for each in node.arguments]
    return f"{node.function}({', '.join(given)})", ATOM


_EXPRESSIONS: dict[type, Callable[[Any, bool], tuple[str, int]]] = {
    Constant: _constant,
    Variable: lambda node, named: (node.name, ATOM),
    ArrayElement: _element,
    Length: _length,
    Binary: _binary,
    Unary: _unary,
    NumberComparison: _comparison,
    Between: _between,
    Boolean: _boolean,
    ChosenValue: _choice,
    FunctionCall: _call,
    Intrinsic: _call,
    SlotColumn: lambda node, named: (f"column{node.column}_of_{node.slot}", ATOM),
    SlotField: lambda node, named: (f"{node.field}_of_{node.slot}", ATOM),
}


# Statements


def _assign(node: Assign, named: bool) -> str:
    if len(node.targets) == 1:
        return f"{text_of(node.targets[0], CHOICE, named)} = {text_of(node.values[0], CHOICE, named)}"
    values = ", ".join([text_of(each, CHOICE, named) for each in node.values])
    return f"{', '.join([text_of(each, CHOICE, named) for each in node.targets])} = {values}"


def _for(node: For, named: bool) -> str:
    first = "" if node.first is None else f"{text_of(node.first, CHOICE, named)}, "
    return f"for {node.variable.name} in range({first}{text_of(node.end, CHOICE, named)}):"


def _return(node: Return, named: bool) -> str:
    several = "," if node.several and len(node.values) == 1 else ""
    return f"return {', '.join([text_of(each, CHOICE, named) for each in node.values])}{several}".rstrip()


_HEADS: dict[type, Callable[[Any, bool], str]] = {
    Assign: _assign,
    Update: lambda node, named: f"{text_of(node.target, 0, named)} {node.operator}= {text_of(node.value, 0, named)}",
    If: lambda node, named: f"if {text_of(node.test, CHOICE, named)}:",
    While: lambda node, named: f"while {text_of(node.test, CHOICE, named)}:",
    For: _for,
    Leave: lambda node, named: "break",
    Proceed: lambda node, named: "continue",
    Return: _return,
    Evaluate: lambda node, named: text_of(node.call, CHOICE, named),
    Prefetch: lambda node, named: f"prefetch({text_of(node.place, CHOICE, named)})",
}
"""The line on which a statement begins."""
Line = tuple[str, Statement | None]


def _write(block: Block, indent: str, named: bool, lines: list[Line]) -> None:
    if not block:
        lines.append((f"{indent}pass", None))
    for each in block:
        kind = type(each)
        lines.append((indent + _HEADS[kind](each, named), each))
        if kind is If:
            _write_ways(each, indent, named, lines)
        elif isinstance(each, While | For):
            _write(each.body, indent + INDENT, named, lines)


def _write_ways(node: Any, indent: str, named: bool, lines: list[Line]) -> None:
    """What is below an `if`, with its `elif` and `else`."""
    while True:
        _write(node.body, indent + INDENT, named, lines)
        rest = node.otherwise
        if len(rest) != 1 or type(rest[0]) is not If:
            break
        node = rest[0]
        lines.append((f"{indent}el{_HEADS[If](node, named)}", node))
    if rest:
        lines.append((f"{indent}else:", None))
        _write(rest, indent + INDENT, named, lines)


def function_lines(function: KernelFunction, named: bool = False) -> list[Line]:
    """Each line, and the statement that begins on it."""
    head = f"def {function.name}({', '.join([each.name for each in function.parameters])}):"
    lines: list[Line] = [(f"{head}  {RARE}" if function.rare else head, None)]
    _write(function.body, INDENT, named, lines)
    return lines


def function_text(function: KernelFunction, named: bool = False) -> str:
    return "\n".join([text for text, _ in function_lines(function, named)])


def readable_text(program: Program) -> str:
    """With the names of fields and counters."""
    return "\n\n".join([function_text(each, named=True) for each in program.functions])


def statements_by_line(program: Program) -> Iterator[tuple[int, KernelFunction, Statement | None]]:
    """The lines of the program's text, from 1 on."""
    line = 1
    for function in program.functions:
        for _, statement in function_lines(function):
            yield line, function, statement
            line += 1
        line += 1
