"""The vocabulary of kernels: what a branch comes down to before it is source.

Gives: `Shape` and what it is made of. Never: decides whether a branch has a kernel (shape.py) or writes source.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fairlead.model.expression import (
    Aggregate,
    Arithmetic,
    Call,
    Compare,
    Expression,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    PositionOf,
    TimeOf,
    Truth,
)
from fairlead.model.plan import Branch, Subscription
from fairlead.model.types import Kind


class Refused(Exception):
    """The branch has no kernel; the message says which part."""


@dataclass(frozen=True)
class ValueColumn:
    """An expression over one event of one queue (slot 0 stands for it), as int64 or float64: texts by their numbers
    (keys.py), decimals as whole numbers at the scale of their attribute."""

    queue: int
    expression: Expression
    truth: bool = False
    """The column is 1 where the expression (an atom) is true, else 0, and never NULL."""

    @property
    def is_double(self) -> bool:
        return self.expression.kind is Kind.DOUBLE


@dataclass(frozen=True)
class Test:
    """One thing to test once `slots` are bound: a piece of source over `c0, c1, …` (the nodes of the slots)."""

    slots: frozenset[int]
    source: str


@dataclass(frozen=True)
class Clause:
    """A WITHOUT … BETWEEN: the events it notes are queued too, after the queues of members; `source` tests one of them, at
    `slot`, with the members."""

    queue: int
    slot: int
    left: int
    right: int
    source: str


@dataclass
class Shape:
    subscription: Subscription
    branch: Branch
    queue_of_slot: list[int]
    needed: list[int]
    columns: list[ValueColumn] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    required: list[tuple[int, int]] = field(default_factory=list)
    """(slot, column): an event can be the member at the slot only if the column is not NULL there."""
    helpers: list[str] = field(default_factory=list)
    """The functions of helpers.py that the tests call."""
    clauses: list[Clause] = field(default_factory=list)
    ranked: bool = False
    """Texts are ordered: the kernel takes their ranks (keys.py), by number, after the value columns."""

    @property
    def size(self) -> int:
        return len(self.queue_of_slot)

    @property
    def queue_names(self) -> tuple[str, ...]:
        """The type of each queue: those of the members, then one for each WITHOUT clause."""
        return (*self.branch.queue_types, *(each.type for each in self.branch.negated))

    @property
    def stride(self) -> int:
        """Queues of one key."""
        return len(self.needed) + len(self.branch.negated)

    def queue_of(self, slot: int) -> int:
        return self.queue_of_slot[slot] if slot < self.size else len(self.needed) + slot - self.size

    def known_bit(self, column: int) -> int:
        return self.size + column


def at_slot_zero(node: Expression) -> Expression:
    """The same expression with its one slot numbered 0."""
    match node:
        case Field() | PositionOf() | TimeOf():
            return replace(node, slot=0)
        case Arithmetic() | Compare():
            return replace(node, left=at_slot_zero(node.left), right=at_slot_zero(node.right))
        case Call():
            return replace(node, arguments=tuple(map(at_slot_zero, node.arguments)))
        case Aggregate():
            return replace(node, slots=(0,) * len(node.slots))
        case In():
            return replace(node, operand=at_slot_zero(node.operand), options=tuple(map(at_slot_zero, node.options)))
        case Negative() | IsNull() | Like() | Truth():
            return replace(node, operand=at_slot_zero(node.operand))
        case Literal():
            return node
