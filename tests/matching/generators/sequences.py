"""Generated rules with sequences (NEXT, groups, ELSE, SHORTEST, prev, running aggregates, time limits, UNTIL, STEPWISE), over
the types and streams of generated.py.

`sequence_rules` draws from a `Random`, so that the fuzzers use it too. Every text it makes is legal.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random

from hypothesis import strategies as st

from tests.matching.generators.generated import START, TYPES, Case, events

QUANTIFIERS = ("+", "*", "?", "{2}", "{2,}", "{,2}", "{1,2}", "{2,3}")
SIGNS = ("=", "!=", "<", ">=", ">")
TYPE_NAMES = ("A", "A", "B", "B", "C", "D", "U")
LEAVING = ("PREFIX INFIX", "FIRST PREFIX", "ADVANCE 2", "ADVANCE 3", "UPTO FIRST", "UPTO LAST")


class DrawnSequence:
    """A pattern over some types, and what its conditions may name."""

    def __init__(self, rng: Random, types: Sequence[str] = TYPE_NAMES) -> None:
        self.rng, self.types = rng, types
        self.order: list[str] = []
        """Aliases in the order of the pattern."""
        self.runs: set[str] = set()
        self.counted: set[str] = set()
        self.text = self.part(rng.choice((1, 2, 2)), False)

    def part(self, depth: int, nested: bool) -> str:
        rng = self.rng
        words = [self.item(depth, nested)]
        for _ in range(rng.choice((0, 1, 1, 2)) if depth else rng.choice((0, 1))):
            words += [rng.choice(("NEXT", "NEXT", "THEN")), self.item(depth, nested)]
        return " ".join(words)

    def item(self, depth: int, nested: bool) -> str:
        rng = self.rng
        kind = rng.random() if depth else 1
        if kind < 0.2:
            quantifier = rng.choice(QUANTIFIERS) + rng.choice(("", "", " SHORTEST"))
            return f"({self.part(depth - 1, True)}){quantifier}"
        if kind < 0.4:
            return f"({' ELSE '.join(self.part(depth - 1, True) for _ in range(rng.choice((2, 2, 3))))})"
        return self.element(nested)

    def element(self, nested: bool) -> str:
        rng, alias = self.rng, f"p{len(self.order)}"
        self.order.append(alias)
        text = f"{rng.choice(self.types)} {alias}"
        kind = rng.random()
        if kind < 0.45:
            text += rng.choice(QUANTIFIERS) + rng.choice(("", "", " LONGEST", " SHORTEST"))
            self.runs.add(alias)
            if rng.random() < 0.2:
                text += f" UNTIL {self.condition(alias)}"
        elif kind < 0.55:
            text += "[2]"
            self.counted.add(alias)
        if nested:
            self.runs.add(alias)
        if rng.random() < 0.15:
            text += f" WITHIN {rng.choice((1, 2, 3))} SECONDS OF PREVIOUS"
        return text

    def condition(self, about: str) -> str:
        """About this element, which may name those before it."""
        rng, number = self.rng, self.rng.randint(0, 3)
        sign, before = rng.choice(SIGNS), self.order[: self.order.index(about)]
        choices = [f"{about}.x {sign} {number}", f"{about}.x {sign} prev({about}.x)", f"{about}.y >= prev({about}.y, 2)"]
        choices += [f"({about}.x {sign} {number} OR {about}.y IS NULL)", f"NOT isnan({about}.y)"]
        if about in self.runs:
            of = rng.choice(("sum({0}.x)", "avg({0}.y)", "count({0})", "count(DISTINCT {0}.x)", "min({0}.x)", "max({0}.y)"))
            choices += [f"{of.format(about)} {sign} {number}", f"first({about}.x) {sign} {about}.x", f"count({about}) < 3"]
        for other in before:
            if other in self.runs and other not in self.counted:
                choices += [f"{about}.x {sign} last({other}.x)", f"coalesce(sum({other}.x), 0) <= {about}.x"]
                choices.append(f"{about}.x {sign} {rng.choice(('first', 'last'))}({other}.y)")
                choices.append(f"NOT ({about}.y {sign} {rng.choice(('first', 'max', 'avg'))}({other}.y))")
            elif other not in self.runs:
                choices += [f"{about}.x {sign} {other}.x", f"time({about}) - time({other}) <= {number} SECONDS"]
        return rng.choice(choices)

    def conditions(self) -> list[str]:
        """Of WHERE, with which it is a sequence even if its words do not say so."""
        where = [self.condition(self.rng.choice(self.order)) for _ in range(self.rng.choice((0, 1, 1, 2)))]
        if not any(word in self.text for word in ("NEXT", "ELSE", ")", "TEST", "UNTIL", "PREVIOUS")):
            where.append(f"{self.order[0]}.x != prev({self.order[0]}.x)")
        return where

    def disposal(self, leaving: Sequence[str] = LEAVING) -> str:
        chosen = self.rng.choice(leaving)
        return f"DISPOSAL {chosen}" + (f" {self.rng.choice(self.order)}" if "UPTO" in chosen else "")

    def whole(self) -> str:
        rng, run = self.rng, self.rng.choice(sorted(self.runs))
        value = rng.choice(
            (f"count({run})", f"sum({run}.x)", f"last({run}.x)", f"first({run}.y)", f"avg({run}.y)", f"count(DISTINCT {run}.y)")
        )
        return f"{value} {rng.choice(SIGNS)} {rng.randint(0, 3)}"


def sequence_rules(rng: Random) -> str:
    """One subscription with one or two branches, possibly one that reads what it emits."""
    made = DrawnSequence(rng)
    pattern, where = made.text, made.conditions()
    lines = ["SUBSCRIPTION S", f"MATCH {pattern}" + (" OR (B o0 NEXT A o1)" if rng.random() < 0.15 else "")]
    lines += ["WHERE " + " AND ".join(where)] if where else []
    lines += [f"HAVING {made.whole()}"] if made.runs and rng.random() < 0.3 else []
    keyed = rng.random() < 0.4
    lines += ["PER k"] if keyed else []
    lines += [f"WITHIN {rng.randint(1, 6)} SECONDS"] if rng.random() < 0.5 else []
    lines += ["MATCHING FIRST STEPWISE"] if rng.random() < 0.35 else []
    lines += [made.disposal(LEAVING if " OR (" not in lines[1] else LEAVING[:4])]
    if rng.random() < 0.25:
        lines += [f"LIMIT {rng.randint(1, 3)}" + (" PER KEY" if keyed and rng.random() < 0.5 else "")]
    first = made.order[0]
    if first in made.runs:
        lines += [f"EMIT E (k = coalesce(last({first}.k), 0), x = sum({first}.x), n = count({first}))"]
    else:
        lines += [f"EMIT E (k = coalesce({first}.k, 0), x = max({first}.x), n = count({first}))"]
    if rng.random() < 0.4:
        lines += [
            "SUBSCRIPTION T",
            f"MATCH {rng.choice(('E e THEN B b', 'E e+ NEXT B b', 'E e{1,2} WITHIN 2 SECONDS OF PREVIOUS'))}",
        ]
    return TYPES + "\n".join(lines)


@st.composite
def sequence_cases(draw: st.DrawFn) -> Case:
    rules = sequence_rules(Random(draw(st.integers(0, 1 << 30))))
    until = draw(st.none() | st.integers(0, 40).map(lambda seconds: START + timedelta(seconds=seconds)))
    return Case(rules, draw(events(22)), until)
