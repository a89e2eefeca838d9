"""Generated plans of several subscriptions: families of alike ones, hierarchies of three levels, absences at every level.

Alike subscriptions differ in conditions on single events only, over the same members, so that they share a kernel: intervals of
whole numbers and floats, equal texts, and what no interval is (IN, IS NULL, OR, two values at once).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.matching.generators.bounds import bound_lines
from tests.matching.generators.generated import START, Branch, Case, befores, branches, clocks, limits, predicates
from tests.matching.generators.options import option_lines

INPUT = """
TYPE A (k INT, j INT, x INT, y DOUBLE, s STRING, at TIMESTAMP) TIME at
TYPE B (k INT, j INT, x INT, y DOUBLE, s STRING, at TIMESTAMP) TIME at
TYPE C (k INT, j INT, x INT, y DOUBLE, s STRING, at TIMESTAMP) TIME at
TYPE D EXTENDS A (z INT)
EVENT UNION U = B + C
"""
DECLARED = """
TYPE E (k INT, j INT, x INT, y DOUBLE, s STRING, at TIMESTAMP) TIME at
EVENT UNION V = C + E
"""
SIGNS = st.sampled_from(("=", "<", "<=", ">", ">="))
NUMBERS = st.integers(0, 3)
FLOATS = st.sampled_from(("0.0", "0.5", "1", "1.5", "2"))
TEXTS = st.sampled_from(("a", "b", "", "A"))


@st.composite
def conditions(draw: st.DrawFn, member: str) -> str:
    """A condition on one event: what an interval index serves, and what it does not."""
    low, high, sign, text = draw(NUMBERS), draw(NUMBERS), draw(SIGNS), draw(TEXTS)
    made = (
        f"{member}.x {sign} {low}",
        f"{low} {sign} {member}.x",
        f"{member}.x >= {low} AND {member}.x < {high}",
        f"{member}.x BETWEEN {low} AND {high}",
        f"{member}.y {sign} {draw(FLOATS)}",
        f"{member}.y > {draw(FLOATS)} AND {member}.y <= {draw(FLOATS)}",
        f"{member}.s = '{text}'",
        f"{member}.s = '{text}' AND {member}.s = 'a'",
        f"{member}.s = '{text}' AND {member}.x {sign} {low}",
        f"{member}.x + 1 {sign} {low}",
        f"{member}.x {sign} 1.5",
        f"{member}.at >= TIMESTAMP '2026-01-01T00:00:0{low}Z'",
        f"{member}.x IN ({low}, {high})",
        f"{member}.s IN ('{text}', 'b')",
        f"{member}.s > '{text}'",
        f"{member}.x IS NULL",
        f"{member}.y IS NOT NULL",
        f"({member}.x = {low} OR {member}.s = '{text}')",
        f"length({member}.s) {sign} {low}",
    )
    return draw(st.sampled_from(made))


@st.composite
def withouts(draw: st.DrawFn, branch: Branch, prefix: str, types: tuple[str, ...]) -> str:
    negated, alias = draw(st.sampled_from(types)), f"{prefix}n"
    wheres = ("", f" WHERE {alias}.x > 1", f" WHERE {alias}.x = {branch.members[0]}.x", f" WHERE {alias}.s = 'a'")
    where = draw(st.sampled_from(wheres))
    if len(branch.members) > 1 and draw(st.booleans()):
        left, right = draw(st.permutations(branch.members))[:2]
        return f"WITHOUT {negated} {alias} BETWEEN {left} AND {right}{where}"
    anchor = draw(st.sampled_from(branch.members))
    if draw(st.booleans()):
        return f"WITHOUT {negated} {alias} BEFORE {anchor}{draw(befores)}{where}"
    return f"WITHOUT {negated} {alias} WITHIN {draw(st.integers(1, 4))} SECONDS OF {anchor}{draw(clocks)}{where}"


@st.composite
def alike(
    draw: st.DrawFn, types: tuple[str, ...], most: int, emits: str | None, timed: bool, withouts_in_ten: int
) -> list[str]:
    """One to `most` subscriptions (without their names) that differ in conditions on single events only."""
    made = [draw(branches(prefix, types)) for prefix in draw(st.sampled_from(("p", "p", "p", "p", "pq")))]
    count = draw(st.integers(1, most))
    across = [draw(predicates(branch)) for branch in made for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2))))]
    restricted = [m for branch in made for m in branch.members if draw(st.integers(0, 2)) == 0]
    tail = []
    key = draw(st.sampled_from(("", "", "k", "k", "j", "mixed")))
    names = [each.split("[")[0] for branch in made for each in branch.members]
    if key == "mixed":
        one, two = names[0], names[-1]
        tail.append(f"PER {one}.k = {two}.j" if one != two and len(made) == 1 and types[0] != "E" else "PER k")
    elif key:
        tail.append(f"PER {key}")
    tail += [f"WITHIN {draw(st.integers(1, 8))} SECONDS"] if draw(st.booleans()) else []
    if draw(st.integers(0, 9)) < withouts_in_ten:
        tail += [draw(withouts(branch, prefix, types)) for branch, prefix in zip(made, "pq", strict=False)]
    tail += draw(option_lines([branch.members for branch in made], few=emits is not None or "E" in types))
    tail += draw(bound_lines([branch.text for branch in made], often=0.2))
    tail += draw(limits(bool(key)))
    if emits:
        member, last = made[0].members[0], made[0].members[-1]
        at = f", at = {last}.at) TIME at" if timed else ")"
        tail.append(
            f"EMIT {emits} (k = {member}.k, j = {last}.j, x = coalesce({member}.x, 7), y = {last}.y, s = {member}.s{at}"
        )
    head = "MATCH " + " OR ".join(f"({branch.text})" for branch in made)
    found = []
    for _ in range(count):
        where = [*across, *(draw(conditions(member)) for member in restricted)]
        found.append("\n".join([head, *(["WHERE " + " AND ".join(where)] if where else []), *tail]))
    return found


@st.composite
def plan_cases(draw: st.DrawFn, events_max: int = 20) -> Case:
    """Two to six subscriptions over three levels."""
    declared = draw(st.booleans())
    first = draw(st.sampled_from((("A", "B"), ("A", "B"), ("A", "D", "B"), ("B", "U"), ("A", "B", "C", "D", "U"))))
    read = ("E", "E", "A", "B", "D") + (("V",) if declared else ())
    found: list[tuple[str, list[str]]] = []
    room, withouts_in_ten = 6, draw(st.sampled_from((2, 2, 8)))
    levels: list[tuple[tuple[str, ...], str | None, bool]] = [(first, draw(st.sampled_from((None, "E", "E"))), True)]
    if levels[0][1]:
        levels.append((first, draw(st.sampled_from((None, "E"))), True))
        if declared or draw(st.booleans()):
            levels.append((read, draw(st.sampled_from((None, "F", "F"))), False))
            if levels[-1][1]:
                levels.append((("F", "F", "E", "A"), None, False))
                levels.append((("F", "E", "B"), None, False))
        else:
            levels += [(("E", "E", "A"), None, False), (("E", "C"), None, False)]
    else:
        levels.append((first, None, True))
    for at, (types, emits, lowest) in enumerate(levels):
        if room == 0:
            break
        most = min(3, max(1, room - (len(levels) - at - 1)))
        group = draw(alike(types, min(most, room), emits, declared and lowest and emits == "E", withouts_in_ten))
        room -= len(group)
        found.append((f"S{at}", group))
    texts = [f"SUBSCRIPTION {name}x{n}\n{text}" for name, group in found for n, text in enumerate(group)]
    texts = draw(st.permutations(texts))
    until = draw(st.none() | st.integers(0, 20).map(lambda seconds: START + timedelta(seconds=seconds)))
    return Case("\n".join([INPUT, *([DECLARED] if declared else []), *texts]), draw(plan_events(events_max)), until)


def plan_events(most: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    record = st.fixed_dictionaries(
        {
            "type": st.sampled_from(("A", "A", "A", "B", "B", "B", "C", "D", "Heartbeat")),
            "k": st.sampled_from((0, 0, 0, 0, 1, None)),
            "j": st.sampled_from((0, 0, 0, 1, 1)),
            "x": st.sampled_from((0, 1, 1, 2, 2, 3, None)),
            "y": st.sampled_from((0.0, -0.0, 1.0, 1.0, 2.0, float("nan"), None)),
            "s": st.sampled_from(("a", "a", "b", "A", "", None)),
            "z": st.just(1),
            "step": st.sampled_from((0, 1, 1, 1, 2, 3, -1)),
        }
    )
    return st.lists(record, min_size=most - 4, max_size=most).map(_timed)


def _timed(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Times that mostly rise; each record with exactly its type's attributes."""
    attributes = {"Heartbeat": "", "D": "kjxysz"}
    made, now = [], START
    for record in records:
        now += timedelta(seconds=record["step"])
        named = {name: record[name] for name in attributes.get(record["type"], "kjxys")}
        made.append({"type": record["type"], "at": now} | named)
    return made
