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
from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import jsonable
from fairlead.model.expressions.expression_node import BinaryNode, ExpressionNode, SlotNode, UnaryNode


@dataclass(frozen=True)
class Literal(ExpressionNode):
    """A constant in canonical form. NULL has the kind that its context requires."""

    value: Any
    kind: Kind
    type: DataType | None = None
    """Of a NULL that is an ARRAY or a STRUCT: which one."""

    def text(self, names: Sequence[str]) -> str:
        if self.value is None:
            return "NULL"
        if self.kind in (Kind.STRING, Kind.BINARY):
            return _quoted(str(jsonable(self.value, self.kind)))
        if self.kind in (Kind.TIMESTAMP, Kind.DATE):
            return f"{self.kind} {_quoted(str(jsonable(self.value, self.kind)))}"
        if self.kind is Kind.INTERVAL:
            return f"{self.value} MICROSECONDS"
        return str(self.value).upper() if self.kind is Kind.BOOLEAN else str(self.value)


@dataclass(frozen=True)
class Field(SlotNode):
    """`slot.attribute`"""

    slot: int
    attribute: str
    kind: Kind

    def text(self, names: Sequence[str]) -> str:
        return f"{names[self.slot]}.{self.attribute}"


@dataclass(frozen=True)
class PositionOf(SlotNode):
    """`position(x)`: the number of x in the order. A derived event has the number of the logged event beside it."""

    slot: int
    kind: Kind = Kind.BIGINT

    def text(self, names: Sequence[str]) -> str:
        return f"position({names[self.slot]})"


@dataclass(frozen=True)
class TimeOf(SlotNode):
    """`time(x)`: the event time of x."""

    slot: int
    kind: Kind = Kind.TIMESTAMP

    def text(self, names: Sequence[str]) -> str:
        return f"time({names[self.slot]})"


@dataclass(frozen=True)
class Previous(SlotNode):
    """`prev(x.attribute, back)`: of the event so many before x in the relation, of those that the type of x accepts."""

    slot: int
    attribute: str
    back: int
    kind: Kind

    def text(self, names: Sequence[str]) -> str:
        return f"prev({names[self.slot]}.{self.attribute}, {self.back})"


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
class StructField(UnaryNode):
    """`operand.name`, where the operand is no attribute: NULL of a STRUCT that is NULL."""

    operand: Expression
    name: str
    at: int
    """The number of the field."""
    kind: Kind

    def text(self, names: Sequence[str]) -> str:
        return f"{self.operand.text(names)}.{self.name}"


@dataclass(frozen=True)
class Aggregate(ExpressionNode):
    """count, sum, avg, min, max over the instances of one element, or the events of its run; of a run also first, last and
    `count DISTINCT`; in EMIT also collect, their values in order. `attribute` is None for count(q)."""

    function: str
    slots: tuple[int, ...]
    attribute: str | None
    kind: Kind

    def at_slot(self, slot: int) -> Aggregate:
        return replace(self, slots=(slot,) * len(self.slots))

    def text(self, names: Sequence[str]) -> str:
        dot = f".{self.attribute}" if self.attribute else ""
        inner = " ".join(names[slot] + dot for slot in self.slots)
        return f"count(DISTINCT {inner})" if self.function == DISTINCT else f"{self.function}({inner})"


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


@dataclass(frozen=True)
class Logic(ExpressionNode):
    """Conditions joined by AND or OR, as a value: true, false, or NULL if what is known of its parts does not decide it."""

    operator: str
    operands: tuple[Expression, ...]
    kind: Kind = Kind.BOOLEAN

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.operands

    def with_parts(self, *parts: Any) -> Any:
        return replace(self, operands=parts)

    def text(self, names: Sequence[str]) -> str:
        return f"({f' {self.operator} '.join(each.text(names) for each in self.operands)})"


@dataclass(frozen=True)
class CaseWhen(ExpressionNode):
    """`CASE WHEN c THEN v … ELSE o END`: the value after the first condition that is true."""

    conditions: tuple[Expression, ...]
    values: tuple[Expression, ...]
    """One for each condition, then that of ELSE."""
    kind: Kind

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (*self.conditions, *self.values)

    def with_parts(self, *parts: Any) -> Any:
        return replace(self, conditions=parts[: len(self.conditions)], values=parts[len(self.conditions) :])

    def text(self, names: Sequence[str]) -> str:
        pairs = zip(self.conditions, self.values[:-1], strict=True)
        steps = "".join(f" WHEN {condition.text(names)} THEN {value.text(names)}" for condition, value in pairs)
        return f"CASE{steps} ELSE {self.values[-1].text(names)} END"


@dataclass(frozen=True)
class Cast(UnaryNode):
    """`cast(x AS type)`: NULL if the type has no such value."""

    operand: Expression
    type: DataType

    @property
    def kind(self) -> Kind:
        return self.type.kind

    def text(self, names: Sequence[str]) -> str:
        return f"cast({self.operand.text(names)} AS {self.type})"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


Atom = Compare | IsNull | In | Like | Truth
Leaf = Field | PositionOf | TimeOf | Previous | Aggregate
"""What reads events: `slots` says which, `at_slot` is the same of another."""
Expression = Literal | Leaf | Arithmetic | Negative | Call | StructField | Logic | CaseWhen | Cast | Atom


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
    about: int | None = None
    """In a sequence: the slot for which an event is taken when this is asked."""
    looks_back: int = 0
    """The largest number of events that its prev() goes back; where there are fewer, it is not asked."""

    @property
    def is_unary(self) -> bool:
        return len(self.slots) == 1


COMPARISONS: dict[str, str] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""Each comparison with its negation. Under three-valued logic NOT (a < b) is a >= b: both unknown together."""


AGGREGATES = ("count", "sum", "avg", "min", "max")
DISTINCT = "count distinct"
COLLECT = "collect"
RUN_AGGREGATES = ("first", "last", DISTINCT)
"""Aggregates of runs only."""


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
