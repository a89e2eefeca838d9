"""Kernels and event-by-event matching give the same deliveries and the same state, whenever an engine changes lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.matching.thresholds import Thresholds
from fairlead.model.events.values import microseconds
from fairlead.model.relations.relation import Relation
from fairlead.transport.events import read_events
from tests.matching.generators.generated import TYPES, Case, cases, events


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Any:
    """The generated source runs as plain Python here: compiling hundreds of kernels would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLEAD_JIT", "0")
        yield


def shown(relations: Sequence[Relation]) -> list[Any]:
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


@given(cases(), st.integers(1, 6), st.integers(0, 12), st.booleans())
def test_a_state_loaded_into_kernels_goes_on_as_if_nothing_had_happened(
    case: Case, rows: int, split: int, on_kernels: bool
) -> None:
    goes_on_from_kernels(case.rules, case.events, rows, split, on_kernels, case.until)


FAMILY = """
SUBSCRIPTION S{n} MATCH {pattern} WHERE {unary} AND {across} {options}"""


@pytest.mark.slow
@given(
    st.data(),
    st.integers(1, 6),
    st.integers(0, 12),
    st.booleans(),
    st.sampled_from(("A a AND B b", "A a[2] AND B b", "A a THEN B b[2]")),
    st.sampled_from(("a{1}.x < b{2}.x", "a{1}.x = b{2}.x", "b{2}.y >= a{1}.y", "a{1}.x != b{2}.x")),
    st.sampled_from(("", "PER k", "PER k, y", "WITHIN 3 SECONDS", "PER k WITHIN 4 SECONDS MATCHING RECENT DISPOSAL INFIX")),
)
def test_families_part_into_subscriptions_and_come_together_again(
    data: st.DataObject, rows: int, split: int, on_kernels: bool, pattern: str, across: str, options: str
) -> None:
    one, two = ("[1]" if f"{each}[2]" in pattern else "" for each in "ab")
    across = across.replace("{1}", one).replace("{2}", two)
    unary = [f"a{one}.x {sign}" for sign in ("> 0", "< 2", "= 1", "IN (1, 3)", ">= 2")]
    family = [FAMILY.format(n=n, pattern=pattern, unary=each, across=across, options=options) for n, each in enumerate(unary)]
    alone = "\nSUBSCRIPTION T MATCH (A a AND B b) OR (B b AND C c) WHERE a.x > 1 AND a.x < b.x PER k, y"
    goes_on_from_kernels("\n".join([TYPES, *family, alone]), data.draw(events(20)), rows, split, on_kernels, None)


def goes_on_from_kernels(
    rules: str, records: list[dict[str, Any]], rows: int, split: int, on_kernels: bool, until: datetime | None
) -> None:
    """Dumped after `split` batches by either matcher, loaded into kernels."""
    plan = compile_text(rules)
    plain, first = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0 if on_kernels else None)
    batches = list(read_events(records, plan.catalogue, batch_rows=rows))
    for columns in batches[:split]:
        plain.feed(columns)
        first.feed(columns)
    loaded = Engine.load(plan, first.dump(), thresholds=Thresholds(loaded_events=0))
    event(f"kernels: {0 if loaded.lane is None else len(loaded.lane.families)}")
    assert loaded.dump() == plain.dump()
    for columns in batches[split:]:
        assert shown(loaded.feed(columns)) == shown(plain.feed(columns))
        assert loaded.dump() == plain.dump()
    limit = None if until is None else microseconds(until)
    assert shown(loaded.finish(limit)) == shown(plain.finish(limit))
    assert loaded.dump() == plain.dump()


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
