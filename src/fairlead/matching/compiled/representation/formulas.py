"""The formulas of a kernel: numbers, elements of arrays, operators, calls.

Python's operators make nodes: `queues[at, HEAD] != NONE` is a `NumberComparison` of an `ArrayElement` with a `Constant`. `and`,
`or`, `not` and `… if … else …` cannot be overloaded: `all_of`, `any_of`, `negated` and `ChosenValue` stand for them. Because
`==` makes a node too, nodes are equal only if they are the same object; `same` in contents.py compares what they say.

A `Constant` may have a name (that of a field or counter): the text that people read shows it (text.py).

Takes: nodes and numbers of Python. Gives: nodes. Never: knows what machine code becomes of them, or which kernel they are for.
"""

from __future__ import annotations

from typing import NoReturn, Union

from fairlead.dataclass import dataclass

TRUTH, WHOLE, UNSIGNED, FLOAT, UNKNOWN = "truth value", "whole number", "unsigned number", "float", "unknown"
WIDE = "wide number"
"""The types of values. UNKNOWN: of a variable that was not assigned so far."""

Operand = Union["Formula", int, float]
"""What an operator accepts."""


class Formula:
    __hash__ = object.__hash__

    def __eq__(self, other: Operand) -> NumberComparison:  # type: ignore[override]
        return NumberComparison(self, "==", formula(other))

    def __ne__(self, other: Operand) -> NumberComparison:  # type: ignore[override]
        return NumberComparison(self, "!=", formula(other))

    def __lt__(self, other: Operand) -> NumberComparison:
        return NumberComparison(self, "<", formula(other))

    def __le__(self, other: Operand) -> NumberComparison:
        return NumberComparison(self, "<=", formula(other))

    def __gt__(self, other: Operand) -> NumberComparison:
        return NumberComparison(self, ">", formula(other))

    def __ge__(self, other: Operand) -> NumberComparison:
        return NumberComparison(self, ">=", formula(other))

    def __add__(self, other: Operand) -> Binary:
        return Binary("+", self, formula(other))

    def __radd__(self, other: Operand) -> Binary:
        return Binary("+", formula(other), self)

    def __sub__(self, other: Operand) -> Binary:
        return Binary("-", self, formula(other))

    def __rsub__(self, other: Operand) -> Binary:
        return Binary("-", formula(other), self)

    def __mul__(self, other: Operand) -> Binary:
        return Binary("*", self, formula(other))

    def __rmul__(self, other: Operand) -> Binary:
        return Binary("*", formula(other), self)

    def __truediv__(self, other: Operand) -> Binary:
        return Binary("/", self, formula(other))

    def __floordiv__(self, other: Operand) -> Binary:
        return Binary("//", self, formula(other))

    def __mod__(self, other: Operand) -> Binary:
        return Binary("%", self, formula(other))

    def __lshift__(self, other: Operand) -> Binary:
        return Binary("<<", self, formula(other))

    def __rshift__(self, other: Operand) -> Binary:
        return Binary(">>", self, formula(other))

    def __and__(self, other: Operand) -> Binary:
        return Binary("&", self, formula(other))

    def __or__(self, other: Operand) -> Binary:
        return Binary("|", self, formula(other))

    def __xor__(self, other: Operand) -> Binary:
        return Binary("^", self, formula(other))

    def __neg__(self) -> Unary:
        return Unary("-", self)

    def __invert__(self) -> Unary:
        return Unary("~", self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a condition of the kernel is not one of the generator")


@dataclass(frozen=True, eq=False)
class Constant(Formula):
    value: int | float | bool
    name: str = ""
    """Of a field or counter."""


@dataclass(frozen=True, eq=False)
class Variable(Formula):
    """A number in a kernel: a parameter, or a place that statements assign. `type` is what it must be; UNKNOWN: whatever its
    assignments make it."""

    name: str
    type: str = UNKNOWN


@dataclass(frozen=True, eq=False)
class Array:
    """A parameter that is an array, of one or two dimensions."""

    name: str

    def __getitem__(self, index: Operand | tuple[Operand, Operand]) -> ArrayElement:
        if isinstance(index, tuple):
            return ArrayElement(self, (formula(index[0]), formula(index[1])))
        return ArrayElement(self, (formula(index),))

    @property
    def length(self) -> Length:
        return Length(self)


@dataclass(frozen=True, eq=False)
class ArrayElement(Formula):
    array: Array
    indices: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class Length(Formula):
    """Of an array: its rows, or with `dimension` 1 the length of each."""

    array: Array
    dimension: int = 0


@dataclass(frozen=True, eq=False)
class Binary(Formula):
    """`+ - * / // % << >> & | ^`"""

    operator: str
    left: Formula
    right: Formula


@dataclass(frozen=True, eq=False)
class Unary(Formula):
    """`-`, `+`, `~` or `not`."""

    operator: str
    operand: Formula


@dataclass(frozen=True, eq=False)
class NumberComparison(Formula):
    left: Formula
    sign: str
    right: Formula


@dataclass(frozen=True, eq=False)
class Between(Formula):
    """`left sign other sign other …`: true if each holds; nothing is evaluated twice."""

    left: Formula
    signs: tuple[str, ...]
    others: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class Boolean(Formula):
    """`and` or `or` of two values or more: evaluated from the left until it is decided."""

    operator: str
    values: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class ChosenValue(Formula):
    """`yes if test else no`: only one of them is evaluated."""

    yes: Formula
    test: Formula
    no: Formula


Argument = Formula | Array


@dataclass(frozen=True, eq=False)
class FunctionCall(Formula):
    """Of a function of the kernel."""

    function: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, eq=False)
