"""Generated rules and streams: every shape of the language, over streams small enough for the reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from tests.matching.generators.bounds import bound_lines
from tests.matching.generators.options import option_lines

TYPES = """
TYPE A (k INT, x INT, y DOUBLE, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, y DOUBLE, at TIMESTAMP) TIME at
TYPE C (k INT, x INT, y DOUBLE, at TIMESTAMP) TIME at
TYPE D EXTENDS A (z INT)
EVENT UNION U = B + C
"""
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    rules: str
    events: list[dict[str, Any]]
    until: datetime | None = None

    def __repr__(self) -> str:
        return f"Case(until={self.until}, rules=\n{self.rules}\nevents=\n" + "\n".join(map(str, self.events)) + ")"


@dataclass
class Branch:
    """One generated conjunction: its text and the ways to name its members."""

    text: str
    members: list[str] = field(default_factory=list)
    several: list[str] = field(default_factory=list)


@st.composite
def branches(draw: st.DrawFn, prefix: str, types: tuple[str, ...]) -> Branch:
    count = draw(st.sampled_from((1, 2, 2, 2, 3)))
    branch, parts, room = Branch(""), [], 4
    for at in range(count):
        if room == 0:
            break
        instances = draw(st.sampled_from((1, 1, 1, 1, 2, 2, 3)))
        instances = min(instances, room)
        room -= instances
        alias = f"{prefix}{at}"
        parts.append(f"{draw(st.sampled_from(types))} {alias}" + (f"[{instances}]" if instances > 1 else ""))
        branch.members += [f"{alias}[{i}]" for i in range(1, instances + 1)] if instances > 1 else [alias]
        branch.several += [alias] if instances > 1 else []
    branch.text = parts[0]
    for part in parts[1:]:
        joined = f"{branch.text} {draw(st.sampled_from(('AND', 'AND', 'THEN')))} {part}"
        branch.text = f"({joined})" if draw(st.booleans()) else joined
    return branch


@st.composite
def predicates(draw: st.DrawFn, branch: Branch) -> str:
    member = draw(st.sampled_from(branch.members))
    other = draw(st.sampled_from(branch.members))
    sign = draw(st.sampled_from(("=", "!=", "<", "<=", ">", ">=")))
    number = draw(st.integers(0, 3))
    unary = [
        f"{member}.x {sign} {number}",
        f"{member}.y {sign} 0.5",
        f"NOT ({member}.x {sign} {number} OR {member}.y > 0.5)",
        f"{member}.x IN (1, {number}, NULL)",
        f"{member}.x BETWEEN 1 AND {number}",
        f"{member}.y IS NOT NULL",
        f"isnan({member}.y)",
        f"abs({member}.x - 2) % 2 = 1",
    ]
    if member != other:
        unary += [
            f"{member}.x {sign} {other}.x",
            f"{member}.x {sign} {other}.x",
            f"{member}.y * 2 {sign} {other}.x + {number}",
            f"({member}.x = {other}.x OR {member}.y IS NULL)",
            f"position({member}) < position({other})",
            f"time({member}) >= time({other}) - {number} SECONDS",
        ]
    if branch.several:
        alias = draw(st.sampled_from(branch.several))
        unary += [f"sum({alias}.x) {sign} {number}", f"count({alias}.y) {sign} {number}", f"max({alias}.y) > avg({alias}.x)"]
    return draw(st.sampled_from(unary))


keys = st.sampled_from(("PER k", "PER k", "PER k, bucket(at, 2 SECONDS)", "PER bucket(at, 3 SECONDS)"))
clocks = st.sampled_from(("", "", "", " CLOCK BY A", " CLOCK BY C, B", " CLOCK BY U"))
befores = st.sampled_from(("", "", " WITHIN 1 SECOND", " WITHIN 2 SECONDS", " WITHIN 4 SECONDS"))


@st.composite
def limits(draw: st.DrawFn, keyed: bool) -> list[str]:
    """Rarely a LIMIT: streams are short, so small ones."""
    if draw(st.integers(0, 4)):
        return []
    return [f"LIMIT {draw(st.sampled_from((1, 1, 2, 3)))}{draw(st.sampled_from(('', ' PER KEY'))) if keyed else ''}"]


@st.composite
def withouts(draw: st.DrawFn, branch: Branch, prefix: str, keyed: bool) -> str:
    negated, alias = draw(st.sampled_from(("A", "B", "C", "D", "U"))), f"{prefix}n"
    where = draw(
        st.sampled_from(("", f" WHERE {alias}.x > 1", f" WHERE {alias}.x = {branch.members[0]}.x", f" WHERE {alias}.y IS NULL"))
    )
    if len(branch.members) > 1 and draw(st.booleans()):
        left, right = draw(st.permutations(branch.members))[:2]
        return f"WITHOUT {negated} {alias} BETWEEN {left} AND {right}{where}"
    if draw(st.booleans()):
        return f"WITHOUT {negated} {alias} BEFORE {draw(st.sampled_from(branch.members))}{draw(befores)}{where}"
    anchor = draw(st.sampled_from(branch.members))
    return f"WITHOUT {negated} {alias} WITHIN {draw(st.integers(1, 4))} SECONDS OF {anchor}{draw(clocks)}{where}"


@st.composite
def subscriptions(draw: st.DrawFn, name: str, types: tuple[str, ...], options: tuple[str, str] | None, emit: bool) -> str:
    made = [draw(branches(f"{prefix}", types)) for prefix in draw(st.sampled_from(("p", "p", "p", "pq")))]
    keyed = draw(st.booleans())
    conditions = [draw(predicates(branch)) for branch in made for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2))))]
    lines = [f"SUBSCRIPTION {name}", "MATCH " + " OR ".join(f"({branch.text})" for branch in made)]
    lines += ["WHERE " + " AND ".join(conditions)] if conditions else []
    lines += [draw(keys) if "E" not in types else "PER k"] if keyed else []
    lines += [f"WITHIN {draw(st.integers(1, 8))} SECONDS"] if draw(st.booleans()) else []
    if draw(st.integers(0, 2)) == 0:
        lines += [draw(withouts(branch, prefix, keyed)) for branch, prefix in zip(made, "pq", strict=False)]
    lines += draw(option_lines([branch.members for branch in made], options, few=emit or "E" in types))
    lines += draw(bound_lines([branch.text for branch in made]))
    lines += draw(limits(keyed))
    if emit:
        member = made[0].members[0]
        lines += [f"EMIT E (k = {member}.k, x = coalesce({member}.x, 7), y = {member}.y)"]
    return "\n".join(lines)


def events(most: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Long enough to fill queues; mostly one key, mostly present values, mostly rising times."""
    moment = st.sampled_from((0, 1, 1, 1, 2, 3, -1))
    record = st.fixed_dictionaries(
        {
            "type": st.sampled_from(("A", "A", "A", "B", "B", "B", "C", "C", "D", "D", "Heartbeat")),
            "k": st.sampled_from((0, 0, 0, 0, 1, None)),
            "x": st.sampled_from((0, 1, 1, 2, 2, 3, None)),
            "y": st.sampled_from((0.0, 1.0, 1.0, 2.0, float("nan"), None)),
            "z": st.just(1),
            "step": moment,
        }
    )
    sizes = st.sampled_from((0, 3, most - 2, most - 1, most, most, most))
    return sizes.flatmap(lambda size: st.lists(record, min_size=size, max_size=size)).map(timed)


