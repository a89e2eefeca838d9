"""Generated hierarchies of three or four levels with absences on most, whose derived events are older, as old or younger than
the deadlines that they come from. Who reads what is free: an outer and an innermost derived event without the middle ones too.
Some types of the input, a subtype and a union among them, are read further down only: they decide what stands upstream.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.matching.generators.generated import START, Case, befores, limits

INPUT = """
TYPE A (x INT, at TIMESTAMP) TIME at
TYPE B (x INT, at TIMESTAMP) TIME at
TYPE C (x INT, at TIMESTAMP) TIME at
TYPE D EXTENDS C (z INT)
TYPE N (x INT, t TIMESTAMP)
EVENT UNION W = D + B
"""
LATER = ((), (), ("B",), ("C",), ("D",), ("W",), ("C", "D", "W"))
"""What levels after the first read of the input, too."""
DERIVED = ("E", "F", "G", "H")
TIMES = ("", "", "= {0}", "= {0}", "= {0} - 1 SECONDS", "= {0} - 3 SECONDS", "= {0} + 1 SECONDS", "= {0} + 4 SECONDS")


@st.composite
def nested_cases(draw: st.DrawFn, most: int = 10) -> Case:
    levels, known, texts = draw(st.integers(3, 4)), [*draw(st.sampled_from(("A", "AB")))], []
    untimed, key = set[str](), draw(st.sampled_from(("", "", "", "PER x")))
    for level in range(levels):
        emits = DERIVED[level] if level + 1 < levels else None
        time = draw(st.sampled_from(TIMES))
        timed = []
        for number in range(draw(st.sampled_from((1, 1, 2)))):
            if level:
                known = [*known, *draw(st.sampled_from(LATER))]
            text, all_timed = draw(nested(f"S{level}x{number}", known, untimed, emits, time, key))
            texts.append(text)
            timed.append(all_timed)
        if emits:
            known = [*known, emits, emits]
            if not time and not all(timed):
                untimed.add(emits)
    until = draw(st.none() | st.integers(0, 30).map(lambda seconds: START + timedelta(seconds=seconds)))
    return Case("\n".join([INPUT, *draw(st.permutations(texts))]), draw(nested_events(most)), until)


@st.composite
def nested(
    draw: st.DrawFn, name: str, known: list[str], untimed: set[str], emits: str | None, time: str, key: str
) -> tuple[str, bool]:
    """A subscription over types that are known already, and whether all its members have a time."""
    clocked = [each for each in known if each not in untimed]
    branches, all_timed = [], True
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        other = draw(st.sampled_from([*known, "N"])) if draw(st.integers(0, 3)) == 0 else None
        all_timed &= other is None or other in clocked
        branches.append(f"({draw(st.sampled_from(clocked[-4:]))} p" + (f" AND {other} q)" if other else ")"))
    lines = [f"SUBSCRIPTION {name} MATCH {' OR '.join(branches)}"]
    if draw(st.integers(0, 3)):
        before = f"BEFORE p{draw(befores)}" if draw(st.integers(0, 3)) == 0 else ""
        by = f" CLOCK BY {draw(st.sampled_from(clocked))}" if draw(st.integers(0, 3)) == 0 else ""
        after = f"WITHIN {draw(st.integers(1, 5))} SECONDS OF p{by}"
        lines.append(f"WITHOUT {draw(st.sampled_from(clocked))} n {before or after}")
    lines += [key] if key else []
    lines.append(f"DISPOSAL {draw(st.sampled_from(('PREFIX INFIX', 'INFIX')))}")
    lines += draw(limits("PER" in key))
    if emits:
        lines.append(f"EMIT {emits} (x = p.x" + (f", at {time.format('time(p)')}) TIME at" if time else ")"))
    return "\n".join(lines), all_timed


def nested_events(most: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Few kinds of events and steps of up to several seconds, so that one event passes several deadlines; some fall back."""
    word = st.tuples(st.sampled_from("AAABBBCCDNH"), st.sampled_from((0, 0, 1, 1, 2, 5, 9, -3)), st.sampled_from((1, 1, 2)))
    return st.lists(word, min_size=3, max_size=most).map(_records)


def _records(words: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
    made, now = [], START
    for name, step, x in words:
        now += timedelta(seconds=step)
        if name == "H":
            made.append({"type": "Heartbeat", "at": now})
        else:
            made.append({"type": name, "x": x, "t" if name == "N" else "at": now} | ({"z": 0} if name == "D" else {}))
    return made
