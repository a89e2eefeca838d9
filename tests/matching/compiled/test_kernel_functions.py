"""Every function and operator, of values that several events make: kernels against the reference matcher.

Each combination of values meets under a key of its own, so that every condition decides every combination.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairlead.engine import Engine
from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.matching.compiled.codegen.functions import helper
from fairlead.matching.compiled.machine_code.compiler import Compiled
from fairlead.matching.compiled.planning.eligibility import refused
from fairlead.matching.compiled.representation.text import function_text
from fairlead.model.events.values import DECIMAL_CONTEXT
from fairlead.model.expressions.expression import AGGREGATES
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.compiled.kernel_text import parsed

pytestmark = pytest.mark.xdist_group("compiled kernels")

ATTRIBUTES = (
    "i INT, b BIGINT, d DOUBLE, m DECIMAL(9,2), v DECIMAL(20,2), w DECIMAL(38,4), o DECIMAL(38,38), s STRING, "
    "x BINARY, f BOOLEAN, t TIMESTAMP"
)
TYPES = f"TYPE P (k INT, {ATTRIBUTES})\nTYPE Q (k INT, {ATTRIBUTES})\n"
LARGEST = Decimal("9999999999999999999999999999999999.9999")
VALUES: dict[str, tuple[Any, ...]] = {
    "i": (0, 1, 2, -1, 2**31 - 1, None),
    "b": (0, 1, 3, -2, 2**53 + 1, 2**63 - 1, -(2**63), None),
    "d": (0.0, -1.5, 2.0, 1e34, 0.1, float("inf"), float("nan"), None),
    "m": (Decimal("0.00"), Decimal("1.50"), Decimal("-2.00"), Decimal("9999999.99"), None),
    "v": (Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("999999999999999999.99"), None),
    "w": (Decimal("0.0000"), Decimal("1.5000"), Decimal("-12345678901234567890.0001"), LARGEST, LARGEST.copy_negate(), None),
    "o": (Decimal(0), Decimal("0.1"), Decimal("-0." + "9" * 38), Decimal("0." + "3" * 38), None),
    "s": ("", "a", "B", " ab ", "abcabc", "ΑΣ", "straße", "a%_", None),
    "x": (b"", b"a", b"\xff", None),
    "f": (True, False, None),
    "t": tuple(
        None if at is None else datetime.fromisoformat(at).replace(tzinfo=UTC)
        for at in (
            "1970-01-01",
            "2024-02-29T23:59:59.999999",
            "2000-03-01",
            "1969-12-31T23:59:59",
            "0001-01-01",
            "9999-12-31",
            None,
        )
    ),
}

TEXTS = ("coalesce(p.s, q.s)", "coalesce(p[2].s, 'Zz')", "min(p.s)", "max(p.s)", "coalesce(min(p.s), q.s)")
OF_TEXT = ("lower({})", "upper({})", "trim({})", "substring({}, 2)", "substring({}, -2, 1)", "lower(trim({}))")
TEXT = [
    *[f"{function.format(text)} {test}" for function in ("{}", *OF_TEXT) for text in TEXTS for test in ("= q.s", "< p[2].s")],
    *[f"length({text}) {test}" for text in TEXTS for test in ("> 1", "= q.i")],
    *[f"{text} {sign} '{pattern}'" for text in TEXTS for sign in ("LIKE", "NOT LIKE") for pattern in ("a%", "%b_", "a\\%\\_")],
    *[f"upper({text}) LIKE 'A%'" for text in TEXTS],
    *[f"lower({text}) IN ('a', q.s)" for text in TEXTS],
    *[f"lower({text}) NOT IN ('a', p.s)" for text in TEXTS],
    *[f"lower({text}) IS NULL" for text in TEXTS],
    *["p.s LIKE 'a%' OR lower(coalesce(p.s, q.s)) = 'b'", "coalesce(lower(p.s), upper(q.s)) = p[2].s"],
    *["lower(p.s) = lower(q.s)", "substring(p.s, p.i) = q.s", "coalesce(p.x, q.x) = p[2].x", "coalesce(p.x, q.x) < p[2].x"],
]
DATES = ("coalesce(p.t, q.t)", "min(p.t)", "max(p.t)", "p.t + (q.t - p[2].t)", "(coalesce(p.t, q.t) - 36 HOURS)")
PARTS = ("year", "month", "day", "hour", "minute", "second", "dayofweek")
DATE = [
    *[f"{part}({date}) {test}" for part in PARTS for date in DATES for test in (f"= {part}(p[2].t)", "> 2", "IS NULL")],
    *[f"{part}({date}) + q.i < 30" for part in PARTS for date in DATES[:2]],
]
TRUTH = [
    "(p.f = q.f) = p[2].f", "(p.s = q.s) != p[2].f", "coalesce(p.i < q.i, p[2].f)", "NOT coalesce(p.d < q.d, p[2].f)",
    "coalesce(p.i IN (1, q.i), p[2].f)", "coalesce(p.i NOT IN (1, q.i), p[2].f)", "(coalesce(p.s, q.s) LIKE 'a%') = p[2].f",
    "((p.i + q.i) IS NULL) = p[2].f", "(p.v = q.v) IS NULL", "(p.d = q.d) IS NOT NULL", "coalesce(p.f, q.f)",
    "NOT coalesce(p.f, q.f)", "(p.f AND q.f) = p[2].f", "(p.f OR q.f) IS NULL",
    "(p.f OR q.i > 0) IS NOT TRUE", "(p.f AND q.f) IS FALSE",
    "(NOT (p.f AND q.d > p.d) OR p[2].f) IS TRUE", "coalesce(p.i BETWEEN 0 AND q.i, p[2].f)",
    "(p.f = q.f OR p.s = q.s) != p[2].f",
    "CASE WHEN p.f THEN q.f WHEN p.i > q.i THEN TRUE END", "CASE WHEN p.f AND q.f THEN p.i ELSE q.i END > p[2].i",
    "CASE WHEN p.d > q.d THEN p.d WHEN q.f THEN q.d END = p[2].d", "CASE WHEN p.f THEN p.s ELSE q.s END = p[2].s",
    "CASE WHEN q.f THEN p.s END < p[2].s", "CASE WHEN p.i != q.i THEN p.i % q.i ELSE NULL END IS NULL",
    "CASE WHEN p.f OR q.f THEN 1 ELSE 2 END = 2", "cast(p.i + q.i AS DOUBLE) > p[2].d", "cast(p.v + q.v AS DOUBLE) > p[2].d",
    "instr(coalesce(p.s, q.s), 'a') = 1", "coalesce(p.s, q.s) RLIKE 'a+b|B' = p[2].f", "round(p.d) = round(q.d, 1)",
    "concat(p.s, 'x') = concat(q.s, 'x')", "p.s || 'a' < q.s || 'b'",
]  # fmt: skip
NUMBERS, OF_NUMBER = "ibdmvwo", ("abs", "floor", "ceil")
NUMBER = [
    *[f"p.{a} {sign} q.{b}" for a, b in product(NUMBERS, NUMBERS) for sign in ("=", "!=", "<", ">=")],
    *[f"p.{a} {sign} q.{b} {test}" for a, b in product(NUMBERS, NUMBERS) for sign in "+-*/%" for test in ("> 1", "< q.d")],
    *[f"({a} {operator} q.{b}) IS NULL" for a in ("p.v", "min(p.w)") for b in "bvw" for operator in "+-*/%"],
    *[f"{name}(p.{a}) {test}" for name in AGGREGATES for a in NUMBERS for test in (f"= q.{a}", "> q.d")],
    *[f"coalesce(p.{a}, q.{a}) {test}" for a in NUMBERS for test in (f"= p[2].{a}", "< q.d", "IS NULL", "> 1.5")],
    *[f"{name}(p.{a} - q.{a}) {test}" for name in (*OF_NUMBER, "-") for a in NUMBERS for test in (f"> q.{a}", "< q.d")],
    *[f"{function}(coalesce(p.{a}, q.{a})) > q.i" for function in OF_NUMBER for a in NUMBERS],
    *[f"p.{a} IN (q.{a}, p[2].{a}, 1)" for a in NUMBERS],
    *[f"p.{a} NOT IN (q.{a}, p[2].i)" for a in NUMBERS],
    *["p.v * q.m * p[2].i > p.w", "p.w + q.w - p[2].w = p.w", "p.w * q.w < 0", "p.w * q.w - p[2].w > 1", "sum(p.w) * q.m > 1"],
    *["p.v * q.v / p[2].d < 1", "abs(p.o * q.w) > p[2].d", "isnan(p.d * q.d)", "p.w % 7 = q.w % 5", "-p.w < q.v * 12345678901"],
]  # fmt: skip


def sensible(conditions: list[str]) -> list[str]:
    """What the language takes."""
    found = []
    for each in conditions:
        try:
            compile_text(f"{TYPES}SUBSCRIPTION S MATCH P p[2] AND Q q WHERE {each}")
        except LanguageError:
            continue
        found.append(each)
    return found


def stream(attributes: str, most: int, seed: int = 5) -> list[dict[str, Any]]:
    """Two P and a Q for each combination of values; of the attributes that are not asked for, any value."""
    draw, made = random.Random(seed), []
    for key in range(most):
        for name in ("P", "P", "Q"):
            row = {each: draw.choice(values) if each in attributes else values[1] for each, values in VALUES.items()}
            made.append({"type": name, "k": key} | row)
    return made


def delivered(conditions: list[str], events: list[dict[str, Any]]) -> tuple[int, set[str]]:
    """Both matchers deliver the same; gives how much, and the conditions that were ever true."""
    rules = [f"SUBSCRIPTION S{at} MATCH P p[2] AND Q q WHERE {each} PER k" for at, each in enumerate(conditions)]
    plan = compile_text(TYPES + "\n".join(rules))
    assert refused(plan) is None
    kernels, reference = Engine(plan, kernels_from=0), ReferenceMatcher(plan)
    count, seen = 0, set()
    for columns in read_events(events, plan.catalogue, batch_rows=200):
        expected = reference.run(columns.events(plan.catalogue))
        found = kernels.feed(columns)
        unlike = {(each.id, each.subscription) for each in found} ^ {(each.id, each.subscription) for each in expected}
        assert {conditions[int(name[1:])] for _, name in unlike} == set()
        assert [each.id for each in found] == [each.id for each in expected]
        count += len(found)
        seen |= {conditions[int(each.subscription[1:])] for each in found}
    assert kernels.lane is not None
    return count, seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conditions", "attributes", "keys"),
    [(TEXT, "si", 250), (DATE, "ti", 150), (TRUTH, "fidsv", 250), (NUMBER, NUMBERS, 60)],
    ids=["texts", "dates", "truth values", "numbers"],
)
def test_functions_across_events_equal_the_reference(
    conditions: list[str], attributes: str, keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    wanted = sensible(conditions)
    assert len(wanted) > 0.7 * len(conditions)
    _, seen = delivered(wanted, stream(attributes, keys))
    assert len(seen) > 0.8 * len(wanted), sorted(set(wanted) - seen)


COMPILED = [
    "lower(coalesce(p.s, q.s)) < p[2].s", "length(min(p.s)) > 1", "coalesce(max(p.s), q.s) NOT LIKE '%b_'",
    *[f"{part}(p.t + (q.t - p[2].t)) = {part}(p[2].t) OR {part}(min(p.t)) > 2" for part in PARTS],
    "coalesce(p.i NOT IN (1, q.i), p[2].f)", "p.w = q.v OR p.o < q.w", "p.w + q.w - p[2].w > q.v", "p.w * q.w < p[2].o",
    "p.i % q.v < q.d", "p.m % q.w < q.d",
    "p.w * q.o < q.d", "p.v * q.v / p[2].d < 1", "floor(p.w - q.w) > q.i OR ceil(p.o - q.o) < q.b", "p.w % q.v > 1",
    "CASE WHEN p.d > q.d THEN p.i % q.i WHEN q.f THEN q.i END > p[2].i", "(p.f AND q.i > 0 OR NOT p[2].f) IS NOT FALSE",
    "CASE WHEN p.f THEN p.s ELSE q.s END = p[2].s", "CASE WHEN p.f OR q.f THEN p.d ELSE q.d END < p[2].d",
    "p.w % q.o IS NULL", "sum(p.w) > max(p.v)", "abs(-p.w - q.b) > coalesce(p[2].v, q.v)",
]  # fmt: skip


@pytest.mark.slow
def test_functions_across_events_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "1")
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path))
    wanted = sensible(COMPILED)
    assert len(wanted) == len(COMPILED), set(COMPILED) - set(wanted)
    _, seen = delivered(wanted, stream("".join(VALUES), 400))
    assert seen == set(wanted)


WIDE = """def kernel(ah, al, bh, bl, ch, cl, words, floats):
    for i in range(len(ah)):
        a, b, c = joined(ah[i], al[i]), joined(bh[i], bl[i]), joined(ch[i], cl[i])
        made = rounded(a * b)
        for at in range(6):
            words[i, at] = int(made >> (64 * at))
        rest = quotient(a * b, c)
        for at in range(6):
            words[i, 6 + at] = int(rest >> (64 * at))
        floats[i] = ratio(a * b, c)
    return (0,)

