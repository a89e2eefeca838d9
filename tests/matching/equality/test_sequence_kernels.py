"""Sequences on kernels: the relations, ids and states of event-by-event matching, however batches are cut and wherever a state
is loaded, on either matcher."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.matching.compiled.planning.eligibility import has_slow_runs
from fairlead.matching.results.chunk import chunk_of_events
from fairlead.model.events.event import Event
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from tests.matching.equality.test_equal_to_reference import events_of
from tests.matching.equality.test_runs import shown
from tests.matching.equality.test_sequences import end_of
from tests.matching.generators.generated import Case
from tests.matching.generators.late_starts import late_cases
from tests.matching.generators.sequences import sequence_cases

FEW_CHECKED = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""Each is compiled with all checks, which takes a second or two."""


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels' text as Python: nothing is to be compiled."""
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    monkeypatch.setenv("FAIRLEAD_KERNELS", "checked")


def with_kernels(case: Case) -> Plan:
    plan = compile_text(case.rules)
    assume(not has_slow_runs(plan))
    return plan


def fed(engine: Engine, stream: Sequence[Event], size: int) -> list[Relation]:
    """In batches of so many events."""
    parts = [stream[low : low + size] for low in range(0, len(stream), size)]
    return [each for part in parts for each in engine.feed(chunk_of_events(part).columns)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence_cases() | late_cases(), st.sampled_from((1, 3, 100)), st.booleans())
def test_kernels_deliver_and_keep_what_event_by_event_matching_does(plain: None, case: Case, size: int, ever: bool) -> None:
    plan = with_kernels(case)
    stream, until = events_of(plan, case), end_of(case, ever)
    one, kernels = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    expected, found = [each for event in stream for each in one.arrive(event)], fed(kernels, stream, size)
    assert kernels.dump() == one.dump()
    if until is not None:
        expected, found = expected + one.finish(until), found + list(kernels.finish(until))
        assert kernels.dump() == one.dump()
    assert shown(found) == shown(expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence_cases() | late_cases(), st.data())
def test_a_state_goes_on_on_either_matcher(plain: None, case: Case, data: st.DataObject) -> None:
    plan = with_kernels(case)
    stream, until = events_of(plan, case), end_of(case)
    split = data.draw(st.integers(0, len(stream)))
    whole, first = Engine(plan, kernels_from=None), Engine(plan, kernels_from=data.draw(st.sampled_from((None, 0))))
    expected = fed(whole, stream, 100)
    found = fed(first, stream[:split], 100)
    second = Engine.load(plan, first.dump(), kernels_from=data.draw(st.sampled_from((None, 0))))
    assert second.dump() == first.dump()
    found += fed(second, stream[split:], 100)
    assert second.dump() == whole.dump()
    if until is not None:
        expected, found = expected + list(whole.finish(until)), found + list(second.finish(until))
    assert shown(found) == shown(expected)


@FEW_CHECKED
@given(sequence_cases())
def test_machine_code_with_checks_delivers_the_same(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    monkeypatch.setenv("FAIRLEAD_KERNELS", "checked")
    plan = with_kernels(case)
    stream, until = events_of(plan, case), end_of(case)
    one, kernels = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    expected, found = [each for event in stream for each in one.arrive(event)], fed(kernels, stream, 100)
    if until is not None:
        expected, found = expected + one.finish(until), found + list(kernels.finish(until))
    assert shown(found) == shown(expected)
