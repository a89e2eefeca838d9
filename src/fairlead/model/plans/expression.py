"""Typed expressions over the slots of a conjunction, as a frozen tree, and how they print.

A *slot* is a place in the signature. Slots 0..n-1 are the members; slots from n on are events that clauses note
(clauses/). Every expression knows its kind, so evaluators need no type checks. Conditions are kept in
disjunctive normal form: an OR of ANDs of atoms (see Condition).

A node says what its parts are, how it is made again of others, and how it prints; walks over a tree ask it.

Gives: the node classes, `slots_of`, `leaves`, `with_leaves`, `render`. Never: evaluates (matching/expressions/ does, and
testing/interpreter.py again, literally).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.model.events.types import Kind
from fairlead.model.events.values import jsonable


class ExpressionNode:
    """What everybody asks of a node. The answers here are those of a node without parts that reads no event."""

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    def with_parts(self, *parts: Any) -> Any:
        """The same node over other parts, as many as it has."""
        return self

    def text(self, names: Sequence[str]) -> str:
        """The expression as text, with `names[slot]` for each slot."""
        raise NotImplementedError


class UnaryNode(ExpressionNode):
    """A node over one part."""

    operand: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def with_parts(self, *parts: Any) -> Any:
        return replace(self, operand=parts[0])  # type: ignore[type-var]


class BinaryNode(ExpressionNode):
    """An operator between two parts."""

    operator: str
    left: Expression
    right: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def with_parts(self, *parts: Any) -> Any:
        return replace(self, left=parts[0], right=parts[1])  # type: ignore[type-var]

    def text(self, names: Sequence[str]) -> str:
        return f"({self.left.text(names)} {self.operator} {self.right.text(names)})"


@dataclass(frozen=True)
class Literal(ExpressionNode):
    """A constant in canonical form. NULL has the kind that its context requires."""

    value: Any
    kind: Kind

    def text(self, names: Sequence[str]) -> str:
        if self.value is None:
            return "NULL"
        if self.kind in (Kind.STRING, Kind.BINARY):
            return _quoted(str(jsonable(self.value, self.kind)))
        if self.kind is Kind.TIMESTAMP:
            return f"TIMESTAMP {_quoted(str(jsonable(self.value, self.kind)))}"
        if self.kind is Kind.INTERVAL:
            return f"{self.value} MICROSECONDS"
        return str(self.value).upper() if self.kind is Kind.BOOLEAN else str(self.value)


@dataclass(frozen=True)
class Field(ExpressionNode):
    """`slot.attribute`"""

    slot: int
    attribute: str
    kind: Kind

    @property
    def slots(self) -> tuple[int, ...]:
        return (self.slot,)

    def at_slot(self, slot: int) -> Field:
        return replace(self, slot=slot)

    def text(self, names: Sequence[str]) -> str:
        return f"{names[self.slot]}.{self.attribute}"


@dataclass(frozen=True)
class PositionOf(ExpressionNode):
    """`position(x)`: the number of x in the order. A derived event has the number of the logged event beside it."""

    slot: int
    kind: Kind = Kind.BIGINT

    @property
    def slots(self) -> tuple[int, ...]:
        return (self.slot,)

    def at_slot(self, slot: int) -> PositionOf:
        return replace(self, slot=slot)

    def text(self, names: Sequence[str]) -> str:
        return f"position({names[self.slot]})"


@dataclass(frozen=True)
class TimeOf(ExpressionNode):
    """`time(x)`: the event time of x."""

    slot: int
    kind: Kind = Kind.TIMESTAMP

    @property
    def slots(self) -> tuple[int, ...]:
        return (self.slot,)

    def at_slot(self, slot: int) -> TimeOf:
        return replace(self, slot=slot)

    def text(self, names: Sequence[str]) -> str:
        return f"time({names[self.slot]})"


@dataclass(frozen=True)
class Arithmetic(BinaryNode):
    """`+ - * / %`. `/` is always DOUBLE; a zero divisor and an integer result beyond 64 bits are NULL."""

    operator: str
    left: Expression
    right: Expression
    kind: Kind


@dataclass(frozen=True)
class Negative(UnaryNode):
    operand: Expression
    kind: Kind

    def text(self, names: Sequence[str]) -> str:
        return f"(-{self.operand.text(names)})"


@dataclass(frozen=True)
class Call(ExpressionNode):
    """A pure function of FUNCTIONS."""

    function: str
    arguments: tuple[Expression, ...]
    kind: Kind

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_parts(self, *parts: Any) -> Any:
        return replace(self, arguments=parts)

    def text(self, names: Sequence[str]) -> str:
        return f"{self.function}({', '.join(each.text(names) for each in self.arguments)})"


@dataclass(frozen=True)
class Aggregate(ExpressionNode):
    """count, sum, avg, min, max over the instances of one element. `attribute` is None for count(q)."""

    function: str
    slots: tuple[int, ...]
    attribute: str | None
    kind: Kind

    def at_slot(self, slot: int) -> Aggregate:
        return replace(self, slots=(slot,) * len(self.slots))

    def text(self, names: Sequence[str]) -> str:
        dot = f".{self.attribute}" if self.attribute else ""
        return f"{self.function}({' '.join(names[slot] + dot for slot in self.slots)})"


@dataclass(frozen=True)
class Compare(BinaryNode):
    """`= != < <= > >=`; unknown if a side is NULL or NaN."""

    operator: str
    left: Expression
    right: Expression
    kind: Kind = Kind.BOOLEAN


@dataclass(frozen=True)
class IsNull(UnaryNode):
    operand: Expression
    negated: bool = False
    kind: Kind = Kind.BOOLEAN

    def text(self, names: Sequence[str]) -> str:
        return f"({self.operand.text(names)} IS {_not(self.negated)}NULL)"


@dataclass(frozen=True)
class In(ExpressionNode):
    """`x IN (…)`: unknown if x is NULL or NaN, or if nothing equals and an option is NULL or NaN."""

    operand: Expression
    options: tuple[Expression, ...]
    negated: bool = False
    kind: Kind = Kind.BOOLEAN

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.operand, *self.options)

    def with_parts(self, *parts: Any) -> Any:
        return replace(self, operand=parts[0], options=parts[1:])

    def text(self, names: Sequence[str]) -> str:
        options = ", ".join(each.text(names) for each in self.options)
        return f"({self.operand.text(names)} {_not(self.negated)}IN ({options}))"


@dataclass(frozen=True)
class Like(UnaryNode):
    """`x LIKE pattern`: % any characters, _ one character, backslash escapes."""

    operand: Expression
    pattern: str
    negated: bool = False
    kind: Kind = Kind.BOOLEAN

    def text(self, names: Sequence[str]) -> str:
        return f"({self.operand.text(names)} {_not(self.negated)}LIKE {_quoted(self.pattern)})"


@dataclass(frozen=True)
class Truth(UnaryNode):
    """A BOOLEAN expression used as a condition, possibly under NOT."""

    operand: Expression
    negated: bool = False
    kind: Kind = Kind.BOOLEAN

    def text(self, names: Sequence[str]) -> str:
        return f"{_not(self.negated)}{self.operand.text(names)}"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


Atom = Compare | IsNull | In | Like | Truth
Leaf = Field | PositionOf | TimeOf | Aggregate
"""What reads events: `slots` says which, `at_slot` is the same of another."""
Expression = Literal | Leaf | Arithmetic | Negative | Call | Atom


@dataclass(frozen=True)
class Condition:
    """A boolean formula in disjunctive normal form: true if all atoms of at least one term are true. Under three-valued logic
    this equals the original formula, since De Morgan and distribution hold there too."""

    terms: tuple[tuple[Atom, ...], ...]


@dataclass(frozen=True)
class Predicate:
    """One conjunct of WHERE: its condition, the slots it reads (sorted), and its text for people."""

    condition: Condition
    slots: tuple[int, ...]
    text: str = ""

    @property
    def is_unary(self) -> bool:
        return len(self.slots) == 1


COMPARISONS: dict[str, str] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""Each comparison with its negation. Under three-valued logic NOT (a < b) is a >= b: both unknown together."""


