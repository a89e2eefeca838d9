"""Runs on kernels: the same relations, ids, places and states as event by event and as the reference, wherever batches end and
states are dumped and loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
from tests.matching.generators.generated import Case
from tests.matching.generators.runs import run_cases, valued_run_cases


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
