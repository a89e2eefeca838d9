"""Values of tables in the shape that their readers expect, or an error with a code."""

from __future__ import annotations

import json
from typing import Any

import pytest

import fairlead
from fairlead.errors import StateError
from fairlead.transport.log.entry_values import DIGEST, NOTHING, entry_value, fits
from tests.transport.log.logs import run

SHAPE = {"a": int, "b?": [str], "c?": {str: (int, NOTHING)}, "d?": DIGEST}


@pytest.mark.parametrize(
    ("value", "good"),
    [
        ({"a": 1}, True),
        ({"a": 2**64 - 1, "more": []}, True),
        ({"a": 1, "b": [], "c": {"x": None, "y": 2}, "d": "0" * 32}, True),
        ({}, False),
        ({"a": True}, False),
        ({"a": 1.0}, False),
        ({"a": 2**64}, False),
        ({"a": 1, "b": "text"}, False),
        ({"a": 1, "b": [1]}, False),
        ({"a": 1, "b": ["\ud800"]}, False),
        ({"a": 1, "c": {"x": "y"}}, False),
        ({"a": 1, "d": "0" * 31}, False),
        ([], False),
        (None, False),
    ],
)
def test_a_value_has_the_shape_or_is_not_read(value: Any, good: bool) -> None:
    assert fits(value, SHAPE) is good
    if good:
        assert entry_value(json.dumps(value).encode(), SHAPE, "T", "k") == value
    else:
        with pytest.raises(StateError, match="S147 the entry 'k' of the table T is not readable"):
            entry_value(json.dumps(value).encode(), SHAPE, "T", "k")


@pytest.mark.parametrize("value", [b"", b"\xff", b"{", b"[" * 5000, b"NaN", b'{"name": "A"}', b"[]"])
@pytest.mark.parametrize("table", ["FL_TYPES", "FL_SUBS", "FL_TOPICS"])
def test_an_entry_that_is_not_readable_is_reported_with_its_table(table: str, value: bytes) -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare("TYPE A (k INT)")
            await fl.log.put(table, "main" if table == "FL_TOPICS" else "A", value)
            with pytest.raises(StateError, match=f"S147 the entry .* of the table {table} is not readable"):
                await (fl.types() if table == "FL_TYPES" else fl.retain(read=True))

    run(work)
