"""Folded runs: both lanes deliver what the definition does, and what the same rules deliver without FOLD, but for the members;
wherever batches end, and wherever states are dumped, loaded and change lanes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.matching.compiled.planning.eligibility import refusal_of
from fairlead.model.events.columns import Columns
from fairlead.model.relations.relation import Relation
from fairlead.runtime.embedded import until_microseconds
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.equality.test_equal_to_reference import events_of
from tests.matching.generators.folds import fold_cases, session_cases
from tests.matching.generators.generated import START, Case
from tests.matching.results.test_result_table import compared


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    """The generated source runs as plain Python here: compiling hundreds of kernels would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLEAD_JIT", "0")
        yield


def shown(relations: list[Relation]) -> list[Any]:
    return [(str(each.to_json()), str(each.completed_at), str(each.emitted_row)) for each in relations]


@given(fold_cases() | session_cases(), st.integers(0, 1 << 30))
def test_folded_runs_equal_the_reference_on_both_lanes(case: Case, seed: int) -> None:
    rng, plan = Random(seed), compile_text(case.rules)
    until = until_microseconds(case.until)
    expected = shown(ReferenceMatcher(plan).run(events_of(plan, case), until))
    batches = list(read_events(case.events, plan.catalogue, batch_rows=rng.choice((1, 3, 100))))
    dumps = []
    for lane in (None, 0):
        engine, found = Engine(plan, kernels_from=lane), list[Relation]()
        reloads = {rng.randrange(len(batches) + 1) for _ in range(2)}
        for at, columns in enumerate(batches):
            found += engine.feed(columns)
            if at in reloads:
                dumped = engine.dump()
                engine = Engine.load(plan, dumped, kernels_from=rng.choice((None, 0)))
                assert engine.dump() == dumped
        dumps.append(engine.dump())
        found += engine.finish(until)
        assert shown(found) == expected
    event(f"on a kernel: {refusal_of(plan, plan['S']) is None}")
    event(f"relations: {min(len(expected), 3)}")
    assert dumps[0] == dumps[1]


@given(fold_cases() | session_cases())
def test_ids_and_derived_events_are_those_without_fold(case: Case) -> None:
    folded, plain = compile_text(case.rules), compile_text(re.sub(r"FOLD \w", "", case.rules))
    (columns,) = read_events(case.events, plain.catalogue)
    found, whole = (delivered(Engine(plan), columns, case) for plan in (folded, plain))
    assert [each.id for each in found] == [each.id for each in whole]
    assert [str(each.emitted_row) for each in found] == [str(each.emitted_row) for each in whole]
    assert [each.runs for each in found] == [each.runs for each in whole]
    assert folded["S"].digest != plain["S"].digest
    for one, other in zip(found, whole, strict=True):
        if one.folded:
            (span,) = one.folded
            assert one.members == ()
            assert (span.first, span.last) == (other.members[0].position, other.members[-1].position)


def delivered(engine: Engine, columns: Columns, case: Case) -> list[Relation]:
    return [*engine.feed(columns), *engine.finish(until_microseconds(case.until))]


@given(fold_cases() | session_cases(), st.integers(1, 13))
def test_folded_runs_give_the_table_of_their_objects(case: Case, size: int) -> None:
    compared(compile_text(case.rules), case.events, size)


def test_aggregates_of_paths_are_folded() -> None:
    rules = """TYPE Q (k INT, n STRUCT<p: DECIMAL(10,2), q: STRUCT<z: STRING, i: BIGINT>>, at TIMESTAMP) TIME at
    SUBSCRIPTION S MATCH Q q+ HAVING count(DISTINCT q.n.q.z) >= 2 PER k FOLD q
    EMIT E (p = sum(q.n.p), a = avg(q.n.q.i), m = min(q.n.q.i), z = first(q.n.q.z), c = count(q.n.p))"""
    inner = ({"p": "1.25", "q": {"z": "a", "i": 5}}, None, {"p": "-3.50", "q": None}, {"p": None, "q": {"z": "b", "i": 2}})
    case = Case(rules, [{"type": "Q", "k": 1, "n": each, "at": START + timedelta(seconds=at)} for at, each in enumerate(inner)])
    plan = compile_text(rules)
    expected = shown(ReferenceMatcher(plan).run(events_of(plan, case), None))
    assert len(expected) == 1
    assert refusal_of(plan, plan["S"]) is None
    for lane in (None, 0):
        engine, found = Engine(plan, kernels_from=lane), list[Relation]()
        for columns in read_events(case.events, plan.catalogue, batch_rows=1):
            found += engine.feed(columns)
            engine = Engine.load(plan, engine.dump(), kernels_from=lane)
        assert shown(found) == expected
