"""Kernels and event-by-event matching give the same deliveries and the same state, whenever an engine changes lanes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.model.relation import Relation
from fairlead.transport.events import read_events
from tests.match.generated import Case, cases


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Any:
    """The generated source runs as plain Python here: compiling hundreds of kernels would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLEAD_JIT", "0")
        yield


def shown(relations: list[Relation]) -> list[Any]:
    return [(r.subscription, r.branch, r.positions, str(r.completed_at), str(r.emitted_row), r.id) for r in relations]


@given(cases(), st.integers(1, 6), st.integers(0, 12))
def test_an_engine_that_changes_lanes_delivers_what_one_without_kernels_delivers(case: Case, rows: int, change: int) -> None:
    plan = compile_text(case.rules)
    plain, fast = Engine(plan, kernels_from=None), Engine(plan, kernels_from=change)
    expected: list[Relation] = []
    found: list[Relation] = []
    for columns in read_events(case.events, plan.catalogue, batch_rows=rows):
        expected += plain.feed(columns)
        found += fast.feed(columns)
    event(f"kernels: {0 if fast.lane is None else len(fast.lane.families)}")
    assert shown(found) == shown(expected)
    assert fast.dump() == plain.dump()
    reloaded = Engine.load(plan, fast.dump())
    assert reloaded.dump() == plain.dump()


@given(cases())
def test_ids_and_names_need_no_events_and_agree_with_the_relations(case: Case) -> None:
    plan = compile_text(case.rules)
    fast = Engine(plan, kernels_from=0)
    for columns in read_events(case.events, plan.catalogue):
        relations = fast.feed(columns)
        if fast.lane is not None:
            ids, counts = relations.ids(), relations.counts()  # type: ignore[attr-defined]
            assert [r.id for r in relations] == ids
            assert Counter(r.subscription for r in relations) == counts


def test_types_without_attributes_run_on_kernels_too() -> None:
    plan = compile_text("TYPE Tick () TYPE Tock (x INT) SUBSCRIPTION S MATCH Tick a AND Tock b[2] DISPOSAL FIRST PREFIX")
    events: list[dict[str, Any]] = [{"type": "Tick"} if n % 3 else {"type": "Tock", "x": n} for n in range(40)]
    fast, plain = Engine(plan, kernels_from=0), Engine(plan, kernels_from=None)
    found: list[Relation] = []
    for columns in read_events(events, plan.catalogue, batch_rows=7):
        found += fast.feed(columns)
        plain.feed(columns)
        assert fast.dump() == plain.dump()
    assert len(found) == 13  # of fourteen, every two neighbours
