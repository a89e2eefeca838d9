"""Generated rules whose runs are folded (`FOLD q`), over the types of runs.py.

Sums that cannot be folded (L131) are not drawn again: `legal` says so.
"""

from __future__ import annotations

from datetime import timedelta

from hypothesis import assume
from hypothesis import strategies as st

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from tests.matching.generators.generated import START, Case
from tests.matching.generators.runs import MANY_TYPES, NUMBERS, VALUES, atoms

TYPES = f"{MANY_TYPES}TYPE D EXTENDS A (z INT)\nEVENT UNION U = A + B\n"
QUANTIFIERS = ("+", "*", "{2,}", "{3,}", "{4,}")
KEYS = ("", "PER k", "PER k", "PER k, bucket(at, 2 SECONDS)", "PER s", "PER y")
ORDERED = (*(name for name in VALUES if name not in "fvw"), "x", "y", "s", "w")
OTHERS = ("", "", "", " OR (B b THEN A c)", " OR B b+", " OR (A c AND B b)")


@st.composite
def fold_cases(draw: st.DrawFn) -> Case:
    """One subscription with a folded run, alone or beside other branches, possibly one that reads what it emits."""
    name, other = draw(st.sampled_from(("A", "A", "A", "D", "U"))), draw(st.sampled_from(OTHERS))
    having = [draw(atoms("a", None)) for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2))))]
    if draw(st.integers(0, 5)) == 0:
        having.append(f"({draw(atoms('a', None))} OR {draw(atoms('a', None))})")
    per = draw(st.sampled_from(KEYS))
    lines = [f"SUBSCRIPTION S MATCH A a{draw(st.sampled_from(QUANTIFIERS))}{other}".replace("A a", f"{name} a", 1)]
    lines += [f"HAVING {' AND '.join(having)}"] if having else []
    lines += [draw(st.sampled_from(("WHERE a.x >= 0", "WHERE a.y IS NOT NULL AND a.s != 'b'")))] if draw(st.booleans()) else []
    lines += [per] if per else []
    lines += [f"MATCHING {draw(st.sampled_from(('FIRST', 'FIRST', 'RECENT')))}"]
    lines += [f"DISPOSAL {draw(st.sampled_from(('PREFIX INFIX', 'INFIX', 'INFIX POSTFIX')))}"]
    lines += draw(st.sampled_from(([], [], [], ["RETAIN a 5 EVENTS BATCH"], ["RETAIN a 3 SECONDS BATCH"])))
    counted = draw(st.sampled_from(("", "", "", " PER KEY" if per else "")))
    lines += [f"LIMIT {draw(st.integers(1, 3))}{counted}"] if draw(st.integers(0, 4)) == 0 else []
    lines += ["FOLD a"]
    if draw(st.booleans()):
        lines += [draw(emissions())]
        lines += draw(st.sampled_from(([], ["SUBSCRIPTION T MATCH E e{2} THEN B b"], ["SUBSCRIPTION T MATCH E e{2,} FOLD e"])))
    rules = TYPES + "\n".join(lines)
    assume(legal(rules))
    return Case(rules, draw(streams()))


SESSIONS = (
    "A a+ LONGEST WITHIN 2 SECONDS OF PREVIOUS",
    "A a+ WITHIN 3 SECONDS OF PREVIOUS",
    "A a* LONGEST WITHIN 2 SECONDS OF PREVIOUS UNTIL a.x = 0",
    "U a+ LONGEST UNTIL a.x > prev(a.x)",
    "A a+ LONGEST WHERE a.x >= prev(a.x)",
    "D a+ LONGEST WITHIN 4 SECONDS OF PREVIOUS WHERE a.x > 0 AND (a.x != prev(a.x) OR a.y IS NULL)",
)


@st.composite
def session_cases(draw: st.DrawFn) -> Case:
    """A sequence of one run that is folded, possibly with a reader that is one too, and possibly an end of the input."""
    per = draw(st.sampled_from(("", "PER k", "PER s")))
    lines = [f"SUBSCRIPTION S MATCH {draw(st.sampled_from(SESSIONS))}"]
    lines += [draw(st.sampled_from(("", "HAVING count(a) >= 2", "HAVING count(a) > 1 AND count(DISTINCT a.x) >= 2")))]
    lines += [per, draw(st.sampled_from(("", "", "LIMIT 2", "LIMIT 1 PER KEY" if per else ""))), "FOLD a"]
    if draw(st.booleans()):
        reader = ("e{2} THEN B b", "e+ LONGEST WITHIN 5 SECONDS OF PREVIOUS FOLD e", "e WITHOUT B b WITHIN 2 SECONDS OF e")
        lines += [draw(emissions()), *draw(st.sampled_from(([], *([f"SUBSCRIPTION T MATCH E {each}"] for each in reader))))]
    rules = TYPES + "\n".join(lines)
    assume(legal(rules))
    records = draw(streams())
    return Case(rules, records, draw(st.sampled_from((None, START + timedelta(seconds=90)))))


@st.composite
def emissions(draw: st.DrawFn) -> str:
    fields = ["n = count(a)", "k = coalesce(first(a.k), 9)"]
    for at in range(draw(st.integers(0, 5))):
        function = draw(st.sampled_from(("sum", "avg", "min", "max", "first", "last", "count", "DISTINCT")))
        attribute = draw(st.sampled_from([each for each in ORDERED if each in NUMBERS or function not in ("sum", "avg")]))
        value = f"count(DISTINCT a.{attribute})" if function == "DISTINCT" else f"{function}(a.{attribute})"
        fields.append(f"e{at} = {value}")
    fields += draw(st.sampled_from(([], ["e9 = max(a.x) - min(a.x)"], ["e9 = upper(first(a.s))"])))
    return f"EMIT E ({', '.join(fields)})"


@st.composite
def streams(draw: st.DrawFn) -> list[dict[str, object]]:
    at, records = 0, []
    for _ in range(draw(st.integers(1, 30))):
        at += draw(st.sampled_from((0, 1, 1, 2, -1)))
        record = {name: draw(values) for name, values in VALUES.items()}
        kind = draw(st.sampled_from(("A", "A", "A", "B", "D")))
        further = {"z": 1} if kind == "D" else {}
        records.append({"type": kind, **record, **further, "at": START + timedelta(seconds=at)})
    return records


def legal(rules: str) -> bool:
    try:
        compile_text(rules)
    except LanguageError as error:
        if error.code != "L131":
            raise
        return False
    return True
