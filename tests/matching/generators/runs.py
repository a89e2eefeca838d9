"""Generated rules with runs (`q+`, `q{1,2}`, HAVING), over the types and streams of generated.py.

Patterns that the language refuses (two runs that nothing separates) are not drawn again: `legal` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import assume
from hypothesis import strategies as st

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from tests.matching.generators.bounds import bound_lines
from tests.matching.generators.generated import TYPES, Case, events, limits
from tests.matching.generators.options import DISPOSALS

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
    """One subscription with runs, possibly one that reads what it emits."""
    pattern = draw(patterns())
    where = [draw(conditions(pattern)) for _ in range(draw(st.sampled_from((0, 1, 1, 2))))]
    having = [draw(wholes(pattern)) for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2))))]
    lines = ["SUBSCRIPTION S", f"MATCH {pattern.text}"]
    lines += ["WHERE " + " AND ".join(where)] if where else []
    lines += ["HAVING " + " AND ".join(having)] if having else []
    keyed = draw(st.booleans())
    lines += ["PER k"] if keyed else []
    lines += [f"WITHIN {draw(st.integers(1, 8))} SECONDS"] if draw(st.booleans()) else []
    if pattern.singles and draw(st.integers(0, 3)) == 0:
        anchor = draw(st.sampled_from(pattern.singles))
        negated = draw(st.sampled_from(("A", "C", "U")))
        within = draw(st.sampled_from(("", " WITHIN 2 SECONDS")))
        lines += [f"WITHOUT {negated} n BEFORE {anchor}{within} WHERE n.x = {anchor}.x"]
    lines += [f"MATCHING {draw(st.sampled_from(('FIRST', 'FIRST', 'RECENT')))}", f"DISPOSAL {draw(st.sampled_from(DISPOSALS))}"]
    lines += draw(bound_lines([pattern.text]))
    lines += draw(limits(keyed))
    run = pattern.runs[0]
    lines += [f"EMIT E (k = coalesce(first({run}.k), 0), x = sum({run}.x), n = count({run}), y = last({run}.y))"]
    if draw(st.booleans()):
        lines += ["SUBSCRIPTION T", f"MATCH E e{draw(st.sampled_from(('', '{2}', '+')))} THEN B b", "PER k"]
    rules = TYPES + "\n".join(lines)
    assume(legal(rules))
    return Case(rules, draw(events(24)))


def legal(rules: str) -> bool:
    try:
        compile_text(rules)
    except LanguageError as error:
        if error.code != "L097":
            raise
        return False
    return True
