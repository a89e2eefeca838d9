"""Packed columns hold the same values in fewer bytes, or the column stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.matching.state.canonical_columns import canonical
from fairlead.matching.state.packed_columns import KINDS, WORTH, packed, unpacked
from fairlead.model.events.columns import of_numbers

MOMENT = pa.timestamp("us", "UTC")
INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from(tuple(KINDS.values())))
    low, high = (-(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1)
    base, unit = draw(st.integers(low, high)), draw(st.sampled_from((1, 1, 7, 1000, 2**21, 2**40)))
    steps = draw(st.lists(st.one_of(st.integers(-3, 200), st.integers(-(2**40), 2**40)), max_size=60))
    values: list[Any] = [min(max(base + unit * each, low), high) for each in steps]
    for at in draw(st.lists(st.integers(0, max(0, len(values) - 1)), max_size=4)) if values else ():
        values[at] = None
    return of_numbers(pa.array(values, pa.int64()), kind)


@given(columns(), st.integers(0, 5))
@example(pa.array([-(2**63), 2**63 - 1] * 40), 0)
@example(pa.array([None] * 40, pa.int64()), 0)
@example(pa.array([7, None] * 40, pa.int64()), 1)
def test_a_packed_column_is_unpacked_as_it_was(column: pa.Array, cut: int) -> None:
    field, made = packed("x", column)
    assert (field.name, field.type) == ("x", made.type)
    assert unpacked(field, canonical(made)).equals(column)
    assert made.type == column.type or len(column) * column.type.bit_width // 8 - made.nbytes >= WORTH - len(column)
    part = column.slice(cut)
    again, same = packed(
        "x", pa.array(part.to_pylist(), part.type) if part.type != pa.duration("us") else pa.concat_arrays([part])
    )
    assert (again, again.metadata) == ((one := packed("x", part))[0], one[0].metadata)
    assert canonical(same).equals(canonical(one[1]))


@pytest.mark.parametrize(
    ("values", "kind", "told", "stored"),
    [
        (np.arange(100) * 2**21 + 5, pa.int64(), b"int64 5 2097152", pa.int8()),
        (
            np.arange(1000) * 1000 + 10**15,
            pa.timestamp("us", "UTC"),
            b"timestamp[us, tz=UTC] 1000000000000000 1000",
            pa.int16(),
        ),
        (np.full(200, 1), pa.int8(), b"int8 1 1", pa.null()),
        (np.arange(300) + 70_000, pa.int32(), b"int32 70000 1", pa.int16()),
    ],
)
def test_the_form_of_a_packed_column(values: Any, kind: pa.DataType, told: bytes, stored: pa.DataType) -> None:
    """What a later release has to read."""
    field, made = packed("x", of_numbers(pa.array(values, pa.int64()), kind))
    assert (field.metadata, made.type) == ({b"packed": told}, stored)


@given(
    st.one_of(st.binary(max_size=12), st.builds("{} {} {}".format, st.sampled_from(tuple(KINDS)), INT64, INT64).map(str.encode))
)
@example(b"int64 9223372036854775807 1")
@example(b"int64 0 0")
@example(b"int32 2147483647 1")
@example(b"int64 0 -1")
def test_what_nobody_packed_is_refused_or_stays_in_range(told: bytes) -> None:
    column = pa.array([0, 1, 127, 5], pa.int8())
    try:
        made = unpacked(pa.field("x", column.type, metadata={b"packed": told}), column)
    except (ValueError, LookupError, ArithmeticError):
        return
    name, low, unit = told.decode().rsplit(" ", 2)
    assert made.cast(pa.int64()).to_pylist() == [int(low) + int(unit) * each for each in column.to_pylist()]
    assert str(made.type) == name
