"""Deep hierarchies on kernels: a batch goes through them part by part, so memory grows with what is delivered, not with the
square of the depth; and what is delivered depends on no part."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.matching.thresholds import Thresholds
from fairlead.model.events.columns import Columns
from fairlead.model.plans.plan import Plan
from fairlead.transport.events import read_events
from tests.matching.equality.test_lanes import interpreted, shown
from tests.matching.equality.test_plans import compared, compiled
from tests.matching.generators.generated import Case
from tests.matching.generators.plans import plan_cases

__all__ = ["interpreted"]

CELLS = 1 << 19
COPIES = 4
"""Of the numbers of paths, while they are sorted and taken."""
RELATION_BYTES = 1_200
"""With the event that it derives, all its columns and their places."""


def chain(depth: int) -> Plan:
    links = (f"SUBSCRIPTION S{at} MATCH M{at - 1} m EMIT M{at} (x = m.x)" for at in range(1, depth))
    return compile_text("\n".join(["TYPE A (x INT)", "SUBSCRIPTION S0 MATCH A a EMIT M0 (x = a.x)", *links]))


def batch(plan: Plan, events: int) -> Columns:
    (columns,) = read_events([{"type": "A", "x": at} for at in range(events)], plan.catalogue, batch_rows=events)
    return columns


@pytest.mark.slow
def test_memory_grows_with_what_is_delivered() -> None:
    """In one piece, the paths of relations and events alone would take 5 numbers for each of them and each level."""
    depth, events = 120, 40
    plan = chain(depth)
    engine, columns = Engine(plan, kernels_from=0, thresholds=Thresholds(path_cells=CELLS)), batch(plan, events)
    engine.feed(batch(plan, 1))  # what is made once
    columns = Columns(columns.types, columns.code_array, range(1, events + 1), columns.tables)
    tracemalloc.start()
    try:
        found = engine.feed(columns)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == depth * events
    allowed = COPIES * 8 * CELLS + RELATION_BYTES * len(found)
    assert peak < allowed < 2 * len(found) * 5 * depth * 8, f"{peak:,} of {allowed:,}"


def test_a_deep_chain_delivers_what_it_delivers_event_by_event() -> None:
    plan = chain(60)
    fast = Engine(plan, kernels_from=0, thresholds=Thresholds(path_cells=CELLS // 4))
    plain = Engine(plan, kernels_from=None)
    columns = batch(plan, 25)
    found, expected = fast.feed(columns), plain.feed(columns)
    assert shown(list(found)) == shown(list(expected))
    assert fast.dump() == plain.dump()
    assert len(fast.lane.families) == 60  # type: ignore[union-attr]


@pytest.mark.slow
def test_nothing_depends_on_the_parts_of_a_batch() -> None:
    """Hierarchies, absences and overlapping types, a few rows at a time; the parts become larger and smaller on the way."""
    total: Counter[str] = Counter()

    @settings(max_examples=max(40, settings.default.max_examples * 2 // 5))
    @given(plan_cases(), st.sampled_from((7, 100)), st.sampled_from((1, 100, 400)))
    def holds(case: Case, rows: int, cells: int) -> None:
        total.update(compared(case, compiled(case.rules), rows, 0, Thresholds(path_cells=cells)))

    holds()
    assert min(total["on kernels"], total["levels"]) > 10, total
