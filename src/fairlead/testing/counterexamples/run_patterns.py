"""Patterns with runs, for the search of losses: the patterns of scenarios.py in which some elements are runs.

    AddedRun(type "A", 2, None, "count({}) >= 3")    of A a the run A a{2,}; of A a[2] the run A r{2,} beside A a

A world is compared with the same world without the clause: for runs, a single event in the
place of each; for HAVING, the same runs without it.

Takes: a scenario and its runs. Gives: the texts of its subscriptions. Never: runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from fairlead.testing.counterexamples.scenarios import BEFORE, Pattern, Scenario

LENGTHS: tuple[tuple[int, int | None], ...] = (
    (1, None),
    (2, None),
    (2, None),
    (3, None),
    (0, None),
    (0, 1),
    (0, 2),
    (1, 2),
    (2, 3),
    (2, 2),
    (1, 1),
)
HAVINGS = (
    "count({}) >= 2",
    "count({}) >= 3",
    "sum({}.x) >= 3",
    "sum({}.x) = 2",
    "max({}.x) > 1",
    "count(DISTINCT {}.x) >= 2",
    "first({}.x) < last({}.x)",
    "min({}.x) > 0",
)


@dataclass(frozen=True)
class AddedRun:
    """The last instance of the type is a run of so many events; `having` with {} for its name, or nothing."""

    type: str
    least: int
    most: int | None
    having: str = ""

    @property
    def quantifier(self) -> str:
        return f"{{{self.least},{'' if self.most is None else self.most}}}"


def run_texts(base: Scenario, runs: Sequence[AddedRun], as_runs: bool, having: bool) -> list[str]:
    """MATCH, WHERE and HAVING of each subscriber, without the options. `as_runs` False: a single event in the place of
    each run."""
    of_type = {each.type: each for each in runs}
    return [_text(patterns[0], of_type, as_runs, having) for patterns in base.processes]


def _text(pattern: Pattern, runs: Mapping[str, AddedRun], as_runs: bool, having: bool) -> str:
    elements: list[str] = []
    names: list[str] = []
    whole: list[str] = []
    for name, count in pattern.types:
        alias, run = name.lower(), runs.get(name)
        if run is None or count > 1:
            single = count if run is None else count - 1
            elements.append(f"{name} {alias}" + (f"[{single}]" if single > 1 else ""))
            names += [alias] if single == 1 else [f"{alias}[{at}]" for at in range(1, single + 1)]
        if run is None:
            continue
        called = alias if count == 1 else f"r{alias}"
        if as_runs:
            elements.append(f"{name} {called}{run.quantifier}")
            names.append(called)
            whole += [run.having.replace("{}", called)] if having and run.having else []
        else:
            elements.append(f"{name} {called}")
            names.append(called)
    conditions = [f"{names[slot]}.x {sign} {value}" for slot, sign, value in pattern.unary]
    for left, sign, right in pattern.links:
        one, other = names[left], names[right]
        before = f"position({one}) < position({other})"
        conditions.append(before if sign == BEFORE else f"{one}.x {sign} {other}.x")
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    return f"MATCH {' AND '.join(elements)}{where}" + (f"\nHAVING {' AND '.join(whole)}" if whole else "")


def drawn_runs(pattern: Pattern, having: bool, chance: Random) -> tuple[AddedRun, ...]:
    """One or two types of the pattern with a run."""
    names = [name for name, _ in pattern.types]
    chosen = chance.sample(names, 2 if len(names) > 1 and chance.random() < 0.25 else 1)
    lengths = [chance.choice(LENGTHS) for _ in chosen]
    asked = [chance.choice(HAVINGS) if having else "" for _ in chosen]
    return tuple(AddedRun(name, least, most, each) for name, (least, most), each in zip(chosen, lengths, asked, strict=True))