@dataclass(frozen=True)
class Function:
    """A pure function of the language: its number of arguments, and its kind for theirs (None: rejected)."""

    arity_min: int
    arity_max: int
    result: Callable[[Sequence[Kind]], Kind | None]
    help: str


def _text_in(result: Kind) -> Callable[[Sequence[Kind]], Kind | None]:
    return lambda kinds: result if kinds[0] is Kind.STRING else None


def _number_in(result: Kind | None) -> Callable[[Sequence[Kind]], Kind | None]:
    numeric = (Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL)
    return lambda kinds: (result or kinds[0]) if kinds[0] in numeric else None


def _time_in(kinds: Sequence[Kind]) -> Kind | None:
    return Kind.INT if kinds[0] is Kind.TIMESTAMP else None


def _substring(kinds: Sequence[Kind]) -> Kind | None:
    return Kind.STRING if kinds[0] is Kind.STRING and all(k in (Kind.INT, Kind.BIGINT) for k in kinds[1:]) else None


def _coalesce(kinds: Sequence[Kind]) -> Kind | None:
    return kinds[0] if all(kind is kinds[0] for kind in kinds) else None


FUNCTIONS: dict[str, Function] = {
    "abs": Function(1, 1, _number_in(None), "absolute value"),
    "floor": Function(1, 1, _number_in(Kind.BIGINT), "largest whole number not above"),
    "ceil": Function(1, 1, _number_in(Kind.BIGINT), "smallest whole number not below"),
    "isnan": Function(1, 1, lambda kinds: Kind.BOOLEAN if kinds[0] is Kind.DOUBLE else None, "true for NaN, NULL for NULL"),
    "lower": Function(1, 1, _text_in(Kind.STRING), "in lower case"),
    "upper": Function(1, 1, _text_in(Kind.STRING), "in upper case"),
    "trim": Function(1, 1, _text_in(Kind.STRING), "without spaces at both ends"),
    "length": Function(1, 1, _text_in(Kind.INT), "number of characters"),
    "substring": Function(2, 3, _substring, "substring(text, start[, length]); the first character is 1"),
    "coalesce": Function(1, 8, _coalesce, "the first argument that is not NULL"),
    "year": Function(1, 1, _time_in, "year of a timestamp, in UTC like all date parts"),
    "month": Function(1, 1, _time_in, "month 1 to 12"),
    "day": Function(1, 1, _time_in, "day of the month 1 to 31"),
    "hour": Function(1, 1, _time_in, "hour 0 to 23"),
    "minute": Function(1, 1, _time_in, "minute 0 to 59"),
    "second": Function(1, 1, _time_in, "second 0 to 59"),
    "dayofweek": Function(1, 1, _time_in, "1 = Sunday to 7 = Saturday, as in Spark"),
}
AGGREGATES = ("count", "sum", "avg", "min", "max")


