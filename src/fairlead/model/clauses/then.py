"""THEN: members in the order of the pattern.

A a AND B b THEN C c     Precedence({a, b}, {c})
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.dataclass import dataclass
from fairlead.model.clauses.clause import Clause, Pair


@dataclass(frozen=True)
class Precedence(Clause):
    """Every event in `left` has a smaller position than every event in `right`."""

    word = "then"

    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def anchors(self) -> tuple[int, ...]:
        return (*self.left, *self.right)

    @property
    def orders(self) -> tuple[Pair, ...]:
        return tuple((before, after) for before in self.left for after in self.right)

    @property
    def line(self) -> str:
        return f"then {self.left} {self.right}"

    def words(self, names: Sequence[str]) -> str:
        return "THEN"

    def explained(self, names: Sequence[str]) -> str:
        left, right = (", ".join(names[slot] for slot in side) for side in (self.left, self.right))
        return f"{left} before {right}"