class Intrinsic(Formula):
    """What the machine does by itself: conversions, extremes, bits of floats (machine_code/instructions.py has their
    meaning)."""

    function: str
    arguments: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class SlotColumn(Formula):
    """A value column of the event at a slot, wherever a search has it: replaced before there is a kernel (contents.py)."""

    column: int
    slot: int


@dataclass(frozen=True, eq=False)
class SlotField(Formula):
    """REF, BITS or TIME of the event at a slot; replaced likewise."""

    field: str
    slot: int


def formula(given: Operand) -> Formula:
    return given if isinstance(given, Formula) else Constant(given)


NONE = Constant(-1)
"""No node."""
TRUE, FALSE = Constant(True), Constant(False)
HIGHEST = Constant(9223372036854775807)


def all_of(*tests: Formula) -> Formula:
    return TRUE if not tests else tests[0] if len(tests) == 1 else Boolean("and", tests)


def any_of(*tests: Formula) -> Formula:
    return FALSE if not tests else tests[0] if len(tests) == 1 else Boolean("or", tests)


def negated(test: Formula) -> Formula:
    return Unary("not", test)


def choice(yes: Operand, test: Formula, no: Operand) -> ChosenValue:
    """`yes if test else no`"""
    return ChosenValue(formula(yes), test, formula(no))


def between(low: int, value: Formula, high: int) -> Between:
    """`low <= value <= high`"""
    return Between(_signed(low), ("<=", "<="), (value, _signed(high)))


def _signed(value: int) -> Formula:
    return -Constant(-value) if value < 0 else Constant(value)


def bit(word: Formula, number: int) -> Formula:
    return (word >> number) & 1


def total(terms: list[Formula]) -> Formula:
    made = terms[0]
    for each in terms[1:]:
        made = made + each
    return made


def variables(names: str, type: str = WHOLE) -> list[Variable]:
    return [Variable(name, type) for name in names.split()]


def named_constants(names: str) -> list[Constant]:
    """Of columns: 0, 1, 2, …"""
    return [Constant(at, name) for at, name in enumerate(names.split())]


def intrinsic(name: str, *arguments: Operand) -> Intrinsic:
    return Intrinsic(name, tuple([formula(each) for each in arguments]))


def as_float(bits: Operand) -> Intrinsic:
    return intrinsic("as_float", bits)


def as_bits(value: Operand) -> Intrinsic:
    return intrinsic("as_bits", value)


def call(function: str, *arguments: Argument | int | float) -> FunctionCall:
    return FunctionCall(function, tuple([each if isinstance(each, Array) else formula(each) for each in arguments]))
