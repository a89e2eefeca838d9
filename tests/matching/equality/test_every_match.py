"""MATCHING ALL: rows that complete more relations than there is room for, and more than there may be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.errors import UnsupportedError
from fairlead.language import compile_text
from fairlead.matching.compiled.running import branch
from fairlead.model.events.values import microseconds
from fairlead.transport.events import read_events
from tests.matching.equality.test_lanes import shown
from tests.matching.generators.generated import Case, cases
from tests.matching.generators.options import DISPOSALS, EVERY, KEEPING, LEAVING


@pytest.fixture(autouse=True, scope="module")
def cramped() -> Any:
    """Kernels have room for the relations of one event and hardly any more, so most batches are handled in parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLEAD_JIT", "0")
        patch.setattr(branch, "EACH", 0)
        patch.setattr(branch, "ROOM", 1)
        yield


@given(st.sampled_from(EVERY), st.sampled_from((*DISPOSALS, *LEAVING, *KEEPING)), st.data(), st.integers(1, 12))
def test_a_batch_that_is_handled_in_parts_delivers_the_same(matching: str, disposal: str, data: Any, rows: int) -> None:
    case: Case = data.draw(cases((matching, disposal)))
    rules = (
        case.rules
        if "LIMIT" in case.rules
        else case.rules.replace(f"MATCHING {matching}", f"MATCHING {matching} LIMIT 3 PER EVENT")
    )
    plan = compile_text(rules)
    plain, fast = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    expected, found = [], []
    for columns in read_events(case.events, plan.catalogue, batch_rows=rows):
        expected += plain.feed(columns)
        found += fast.feed(columns)
    assert fast.dump() == plain.dump()
    until = None if case.until is None else microseconds(case.until)
    assert shown([*found, *fast.finish(until)]) == shown([*expected, *plain.finish(until)])


@pytest.mark.parametrize("kernels_from", [None, 0])
def test_more_relations_of_an_event_than_there_may_be_are_refused(
    kernels_from: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "1")
    rules = "TYPE A () TYPE B () SUBSCRIPTION S MATCH A a[2] AND B b MATCHING ALL"
    plan = compile_text(rules)
    few, many = ([{"type": "A"}] * count + [{"type": "B"}] for count in (400, 450))
    (columns,) = read_events(few, plan.catalogue)
    assert len(Engine(plan, kernels_from=kernels_from).feed(columns)) == 400 * 399 // 2
    (columns,) = read_events(many, plan.catalogue)
    with pytest.raises(UnsupportedError, match="LIMIT n PER EVENT") as refused:
        Engine(plan, kernels_from=kernels_from).feed(columns)
    assert refused.value.code == "U005"
    limited = compile_text(f"{rules} LIMIT 7 PER EVENT")
    (columns,) = read_events(many, limited.catalogue)
    assert len(Engine(limited, kernels_from=kernels_from).feed(columns)) == 7
