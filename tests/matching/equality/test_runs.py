"""Runs: the engine's matcher gives exactly the relations of the reference, in the same order, however it is fed and wherever it
is dumped and loaded."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.model.relations.relation import Relation
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.equality.test_equal_to_reference import events_of
from tests.matching.generators.generated import Case
from tests.matching.generators.runs import run_cases


def shown(relations: list[Relation]) -> list[Any]:
    return [(r.subscription, r.branch, r.positions, r.runs, str(r.completed_at), str(r.emitted_row), r.id) for r in relations]


@given(run_cases())
def test_patterns_with_runs_equal_the_reference(case: Case) -> None:
    plan = compile_text(case.rules)
    stream = events_of(plan, case)
    engine = Engine(plan)
    assert shown([each for event in stream for each in engine.arrive(event)]) == shown(ReferenceMatcher(plan).run(stream))


@given(run_cases(), st.data())
def test_a_state_with_runs_goes_on_wherever_it_is_loaded(case: Case, data: st.DataObject) -> None:
    plan = compile_text(case.rules)
    stream = events_of(plan, case)
    split = data.draw(st.integers(0, len(stream)))
    whole, first = Engine(plan), Engine(plan)
    expected = [each for event in stream for each in whole.arrive(event)]
    found = [each for event in stream[:split] for each in first.arrive(event)]
    second = Engine.load(plan, first.dump())
    assert second.dump() == first.dump()
    found += [each for event in stream[split:] for each in second.arrive(event)]
    assert shown(found) == shown(expected)
    assert second.dump() == whole.dump()


@given(run_cases(), st.integers(1, 24))
def test_batches_of_any_size_deliver_the_same(case: Case, size: int) -> None:
    plan = compile_text(case.rules)
    one = Engine(plan)
    expected = [each for event in events_of(plan, case) for each in one.arrive(event)]
    engine = Engine(plan, kernels_from=0)
    found = [each for columns in read_events(case.events, plan.catalogue, batch_rows=size) for each in engine.feed(columns)]
    assert shown(found) == shown(expected)
