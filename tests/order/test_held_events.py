"""Held events are those that the frontier has not passed, however they arrived; runs stay few."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fairlead.order.held_events import NOTHING_HELD, RUN_EVENTS, HeldEvents

STEPS = st.lists(st.tuples(st.sampled_from("AB"), st.lists(st.integers(0, 30), max_size=6), st.integers(0, 30)), max_size=12)


def arrived(held: HeldEvents, name: str, values: list[int]) -> HeldEvents:
    return held.with_arrivals(name, pa.table({"v": pa.array(values, pa.int64())}), np.array(values, dtype=np.int64))


@given(STEPS)
def test_what_the_frontier_has_passed_goes_and_the_rest_stays(steps: list[tuple[str, list[int], int]]) -> None:
    held, expected = NOTHING_HELD, list[tuple[str, int]]()
    for name, values, frontier in steps:
        held = arrived(held, name, values)
        expected += [(name, value) for value in values]
        before = held
        passed, held = held.cut(frontier)
        got = [(name, value) for name, table in passed.items() for value in table["v"].to_pylist()]
        assert sorted(got) == sorted(each for each in expected if each[1] < frontier)
        expected = [each for each in expected if each[1] >= frontier]
        kept = [(name, value) for name, table in held.tables() for value in table["v"].to_pylist()]
        assert sorted(kept) == sorted(expected)
        assert len(held) == len(expected)
        assert len(before) == len(expected) + len(got)  # a value: cutting left it as it was


def test_events_that_arrive_one_by_one_are_in_few_runs() -> None:
    held = NOTHING_HELD
    for value in range(2_000):
        held = arrived(held, "A", [value % 97])
    assert len(held.runs["A"]) <= 12
    assert sum(map(len, held.runs["A"])) == 2_000
    held = arrived(held, "A", [*range(RUN_EVENTS)])
    assert len(held) == 2_000 + RUN_EVENTS
