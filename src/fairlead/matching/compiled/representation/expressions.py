"""The expressions of a kernel: numbers, elements of arrays, operators, calls.

Operators of Python make nodes: `queues[at, HEAD] != NONE` is a `Comparison` of an `Element` with a `Constant`. `and`, `or`,
`not` and `… if … else …` cannot be overloaded: `all_of`, `any_of`, `negated` and `Choice` stand for them. Because `==` makes
a node too, nodes are equal only if they are the same object; `same` in contents.py compares what they say.

A `Constant` may have a name (that of a field or counter): the text that people read shows it (text.py).

Takes: nodes and numbers of Python. Gives: nodes. Never: knows what machine code becomes of them, or which kernel they are for.
"""

from __future__ import annotations

from typing import NoReturn, Union

from fairlead.dataclass import dataclass

TRUTH, WHOLE, UNSIGNED, FLOAT, UNKNOWN = "truth value", "whole number", "unsigned number", "float", "unknown"
WIDE = "wide number"
"""The types of values. UNKNOWN: of a variable that was not assigned so far."""

Operand = Union["Expression", int, float]
"""What an operator accepts."""


class Expression:
    __hash__ = object.__hash__

    def __eq__(self, other: Operand) -> Comparison:  # type: ignore[override]
        return Comparison(self, "==", expression(other))

    def __ne__(self, other: Operand) -> Comparison:  # type: ignore[override]
        return Comparison(self, "!=", expression(other))

    def __lt__(self, other: Operand) -> Comparison:
        return Comparison(self, "<", expression(other))

    def __le__(self, other: Operand) -> Comparison:
        return Comparison(self, "<=", expression(other))

    def __gt__(self, other: Operand) -> Comparison:
        return Comparison(self, ">", expression(other))

    def __ge__(self, other: Operand) -> Comparison:
        return Comparison(self, ">=", expression(other))

    def __add__(self, other: Operand) -> Binary:
        return Binary("+", self, expression(other))

    def __radd__(self, other: Operand) -> Binary:
        return Binary("+", expression(other), self)

    def __sub__(self, other: Operand) -> Binary:
        return Binary("-", self, expression(other))

    def __rsub__(self, other: Operand) -> Binary:
        return Binary("-", expression(other), self)

    def __mul__(self, other: Operand) -> Binary:
        return Binary("*", self, expression(other))

    def __rmul__(self, other: Operand) -> Binary:
        return Binary("*", expression(other), self)

    def __truediv__(self, other: Operand) -> Binary:
        return Binary("/", self, expression(other))

    def __floordiv__(self, other: Operand) -> Binary:
        return Binary("//", self, expression(other))

    def __mod__(self, other: Operand) -> Binary:
        return Binary("%", self, expression(other))

    def __lshift__(self, other: Operand) -> Binary:
        return Binary("<<", self, expression(other))

    def __rshift__(self, other: Operand) -> Binary:
        return Binary(">>", self, expression(other))

    def __and__(self, other: Operand) -> Binary:
        return Binary("&", self, expression(other))

    def __or__(self, other: Operand) -> Binary:
        return Binary("|", self, expression(other))

    def __xor__(self, other: Operand) -> Binary:
        return Binary("^", self, expression(other))

    def __neg__(self) -> Unary:
        return Unary("-", self)

    def __invert__(self) -> Unary:
        return Unary("~", self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a condition of the kernel is not one of the generator")


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    value: int | float | bool
    name: str = ""
    """Of a field or counter."""


@dataclass(frozen=True, eq=False)
class Variable(Expression):
    """A number in a kernel: a parameter, or a place that statements assign. `type` is what it must be; UNKNOWN: whatever its
    assignments make it."""

    name: str
    type: str = UNKNOWN


@dataclass(frozen=True, eq=False)
class Array:
    """A parameter that is an array, of one or two dimensions."""

    name: str

    def __getitem__(self, index: Operand | tuple[Operand, Operand]) -> Element:
        if isinstance(index, tuple):
            return Element(self, (expression(index[0]), expression(index[1])))
        return Element(self, (expression(index),))

    @property
    def length(self) -> Length:
        return Length(self)


@dataclass(frozen=True, eq=False)
class Element(Expression):
    array: Array
    indices: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Length(Expression):
    """Of an array: its rows, or with `dimension` 1 the length of each."""

    array: Array
    dimension: int = 0


@dataclass(frozen=True, eq=False)
class Binary(Expression):
    """`+ - * / // % << >> & | ^`"""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, eq=False)
class Unary(Expression):
    """`-`, `+`, `~` or `not`."""

    operator: str
    operand: Expression


@dataclass(frozen=True, eq=False)
class Comparison(Expression):
    left: Expression
    sign: str
    right: Expression


@dataclass(frozen=True, eq=False)
class Between(Expression):
    """`left sign other sign other …`: true if each holds; nothing is evaluated twice."""

    left: Expression
    signs: tuple[str, ...]
    others: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Boolean(Expression):
    """`and` or `or` of two values or more: evaluated from the left until it is decided."""

    operator: str
    values: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Choice(Expression):
    """`yes if test else no`: only one of them is evaluated."""

    yes: Expression
    test: Expression
    no: Expression


Argument = Expression | Array


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """Of a function of the kernel."""

    function: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, eq=False)
class Intrinsic(Expression):
    """What the machine does by itself: conversions, extremes, bits of floats (machine_code/instructions.py has their
    meaning)."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class SlotColumn(Expression):
    """A value column of the event at a slot, wherever a search has it: replaced before there is a kernel (contents.py)."""

    column: int
    slot: int


@dataclass(frozen=True, eq=False)
class SlotField(Expression):
    """REF, BITS or TIME of the event at a slot; replaced likewise."""

    field: str
    slot: int


def expression(given: Operand) -> Expression:
    return given if isinstance(given, Expression) else Constant(given)


NONE = Constant(-1)
"""No node."""
TRUE, FALSE = Constant(True), Constant(False)
HIGHEST = Constant(9223372036854775807)


def all_of(*tests: Expression) -> Expression:
    return TRUE if not tests else tests[0] if len(tests) == 1 else Boolean("and", tests)


def any_of(*tests: Expression) -> Expression:
    return FALSE if not tests else tests[0] if len(tests) == 1 else Boolean("or", tests)


def negated(test: Expression) -> Expression:
    return Unary("not", test)


def choice(yes: Operand, test: Expression, no: Operand) -> Choice:
    """`yes if test else no`"""
    return Choice(expression(yes), test, expression(no))


def between(low: int, value: Expression, high: int) -> Between:
    """`low <= value <= high`"""
    return Between(_signed(low), ("<=", "<="), (value, _signed(high)))


def _signed(value: int) -> Expression:
    return -Constant(-value) if value < 0 else Constant(value)


def bit(word: Expression, number: int) -> Expression:
    return (word >> number) & 1


def total(terms: list[Expression]) -> Expression:
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
    return Intrinsic(name, tuple([expression(each) for each in arguments]))


def as_float(bits: Operand) -> Intrinsic:
    return intrinsic("as_float", bits)


def as_bits(value: Operand) -> Intrinsic:
    return intrinsic("as_bits", value)


def call(function: str, *arguments: Argument | int | float) -> Call:
    return Call(function, tuple([each if isinstance(each, Array) else expression(each) for each in arguments]))
