"""The content of nested values: what distinguishes it, and that ties are broken by it."""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import Any

import pyarrow as pa

import fairlead
from fairlead.order.nested_bytes import nested_bytes

KIND = pa.list_(pa.struct({"a": pa.float64(), "b": pa.list_(pa.string())}))


def test_different_values_have_different_bytes() -> None:
    values: list[Any] = [
        None,
        [],
        [None],
        [None, None],
        [{"a": None, "b": None}],
        [{"a": None, "b": []}],
        [{"a": None, "b": [None]}],
        [{"a": None, "b": ["ab"]}],
        [{"a": None, "b": ["a", "b"]}],
        [{"a": None, "b": ["a"]}, {"a": None, "b": ["b"]}],
        [{"a": 0.0, "b": None}],
        [{"a": -0.0, "b": None}],
        [{"a": math.nan, "b": None}],
    ]
    found = nested_bytes(pa.array(values, KIND))
    assert all(one != other for one, other in combinations(found, 2))


def test_equal_values_have_equal_bytes_however_they_came() -> None:
    nan = pa.array([-math.nan, math.nan])
    structs = pa.StructArray.from_arrays([nan, pa.nulls(2, pa.list_(pa.string()))], fields=list(KIND.value_type))
    one, other = nested_bytes(pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), structs))
    assert one == other
    whole = pa.array([["x"], ["a"], None, ["b", None]])
    assert nested_bytes(whole.slice(1)) == nested_bytes(pa.array([["a"], None, ["b", None]]))
    small, large = pa.array([[1]], pa.list_(pa.int32())), pa.array([[1]], pa.list_(pa.int64()))
    assert nested_bytes(small) == nested_bytes(large)


def test_a_field_that_is_added_and_null_changes_nothing() -> None:
    before = pa.array([{"b": 1, "a": "x"}], pa.struct({"b": pa.int32(), "a": pa.string()}))
    after = pa.array([{"a": "x", "new": None, "b": 1}], pa.struct({"a": pa.string(), "new": pa.int64(), "b": pa.int32()}))
    assert nested_bytes(before) == nested_bytes(after)


def test_events_that_differ_inside_have_one_order_however_they_arrive() -> None:
    plan = fairlead.compile("""
        TYPE A (s STRUCT<x: INT, y: ARRAY<DOUBLE>>, at TIMESTAMP) TIME at
        ORDER BY at
        SUBSCRIPTION S MATCH A a THEN A b EMIT D (a = a.s, b = b.s)""")
    structs: list[Any] = [{"x": 1, "y": [1.0]}, {"x": 1, "y": [None]}, None, {"x": None, "y": None}]
    found = {
        tuple((each.id, str(each.emitted)) for each in fairlead.match(plan, [{"type": "A", "s": s, "at": 0} for s in mine]))
        for mine in permutations(structs)
    }
    assert len(found) == 1
    assert len(next(iter(found))) == 2
