"""An event that has one key by several attributes arrives once, in all its queues: on both matchers as in the reference."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.model.events.values import microseconds
from fairlead.model.relations.relation import Relation
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.equality.test_equal_to_reference import events_of
from tests.matching.equality.test_lanes import goes_on_from_kernels, interpreted, shown
from tests.matching.equality.test_plans import compiled
from tests.matching.generators.generated import Case
from tests.matching.generators.unlike_keys import unlike_keys

__all__ = ["interpreted"]


def compared(case: Case, rows: int, change: int) -> Counter[str]:
    plan, seen = compiled(case.rules), Counter[str]()
    stream, until = events_of(plan, case), (None if case.until is None else microseconds(case.until))
    expected = shown(ReferenceMatcher(plan).run(stream, until))
    plain, fast = Engine(plan, kernels_from=None), Engine(plan, kernels_from=change)
    by_event: list[Relation] = []
    by_kernel: list[Relation] = []
    for columns in read_events(case.events, plan.catalogue, batch_rows=rows):
        by_event += plain.feed(columns)
        by_kernel += fast.feed(columns)
        assert fast.dump() == plain.dump()
    by_event += plain.finish(until)
    by_kernel += fast.finish(until)
    assert shown(by_event) == expected
    assert shown(by_kernel) == shown(by_event)
    assert fast.dump() == plain.dump()
    for lane in () if fast.lane is None else (lane for family in fast.lane.families for lane in family.kernel.shape.lanes):
        seen["joined"] += bool(lane.joined)
    return seen + Counter(relations=len(expected))


@pytest.mark.slow
def test_both_matchers_equal_the_reference_where_overlapping_types_have_unlike_keys() -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=max(60, settings.default.max_examples))
    @given(unlike_keys(), st.integers(1, 7), st.integers(0, 8))
    def holds(case: Case, rows: int, change: int) -> None:
        total.update(compared(case, rows, change))

    holds()
    assert min(total["joined"], total["relations"]) > 20, total


@pytest.mark.slow
@given(unlike_keys(), st.integers(1, 6), st.integers(0, 12), st.booleans())
def test_a_state_with_unlike_keys_loaded_into_kernels_goes_on_as_if_nothing_had_happened(
    case: Case, rows: int, split: int, on_kernels: bool
) -> None:
    compiled(case.rules)
    goes_on_from_kernels(case.rules, case.events, rows, split, on_kernels, case.until)
