"""Generated rules of five and more members: instances of a type, THEN between any groups of them, every form of predicate
graph (chains, stars, trees, circles, conditions on three members), over streams small enough for the reference."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.matching.generators.bounds import bound_lines
from tests.matching.generators.generated import Case, befores, timed
from tests.matching.generators.options import DISPOSALS, MATCHINGS, option_lines

NAMES = ("A", "B", "C", "M", "Z")
ATTRIBUTES = "(k INT, x INT, y DOUBLE, s STRING, d DECIMAL(9, 2), at TIMESTAMP) TIME at"
TYPES = "\n".join(f"TYPE {name} {ATTRIBUTES}" for name in NAMES) + "\nTYPE D EXTENDS A ()\nEVENT UNION U = B + C"
SIGNS = ("<", "<", "<=", ">", ">=", "=", "!=", "!=")
FIELDS = ("x", "x", "x", "y", "s", "d", "at")


@st.composite
def patterns(draw: st.DrawFn, types: tuple[str, ...], most: int) -> tuple[str, list[str]]:
    """The text of a conjunction and the names of its members."""
    names = draw(st.lists(st.sampled_from(types), min_size=1, max_size=4))
    room, parts, members = most, [], []
    for at, name in enumerate(names):
        if room == 0:
            break
        count = min(draw(st.sampled_from((1, 1, 2, 3, 4))), room)
        room -= count
        alias = f"p{at}"
        parts.append(f"{name} {alias}" + (f"[{count}]" if count > 1 else ""))
        members += [f"{alias}[{i}]" for i in range(1, count + 1)] if count > 1 else [alias]
    while len(parts) > 1:
        at = draw(st.integers(0, len(parts) - 2))
        joined = f"{parts[at]} {draw(st.sampled_from(('AND', 'AND', 'THEN')))} {parts[at + 1]}"
        parts[at : at + 2] = [joined if len(parts) == 2 else f"({joined})"]
    return parts[0], members


@st.composite
def graphs(draw: st.DrawFn, members: list[str]) -> list[str]:
    """Conditions between members."""
    count = len(members)
    if count < 2:
        return []
    order = draw(st.permutations(members)) if draw(st.booleans()) else members
    form = draw(st.sampled_from(("chain", "chain", "star", "tree", "circle", "any", "few")))
    pairs = {
        "chain": list(itertools.pairwise(order)),
        "star": [(order[0], other) for other in order[1:]],
        "tree": [(order[draw(st.integers(0, at - 1))], order[at]) for at in range(1, count)],
        "circle": list(zip(order, [*order[1:], order[0]], strict=True)) if count > 2 else [(order[0], order[1])],
        "any": [tuple(draw(st.permutations(members))[:2]) for _ in range(draw(st.integers(1, count)))],
        "few": [tuple(draw(st.permutations(members))[:2])],
    }[form]
    alike = draw(st.booleans())
    sign, field = draw(st.sampled_from(SIGNS)), draw(st.sampled_from(FIELDS))
    made = []
    for one, two in pairs:
        if not alike:
            sign, field = draw(st.sampled_from(SIGNS)), draw(st.sampled_from(FIELDS))
        made.append(draw(st.sampled_from((f"{one}.{field} {sign} {two}.{field}",) * 6 + odd(one, two, sign))))
    if count > 2 and draw(st.integers(0, 3)) == 0:
        one, two, three = draw(st.permutations(members))[:3]
        made.append(f"{one}.x + {two}.x {draw(st.sampled_from(SIGNS))} {three}.x")
    return made


def odd(one: str, two: str, sign: str) -> tuple[str, ...]:
    """What no pass for one kind of comparison serves."""
    return (
        f"{one}.x + {two}.x {sign} 3",
        f"{one}.x {sign} {two}.y",
        f"({one}.x {sign} {two}.x OR {one}.y IS NULL)",
        f"{one}.x BETWEEN {two}.x AND {two}.x + 1",
        f"{one}.d {sign} {two}.x",
        f"{one}.d {sign} {two}.y",
        f"{one}.x {sign} 1",
        f"time({one}) {sign} time({two})",
    )


def records(names: tuple[str, ...], most: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    record = st.fixed_dictionaries(
        {
            "type": st.sampled_from(names),
            "k": st.just(0),
            "x": st.sampled_from((0, 1, 1, 2, 2, 3, 4, 5, None)),
            "y": st.sampled_from((0.0, -0.0, 1.0, 1.0, 2.0, 2.5, float("nan"), None)),
            "s": st.sampled_from(("a", "a", "b", "c", "", None)),
            "d": st.sampled_from(("0.00", "1.00", "1.50", "2.00", None)),
            "step": st.sampled_from((0, 1, 1, 2, -1)),
        }
    )
    return st.lists(record, min_size=most - 5, max_size=most).map(_complete)


def _complete(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    times = timed([{**each, "type": "A"} for each in made])
    return [
        {name: each[name] for name in ("type", "k", "x", "y", "s", "d")} | {"at": timed["at"]}
        for each, timed in zip(made, times, strict=True)
    ]


@st.composite
def long_cases(draw: st.DrawFn, most: int = 6, events_max: int = 14, withouts: bool = True) -> Case:
    """Few types at a time, so that queues fill. Every second case asks little (one or two comparisons, or a THEN) of
    values that are always there, so that what it finds depends on which of many relations comes first."""
    form = draw(st.integers(0, 3))
    if form < 2:
        return draw(_plain_cases(most, events_max) if form == 0 else then_cases(events_max))
    some = tuple(draw(st.permutations(NAMES))[: draw(st.sampled_from((1, 2, 2, 3)))])
    overlapping = draw(st.integers(0, 5)) == 0
    pattern, members = draw(patterns(("A", "D", "U", "B") if overlapping else some, most))
    conditions = draw(graphs(members))
    lines = [TYPES, "SUBSCRIPTION S", f"MATCH {pattern}"]
    lines += ["WHERE " + " AND ".join(conditions)] if conditions else []
    lines += [f"WITHIN {draw(st.integers(2, 9))} SECONDS"] if draw(st.integers(0, 3)) == 0 else []
    if withouts and len(members) > 1 and draw(st.integers(0, 4)) == 0:
        left, right = draw(st.permutations(members))[:2]
        where = draw(st.sampled_from(("", f" WHERE n.x = {members[0]}.x", " WHERE n.x > 1")))
        place = draw(st.sampled_from((f"BETWEEN {left} AND {right}", f"BEFORE {left}{draw(befores)}")))
        lines.append(f"WITHOUT {draw(st.sampled_from(NAMES))} n {place}{where}")
    lines += draw(option_lines([members]))
    lines += draw(bound_lines([pattern], often=0.15))
    names = ("A", "D", "B", "C") if overlapping else (*some, *some, *some, *NAMES)
    return Case("\n".join(lines), draw(records(names, events_max)))


@st.composite
def _plain_cases(draw: st.DrawFn, most: int, events_max: int) -> Case:
    some = tuple(draw(st.permutations(NAMES))[:2])
    pattern, members = draw(patterns(some, most))
    if len(members) < 3:
        pattern = f"{pattern} {draw(st.sampled_from(('AND', 'THEN')))} {some[0]} r[3]"
        members = [*members, "r[1]", "r[2]", "r[3]"]
    conditions = []
    for _ in range(draw(st.integers(1, 2))):
        one, two = draw(st.permutations(members))[:2]
        conditions.append(f"{one}.x {draw(st.sampled_from(SIGNS))} {draw(st.sampled_from((f'{two}.x', f'{two}.x', '2')))}")
    return draw(_dense(pattern, conditions, some, events_max))


@st.composite
def then_cases(draw: st.DrawFn, events_max: int) -> Case:
    """A group of instances after (or before) others, joined by one of them: which first instance can do depends on an event
    that is looked for later, or was looked for before."""
    right, left = sorted(draw(st.permutations(NAMES))[:2])
    if draw(st.integers(0, 2)) == 0:
        left, right = right, left
    few, many = draw(st.sampled_from((1, 1, 2))), draw(st.sampled_from((2, 3, 3, 3, 4)))
    groups = [f"{left} l[{few}]" if few > 1 else f"{left} l", f"{right} r[{many}]"]
    if draw(st.integers(0, 4)) == 0:
        groups.reverse()
    pattern = " THEN ".join(groups)
    if draw(st.integers(0, 2)) == 0:
        more = f"{draw(st.sampled_from((left, right)))} m"
        pattern = draw(
            st.sampled_from(
                (f"({pattern}) AND {more}", f"{more} AND ({pattern})", f"({more} AND {groups[0]}) THEN {groups[1]}")
            )
        )
    one = f"l[{draw(st.integers(1, few))}]" if few > 1 else "l"
    two = f"r[{draw(st.sampled_from((1, 2, 2, many)))}]"
    unary = draw(st.sampled_from((one, two, f"r[{draw(st.integers(1, many))}]")))
    across = f"{two}.x {draw(st.sampled_from(('=', '=', '<', '>')))} {one}.x"
    conditions = draw(st.sampled_from(([across], [across], [across, f"{unary}.x > 1"], [f"{one}.x = 2", f"{two}.x = 2"])))
    return draw(_dense(pattern, conditions, (left, right, right), events_max))


@st.composite
def _dense(draw: st.DrawFn, pattern: str, conditions: list[str], some: tuple[str, ...], events_max: int) -> Case:
    matching = draw(st.sampled_from((*MATCHINGS, "FIRST", "FIRST", "RECENT", "RECENT")))
    options = f"MATCHING {matching} DISPOSAL {draw(st.sampled_from(DISPOSALS))}"
    rules = f"{TYPES}\nSUBSCRIPTION S MATCH {pattern} WHERE {' AND '.join(conditions)} PER k {options}"
    return Case(rules, many_streams(draw(st.integers(0, 1 << 30)), some, events_max))


def many_streams(seed: int, names: Sequence[str], length: int, keys: int = 12) -> list[dict[str, Any]]:
    """Unlike streams, one for each key: compiling the rule costs more than matching all of them."""
    random = Random(seed)
    rows = [(random.choice(names), random.randrange(5), random.randrange(keys)) for _ in range(length * keys)]
    made = [{"type": name, "k": k, "x": x, "y": 0.0, "s": "", "d": "0.00", "step": 1} for name, x, k in rows]
    return _complete(made)
