"""Runs on machine code, on the checked build: what interpreted kernels cannot show. And what is kept, counted in steps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.matching.compiled.running.lane import KernelLane
from fairlead.matching.thresholds import Thresholds
from fairlead.model.relations.relation import Relation
from fairlead.transport.events import read_events
from tests.matching.equality.test_runs import shown
from tests.matching.generators.generated import Case
from tests.matching.generators.runs import MANY_TYPES, run_cases, valued_run_cases

pytestmark = pytest.mark.xdist_group("compiled kernels")
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True, scope="module")
def compiling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("FAIRLEAD_JIT", "1")
        changed.setenv("FAIRLEAD_KERNELS", "checked")
        changed.setenv("FAIRLEAD_CACHE", str(tmp_path_factory.mktemp("kernels")))
        yield


def stream(length: int, seed: int = 7) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    made, at = [], 0
    for _ in range(length):
        at += draw.choice((0, 1, 1, 2, -2))
        made.append(
            {
                "type": draw.choice("AAB"),
                "k": draw.choice((0, 1, 2, None)),
                "x": draw.choice((0, 1, 2, 3, None)),
                "l": draw.choice((2**62, -(2**63), 5, None)),
                "y": draw.choice((0.1, 0.2, -0.0, 1e16, None)),
                "d": draw.choice((Decimal("0.1"), Decimal("7.5"), None)),
                "w": draw.choice((Decimal("0.01"), Decimal(10**27), None)),
                "v": draw.choice((Decimal(3), Decimal(10**38 - 1), None)),
                "s": draw.choice(("a", "b", "c", "", None)),
                "f": draw.choice((True, False, None)),
                "at": START + timedelta(seconds=at),
            }
        )
    return made


RULES = (
    "A a+ HAVING count(DISTINCT a.x) >= 4 PER k",
    "A a+ HAVING count(DISTINCT a.s) >= 3 AND count(DISTINCT a.y) >= 2 PER k WITHIN 30 SECONDS DISPOSAL FIRST PREFIX",
    "A a+ HAVING count(a) > 9 AND avg(a.x) >= 1.5 WITHIN 20 SECONDS DISPOSAL INFIX POSTFIX",
    "A a+ HAVING sum(a.l) > 0 OR sum(a.y) > 1 PER k",
    "A a+ HAVING sum(a.d) >= 20 AND max(a.w) > 5 PER k DISPOSAL INFIX",
    "A a+ HAVING sum(a.v) > 5 AND count(DISTINCT a.w) = 2",
    "A a THEN B b+ HAVING count(b) >= 3 AND count(DISTINCT b.d) >= 2 PER k WITHIN 40 SECONDS",
    "A a THEN B b+ WHERE b.x > a.x HAVING sum(b.x) > 7 PER k MATCHING RECENT",
    "A a+ THEN B b HAVING min(a.s) < 'b' AND max(a.y) > 0.15 PER k",
    "A a THEN B b{2,3} THEN A c HAVING last(b.x) > first(b.x) DISPOSAL FIRST PREFIX",
    "A a THEN A b{2,} HAVING first(b.s) = 'a' AND count(b.x) >= 2 PER k",
    "A a AND U u+ HAVING count(DISTINCT u.x) >= 3 PER k DISPOSAL INFIX",
    "A a THEN B b+ WITHOUT B n BEFORE a WITHIN 2 SECONDS WHERE n.x = a.x HAVING count(b) >= 2",
)


@pytest.mark.parametrize("rule", RULES)
def test_machine_code_finds_what_event_by_event_finds(rule: str) -> None:
    plan = compile_text(f"{MANY_TYPES}EVENT UNION U = A + B\nSUBSCRIPTION S MATCH {rule}")
    fast, plain = Engine(plan, kernels_from=0), Engine(plan, kernels_from=None)
    found = 0
    for number, columns in enumerate(read_events(stream(500), plan.catalogue, batch_rows=90)):
        expected = shown(list(plain.feed(columns)))
        assert shown(list(fast.feed(columns))) == expected
        assert fast.dump() == plain.dump()
        found += len(expected)
        if number % 2:
            fast = Engine.load(plan, fast.dump(), thresholds=Thresholds(loaded_events=0))
    assert found > 0
    assert isinstance(fast.units[0].lane, KernelLane)


@pytest.mark.sampled
@settings(max_examples=max(4, settings.default.max_examples // 12), suppress_health_check=[HealthCheck.too_slow])
@given(run_cases() | valued_run_cases(), st.integers(1, 13))
def test_generated_runs_on_the_checked_build(case: Case, size: int) -> None:
    plan = compile_text(case.rules)
    fast, plain = Engine(plan, kernels_from=0), Engine(plan, kernels_from=None)
    found: list[Relation] = []
    expected: list[Relation] = []
    for columns in read_events(case.events, plan.catalogue, batch_rows=size):
        found += fast.feed(columns)
        expected += plain.feed(columns)
        assert fast.dump() == plain.dump()
    assert shown(found) == shown(expected)


def values(count: int) -> list[dict[str, Any]]:
    return [{"type": "A", "x": n, "s": str(n % 1000)} for n in range(count)]


def test_a_table_of_different_values_grows_in_the_middle_of_a_batch() -> None:
    plan = compile_text("TYPE A (x INT, s STRING) SUBSCRIPTION S MATCH A a+ HAVING count(DISTINCT a.x) >= 30000")
    engine = Engine(plan, kernels_from=0)
    (columns,) = read_events(values(70_000), plan.catalogue, batch_rows=1 << 20)
    found = engine.feed(columns)
    assert [each.completed_at.major for each in found] == [29_999, 59_999]
    assert [len(each.positions) for each in found] == [30_000, 30_000]


def test_long_relations_end_a_batch_and_another_call_goes_on() -> None:
    """More members than there is room for in one call."""
    plan = compile_text("TYPE A (x INT, s STRING) SUBSCRIPTION S MATCH A a+ HAVING count(a) >= 2000 DISPOSAL FIRST PREFIX")
    engine = Engine(plan, kernels_from=0)
    (columns,) = read_events(values(2200), plan.catalogue)
    found = engine.feed(columns)
    assert [(each.positions[0], each.positions[-1]) for each in found] == [(n, n + 1999) for n in range(201)]


def test_numbers_of_texts_that_are_given_anew_are_counted_anew() -> None:
    """What is kept of texts are their numbers, and these change once most texts are forgotten."""
    rules = "TYPE A (x INT, s STRING) SUBSCRIPTION S MATCH A a+ WHERE a.x = 0 HAVING count(DISTINCT a.s) >= 4"
    plan = compile_text(rules)
    engine, plain = Engine(plan, kernels_from=0), Engine(plan, kernels_from=None)
    events = [{"type": "A", "x": int(n % 9000 != 0), "s": str(n // 2)} for n in range(60_000)]
    for columns in read_events(events, plan.catalogue, batch_rows=10_000):
        assert shown(list(engine.feed(columns))) == shown(list(plain.feed(columns)))
        assert engine.dump() == plain.dump()


def test_alike_subscriptions_with_runs_share_a_kernel() -> None:
    rule = "SUBSCRIPTION S{n} MATCH A a+ WHERE a.x >= {n} HAVING count(DISTINCT a.s) >= {least} AND sum(a.x) > 9 PER k"
    rules = "\n".join(rule.format(n=n, least=3 if n < 3 else 2) for n in range(4))
    plan = compile_text(f"{MANY_TYPES}{rules}")
    fast, plain = Engine(plan, kernels_from=0), Engine(plan, kernels_from=None)
    for columns in read_events(stream(400), plan.catalogue, batch_rows=50):
        assert shown(list(fast.feed(columns))) == shown(list(plain.feed(columns)))
        assert fast.dump() == plain.dump()
    families = [len(family.members) for unit in fast.units for family in unit.lane.families]  # type: ignore[union-attr]
    assert sorted(families) == [1, 3]
