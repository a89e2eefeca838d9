"""Events that forbid others of their own kind: `WITHOUT … BEFORE` and `BETWEEN` over types that overlap those of the members,
beside bounds, tables and options by which members stay, so that they are asked again and again."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from tests.matching.generators.bounds import bound_words
from tests.matching.generators.generated import START, TYPES, Case, timed

PATTERNS = ("D d", "A d", "U d", "D d AND C c", "A d AND B b", "C c THEN D d", "U d AND D c", "D d[2]", "B d AND C c[2]")
STAYING = ("DISPOSAL NONE", "KEEP d", "DISPOSAL UPTO d", "MATCHING ALL DISPOSAL NONE LIMIT 2 PER EVENT", "DISPOSAL INFIX", "")


@st.composite
def forbidding_cases(draw: st.DrawFn) -> Case:
    return forbidding_case(Random(draw(st.integers(0, 1 << 30))))


def forbidding_case(rng: Random) -> Case:
    pattern = rng.choice(PATTERNS)
    member = "d[2]" if "d[2]" in pattern else "d"
    table = rng.random() < 0.2
    within = rng.choice(("", " WITHIN 1 SECOND", " WITHIN 2 SECONDS", " WITHIN 2 SECONDS", " WITHIN 4 SECONDS"))
    where = rng.choice(("", "", " WHERE n.x > 1", f" WHERE n.x = {member}.x"))
    lines = [TYPES, "TABLE TA KEY (x) FROM A", f"SUBSCRIPTION S MATCH {pattern}{' AND TA t' if table else ''}"]
    lines += [f"WITHIN {rng.randint(2, 6)} SECONDS"] if rng.random() < 0.3 else []
    lines += [rng.choice(("PER k", "PER k, bucket(at, 4 SECONDS)"))] if rng.random() < 0.4 else []
    lines.append(f"WITHOUT {rng.choice('ABCDUU')} n BEFORE {'t' if table and rng.random() < 0.4 else member}{within}{where}")
    lines += [rng.choice(STAYING), *bound_words(rng, [pattern], often=0.8)]
    rows = [
        {"type": rng.choice("AABCDD"), "k": rng.choice((0, 0, 0, 1)), "x": rng.randint(0, 3), "y": 0.0, "z": 1}
        | {"step": rng.choice((0, 1, 1, 1, 2, -1))}
        for _ in range(rng.randint(4, 16))
    ]
    return Case("\n".join(filter(None, lines)), timed(rows), START if rng.random() < 0.1 else None)