"""


def test_wide_numbers_are_rounded_and_divided_as_decimals_are() -> None:
    draw, bound = random.Random(11), 10**38
    numbers = [0, 1, -1, 2**53 + 1, 5 * 10**37, bound - 1, 1 - bound]
    numbers += [draw.randrange(-bound, bound) // 10 ** draw.randrange(0, 38) for _ in range(200)]
    rows = [
        (draw.choice(numbers), draw.choice(numbers), abs(draw.choice(numbers)) or 10 ** draw.randrange(39)) for _ in range(2000)
    ]
    rows += [(2**54 + 3, 1, 2), (2**54 + 1, 1, 2), (10**37 + 5, 10**37, 1), (10**37 + 15, 10**37, 1), (-(2**53) - 1, 1, 1)]
    halves = [np.array([number >> shift & 2**64 - 1 for number in column], dtype=np.uint64).view(np.int64)
              for column in zip(*rows, strict=True) for shift in (64, 0)]  # fmt: skip
    words, floats = np.zeros((len(rows), 12), dtype=np.int64), np.zeros(len(rows))
    source = WIDE + "\n\n".join(function_text(helper(name)) for name in ("quotient", "rounded", "ratio"))
    Compiled(parsed(source))(*halves, words, floats)
    for (a, b, c), made, ratio in zip(rows, words.view(np.uint64).tolist(), floats.tolist(), strict=True):
        product_of, quotient = (sum(word << 64 * at for at, word in enumerate(part)) for part in (made[:6], made[6:]))
        assert product_of == int(DECIMAL_CONTEXT.multiply(Decimal(a), Decimal(b))) % 2**384
        assert quotient == a * b // c % 2**384
        assert ratio == float(Fraction(a * b, c))
