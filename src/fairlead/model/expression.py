"""Typed expressions over the slots of a conjunction, as a frozen tree, and how they print.

A *slot* is a place in the signature. Slots 0..n-1 are the members; slots from n on are the negated events of the
WITHOUT clauses. Every expression knows its kind, so evaluators need no type checks. Conditions are kept in
disjunctive normal form: an OR of ANDs of atoms (see Condition).

Gives: the node classes, `slots_of`, `render`. Never: evaluates (match/ does, testing/ does it again, literally).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.model.types import Kind
from fairlead.model.values import jsonable


@dataclass(frozen=True)
class Literal:
    """A constant in canonical form. NULL has the kind that its context requires."""

    value: Any
    kind: Kind


@dataclass(frozen=True)
class Field:
    """`slot.attribute`"""

    slot: int
    attribute: str
    kind: Kind


@dataclass(frozen=True)
class PositionOf:
    """`position(x)`: the number of x in the order. A derived event has the number of the logged event beside it."""

    slot: int
    kind: Kind = Kind.BIGINT


@dataclass(frozen=True)
class TimeOf:
    """`time(x)`: the event time of x."""

    slot: int
    kind: Kind = Kind.TIMESTAMP


@dataclass(frozen=True)
class Arithmetic:
    """`+ - * / %`. `/` is always DOUBLE; a zero divisor and an integer result beyond 64 bits are NULL."""

    operator: str
    left: Expression
    right: Expression
    kind: Kind


@dataclass(frozen=True)
class Negative:
    operand: Expression
    kind: Kind


@dataclass(frozen=True)
class Call:
    """A pure function of FUNCTIONS."""

    function: str
    arguments: tuple[Expression, ...]
    kind: Kind


@dataclass(frozen=True)
class Aggregate:
    """count, sum, avg, min, max over the instances of one element. `attribute` is None for count(q)."""

    function: str
    slots: tuple[int, ...]
    attribute: str | None
    kind: Kind


@dataclass(frozen=True)
class Compare:
    """`= != < <= > >=`; unknown if a side is NULL or NaN."""

    operator: str
    left: Expression
    right: Expression
    kind: Kind = Kind.BOOLEAN


@dataclass(frozen=True)
class IsNull:
    operand: Expression
    negated: bool = False
    kind: Kind = Kind.BOOLEAN


@dataclass(frozen=True)
class In:
    """`x IN (…)`: unknown if x is NULL or NaN, or if nothing equals and an option is NULL or NaN."""

    operand: Expression
    options: tuple[Expression, ...]
    negated: bool = False
    kind: Kind = Kind.BOOLEAN


@dataclass(frozen=True)
class Like:
    """`x LIKE pattern`: % any characters, _ one character, backslash escapes."""

    operand: Expression
    pattern: str
    negated: bool = False
    kind: Kind = Kind.BOOLEAN


@dataclass(frozen=True)
class Truth:
    """A BOOLEAN expression used as a condition, possibly under NOT."""

    operand: Expression
    negated: bool = False
    kind: Kind = Kind.BOOLEAN


Atom = Compare | IsNull | In | Like | Truth
Expression = Literal | Field | PositionOf | TimeOf | Arithmetic | Negative | Call | Aggregate | Atom


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


def children(node: Expression) -> tuple[Expression, ...]:
    match node:
        case Arithmetic() | Compare():
            return (node.left, node.right)
        case Negative() | IsNull() | Like() | Truth():
            return (node.operand,)
        case In():
            return (node.operand, *node.options)
        case Call():
            return node.arguments
    return ()


def slots_of(node: Expression) -> frozenset[int]:
    """Every slot that an expression reads."""
    match node:
        case Field() | PositionOf() | TimeOf():
            return frozenset({node.slot})
        case Aggregate():
            return frozenset(node.slots)
        case Literal():
            return frozenset()
    return frozenset().union(*map(slots_of, children(node)))


def condition_slots(condition: Condition) -> tuple[int, ...]:
    return tuple(sorted(frozenset().union(*(slots_of(atom) for term in condition.terms for atom in term))))


def render(node: Expression, names: Sequence[str]) -> str:
    """The expression as text, with `names[slot]` for each slot: aliases for people, type[instance] for digests."""
    match node:
        case Literal():
            return _literal(node)
        case Field():
            return f"{names[node.slot]}.{node.attribute}"
        case PositionOf():
            return f"position({names[node.slot]})"
        case TimeOf():
            return f"time({names[node.slot]})"
        case Arithmetic() | Compare():
            return f"({render(node.left, names)} {node.operator} {render(node.right, names)})"
        case Negative():
            return f"(-{render(node.operand, names)})"
        case Call():
            return f"{node.function}({', '.join(render(each, names) for each in node.arguments)})"
        case Aggregate():
            dot = f".{node.attribute}" if node.attribute else ""
            return f"{node.function}({' '.join(names[slot] + dot for slot in node.slots)})"
        case IsNull():
            return f"({render(node.operand, names)} IS {'NOT ' if node.negated else ''}NULL)"
        case In():
            options = ", ".join(render(each, names) for each in node.options)
            return f"({render(node.operand, names)} {'NOT ' if node.negated else ''}IN ({options}))"
        case Like():
            return f"({render(node.operand, names)} {'NOT ' if node.negated else ''}LIKE {_quoted(node.pattern)})"
        case Truth():
            return f"{'NOT ' if node.negated else ''}{render(node.operand, names)}"


def render_condition(condition: Condition, names: Sequence[str]) -> str:
    terms = [" AND ".join(render(atom, names) for atom in term) or "TRUE" for term in condition.terms]
    return " OR ".join(terms) if terms else "FALSE"


def _literal(node: Literal) -> str:
    if node.value is None:
        return "NULL"
    if node.kind in (Kind.STRING, Kind.BINARY):
        return _quoted(str(jsonable(node.value, node.kind)))
    if node.kind is Kind.TIMESTAMP:
        return f"TIMESTAMP {_quoted(str(jsonable(node.value, node.kind)))}"
    if node.kind is Kind.INTERVAL:
        return f"{node.value} MICROSECONDS"
    return str(node.value).upper() if node.kind is Kind.BOOLEAN else str(node.value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
