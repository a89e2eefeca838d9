"""Tables that are published are checked as a file would be: the short way for what is in no doubt changes nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine import compile
from fairlead.errors import DataError
from fairlead.runtime.live.publisher.event_check import EventCheck

CATALOGUE = compile(
    "TYPE A (n INT, d DOUBLE, s STRING, at TIMESTAMP, amount DECIMAL(6, 2)) TIME at SUBSCRIPTION S MATCH A a"
).catalogue
MOMENT = pa.timestamp("us", tz="UTC")
COLUMNS: dict[str, list[tuple[pa.DataType, st.SearchStrategy[Any]]]] = {
    "n": [
        (pa.int32(), st.none() | st.integers(-5, 5)),
        (pa.int64(), st.none() | st.integers(-5, 2**40)),
        (pa.float64(), st.floats(-3, 3)),
        (pa.string(), st.text(max_size=2)),
    ],
    "d": [(pa.float64(), st.none() | st.floats()), (pa.int32(), st.integers(-5, 5))],
    "s": [(pa.string(), st.none() | st.text(max_size=3)), (pa.large_string(), st.text(max_size=3)), (pa.int8(), st.just(1))],
    "at": [
        (pa.timestamp("us", tz="UTC"), st.integers(0, 10**9)),
        (pa.timestamp("us", tz="UTC"), st.none() | st.integers(0, 9)),
    ],
    "amount": [(pa.decimal128(6, 2), st.none() | st.decimals(-9, 9, places=2)), (pa.float64(), st.just(1.5))],
    "more": [(pa.int32(), st.none() | st.integers(0, 3))],
    "type": [(pa.string(), st.sampled_from(["A", "B"])), (pa.string(), st.just("A"))],
    "_source": [(pa.string(), st.just("s"))],
    "_sequence": [(pa.int64(), st.integers(0, 3))],
}
USUAL = ["n", "d", "s", "at", "amount"]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows, usual = draw(st.integers(1, 5)), draw(st.integers(0, 2)) > 0
    names = USUAL if usual else draw(st.lists(st.sampled_from([*COLUMNS]), unique=True, min_size=1))
    made = {}
    for name in names:
        kind, values = COLUMNS[name][0] if usual else draw(st.sampled_from(COLUMNS[name]))
        made[name] = pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), type=kind)
    table = pa.table(made)
    return pa.concat_tables([table, table]) if draw(st.booleans()) else table


def outcome(checking: EventCheck, table: Any) -> Any:
    try:
        found = checking.batches(table)
    except DataError as error:
        return str(error)
    return [each.schema for each in found][:1], repr([row for each in found for row in each.to_pylist()])


@given(table=tables())
def test_the_short_way_and_the_long_one_agree(table: pa.Table) -> None:
    checking = EventCheck(CATALOGUE["A"], frozenset())
    short = outcome(checking, table)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(EventCheck, "_undoubted", lambda self, events: [])
        assert outcome(EventCheck(CATALOGUE["A"], frozenset()), table) == short


def test_what_is_in_no_doubt_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlead.runtime.live.publisher import event_check as module

    monkeypatch.setattr(module, "read_events", None)
    table = pa.table({"x": pa.array([1, None, 3], pa.int32())})
    plain = EventCheck(compile("TYPE A (x INT) SUBSCRIPTION S MATCH A a").catalogue["A"], frozenset())
    for each in (table, table.to_batches()[0]):
        assert [found.to_pydict() for found in plain.batches(each)] == [{"x": [1, None, 3]}]
