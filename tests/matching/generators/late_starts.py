"""Generated sequences whose starts fail late: runs of any length, with conditions on neighbours, before what seldom comes; and
longer streams of values that mostly fall. Some conditions let a search remember where a run failed, others do not: aggregates
of what was taken before, events further back, windows.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.matching.generators.generated import START, TYPES, Case

RUNS = ("+", "+", "{2,}", "{3,}", "{5,}", "*", "{1,3}")
TYPE_NAMES = (("A",), ("A",), ("A", "D"), ("A", "B"), ("U", "B"))
STREAMS = (("A",), ("A", "A", "A", "B"), ("A", "A", "D"), ("B", "B", "C"))


def late_rules(rng: Random) -> str:
    types, order, runs, where, words = rng.choice(TYPE_NAMES), list[str](), list[str](), list[str](), list[str]()
    for at in range(rng.choice((2, 3, 3, 4))):
        alias = f"p{at}"
        before, is_run = [*runs], rng.random() < 0.65 or at == 0
        words += ["NEXT" if at == 1 else rng.choice(("NEXT", "NEXT", "THEN"))] if at else []
        words.append(f"{rng.choice(types)} {alias}" + (rng.choice(RUNS) + rng.choice(("", "", " SHORTEST")) if is_run else ""))
        if rng.random() < 0.1:
            words.append(f"WITHIN {rng.choice((1, 2))} SECONDS OF PREVIOUS")
        order.append(alias)
        runs += [alias] if is_run else []
        sign, kind = rng.choice(("<", ">", "<=", ">=")), rng.random()
        if kind < 0.5:
            where.append(f"{alias}.x {sign} prev({alias}.x{rng.choice(('', '', '', ', 2'))})")
        elif kind < 0.7:
            where.append(f"{alias}.x {sign} {rng.randint(0, 6)}")
        elif before:
            of = rng.choice(("last", "last", "last", "first", "sum", "min", "count"))
            where.append(f"{alias}.x {sign} {of}({rng.choice(before)}.x)")
        if is_run and rng.random() < 0.1:
            where.append(f"{rng.choice(('count', 'sum'))}({alias}.x) < {rng.randint(2, 30)}")
    lines = ["SUBSCRIPTION S", f"MATCH {' '.join(words)}" + (" ELSE B o" if rng.random() < 0.1 else "")]
    lines += ["WHERE " + " AND ".join(where)] if where else []
    if rng.random() < 0.2:
        lines.append(f"HAVING {rng.choice(('last', 'count', 'max'))}({rng.choice(runs)}.x) > {rng.randint(0, 4)}")
    lines += ["PER k"] if rng.random() < 0.3 else []
    lines += [f"WITHIN {rng.choice((2, 4, 8, 15))} SECONDS"] if rng.random() < 0.45 else []
    lines.append(f"DISPOSAL {rng.choice(('PREFIX INFIX', 'FIRST PREFIX', 'ADVANCE 2', f'UPTO LAST {rng.choice(order)}'))}")
    return TYPES + "\n".join(lines)


def late_stream(rng: Random) -> list[dict[str, Any]]:
    """Values that mostly fall, or mostly rise, or neither; times that stand still, and sometimes run backwards."""
    names, steps = rng.choice(STREAMS), rng.choice(((-1, -1, -1, 0, 3), (-1, 1, 1), (-1, 0, 1)))
    seconds, value, backwards = 0, rng.randint(0, 9), rng.random() < 0.3
    made: list[dict[str, Any]] = []
    for _ in range(rng.randint(4, 26)):
        seconds = max(0, seconds + rng.choice((0, 1, 1, 2, -2) if backwards else (0, 1, 1, 2)))
        value = max(0, value + rng.choice(steps))
        event = {"type": rng.choice(names), "k": rng.choice((1, 1, 2)), "x": value if rng.random() < 0.95 else None, "y": 0.5}
        event["at"] = START + timedelta(seconds=seconds)
        made.append(event | ({"z": 0} if event["type"] == "D" else {}))
    return made


@st.composite
def late_cases(draw: st.DrawFn) -> Case:
    rng = Random(draw(st.integers(0, 1 << 30)))
    return Case(late_rules(rng), late_stream(rng))
