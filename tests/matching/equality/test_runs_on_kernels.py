"""Runs on kernels: the same relations, ids, places and states as event by event and as the reference, wherever batches end and
states are dumped and loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.matching.compiled.planning.eligibility import refusal_of
from fairlead.matching.thresholds import Thresholds
from fairlead.model.relations.relation import Relation
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.marks import sample_size
from tests.matching.equality.test_equal_to_reference import events_of
from tests.matching.equality.test_runs import shown
from tests.matching.generators.generated import TYPES, Case, events
from tests.matching.generators.runs import run_cases, valued_run_cases
from tests.matching.results.test_result_table import compared


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    """The generated source runs as plain Python here: compiling hundreds of kernels would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLEAD_JIT", "0")
        yield


@given(run_cases() | valued_run_cases(), st.integers(1, 13))
def test_runs_on_kernels_equal_the_reference(case: Case, size: int) -> None:
    plan = compile_text(case.rules)
    expected = shown(ReferenceMatcher(plan).run(events_of(plan, case)))
    engine, plain = Engine(plan, kernels_from=0), Engine(plan, kernels_from=None)
    found: list[Relation] = []
    for columns in read_events(case.events, plan.catalogue, batch_rows=size):
        found += engine.feed(columns)
        plain.feed(columns)
        assert engine.dump() == plain.dump()
    event(f"on kernels: {engine.lane is not None}")
    event(f"relations: {min(len(found), 5)}")
    assert shown(found) == expected


@given(run_cases() | valued_run_cases(), st.integers(1, 6), st.integers(0, 12), st.booleans())
def test_a_state_with_runs_goes_on_in_kernels(case: Case, size: int, split: int, on_kernels: bool) -> None:
    plan = compile_text(case.rules)
    plain, first = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0 if on_kernels else None)
    batches = list(read_events(case.events, plan.catalogue, batch_rows=size))
    for columns in batches[:split]:
        plain.feed(columns)
        first.feed(columns)
    loaded = Engine.load(plan, first.dump(), thresholds=Thresholds(loaded_events=0))
    assert loaded.dump() == plain.dump()
    for columns in batches[split:]:
        assert shown(list(loaded.feed(columns))) == shown(list(plain.feed(columns)))
        assert loaded.dump() == plain.dump()


@given(run_cases() | valued_run_cases(), st.integers(1, 13))
def test_relations_with_runs_give_the_table_of_their_objects(case: Case, size: int) -> None:
    compared(compile_text(case.rules), case.events, size)


BRANCHES = """
SUBSCRIPTION S
MATCH (A a+) OR (B b THEN C c) OR (C c AND U u{,2})
HAVING count(a) >= 2
PER k
DISPOSAL FIRST PREFIX
LIMIT 7 PER KEY
EMIT E (k = 1)
SUBSCRIPTION T MATCH E e{2,} THEN A a PER k"""


@given(events(24), st.integers(1, 6))
def test_branches_with_and_without_runs_are_delivered_together(records: list[dict[str, Any]], size: int) -> None:
    rules = TYPES + BRANCHES
    plan = compile_text(rules)
    expected = shown(ReferenceMatcher(plan).run(events_of(plan, Case(rules, records))))
    engine = Engine(plan, kernels_from=0)
    found = [each for columns in read_events(records, plan.catalogue, batch_rows=size) for each in engine.feed(columns)]
    assert shown(found) == expected
    compared(plan, records, size)


def test_an_event_that_one_of_two_runs_refuses_may_be_in_the_other() -> None:
    """Both runs read one queue."""
    plan = compile_text(TYPES + "SUBSCRIPTION S MATCH A a+ THEN B b THEN A c{2,} WHERE a.x > b.x AND c.x < b.x")
    records = [
        {"type": name, "k": 0, "x": x, "y": None} for name, x in (("A", 5), ("A", 1), ("B", 3), ("A", 1), ("A", 7), ("A", 2))
    ]
    events = [each | {"at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n)} for n, each in enumerate(records)]
    engine = Engine(plan, kernels_from=0)
    found = [each for columns in read_events(events, plan.catalogue) for each in engine.feed(columns)]
    assert [(sorted(each.positions), each.runs) for each in found] == [([0, 2, 3, 5], (1, 2, 1))]


@pytest.mark.parametrize("least", [8, 9, 10, 1_000_000])
def test_events_that_need_a_long_run_before_them_leave_alike(least: int) -> None:
    """Which are in no later relation is asked in as many steps as the run is long, which are not written one by one."""
    plan = compile_text(TYPES + f"SUBSCRIPTION S MATCH A a{{{least},}} THEN (B b AND C c)")
    names = [name for round in range(4) for name in ("B", *"A" * (4 * round), "C", "B")]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    records = [{"type": name, "k": 0, "x": 1, "y": None, "at": start + timedelta(seconds=n)} for n, name in enumerate(names)]
    engine, plain = Engine(plan, kernels_from=0), Engine(plan, kernels_from=None)
    for columns in read_events(records, plan.catalogue, batch_rows=3):
        assert shown(list(engine.feed(columns))) == shown(list(plain.feed(columns)))
        assert engine.dump() == plain.dump()


def test_most_generated_runs_have_a_kernel() -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=sample_size(200), derandomize=True)
    @given(run_cases() | valued_run_cases())
    def count(case: Case) -> None:
        plan = compile_text(case.rules)
        for each in plan.subscriptions:
            refused: Any = refusal_of(plan, each)
            total["on a kernel" if refused is None else refused.reason] += 1

    count()
    assert total["on a kernel"] > 20 * (total.total() - total["on a kernel"]), total
