"""The reduced search finds what the definition finds, from the first step on or after any number of steps; and where conditions
form no circle, the steps of an arrival grow no faster than the queues.

Kernels run as plain Python here (see test_kernel.py), but for one test.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.language import compile_text
from fairlead.matching.compiled.codegen.searches import reduced_search as semijoins
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.branch import KernelBranch
from fairlead.matching.interpreted import search
from fairlead.matching.interpreted.conjunction import Conjunction
from fairlead.matching.reduction import Constraint, Reduction, SlotComparison, reduced_orders
from fairlead.model.plans.plan import Plan
from fairlead.transport.events import read_events
from tests.matching.compiled.test_cost import STATE, Counted
from tests.matching.compiled.test_kernel import interpreted
from tests.matching.equality.test_long_patterns import FEWER, all_ways
from tests.matching.generators.generated import Case, cases
from tests.matching.generators.long_patterns import long_cases, many_streams, then_cases

__all__ = ["interpreted"]


def equal_after(steps: int, case: Case) -> None:
    """Searches are reduced after so many steps, whatever the length of the queues; -1: at once."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (search, semijoins):
            patch.setattr(module, "STEPS_FIRST", steps)
            patch.setattr(module, "STEPS_EACH", 0)
        expected, by_events, by_kernels = all_ways(case)
    assert by_events == expected
    assert by_kernels == expected


BUDGETS = st.sampled_from((-1, -1, 0, 1, 2, 5, 20))


@settings(max_examples=FEWER, suppress_health_check=[HealthCheck.too_slow])
@given(BUDGETS, long_cases())
def test_many_members_equal_the_reference(steps: int, case: Case) -> None:
    equal_after(steps, case)


@settings(max_examples=FEWER, suppress_health_check=[HealthCheck.too_slow])
@given(BUDGETS, then_cases(8))
def test_groups_of_instances_equal_the_reference(steps: int, case: Case) -> None:
    equal_after(steps, case)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(BUDGETS, cases())
def test_every_clause_of_the_language_equals_the_reference(steps: int, case: Case) -> None:
    equal_after(steps, case)


TYPES = "\n".join(f"TYPE {name} (k INT, x INT, y DOUBLE, s STRING, d DECIMAL(9, 2), at TIMESTAMP) TIME at" for name in "ABC")
COMPILED = (
    "A a[4] WHERE a[1].x < a[2].x AND a[2].x < a[3].x AND a[3].x < a[4].x PER k MATCHING FIRST",
    "A a[3] AND B b WHERE a[1].x != a[2].x AND a[2].x = b.x AND a[3].y <= b.x PER k MATCHING RECENT DISPOSAL INFIX",
    "A a AND B b AND C c WHERE a.x = b.x AND b.x + c.x > 3 AND a.s = c.s PER k WITHOUT B n BETWEEN a AND c WHERE n.x = 0",
    "A a[2] AND B b[2] WHERE a[1].x < b[1].x AND a[2].x = b[2].x PER k MATCHING FIRST CONTIGUOUS DISPOSAL FIRST PREFIX",
)


@pytest.mark.sampled
@pytest.mark.xdist_group("compiled kernels")
@pytest.mark.parametrize("pattern", COMPILED)
def test_machine_code_equals_the_reference(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "1")
    equal_after(-1, Case(f"{TYPES}\nSUBSCRIPTION S MATCH {pattern}", many_streams(5, "AABBC", 9)))


# Growth


