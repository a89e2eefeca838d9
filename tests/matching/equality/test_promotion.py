"""A plan moves to kernels by the work that it has done, in the middle of any search: deliveries and dumps stay the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from fairlead.engine import KERNELS_FROM, Engine
from fairlead.language import compile_text
from fairlead.matching.attempt import Attempt
from fairlead.matching.compiled.running.lane import prices, rows_at_once
from fairlead.matching.thresholds import THRESHOLDS, Thresholds
from fairlead.model.events.columns import Columns
from fairlead.model.events.values import microseconds
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.equality.test_lanes import interpreted, shown
from tests.matching.equality.test_plans import compiled
from tests.matching.generators.generated import START, Case, cases
from tests.matching.generators.plans import plan_cases

__all__ = ["interpreted"]

IN_STEPS = Thresholds(event_steps=1)
"""Budgets are in steps, so that a search can end anywhere."""


@pytest.fixture
def undone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What every attempt had spent that was undone."""
    found: list[int] = []
    undo = Attempt.undo

    def noted(attempt: Attempt) -> None:
        found.append(attempt.spent)
        undo(attempt)

    monkeypatch.setattr(Attempt, "undo", noted)
    return found


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of all attempts together, as the one number of a list."""
    total, spend = [0], Attempt.spend

    def noted(attempt: Attempt, steps: int) -> None:
        total[0] += steps
        spend(attempt, steps)

    monkeypatch.setattr(Attempt, "spend", noted)
    return total


def batches_of(case: Case, plan: Plan, rows: int) -> list[Columns]:
    return list(read_events(case.events, plan.catalogue, batch_rows=rows))


def compared(case: Case, plan: Plan, rows: int, budget: int, one_by_one: bool, defined_too: bool = True) -> Counter[str]:
    """With an engine that never moves, and with the reference unless `defined_too` is False."""
    plain, moving, reference = (
        Engine(plan, kernels_from=None),
        Engine(plan, kernels_from=budget, thresholds=IN_STEPS),
        ReferenceMatcher(plan),
    )
    expected: list[Relation] = []
    found: list[Relation] = []
    defined: list[Relation] = []
    for columns in batches_of(case, plan, rows):
        for each in columns.events(plan.catalogue):
            defined += reference.arrive(each)
            if one_by_one:
                found += moving.arrive(each)
        expected += plain.feed(columns)
        if not one_by_one:
            found += moving.feed(columns)
        assert moving.dump() == plain.dump()
        assert moving.waiting() == plain.waiting()
    until = None if case.until is None else microseconds(case.until)
    expected += plain.finish(until)
    found += moving.finish(until)
    defined += reference.finish(until)
    assert shown(found) == shown(expected)
    if defined_too:
        assert shown(found) == shown(defined)
    assert moving.dump() == plain.dump()
    return Counter({"moved": moving.lane is not None, "relations": len(found)})


BUDGETS = st.one_of(st.integers(0, 40), st.integers(0, 2_000))


@pytest.mark.slow
def test_a_plan_that_moves_anywhere_delivers_what_one_that_stays_does(undone: list[int]) -> None:
    """Not compared with the reference: overlapping types with unlike keys differ from it, moving or not
    (test_equal_to_reference.py has the case)."""
    total: Counter[str] = Counter()

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(plan_cases(), st.sampled_from((1, 2, 5, 100)), BUDGETS, st.booleans())
    def holds(case: Case, rows: int, budget: int, one_by_one: bool) -> None:
        before = len(undone)
        seen = compared(case, compiled(case.rules), rows, budget, one_by_one, defined_too=False)
        event(f"moved: {seen['moved']}, undone: {len(undone) - before}, relations: {min(seen['relations'], 3)}")
        total.update(seen)

    holds()
    assert total["moved"] > 20
    assert len(undone) > 20


def test_so_does_a_single_subscription(undone: list[int]) -> None:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(cases(), st.sampled_from((1, 3, 100)), BUDGETS, st.booleans())
    def holds(case: Case, rows: int, budget: int, one_by_one: bool) -> None:
        compared(case, compile_text(case.rules), rows, budget, one_by_one)

    holds()
    assert len(undone) >= settings.default.max_examples // 10


SWEPT = {
    "absence": "SUBSCRIPTION S MATCH A a AND B b WITHOUT C c WITHIN 2 SECONDS OF a WHERE c.x > b.x PER k",
    "absence read": """SUBSCRIPTION S MATCH A a WITHOUT B b WITHIN 3 SECONDS OF a EMIT M (x = a.x)
        SUBSCRIPTION T MATCH M m THEN C c WHERE m.x <= c.x""",
    "between": "SUBSCRIPTION S MATCH A a THEN B b WITHOUT C c BETWEEN a AND b WHERE c.x > a.x DISPOSAL INFIX",
    "window": "SUBSCRIPTION S MATCH A a[2] AND B b WHERE a[1].x < b.x WITHIN 3 SECONDS MATCHING FIRST CONTIGUOUS",
    "loose": "SUBSCRIPTION S MATCH A a[2] AND B b WHERE a[1].x <= b.x PER k DISPOSAL FIRST PREFIX",
    "overlap": "EVENT UNION U = A + B SUBSCRIPTION S MATCH U u AND B b WHERE u.x != b.x DISPOSAL INFIX",
    "chain": """SUBSCRIPTION T MATCH M m[2] AND A a WHERE m[1].x + a.x > 2
        SUBSCRIPTION S MATCH A a AND B b WHERE a.x < b.x PER k EMIT M (x = a.x + b.x)
        SUBSCRIPTION R MATCH B b AND C c WHERE b.x = c.x""",
}


@pytest.mark.sampled
@pytest.mark.parametrize(("rows", "dear"), [(4, False), (100, False), (100, True)])
@pytest.mark.parametrize("rules", SWEPT.values(), ids=SWEPT)
def test_whatever_step_is_the_last_one(
    monkeypatch: pytest.MonkeyPatch, undone: list[int], rules: str, rows: int, dear: bool
) -> None:
    """Every part of a state is put back: a stream whose times go back, ended at one step after the other. `dear`: a batch is
    undone, and tried again with more work allowed."""
    if dear:
        monkeypatch.setattr("fairlead.matching.compiled.running.lane.prices", lambda *_: iter((1.2, 1.5)))
    draw = random.Random(5)
    times = accumulate(draw.choice((0, 1, 1, 2, -2)) for _ in range(28))
    events: list[dict[str, Any]] = [
        {"type": draw.choice("AABC"), "k": draw.randrange(2), "x": draw.randrange(4), "at": START + timedelta(seconds=each)}
        for each in times
    ]
    declared = [f"TYPE {name} (k INT, x INT, at TIMESTAMP) TIME at" for name in "ABC"]
    case = Case("\n".join([*declared, rules]), events, START + timedelta(seconds=60))
    plan, seen = compile_text(case.rules), Counter[str]()
    for budget in [*range(0, 100, 17), *range(100, 1_000, 73)]:
        seen.update(compared(case, plan, rows, budget, one_by_one=False))
    assert min(seen["relations"], seen["moved"]) > (5 if dear else 10)
    assert len(undone) > 5


RISING = """TYPE A (x INT)
SUBSCRIPTION S MATCH A a[4]
WHERE a[1].x + a[2].x < a[3].x AND a[2].x + a[3].x < a[4].x AND a[1].x + a[2].x + a[3].x + a[4].x > 9999"""


@pytest.mark.sampled
@pytest.mark.parametrize("rows", [1, 7, 100_000])
@pytest.mark.parametrize("events", [12, 60, 150])
def test_no_stream_takes_longer_because_it_is_short(
    monkeypatch: pytest.MonkeyPatch, spent: list[int], rows: int, events: int
) -> None:
    """Whatever is done event by event is about what a plan may do before it moves, however few events there are."""
    monkeypatch.setattr("fairlead.matching.unit.UnitEngine._to_kernels", _to_nothing)
    plan = compile_text(RISING)
    engine = Engine(plan)
    for columns in read_events([{"type": "A", "x": n % 50} for n in range(events)], plan.catalogue, batch_rows=rows):
        engine.feed(columns)
    budget = KERNELS_FROM * THRESHOLDS.event_steps
    batches = -(-events // rows)
    assert spent[0] < 1.1 * budget + batches * (budget // 50)
    assert (engine.lane is not None) == (events > 12)


UNLIKE = 40


def unlike(count: int) -> str:
    """Subscriptions with a kernel each."""
    rules = (f"SUBSCRIPTION S{n} MATCH A a AND B b WHERE a.x + b.x = {n + 100} PER x" for n in range(count))
    return "\n".join(["TYPE A (x INT) TYPE B (x INT)", *rules])


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("compiled", "loaded", "kernels"),
    [(UNLIKE, 0, UNLIKE), (UNLIKE // 2, UNLIKE // 2, UNLIKE * 0.55), (0, UNLIKE, UNLIKE / 10), (0, 0, 1), (1, 0, 1)],
)
@pytest.mark.parametrize("rows", [1, 30, 100_000])
def test_many_kernels_are_made_for_as_much_work_as_they_cost(
    monkeypatch: pytest.MonkeyPatch, spent: list[int], rows: int, compiled: int, loaded: int, kernels: float
) -> None:
    """… a tenth of a second for each that has to be compiled, and what was done in vain is at most as much again."""
    monkeypatch.setattr("fairlead.matching.compiled.running.lane.unmade", lambda sources: (compiled, loaded))
    monkeypatch.setattr("fairlead.matching.unit.UnitEngine._to_kernels", _to_nothing)
    plan, budget = compile_text(unlike(UNLIKE)), 1_000
    engine, events = Engine(plan, kernels_from=budget // THRESHOLDS.event_steps), 4 * UNLIKE * budget // (10 * UNLIKE)
    stream = [{"type": "AB"[n % 2], "x": n // 2} for n in range(events)]
    fed = 0
    for columns in read_events(stream, plan.catalogue, batch_rows=rows):
        if engine.lane is None:
            engine.feed(columns)
            fed += len(columns)
    assert engine.lane is not None
    if rows == 100_000:  # so many events that it need not be tried
        assert spent[0] <= 2 * budget
    else:
        batch = 2 * rows * 10 * UNLIKE
        assert kernels * budget * 0.9 - batch <= spent[0] <= 2.2 * (kernels * budget + batch), (spent[0], fed)


def test_a_plan_so_deep_that_kernels_get_a_few_rows_at_a_time_moves_later() -> None:
    links = (f"SUBSCRIPTION S{at} MATCH M{at - 1} m EMIT M{at} (x = m.x)" for at in range(1, 100))
    plan = compile_text("\n".join(["TYPE A (x INT)", "SUBSCRIPTION S0 MATCH A a EMIT M0 (x = a.x)", *links]))
    depths = {f"S{at}": at for at in range(100)}
    usual = THRESHOLDS.path_cells
    fewer = usual * 8 // rows_at_once(100, depths, usual)
    assert rows_at_once(100, depths, fewer) == 8
    assert next(prices(plan, depths, fewer)) == 8 * next(prices(plan, depths, usual))


class _Nothing:
    """Instead of kernels: what they do is not counted here."""

    def feed(self, columns: Columns, prepared: object = None) -> Sequence[Relation]:
        return []


def _to_nothing(engine: Engine, content: object) -> None:
    engine.lane = _Nothing()  # type: ignore[assignment]


def test_small_batches_stay_event_by_event_as_long_as_they_are_little_work() -> None:
    """A batch costs kernels about a millisecond: alone it is done sooner, however many have come."""
    plan = compile_text("TYPE A (x INT) TYPE B (x INT) SUBSCRIPTION S MATCH A a AND B b WHERE a.x = b.x PER x")
    engine = Engine(plan, kernels_from=1_000)
    events: list[dict[str, Any]] = [{"type": "AB"[n % 2], "x": n // 2 % 7} for n in range(4_000)]
    for columns in read_events(events, plan.catalogue, batch_rows=4):
        engine.feed(columns)
    assert engine.lane is None
    assert engine.owed == 0
    for columns in read_events(events, plan.catalogue, batch_rows=4_000):
        moved = Columns(columns.types, columns.code_array, range(4_000, 8_000), columns.tables)
        engine.feed(moved)
    assert engine.lane is not None
