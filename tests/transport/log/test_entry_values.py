"""Values of tables in the shape that their readers expect, or an error with a code."""

from __future__ import annotations

import json
import random
import zlib
from typing import Any

import pytest

import fairlead
from fairlead.errors import StateError
from fairlead.transport.log.entry_values import (
    COMPRESSED,
    DECOMPRESSED_BYTES_MAX,
    DIGEST,
    LONG_BYTES,
    NOTHING,
    VALUES_MAX,
    entry_bytes,
    entry_value,
    fits,
    is_readable,
)
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


@pytest.mark.parametrize("size", [0, LONG_BYTES // 2, 2 * LONG_BYTES, 40 * LONG_BYTES])
def test_long_values_are_stored_in_less_and_read_as_they_were(size: int) -> None:
    value = {"a": 1, "b": ["SUBSCRIPTION S MATCH A a AND B b"] * (size // 35)}
    stored = entry_bytes(value)
    assert stored.startswith(COMPRESSED) is (size > LONG_BYTES)
    assert len(stored) <= LONG_BYTES
    assert entry_value(stored, SHAPE, "T", "k") == value


def test_damaged_and_huge_compressed_values_are_not_readable() -> None:
    good, rolls = entry_bytes({"a": 1, "b": ["x"] * LONG_BYTES}), random.Random(1)
    bomb = COMPRESSED + zlib.compress(b" " * (DECOMPRESSED_BYTES_MAX + 1) + b'{"a": 1}')
    cut = [good[:-1], good[: len(good) // 2], COMPRESSED, good + b"x", good + good]
    changed = [_changed(good, rolls.randrange(len(COMPRESSED), len(good)), rolls) for _ in range(200)]
    for each in (bomb, *cut, *changed):
        with pytest.raises(StateError, match="S147"):
            entry_value(each, SHAPE, "T", "k")


def _changed(value: bytes, at: int, rolls: random.Random) -> bytes:
    return value[:at] + bytes([value[at] ^ rolls.randrange(1, 256)]) + value[at + 1 :]


def compressed(plain: bytes) -> bytes:
    return COMPRESSED + zlib.compress(plain)


@pytest.mark.parametrize("part", [b"[],", b"{},", b"1,", b'"",'])
def test_an_entry_of_many_values_is_not_read(part: bytes) -> None:
    """A few kilobytes that would take gigabytes."""
    for count, read in ((VALUES_MAX // 4, True), (VALUES_MAX + 1, False)):
        told = compressed(b'{"a": 1, "x": [' + part * count + b"1]}")
        assert len(told) < 5_000
        assert is_readable(told, SHAPE) is read


@pytest.mark.parametrize("part", [b",", b"[", b'\\",', b"\\\\,"])
def test_commas_of_texts_are_no_values(part: bytes) -> None:
    text = part * (VALUES_MAX + 1)
    assert is_readable(compressed(b'{"a": 1, "x": "' + text + b'"}'), SHAPE)
    assert not is_readable(compressed(b'{"a": 1, "x": "' + text), SHAPE)
    assert not is_readable(compressed(b'{"a": 1, "x": "' + text + b'", "y": [' + b"1," * VALUES_MAX + b"1]}"), SHAPE)
