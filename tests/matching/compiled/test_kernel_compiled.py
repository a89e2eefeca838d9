"""Branches on machine code: what the interpreted kernels cannot show is that the compiler reads their source as Python does."""

from __future__ import annotations

import math
import operator as op
import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.matching.compiled.codegen import queues
from fairlead.matching.compiled.codegen.functions import helper
from fairlead.matching.compiled.codegen.indexes import ordered_index as tree
from fairlead.matching.compiled.machine_code.compiler import Compiled
from fairlead.matching.compiled.representation.text import function_text
from fairlead.matching.expressions.functions import arithmetic
from fairlead.model.events.types import Kind
from tests.matching.compiled.kernel_text import parsed
from tests.matching.compiled.test_kernel import compared
from tests.matching.compiled.test_kernel_expressions import VALUES, rules
from tests.matching.generators.generated import START, TYPES, Case, cases, dense_cases, timed
from tests.matching.generators.options import DISPOSALS, EVERY, KEEPING, LEAVING, MATCHINGS, option_words

pytestmark = pytest.mark.xdist_group("compiled kernels")
FAMILY = "MATCH A a[2] WHERE a[1].x < a[2].x WITHIN 6 SECONDS"


@pytest.fixture(autouse=True, scope="module")
def compiling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("FAIRLEAD_JIT", "1")
        changed.setenv("FAIRLEAD_CACHE", str(tmp_path_factory.mktemp("kernels")))
        yield


def stream(length: int, seed: int = 7) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return timed(
        [
            {
                "type": draw.choice("AABBC"),
                "k": draw.choice((0, 1, None)),
                "x": draw.choice((0, 1, 2, 3, None)),
                "y": draw.choice((0.0, 1.0, 2.0, float("nan"), None)),
                "step": draw.choice((0, 1, 1, 2, -2)),
            }
            for _ in range(length)
        ]
    )


@pytest.mark.sampled
@pytest.mark.parametrize("matching", [*MATCHINGS, *EVERY])
@pytest.mark.parametrize("disposal", [*DISPOSALS, *LEAVING, *KEEPING])
def test_the_combinations_of_options_compiled(matching: str, disposal: str) -> None:
    options = " ".join(option_words(random.Random(0), [["a"]], (matching, disposal)))
    seen = compared(f"{TYPES}\nSUBSCRIPTION S {FAMILY} {options}", stream(300), 64)
    assert seen["on a kernel"] == 1
    assert seen["matches"] > 3, seen


def test_negated_events_compiled() -> None:
    pattern = "MATCH A a AND B b WITHIN 9 SECONDS WITHOUT C c BETWEEN a AND b WHERE c.x <= a.x"
    seen = compared(f"{TYPES}\nSUBSCRIPTION S {pattern}", stream(300), 64)
    assert seen["on a kernel"] == 1
    assert seen["matches"] > 3, seen


def values(length: int, seed: int = 3) -> list[dict[str, Any]]:
    draw, at, made = random.Random(seed), START, []
    for _ in range(length):
        at += timedelta(seconds=draw.randint(0, 2))
        made.append({"type": draw.choice("PPQ"), "at": at} | {name: draw.choice(each) for name, each in VALUES.items()})
    return made


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        ("P p AND Q q", "(p.b < q.d OR p.b % q.b = 1) AND p.b * q.b != q.i AND (p.d % q.d > 1.0 OR p.m < q.n)"),
        ("P p[2] AND Q q", "min(p.d) < q.d AND max(p.d) > q.d AND q.b > p[1].b"),
        ("P p[2] AND Q q", "(min(p.d) < q.d OR sum(p.b) > q.i) AND max(p.b) - min(p.i) > count(p.s)"),
        ("P p AND Q q", "(-(p.b - q.b) > 3 OR (p.i + q.b) IS NULL) AND (isnan(p.d - q.d) OR p.i IN (q.i, 7) OR p.s < q.s)"),
    ],
)
def test_conditions_across_events_compiled(pattern: str, condition: str) -> None:
    seen = compared(rules(condition, pattern), values(300), 64)
    assert seen["on a kernel"] == 1
    assert seen["matches"] > 3, seen


EACH = settings.default.max_examples
"""Compiling takes a tenth of a second for each."""


@pytest.mark.slow
@pytest.mark.parametrize("trees", ["long queues have trees", "every queue has a tree"])
def test_generated_branches_compiled(trees: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if trees == "every queue has a tree":
        monkeypatch.setattr(queues, "BUILD", 1)
        monkeypatch.setattr(queues, "KEEP", 0)
        monkeypatch.setattr(tree, "STEPS", 1)
    total: Counter[str] = Counter()

    @settings(max_examples=EACH)
    @given(st.one_of(cases(), dense_cases()), st.integers(1, 13))
    def holds(case: Case, size: int) -> None:
        total.update(compared(case.rules, case.events, size))

    holds()
    assert total["on a kernel"] > EACH // 3, total


EDGES = [
    0,
    1,
    -1,
    2,
    -3,
    7,
    2**31,
    -(2**31),
    2**32,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    -(2**62),
    2**63 - 1,
    -(2**63) + 1,
    -(2**63),
]
FLOATS = [0.0, 1.0, -1.5, 2.5, float(2**53), 9.3e18, -9.3e18, -(2.0**63), 2.0**63, math.inf, -math.inf, math.nan]


def compiled_helper(name: str) -> Any:
    """A helper as a function of two numbers."""
    calling = f"def kernel(a, b, out):\n    out[0] = {name}(a[0], b[0])\n    return 0, 0\n\n{function_text(helper(name))}"
    kernel = Compiled(parsed(calling))

    def call(a: Any, b: Any) -> Any:
        out = np.zeros(1, dtype=np.float64 if isinstance(a, float) else np.int64)
        kernel(np.array([a]), np.array([b]), out)
        return out[0]

    return call


@pytest.mark.parametrize(("name", "exact"), [("sum_fits", op.add), ("difference_fits", op.sub), ("product_fits", op.mul)])
def test_an_overflow_is_seen_before_it_happens(name: str, exact: Any) -> None:
    fits = compiled_helper(name)
    for a in EDGES:
        for b in EDGES:
            assert fits(a, b) == (-(2**63) <= exact(a, b) < 2**63), (a, b)


def test_remainders_have_the_sign_of_the_dividend() -> None:
    whole, double = compiled_helper("remainder"), compiled_helper("remainder_double")
    for a in EDGES:
        for b in EDGES:
            assert b == 0 or whole(a, b) == arithmetic("%", Kind.BIGINT)(a, b), (a, b)
    for x in FLOATS:
        for y in FLOATS:
            wanted = arithmetic("%", Kind.DOUBLE)(x, y)
            assert y == 0 or double(x, y) == wanted or (wanted != wanted and double(x, y) != double(x, y)), (x, y)


def test_whole_numbers_compare_exactly_with_floats_and_nan_wins() -> None:
    order, least, greatest = compiled_helper("exact"), compiled_helper("lesser"), compiled_helper("greater")
    for a in EDGES:
        for d in FLOATS:
            assert order(a, d) == (2 if d != d else (a > d) - (a < d)), (a, d)
    for x in FLOATS:
        for y in FLOATS:
            if x != x or y != y:
                assert math.isnan(least(x, y))
                assert math.isnan(greatest(x, y))
            else:
                assert (least(x, y), greatest(x, y)) == (min(x, y), max(x, y))
