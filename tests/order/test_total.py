"""The total order of arrivals is the sort of tuples that defines it, however the rows arrive."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.order.total import SEQUENCE, SOURCE, in_order, order_column
from tests.order.slow import row_key

START = datetime(2026, 1, 1, tzinfo=UTC)
FLOATS = st.sampled_from((0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), 1e-300, 2.0**60))
TEXTS = st.sampled_from(("", "a", "B", "b", "é", "\U0001f600", "\uffff"))
MOMENTS = st.integers(-2, 2).map(lambda step: START + timedelta(microseconds=step))
ORDERS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), st.sampled_from((-(2**63), -1, 0, 0, 1, 1, 2**62))),
    "double": (pa.float64(), FLOATS),
    "text": (pa.string(), TEXTS),
    "time": (pa.timestamp("us", tz="UTC"), MOMENTS),
    "date": (pa.date32(), st.sampled_from((date(2026, 1, 1), date(1969, 12, 31)))),
    "decimal": (pa.decimal128(10, 2), st.sampled_from((Decimal("1.50"), Decimal("-1.50"), Decimal("0.00")))),
    "boolean": (pa.bool_(), st.booleans()),
}
CONTENT: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    **{name: (kind, st.none() | values) for name, (kind, values) in ORDERS.items()},
    "double": (pa.float64(), st.none() | FLOATS | st.sampled_from((float("nan"), -float("nan")))),
    "small": (pa.int32(), st.none() | st.integers(-1, 1)),
    "bytes": (pa.binary(), st.none() | st.sampled_from((b"", b"a", b"\xff"))),
}
Row = tuple[str, tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]
"""Type, order columns, source and sequence, content."""


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[str], dict[str, list[str]], bool, list[Row]]:
    """Kinds of the order columns, kinds of each type's attributes, whether there are sources, and rows."""
    orders = draw(st.lists(st.sampled_from(sorted(ORDERS)), min_size=1, max_size=3))
    names = ("A", "a", "Heartbeat", "Z", "_rejected", "z")
    attributes = {name: draw(st.lists(st.sampled_from(sorted(CONTENT)), max_size=3)) for name in names}
    sourced = draw(st.booleans())
    rows = []
    for _ in range(draw(st.integers(0, 25))):
        name = draw(st.sampled_from(names))
        source = (draw(st.sampled_from((None, "s", "S"))), draw(st.sampled_from((None, 1, 2)))) if sourced else ()
        order = tuple(draw(ORDERS[each][1]) for each in orders)
        rows.append((name, order, source, tuple(draw(CONTENT[each][1]) for each in attributes[name])))
    return orders, attributes, sourced, rows


def arrivals_of(orders: list[str], attributes: dict[str, list[str]], sourced: bool, rows: list[Row], cuts: list[int]) -> Any:
    """Tables of chunks: the rows come in parts that end at `cuts`."""
    parts = [rows[low:high] for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    made: dict[str, pa.Table] = {}
    for name, kinds in attributes.items():
        fields = [(f"v{at}", CONTENT[kind][0]) for at, kind in enumerate(kinds)]
        fields += [(order_column(at), ORDERS[kind][0]) for at, kind in enumerate(orders)]
        fields += [(SOURCE, pa.string()), (SEQUENCE, pa.int64())] if sourced else []
        tables = []
        for part in parts:
            mine = [(*content, *order, *source) for kind, order, source, content in part if kind == name]
            arrays = [pa.array([row[at] for row in mine], field[1]) for at, field in enumerate(fields)]
            tables.append(pa.table(arrays, schema=pa.schema(fields)))
        made[name] = pa.concat_tables(tables)
    return made


def content_in_order(arrivals: dict[str, pa.Table], order: Any) -> list[str]:
    """Order columns with one zero: rows that differ in nothing else are interchangeable."""
    rows = {
        name: [
            repr([one + 0.0 if key[0] == "_" and type(one) is float else one for key, one in row.items()])
            for row in table.to_pylist()
        ]
        for name, table in arrivals.items()
    }
    return [f"{order.types[code]} {rows[order.types[code]][row]}" for code, row in zip(order.codes, order.rows, strict=True)]


@given(worlds(), st.randoms(use_true_random=False), st.data())
def test_the_order_is_that_of_the_tuples_and_independent_of_arrival(world: Any, random: Any, data: st.DataObject) -> None:
    orders, attributes, sourced, rows = world
    wanted = sorted(rows, key=lambda row: row_key(*row))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    given_in_order = arrivals_of(orders, attributes, sourced, wanted, [])
    found = in_order(given_in_order, len(orders))
    expected = content_in_order(given_in_order, found)
    names = [name for name, *_ in wanted]
    assert [found.types[code] for code in found.codes] == names
    for name in found.types:
        assert found.places[name].tolist() == [at for at, each in enumerate(names) if each == name]
        assert found.rows_of(name).tolist() == list(range(names.count(name)))
    keys = [row_key("", row[1], (), ()) for row in wanted]
    assert found.ties == sum(one == two for one, two in pairwise(keys))
    random.shuffle(rows)
    permuted = arrivals_of(orders, attributes, sourced, rows, cuts)
    again = in_order(permuted, len(orders))
    assert content_in_order(permuted, again) == expected
    assert again.ties == found.ties


def test_nothing_has_an_order() -> None:
    assert len(in_order({}, 1)) == 0
    empty = pa.table({"x": pa.array([], pa.int32()), order_column(0): pa.array([], pa.int64())})
    assert in_order({"A": empty}, 1).types == ()


def test_one_type_that_stands_in_order_is_left_alone() -> None:
    table = pa.table({order_column(0): pa.array([1, 1, 2])})
    assert in_order({"A": table}, 1).rows.tolist() == [0, 1, 2]


def test_heartbeats_stand_last_among_equals() -> None:
    table = pa.table({order_column(0): pa.array([1, 2])})
    found = in_order({"Heartbeat": table, "zoo": table, "Apple": table}, 1)
    assert [found.types[code] for code in found.codes] == ["Apple", "zoo", "Heartbeat"] * 2


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_rows_alike_in_everything_keep_their_numbers(rows: int) -> None:
    table = pa.table({"x": pa.array([None] * rows, pa.float64()), order_column(0): pa.array(np.zeros(rows, dtype=np.int64))})
    found = in_order({"A": table}, 1)
    assert sorted(found.rows.tolist()) == list(range(rows))
    assert found.ties == rows - 1