def timed(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Times that mostly rise; each record with exactly its type's attributes."""
    attributes = {"A": "kxy", "B": "kxy", "C": "kxy", "D": "kxyz", "Heartbeat": ""}
    made, now = [], START
    for record in records:
        now += timedelta(seconds=record["step"])
        made.append({"type": record["type"], "at": now} | {name: record[name] for name in attributes[record["type"]]})
    return made


@st.composite
def dense_cases(draw: st.DrawFn, options: tuple[str, str] | None = None, most: int = 12) -> Case:
    """One or two types, always the same key, values always there, times that jump back and forth: full queues, so that
    leftovers, contiguity after disposals and expiry out of order all happen."""
    counts = draw(st.sampled_from(((2, 0), (3, 0), (2, 1), (1, 1), (2, 2), (1, 2))))
    members = [f"{alias}[{i}]" for alias, count in zip("ab", counts, strict=True) for i in range(1, count + 1)]
    pattern = " AND ".join(f"{name} {name.lower()}[{count}]" for name, count in zip("AB", counts, strict=True) if count)
    signs, pairs = st.sampled_from(("=", "<", ">", "!=")), st.sampled_from([(m, n) for m in members for n in members if m != n])
    conditions = [f"{m}.x {draw(signs)} {n}.x" for m, n in draw(st.lists(pairs, min_size=1, max_size=2))]
    rules = [TYPES, "SUBSCRIPTION S", f"MATCH {pattern}", "WHERE " + " AND ".join(conditions)]
    rules += [f"WITHIN {draw(st.integers(1, 4))} SECONDS"] if draw(st.integers(0, 2)) == 0 else []
    rules += draw(option_lines([members], options))
    rules += draw(bound_lines([pattern]))
    names = st.sampled_from("AAB" if counts[1] else "A")
    rows = draw(st.lists(st.tuples(names, st.integers(0, 3), st.sampled_from((0, 1, 2, -3))), min_size=most - 4, max_size=most))
    return Case("\n".join(rules), timed([{"type": name, "k": 0, "x": x, "y": 0.0, "step": step} for name, x, step in rows]))


def cases(options: tuple[str, str] | None = None) -> st.SearchStrategy[Case]:
    return st.one_of(wide_cases(options), dense_cases(options))


@st.composite
def wide_cases(draw: st.DrawFn, options: tuple[str, str] | None = None, most: int = 12) -> Case:
    """Every clause of the language in every combination."""
    hierarchy = draw(st.integers(0, 3)) == 0
    rules = [TYPES, draw(subscriptions("S", ("A", "B", "C", "D", "U"), options, hierarchy))]
    if hierarchy:
        rules.append(draw(subscriptions("T", ("A", "E", "E"), options, False)))
    until = draw(st.none() | st.integers(0, 9).map(lambda seconds: START + timedelta(seconds=seconds)))
    return Case("\n".join(rules), draw(events(most)), until)
