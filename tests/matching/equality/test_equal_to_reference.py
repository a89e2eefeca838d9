"""The engine's matcher gives exactly the relations of the reference matcher, in the same order, at the same places.

`make equal CASES=20000` runs this file over as many generated cases, spread over the sixteen combinations.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.model.events.event import Event
from fairlead.model.events.values import microseconds
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.generators.generated import Case, cases
from tests.matching.generators.options import DISPOSALS, EVERY, KEEPING, LEAVING, MATCHINGS

EACH = max(10, settings.default.max_examples // 16)


def shown(relations: list[Relation]) -> list[Any]:
    return [(r.subscription, r.branch, r.positions, str(r.completed_at), str(r.emitted_row), r.id) for r in relations]


def events_of(plan: Plan, case: Case) -> list[Event]:
    return [event for columns in read_events(case.events, plan.catalogue) for event in columns.events(plan.catalogue)]


@pytest.mark.sampled
@pytest.mark.parametrize("matching", [*MATCHINGS, *EVERY])
@pytest.mark.parametrize("disposal", [*DISPOSALS, *LEAVING, *KEEPING])
def test_each_combination_of_options_equals_the_reference(matching: str, disposal: str) -> None:
    @settings(max_examples=EACH)
    @given(cases((matching, disposal)))
    def holds(case: Case) -> None:
        plan = compile_text(case.rules)
        stream, until = events_of(plan, case), (None if case.until is None else microseconds(case.until))
        engine = Engine(plan)
        found = [relation for event in stream for relation in engine.arrive(event)] + engine.finish(until)
        expected = ReferenceMatcher(plan).run(stream, until)
        assert shown(found) == shown(expected)

    holds()


@given(cases(), st.data())
def test_a_dumped_and_loaded_engine_goes_on_as_if_nothing_had_happened(case: Case, data: st.DataObject) -> None:
    plan = compile_text(case.rules)
    stream, until = events_of(plan, case), (None if case.until is None else microseconds(case.until))
    split = data.draw(st.integers(0, len(stream)))
    whole, first = Engine(plan), Engine(plan)
    expected = [relation for event in stream for relation in whole.arrive(event)]
    found = [relation for event in stream[:split] for relation in first.arrive(event)]
    dumped = first.dump()
    second = Engine.load(plan, dumped)
    assert second.dump() == dumped
    found += [relation for event in stream[split:] for relation in second.arrive(event)]
    assert second.dump() == whole.dump()
    assert shown(found + second.finish(until)) == shown(expected + whole.finish(until))


def test_an_event_with_one_key_by_two_attributes_can_be_either_member() -> None:
    plan = compile_text(
        "TYPE B (k INT, j INT) TYPE C (k INT, j INT) EVENT UNION U = B + C SUBSCRIPTION S MATCH B b AND U u PER b.k = u.j"
    )
    case = Case(plan.text, [{"type": "B", "k": 0, "j": 0}] * 2, None)
    stream = events_of(plan, case)
    engine = Engine(plan, kernels_from=None)
    assert shown([each for event in stream for each in engine.arrive(event)]) == shown(ReferenceMatcher(plan).run(stream))
