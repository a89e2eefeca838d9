"""Patterns of many members: the reference, the matcher that goes event by event and kernels give the same relations.

Kernels run as plain Python here (see test_kernel.py)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.model.events.event import Event
from fairlead.model.plans.plan import Plan
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.compiled.test_kernel import interpreted, trees
from tests.matching.generators.generated import Case
from tests.matching.generators.long_patterns import TYPES, long_cases, many_streams, then_cases

__all__ = ["interpreted", "trees"]

Found = list[tuple[int, ...]]


def all_ways(case: Case) -> tuple[Found, Found, Found]:
    """By the reference, event by event, by kernels."""
    plan = compile_text(case.rules)
    batches = list(read_events(case.events, plan.catalogue, batch_rows=5))
    stream: list[Event] = [each for columns in batches for each in columns.events(plan.catalogue)]
    expected = [relation.positions for relation in ReferenceMatcher(plan).run(stream)]
    return expected, _by_engine(plan, batches, None), _by_engine(plan, batches, 0)


def _by_engine(plan: Plan, batches: list, kernels_from: int | None) -> Found:  # type: ignore[type-arg]
    engine = Engine(plan, kernels_from=kernels_from)
    return [relation.positions for columns in batches for relation in engine.feed(columns)]


FEWER = settings.default.max_examples // 2
"""A case takes a tenth of a second and more."""


@pytest.mark.slow
@pytest.mark.usefixtures("trees")
@settings(max_examples=FEWER, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(long_cases())
def test_many_members_in_every_order_equal_the_reference(case: Case) -> None:
    expected, by_events, by_kernels = all_ways(case)
    event(f"relations: {min(len(expected), 3)}")
    assert by_events == expected
    assert by_kernels == expected


@settings(max_examples=FEWER)
@given(then_cases(9))
def test_groups_of_instances_before_and_after_others_equal_the_reference(case: Case) -> None:
    expected, by_events, by_kernels = all_ways(case)
    assert by_events == expected
    assert by_kernels == expected


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("M o THEN B i[3] WHERE i[2].x = o.x PER k MATCHING FIRST", "MB"),
        ("M o THEN B i[3] WHERE i[2].x > o.x PER k MATCHING FIRST", "MBB"),
        ("M o THEN B i[3] WHERE o.x = 2 AND i[2].x = 2 PER k MATCHING FIRST", "MB"),
        ("M o THEN B i[2] AND M p WHERE i[2].x = o.x PER k MATCHING FIRST", "MB"),
        ("B i[3] THEN M o WHERE i[2].x = o.x PER k MATCHING RECENT", "MB"),
        ("A p AND (A q[2] THEN C r) WHERE p.x > 3 PER k MATCHING RECENT CONTIGUOUS", "AAAC"),
        ("C p AND (A r THEN C q[2]) WHERE p.x > 3 PER k MATCHING FIRST CONTIGUOUS", "CCCA"),
        ("A p AND (A q THEN C r) AND A s WHERE p.x > s.x PER k MATCHING RECENT CONTIGUOUS", "AAAC"),
    ],
)
@settings(max_examples=8)
@given(seed=st.integers(0, 1 << 30))
def test_a_first_instance_whose_partners_are_looked_for_later(pattern: str, names: str, seed: int) -> None:
    """The first two kinds of error that the generators above were made for."""
    rules = f"{TYPES}\nSUBSCRIPTION S MATCH {pattern}"
    expected, by_events, by_kernels = all_ways(Case(rules, many_streams(seed, names, 8)))
    assert by_events == expected
    assert by_kernels == expected


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("members", "options"),
    [
        (20, "MATCHING FIRST CONTIGUOUS DISPOSAL INFIX"),
        (21, "MATCHING FIRST CONTIGUOUS DISPOSAL INFIX"),
        (60, "WITHOUT B b BETWEEN a[1] AND a[2]"),
    ],
)
def test_kernels_as_python_nest_as_deep_as_the_longest_pattern(members: int, options: str) -> None:
    """Python allows 20 nested loops."""
    plan = compile_text(
        f"TYPE A (x INT) TYPE B (x INT) SUBSCRIPTION S MATCH A a[{members}] WHERE a[1].x <= a[{members}].x {options}"
    )
    batches = list(read_events([{"type": "B" if at % 40 == 39 else "A", "x": at % 5} for at in range(150)], plan.catalogue))
    found = _by_engine(plan, batches, 0)
    assert found == _by_engine(plan, batches, None)
    assert found