def rising(members: int, size: int) -> Iterator[tuple[str, int, int]]:
    """Runs that are one too short, each below the one before."""
    return (("A", (size - n) // (members - 1) * 100 + n % (members - 1), 0) for n in range(size))


def several(names: str, size: int) -> Iterator[tuple[str, int, int]]:
    draw = random.Random(7)
    return ((names[n % len(names)], draw.randrange(50), 5) for n in range(size))


def chain(sign: str, members: int) -> str:
    conditions = [f"a[{n}].x {sign} a[{n + 1}].x" for n in range(1, members)]
    return f"A a[{members}] AND B b WHERE {' AND '.join(conditions)}"


FOUR = "A a AND B b AND C c AND M m AND Z z"
GROWING: dict[str, tuple[str, Any, str]] = {
    **{f"{n} rising": (chain("<", n), lambda size, n=n: rising(n, size), "B") for n in range(2, 7)},
    **{f"{n} unlike": (chain("!=", n), lambda size: (("A", 5, 0) for _ in range(size)), "B") for n in (2, 3, 4, 6)},
    "19 inequalities": (
        chain("!=", 20),
        lambda size: (("A", 1 if n % (size // 8) else 2, 0) for n in range(size)),
        "B",
    ),
    "a chain over types": (
        f"{FOUR} WHERE a.x < b.x AND b.x != c.x AND c.y < m.y AND m.x > z.x",
        lambda size: several("ABCM", size),
        "Z",
    ),
    "a star over types": (
        f"{FOUR} WHERE a.x < b.x AND a.x = c.x AND a.y != m.y AND a.x >= z.x",
        lambda size: several("ABCM", size),
        "Z",
    ),
    "a star of orders": (
        "(A a THEN B b) AND (A p THEN C c) AND M m AND Z z WHERE a.x < c.x AND b.y != m.y",
        lambda size: several("ABCM", size),
        "Z",
    ),
}


def planned(match: str) -> Plan:
    types = "\n".join(f"TYPE {name} (x INT, y INT)" for name in "ABCMZ")
    return compile_text(f"{types}\nSUBSCRIPTION S MATCH {match} DISPOSAL INFIX")


def records(rows: Iterator[tuple[str, int, int]], name: str) -> list[dict[str, Any]]:
    return [{"type": kind, "x": x, "y": y} for kind, x, y in (*rows, (name, 1_000_000, 5))]


def steps_by_events(plan: Plan, given: list[dict[str, Any]]) -> int:
    """Of the last event."""
    (subscription,) = plan.subscriptions
    conjunction = Conjunction(subscription, subscription.branches[0], plan.catalogue)
    instance = conjunction.create()
    for columns in read_events(given, plan.catalogue):
        for each in columns.events(plan.catalogue):
            conjunction.arrive(instance, each, *conjunction.accept(conjunction.routes.by_type[each.type][0], each))
    return conjunction.search.steps


def accesses_by_kernel(plan: Plan, given: list[dict[str, Any]]) -> int:
    """Of the last event."""
    (subscription,) = plan.subscriptions
    branch = KernelBranch(subscription, subscription.branches[0], plan.catalogue)
    names, plain = branch.source.arguments, branch.kernel
    batches = list(read_events(given, plan.catalogue, batch_rows=len(given) - 1))
    branch.feed(KernelBatch(batches[0], plan.catalogue))
    branch.kernel = lambda *held: plain(*(Counted(g) if n in STATE else g for n, g in zip(names, held, strict=True)))
    Counted.total = 0
    branch.feed(KernelBatch(batches[1], plan.catalogue))
    return Counted.total


@pytest.mark.sampled
@pytest.mark.parametrize("lane", [steps_by_events, accesses_by_kernel])
@pytest.mark.parametrize("name", GROWING)
def test_without_circles_steps_grow_no_faster_than_the_queues(name: str, lane: Any) -> None:
    match, fill, probe = GROWING[name]
    plan = planned(match)
    few, many = 160, 1280
    counted = [lane(plan, records(fill(size), probe)) for size in (few, many)]
    assert counted[1] <= counted[0] * (many / few) * 1.7 + 400, counted


# Plans


def test_orders_that_follow_from_others_are_left_out() -> None:
    every = [(a, b) for a, b in itertools.combinations(range(5), 2)]
    assert reduced_orders(every) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_a_tree_needs_no_second_try_and_a_circle_does() -> None:
    def plan(pairs: list[tuple[int, int]], newest: int | None = None) -> Reduction:
        return Reduction(4, newest, [Constraint(frozenset(pair), SlotComparison(pair[0], "<", pair[1])) for pair in pairs])

    assert plan([(0, 1), (1, 2), (1, 3)]).wide == 0
    assert plan([(0, 1), (1, 2), (2, 3), (0, 3)]).wide == 1
    assert plan([(0, 1), (1, 2), (2, 3), (0, 3)], newest=3).wide == 0
    assert plan([(0, 1), (1, 2), (0, 2), (2, 3)]).wide == 1
    assert Reduction(4, None, [Constraint(frozenset({0, 1, 2}))]).wide == 1
    assert plan([(0, 1), (1, 2)]).is_linear
    assert not plan([(0, 1), (0, 1)]).is_linear
