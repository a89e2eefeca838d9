"""Generated rules with runs (`q+`, `q{1,2}`, HAVING), over the types and streams of generated.py.

Patterns that the language refuses (two runs that nothing separates) are not drawn again: `legal` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from tests.matching.generators.bounds import bound_lines
from tests.matching.generators.generated import TYPES, Case, events, keys, limits
from tests.matching.generators.options import DISPOSALS

TABLES = """TABLE TA KEY (x) FROM A
TABLE TU KEY (k, x) FROM U
TABLE TD KEY (y, x) FROM D
"""
QUANTIFIERS = ("+", "*", "?", "{2}", "{2,}", "{,2}", "{1,2}", "{2,4}", "{3}")


@dataclass
class Pattern:
    text: str = ""
    singles: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    made, parts = Pattern(), []
    runs_at = draw(st.sampled_from(((0,), (0,), (1,), (1,), (2,), (0, 2), (1, 3))))
    for at in range(draw(st.integers(max(runs_at) + 1, 3)) if max(runs_at) < 3 else 4):
        name = draw(st.sampled_from(("A", "A", "B", "B", "C", "D", "U")))
        if at in runs_at:
            parts.append(f"{name} p{at}{draw(st.sampled_from(QUANTIFIERS))}")
            made.runs.append(f"p{at}")
        else:
            parts.append(f"{name} p{at}")
            made.singles.append(f"p{at}")
    made.text = parts[0]
    for part in parts[1:]:
        joined = f"{made.text} {draw(st.sampled_from(('AND', 'THEN', 'THEN')))} {part}"
        made.text = f"({joined})" if draw(st.booleans()) else joined
    return made


@st.composite
def conditions(draw: st.DrawFn, pattern: Pattern) -> str:
    run, sign, number = (
        draw(st.sampled_from(pattern.runs)),
        draw(st.sampled_from(("=", "!=", "<", ">="))),
        draw(st.integers(0, 3)),
    )
    choices = [f"{run}.x {sign} {number}", f"{run}.y IS NOT NULL", f"NOT isnan({run}.y)", f"{run}.x IN (1, {number}, NULL)"]
    for other in pattern.singles:
        choices += [
            f"{run}.x {sign} {other}.x",
            f"{other}.x {sign} {number}",
            f"time({run}) >= time({other}) - {number} SECONDS",
        ]
        choices += [f"({run}.x = {other}.x OR {run}.y IS NULL)"]
        choices += [f"{other}.y < {another}.x" for another in pattern.singles if another != other]
    return draw(st.sampled_from(choices))


@st.composite
def wholes(draw: st.DrawFn, pattern: Pattern) -> str:
    run, sign, number = (
        draw(st.sampled_from(pattern.runs)),
        draw(st.sampled_from(("=", "!=", "<", ">=", ">"))),
        draw(st.integers(0, 4)),
    )
    values = [f"count({run})", f"count({run}.y)", f"count(DISTINCT {run}.x)", f"count(DISTINCT {run}.y)", f"sum({run}.x)"]
    values += [f"avg({run}.y)", f"min({run}.x)", f"max({run}.y)", f"first({run}.x)", f"last({run}.y)"]
    choices = [f"{draw(st.sampled_from(values))} {sign} {number}", f"first({run}.x) {sign} last({run}.x)"]
    choices += [f"({draw(st.sampled_from(values))} {sign} {number} OR last({run}.x) IS NULL)"]
    choices += [f"max({run}.x) {sign} {other}.x" for other in pattern.singles]
    choices += [f"count({run}) {sign} count({other})" for other in pattern.runs if other != run]
    return draw(st.sampled_from(choices))


@st.composite
def run_cases(draw: st.DrawFn) -> Case:
    """One subscription with runs, possibly beside tables, possibly one that reads what it emits."""
    pattern = draw(patterns())
    queued = pattern.text
    for name in draw(st.sampled_from(((), (), (), ("TA",), ("TU",), ("TD",), ("TU", "TA")))):
        beside(draw, pattern, name)
    where = [draw(conditions(pattern)) for _ in range(draw(st.sampled_from((0, 1, 1, 2))))]
    having = [draw(wholes(pattern)) for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2))))]
    lines = ["SUBSCRIPTION S", f"MATCH {pattern.text}"]
    lines += ["WHERE " + " AND ".join(where)] if where else []
    lines += ["HAVING " + " AND ".join(having)] if having else []
    keyed = draw(st.booleans())
    lines += [draw(keys)] if keyed else []
    lines += [f"WITHIN {draw(st.integers(1, 8))} SECONDS"] if draw(st.booleans()) else []
    if pattern.singles and draw(st.integers(0, 3)) == 0:
        anchor = draw(st.sampled_from(pattern.singles))
        negated = draw(st.sampled_from(("A", "C", "U")))
        within = draw(st.sampled_from(("", " WITHIN 2 SECONDS")))
        lines += [f"WITHOUT {negated} n BEFORE {anchor}{within} WHERE n.x = {anchor}.x"]
    lines += [f"MATCHING {draw(st.sampled_from(('FIRST', 'FIRST', 'RECENT')))}", f"DISPOSAL {draw(st.sampled_from(DISPOSALS))}"]
    lines += draw(bound_lines([queued]))
    lines += draw(limits(keyed))
    run = pattern.runs[0]
    lines += [f"EMIT E (k = coalesce(first({run}.k), 0), x = sum({run}.x), n = count({run}), y = last({run}.y))"]
    if draw(st.booleans()):
        lines += ["SUBSCRIPTION T", f"MATCH E e{draw(st.sampled_from(('', '{2}', '+')))} THEN B b", "PER k"]
    rules = TYPES + TABLES + "\n".join(lines)
    assume(legal(rules))
    return Case(rules, draw(events(24)))


def beside(draw: st.DrawFn, pattern: Pattern, table: str) -> None:
    """An element of a table, which any condition can be about."""
    alias, text = table.lower(), f"({pattern.text})"
    ways = f"{text} AND {table} {alias}", f"{table} {alias} THEN {text}", f"{text} THEN {table} {alias}"
    pattern.text = draw(st.sampled_from((ways[0], ways[0], ways[1], ways[1], ways[2])))
    pattern.singles.append(alias)


def legal(rules: str) -> bool:
    try:
        compile_text(rules)
    except LanguageError as error:
        if error.code != "L097":
            raise
        return False
    return True


KINDS = "k INT, x INT, l BIGINT, y DOUBLE, d DECIMAL(6,1), w DECIMAL(30,2), v DECIMAL(38,0), s STRING, f BOOLEAN, at TIMESTAMP"
MANY_TYPES = f"TYPE A ({KINDS}) TIME at\nTYPE B ({KINDS}) TIME at\n"
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "k": st.integers(0, 1),
    "x": st.none() | st.integers(-2, 3),
    "l": st.none() | st.sampled_from((-(2**63), 2**63 - 1, 2**62, -1, 0, 3)),
    "y": st.none() | st.sampled_from((0.0, -0.0, 0.1, 0.2, -1.5, 1e16, math.nan, math.inf, -math.inf)),
    "d": st.none() | st.sampled_from((Decimal("0.1"), Decimal("-3.0"), Decimal("99999.9"))),
    "w": st.none() | st.sampled_from((Decimal("0.01"), Decimal("-3.00"), Decimal(10**27))),
    "v": st.none() | st.sampled_from((Decimal(1), Decimal(10**38 - 1), Decimal(-(10**37)))),
    "s": st.none() | st.sampled_from(("", "a", "b", "ab")),
    "f": st.none() | st.booleans(),
}
NUMBERS = {"x": "2", "l": "0", "y": "0.25", "d": "0.2", "w": "0.5", "v": "7"}


@st.composite
def atoms(draw: st.DrawFn, run: str, single: str | None) -> str:
    """A comparison about a whole run of events with attributes of many types."""
    sign = draw(st.sampled_from(("=", "!=", "<", "<=", ">", ">=", ">=", ">")))
    name = draw(st.sampled_from(tuple(NUMBERS)))
    function = draw(st.sampled_from(("sum", "avg", "min", "max", "first", "last")))
    ends = [f"{end}({run}.{name})" for end in ("first", "last") if end != function]
    others = [NUMBERS[name], *ends, *([f"{single}.{name}"] if single else [])]
    count = draw(st.sampled_from((f"count({run})", f"count({run}.{name})", *(f"count(DISTINCT {run}.{at})" for at in VALUES))))
    return draw(
        st.sampled_from(
            (
                f"{count} {sign} {draw(st.integers(0, 4))}",
                f"{count} >= {draw(st.integers(1, 4))}",
                f"{count} > {draw(st.sampled_from(('0.5', '1.0', '2')))}",
                f"{function}({run}.{name}) {sign} {draw(st.sampled_from(others))}",
                f"{function}({run}.{name}) {sign} {NUMBERS[name]}",
                f"{function}({run}.{name}) IS NULL",
                f"max({run}.x) - min({run}.x) {sign} 2",
                f"first({run}.s) {sign} 'a'",
                f"min({run}.s) {sign} last({run}.s)",
                f"last({run}.f)",
                f"max({run}.at) - min({run}.at) >= 2 SECONDS",
            )
        )
    )


@st.composite
def valued_run_cases(draw: st.DrawFn) -> Case:
    """One run, alone, before, after or between members, whose HAVING is about attributes of many types."""
    pattern, run, single = draw(
        st.sampled_from(
            (
                ("A a+", "a", None),
                ("A a*", "a", None),
                ("A a{2,3}", "a", None),
                ("A a THEN B b+", "b", "a"),
                ("A a+ THEN B b", "a", "b"),
                ("A a THEN B b{2,} THEN A c", "b", "c"),
                ("A a THEN A b+", "b", "a"),
                ("A a AND B b+", "b", "a"),
            )
        )
    )
    having = [draw(atoms(run, single)) for _ in range(draw(st.sampled_from((1, 1, 2))))]
    if draw(st.integers(0, 3)) == 0:
        having.append(f"({draw(atoms(run, single))} OR {draw(atoms(run, single))})")
    lines = [f"SUBSCRIPTION S MATCH {pattern} HAVING {' AND '.join(having)}"]
    lines += [f"WHERE {run}.x >= 0"] if draw(st.integers(0, 3)) == 0 else []
    lines += ["PER k"] if draw(st.booleans()) else []
    lines += [f"WITHIN {draw(st.integers(1, 8))} SECONDS"] if draw(st.booleans()) else []
    lines += [f"MATCHING {draw(st.sampled_from(('FIRST', 'FIRST', 'RECENT')))}", f"DISPOSAL {draw(st.sampled_from(DISPOSALS))}"]
    at, records = 0, []
    for _ in range(draw(st.integers(1, 24))):
        at += draw(st.sampled_from((0, 1, 1, 2, -1)))
        record = {name: draw(values) for name, values in VALUES.items()}
        time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=at)
        records.append({"type": draw(st.sampled_from(("A", "A", "B"))), **record, "at": time})
    return Case(MANY_TYPES + "\n".join(lines), records)
