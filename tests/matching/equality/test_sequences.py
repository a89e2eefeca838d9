"""Sequences: the engine's matcher gives exactly the relations of the reference, in the same order, however it is fed and
wherever it is dumped and loaded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.model.events.values import TIMESTAMP_RANGE, microseconds
from fairlead.runtime.why import why
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.equality.test_equal_to_reference import events_of
from tests.matching.equality.test_runs import shown
from tests.matching.generators.generated import Case
from tests.matching.generators.late_starts import late_cases
from tests.matching.generators.sequences import sequence_cases


def end_of(case: Case, ever: bool = False) -> int | None:
    """The time up to which there is nothing more; `ever`: nothing follows at all."""
    return TIMESTAMP_RANGE[1] if ever else None if case.until is None else microseconds(case.until)


@given(sequence_cases(), st.booleans())
def test_sequences_equal_the_reference(case: Case, ever: bool) -> None:
    plan = compile_text(case.rules)
    stream, until = events_of(plan, case), end_of(case, ever)
    engine = Engine(plan)
    found = [each for event in stream for each in engine.arrive(event)]
    found += engine.finish(until) if until is not None else []
    assert shown(found) == shown(ReferenceMatcher(plan).run(stream, until))


@given(late_cases())
def test_starts_that_fail_late_equal_the_reference(case: Case) -> None:
    plan = compile_text(case.rules)
    stream = events_of(plan, case)
    engine = Engine(plan)
    found = [each for event in stream for each in engine.arrive(event)] + engine.finish(TIMESTAMP_RANGE[1])
    assert shown(found) == shown(ReferenceMatcher(plan).run(stream, TIMESTAMP_RANGE[1]))


@given(sequence_cases(), st.data())
def test_a_state_with_sequences_goes_on_wherever_it_is_loaded(case: Case, data: st.DataObject) -> None:
    plan = compile_text(case.rules)
    stream, until = events_of(plan, case), end_of(case)
    split = data.draw(st.integers(0, len(stream)))
    whole, first = Engine(plan), Engine(plan)
    expected = [each for event in stream for each in whole.arrive(event)]
    found = [each for event in stream[:split] for each in first.arrive(event)]
    second = Engine.load(plan, first.dump())
    assert second.dump() == first.dump()
    found += [each for event in stream[split:] for each in second.arrive(event)]
    assert second.dump() == whole.dump()
    if until is not None:
        expected, found = expected + whole.finish(until), found + second.finish(until)
        assert second.dump() == whole.dump()
    assert shown(found) == shown(expected)


@given(sequence_cases(), st.data())
def test_why_says_matched_of_members_and_of_no_other_event(case: Case, data: st.DataObject) -> None:
    plan = compile_text(case.rules)
    batches = [*read_events(case.events, plan.catalogue)]
    if not case.events:
        return
    engine = Engine(plan)
    relations = [each for columns in batches for each in engine.feed(columns)]
    at = data.draw(st.integers(0, len(case.events) - 1))
    for finding in why(plan, batches, at):
        own = [each for each in relations if (each.subscription, each.branch) == (finding.subscription, finding.branch)]
        assert (finding.verdict == "matched") == any(at in each.positions for each in own), finding


@given(sequence_cases(), st.integers(1, 22))
def test_batches_of_any_size_deliver_the_same(case: Case, size: int) -> None:
    plan = compile_text(case.rules)
    one = Engine(plan)
    expected = [each for event in events_of(plan, case) for each in one.arrive(event)]
    engine = Engine(plan, kernels_from=0)
    found = [each for columns in read_events(case.events, plan.catalogue, batch_rows=size) for each in engine.feed(columns)]
    assert shown(found) == shown(expected)
