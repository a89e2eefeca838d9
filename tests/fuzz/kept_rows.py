"""Tables in random rules, added to a subscription that is drawn already: beside any element, in any place.

Takes: a random source of its own. Gives: declarations, and a subscription that reads them. Never: changes what else is
drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.rules import Clauses

ROW_KEYS = ("x", "x", "k", "s", "y", "j", "x, s", "k, x", "y, s")


class DrawnTables:
    def __init__(self, rng: Random) -> None:
        self.rng, self.often = rng, rng.choice((0.0, 0.0, 0.0, 0.4, 0.9))
        self.names: list[str] = []

    def declared(self, readable: Sequence[str]) -> list[str]:
        """One or two, of what rules read."""
        if not self.often:
            return []
        self.names = ["T0", "T1"][: self.rng.choice((1, 1, 2))]
        return [f"TABLE {name} KEY ({self.rng.choice(ROW_KEYS)}) FROM {self.rng.choice(readable)}" for name in self.names]

    def beside(self, made: Clauses, members: Sequence[Sequence[str]]) -> Clauses:
        """`members`: of each branch, its events."""
        if self.rng.random() >= self.often:
            return made
        branches, where = list(made.branches), list(made.where)
        for at, named in enumerate(members):
            if at and self.rng.random() < 0.5:
                continue
            for name in self.names[: self.rng.choice((1, 1, 2))]:
                alias, count = f"{name.lower()}{'pqr'[at]}", self.rng.choice((1, 1, 1, 2))
                element = f"{name} {alias}" + (f"[{count}]" if count > 1 else "")
                branches[at] = self._joined(branches[at], element)
                read = f"{alias}[{self.rng.randint(1, count)}]" if count > 1 else alias
                where += [self._condition(read, named) for _ in range(self.rng.choice((0, 1, 1, 2)))]
        return replace(made, branches=tuple(branches), where=tuple(where))

    def _joined(self, branch: str, element: str) -> str:
        shown = f"({branch})" if " AND " in branch or " THEN " in branch else branch
        way = self.rng.choice(("AND", "AND", "THEN"))
        return f"{shown} {way} {element}" if way == "AND" or self.rng.random() < 0.2 else f"{element} {way} {shown}"

    def _condition(self, read: str, members: Sequence[str]) -> str:
        rng = self.rng
        if not members or rng.random() < 0.2:
            return rng.choice((f"{read}.x > {rng.randrange(3)}", f"{read}.s = 'a'", f"{read}.y IS NOT NULL"))
        name = rng.choice(("x", "x", "s", "k", "y"))
        sign = "=" if name == "k" else rng.choice(("=", "=", "=", "<", ">=", "!="))
        return f"{read}.{name} {sign} {rng.choice(members)}.{name}"
