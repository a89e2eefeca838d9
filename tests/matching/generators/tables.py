"""Generated subscriptions that read tables, beside elements whose events match and leave as ever."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.matching.generators.bounds import bound_words
from tests.matching.generators.generated import START, Case
from tests.matching.generators.options import option_words

ATTRIBUTES = "k INT, x INT, s STRING, d DOUBLE, at TIMESTAMP"
TYPES = f"""
TYPE A ({ATTRIBUTES}) TIME at
TYPE B ({ATTRIBUTES}) TIME at
TYPE C ({ATTRIBUTES}) TIME at
TYPE D EXTENDS A (z INT)
EVENT UNION U = B + C
"""
SOURCES = ("A", "A", "B", "D", "U")
ROW_KEYS = ("x", "x", "s", "d", "k", "x, s", "d, x", "s, d, k", "s, x")
TEXTS, DOUBLES = ("a", "a", "b", "", None), (0.0, -0.0, 1.0, 1.0, float("nan"), None)


@st.composite
def table_cases(draw: st.DrawFn) -> Case:
    return table_case(Random(draw(st.integers(0, 1 << 30))))


def table_case(rng: Random) -> Case:
    tables = [f"TABLE T{n} KEY ({rng.choice(ROW_KEYS)}) FROM {rng.choice(SOURCES)}" for n in range(rng.choice((1, 1, 1, 2)))]
    lines = [TYPES, *tables, _subscription(rng, len(tables))]
    if rng.random() < 0.2:
        lines.append("SUBSCRIPTION R\nMATCH E e AND T0 t WHERE t.k >= e.k")
    return Case("\n".join(lines), _events(rng), None if rng.random() < 0.7 else START + timedelta(seconds=rng.randint(0, 9)))


def _subscription(rng: Random, tables: int) -> str:
    plain = [(rng.choice(("A", "B", "C", "D", "U")), f"p{at}", rng.choice((1, 1, 1, 2))) for at in range(rng.choice((1, 1, 2)))]
    read = [(f"T{at}", f"t{at}", rng.choice((1, 1, 1, 2))) for at in range(tables)]
    elements = [*plain, *read]
    rng.shuffle(elements)
    pattern = _text(elements[0])
    for each in elements[1:]:
        pattern = f"({pattern} {rng.choice(('AND', 'AND', 'THEN'))} {_text(each)})"
    named = {alias: [f"{alias}[{i}]" for i in range(1, n + 1)] if n > 1 else [alias] for _, alias, n in elements}
    members = [member for names in named.values() for member in names]
    conditions = [_condition(rng, members) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    lines = ["SUBSCRIPTION S", f"MATCH {pattern}"]
    lines += ["WHERE " + " AND ".join(conditions)] if conditions else []
    lines += [rng.choice(("PER k", "PER k", "PER k, bucket(at, 4 SECONDS)"))] if rng.random() < 0.4 else []
    lines += [f"WITHIN {rng.randint(1, 6)} SECONDS"] if rng.random() < 0.4 else []
    if rng.random() < 0.3:
        one, other = rng.choice(members), rng.choice(members)
        ways = [f"BEFORE {one}", f"BEFORE {one} WITHIN 2 SECONDS", f"WITHIN 2 SECONDS OF {one}"]
        ways += [f"BETWEEN {one} AND {other}"] if one != other else []
        where = rng.choice(("", " WHERE n.x > 1", f" WHERE n.x = {other}.x"))
        lines.append(f"WITHOUT {rng.choice('ABCU')} n {rng.choice(ways)}{where}")
    lines += option_words(rng, [[member for _, alias, _ in plain for member in named[alias]]], few=True)
    lines += bound_words(rng, [" AND ".join(map(_text, plain))])
    if rng.random() < 0.3:
        lines.append(f"LIMIT {rng.randint(1, 4)}")
    return "\n".join([*lines, f"EMIT E (k = coalesce({members[0]}.k, 0), x = {members[-1]}.x)"])


def _text(element: tuple[str, str, int]) -> str:
    name, alias, count = element
    return f"{name} {alias}" + (f"[{count}]" if count > 1 else "")


def _condition(rng: Random, members: list[str]) -> str:
    one, other = rng.choice(members), rng.choice(members)
    sign = rng.choice(("=", "=", "<", ">=", "!="))
    if one == other:
        return rng.choice((f"{one}.x {sign} {rng.randint(0, 3)}", f"{one}.s = 'a'", f"{one}.d IS NOT NULL"))
    same = rng.choice(("x", "x", "s", "d", "k"))
    return rng.choice((f"{one}.{same} = {other}.{same}", f"{one}.{same} = {other}.{same}", f"{one}.x {sign} {other}.x"))


def _events(rng: Random) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    now = START
    for _ in range(rng.randint(4, 24)):
        now += timedelta(seconds=rng.choice((0, 1, 1, 1, 2, 3, -2)))
        name = rng.choice("AAABBBCD")
        values: dict[str, Any] = {"type": name, "at": now, "k": rng.choice((0, 0, 0, 1, None))}
        values |= {"x": rng.choice((0, 1, 1, 2, 3, None)), "s": rng.choice(TEXTS), "d": rng.choice(DOUBLES)}
        made.append(values | ({"z": 1} if name == "D" else {}))
    return made
