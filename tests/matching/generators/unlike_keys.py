"""Generated subscriptions over overlapping types whose keys are different attributes, with values that are often equal.

An event of B is of U and V too: by `PER b.k = u.j = v.i` it has three keys, of which none, two or all are one. Keys are whole
numbers, texts, or two attributes at once; elements come once or several times, some of them only as what must be absent.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.matching.generators.generated import START, Case, befores, limits
from tests.matching.generators.options import option_lines

ATTRIBUTES = "k INT, j INT, i INT, s STRING, t STRING, r STRING, x INT, at TIMESTAMP"
TYPES = f"""
TYPE A ({ATTRIBUTES}) TIME at
TYPE B ({ATTRIBUTES}) TIME at
TYPE C ({ATTRIBUTES}) TIME at
TYPE D EXTENDS A (z INT)
EVENT UNION U = B + C
EVENT UNION V = A + B
EVENT UNION W = U + D
"""
OVERLAPPING = (
    ("B", "U"),
    ("U", "B"),
    ("A", "V"),
    ("D", "A"),
    ("B", "U", "V"),
    ("V", "U", "W"),
    ("D", "A", "V", "W"),
    ("U", "C"),
)
KEYS = (("k", "j", "i"), ("s", "t", "r"))


@st.composite
def unlike_keys(draw: st.DrawFn, most: int = 14) -> Case:
    """One or two alike subscriptions."""
    elements = draw(st.sampled_from(OVERLAPPING))
    absent = len(elements) - 1 if draw(st.integers(0, 3)) == 0 and len(elements) > 1 else None
    aliases = [name.lower() for name in elements]
    members, parts = [], []
    for at, (name, alias) in enumerate(zip(elements, aliases, strict=True)):
        if at != absent:
            count = draw(st.sampled_from((1, 1, 1, 2)))
            members += [alias] if count == 1 else [f"{alias}[{n}]" for n in range(1, count + 1)]
            parts.append(f"{name} {alias}" + (f"[{count}]" if count > 1 else ""))
    text = parts[0]
    for part in parts[1:]:
        text = f"({text} {draw(st.sampled_from(('AND', 'AND', 'THEN')))} {part})"
    kinds = draw(st.sampled_from(((KEYS[0],), (KEYS[0],), (KEYS[1],), KEYS)))
    named = [[f"{alias}.{draw(st.sampled_from(kind))}" for alias in aliases] for kind in kinds]
    tail = ["PER " + ", ".join(" = ".join(each) for each in named)]
    tail += [f"WITHIN {draw(st.integers(1, 6))} SECONDS"] if draw(st.booleans()) else []
    if absent is not None:
        where = draw(st.sampled_from(("", f" WHERE {aliases[absent]}.x > 0", f" WHERE {aliases[absent]}.x = {members[0]}.x")))
        if len(members) > 1 and draw(st.booleans()):
            place = f"BETWEEN {members[0]} AND {members[-1]}"
        elif draw(st.booleans()):
            place = f"BEFORE {draw(st.sampled_from(members))}{draw(befores)}"
        else:
            place = f"WITHIN {draw(st.integers(1, 3))} SECONDS OF {draw(st.sampled_from(members))}"
        tail.append(f"WITHOUT {elements[absent]} {aliases[absent]} {place}{where}")
    tail += draw(option_lines([members]))
    tail += draw(limits(True))
    one, other = draw(st.sampled_from(members)), draw(st.sampled_from(members))
    signs = st.sampled_from(("=", "<", ">=", "!="))
    across = [f"{one}.x {draw(signs)} {other}.x"] if one != other and draw(st.booleans()) else []
    texts = []
    for number in range(draw(st.sampled_from((1, 1, 2)))):
        where = [*across, *([f"{one}.x {draw(signs)} {draw(st.integers(0, 2))}"] if draw(st.booleans()) else [])]
        texts.append(
            "\n".join([f"SUBSCRIPTION S{number} MATCH {text}", *(["WHERE " + " AND ".join(where)] if where else []), *tail])
        )
    until = draw(st.none() | st.integers(0, 20).map(lambda seconds: START + timedelta(seconds=seconds)))
    return Case("\n".join([TYPES, *texts]), draw(_events(most)), until)


def _events(most: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    numbers, texts = st.sampled_from((0, 0, 0, 0, 1, None)), st.sampled_from(("a", "a", "a", "b", None))
    record = st.fixed_dictionaries(
        {
            "type": st.sampled_from(("B", "B", "B", "A", "C", "D")),
            **dict.fromkeys("kji", numbers),
            **dict.fromkeys("str", texts),
            "x": st.integers(0, 2),
            "step": st.sampled_from((0, 1, 1, 1, 2, -1)),
        }
    )
    return st.lists(record, min_size=most - 6, max_size=most).map(_timed)


def _timed(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made, now = [], START
    for record in records:
        now += timedelta(seconds=record.pop("step"))
        made.append(record | {"at": now} | ({"z": 1} if record["type"] == "D" else {}))
    return made
