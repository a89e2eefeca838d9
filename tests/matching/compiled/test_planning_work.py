"""The work of planning a rule grows with its text, not explosively: a stranger's text may have 60 members with all their pairs.

Work is counted in calls of Python functions, not timed.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.language import compile_text
from fairlead.matching.compiled.planning.eligibility import too_expensive
from fairlead.matching.compiled.planning.shape_builder import shape_of
from fairlead.matching.compiled.representation.contents import content, parts, same
from fairlead.matching.reduction import _closed

TYPES = "\n".join(f"TYPE {name} (x INT, d DOUBLE, at TIMESTAMP) TIME at" for name in "ABC") + "\n"


def _pairs(sign: str) -> Callable[[int], str]:
    def text(size: int) -> str:
        tests = (f"a[{one}].x {sign} a[{two}].x" for one, two in itertools.combinations(range(1, size + 1), 2))
        return f"SUBSCRIPTION S MATCH A a[{size}] WHERE " + " AND ".join(tests)

    return text


def _steps(size: int) -> str:
    groups = " THEN ".join(f"(A a{at} AND B b{at} AND C c{at})" for at in range(size // 3))
    return f"SUBSCRIPTION S MATCH {groups} WITHIN 1 DAY MATCHING RECENT CONTIGUOUS DISPOSAL FIRST PREFIX"


def _chain(size: int) -> str:
    tests = (f"a[{at}].x < a[{at + 1}].x AND a[{at}].d != a[{at + 1}].d" for at in range(1, size))
    return f"SUBSCRIPTION S MATCH A a[{size}] WHERE " + " AND ".join(tests)


RULES = {
    "all different": _pairs("!="),
    "all in order": _pairs("<"),
    "all sums": _pairs("+ 1 != 2 *"),
    "steps": _steps,
    "chain": _chain,
}


def calls(work: Callable[[], Any]) -> int:
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.sampled
@pytest.mark.parametrize("name", RULES)
def test_twice_the_members_cost_at_most_their_cube(name: str) -> None:
    """Pairs of members grow with the square, and each stage of a reduced search looks at those that are left: the cube."""
    plans = [compile_text(TYPES + RULES[name](size)) for size in (4, 9, 18)]
    _, few, many = (calls(lambda plan=plan: list(too_expensive(plan))) for plan in plans)  # the first one imports modules
    assert many <= few * 2**3 * 1.4, (few, many)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_orders_are_closed_as_the_definition_says(orders: list[tuple[int, int]]) -> None:
    known = set(orders)
    while more := {(a, d) for a, b in known for c, d in known if b == c} - known:
        known |= more
    assert _closed(orders) == known


def test_contents_are_equal_where_expressions_are_the_same() -> None:
    found = []
    for sign in ("!=", "<", "+ 1 >", "+ 1.0 >", "% 2 ="):
        plan = compile_text(TYPES + _pairs(sign)(3))
        subscription = plan.subscriptions[0]
        for test in shape_of(subscription, subscription.branches[0], plan.catalogue).tests:
            found += [each for each in parts(test.condition) if hasattr(each, "__match_args__")]
    assert len(found) > 40
    for one, other in itertools.product(found, found):
        assert (content(one) == content(other)) == same(one, other)
