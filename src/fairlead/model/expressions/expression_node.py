"""What every node of an expression answers: its parts, the same node over others, its text.

Gives: the classes that the nodes of expression.py extend. Never: names an operator or a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.model.expressions.expression import Expression


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


class SlotNode(ExpressionNode):
    """A node that reads one event."""

    slot: int

    @property
    def slots(self) -> tuple[int, ...]:
        return (self.slot,)

    def at_slot(self, slot: int) -> Any:
        """The same of the event at another slot."""
        return replace(self, slot=slot)  # type: ignore[type-var]


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