def leaves(node: Expression) -> Iterator[Leaf]:
    """Every part of an expression that reads events, from left to right."""
    if isinstance(node, Leaf):
        yield node
    for part in node.parts:
        yield from leaves(part)


def with_leaves(node: Expression, change: Callable[[Leaf], Expression]) -> Expression:
    """The same expression with each leaf replaced."""
    if isinstance(node, Leaf):
        return change(node)
    made: Expression = node.with_parts(*(with_leaves(part, change) for part in node.parts))
    return made


def at_slot_zero(node: Expression) -> Expression:
    """The same expression with its one slot numbered 0."""
    return with_leaves(node, lambda leaf: leaf.at_slot(0))


def slots_of(node: Expression) -> frozenset[int]:
    """Every slot that an expression reads."""
    return frozenset(slot for leaf in leaves(node) for slot in leaf.slots)


def condition_slots(condition: Condition) -> tuple[int, ...]:
    return tuple(sorted(frozenset().union(*(slots_of(atom) for term in condition.terms for atom in term))))


def render(node: Expression, names: Sequence[str]) -> str:
    """The expression as text, with `names[slot]` for each slot: aliases for people, type[instance] for digests."""
    return node.text(names)


def render_condition(condition: Condition, names: Sequence[str]) -> str:
    terms = [" AND ".join(render(atom, names) for atom in term) or "TRUE" for term in condition.terms]
    return " OR ".join(terms) if terms else "FALSE"
