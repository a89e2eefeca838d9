"""Equal content is equal bytes, whichever way a column was made."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.matching.state.canonical_columns import canonical
from fairlead.model.events.columns import ARROW, bits_of, taken_rows

VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=True)),
    (pa.string(), st.text(max_size=5)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(UTC))),
    (pa.duration("us"), st.integers(0, 10**15)),
    (pa.date32(), st.dates()),
    (pa.decimal128(12, 3), st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-3))),
    (pa.decimal256(45, 9), st.integers(-(10**44), 10**44).map(lambda n: Decimal(n).scaleb(-9))),
]


def written(column: pa.Array) -> bytes:
    """As state.py writes it: inside a table in a list."""
    table = pa.StructArray.from_buffers(pa.struct([("x", column.type)]), len(column), [None], children=[column])
    batch = pa.RecordBatch.from_arrays([pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), table)], names=["t"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def other_ways(values: list[Any], kind: pa.DataType, filler: Any) -> list[pa.Array]:
    """The same content as a slice, from pieces, by taking, and with other values where nothing is known."""
    plain = pa.array(values, type=kind)
    longer = pa.array([filler, *values, filler, None], type=kind)
    known = pa.array([value is not None for value in values], type=pa.bool_())
    filled = pa.array([filler if value is None else value for value in values], type=kind)
    pieces = pa.chunked_array([longer.slice(1, len(values) // 2), plain.slice(len(values) // 2)], type=kind)
    return [
        longer.slice(1, len(values)),
        pieces.combine_chunks() if isinstance(pieces.combine_chunks(), pa.Array) else plain,
        longer.take(pa.array(np.arange(1, len(values) + 1))),
        _masked(filled, known),
    ]


def _masked(filled: pa.Array, known: pa.Array) -> pa.Array:
    """What stands under a null is still there."""
    if len(filled) == 0:
        return filled
    bitmap = np.packbits(known.to_numpy(zero_copy_only=False), bitorder="little")
    bitmap[-1] |= (0xFF << (len(known) % 8)) & 0xFF if len(known) % 8 else 0  # bits beyond the end
    return pa.Array.from_buffers(filled.type, len(filled), [pa.py_buffer(bitmap), *filled.buffers()[1:]])


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "strategy"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_the_way_to_a_column_does_not_show(kind: pa.DataType, strategy: st.SearchStrategy[Any]) -> None:
    @given(st.lists(st.none() | strategy, max_size=20), strategy)
    def holds(values: list[Any], filler: Any) -> None:
        expected = canonical(pa.array(values, type=kind))
        assert repr(expected.to_pylist()) == repr(pa.array(values, type=kind).to_pylist())
        expected.validate(full=True)
        for column in other_ways(values, kind, filler):
            assert written(canonical(column)) == written(expected)

    holds()


def test_there_is_one_nan() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000123], dtype=np.uint64)
    made = canonical(pa.array(bits.view(np.float64)))
    assert np.frombuffer(made.buffers()[1], dtype=np.uint64).tolist() == [0x7FF8000000000000] * 3


def test_every_type_that_attributes_can_have_is_tried() -> None:
    assert set(ARROW.values()) <= {kind for kind, _ in VALUES}


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.int64(), pa.float64(), pa.timestamp("us", tz="UTC"), pa.duration("us"), pa.string()]
)
@pytest.mark.parametrize("spare", [0, 1, 3, 7, 12])
@pytest.mark.parametrize("offset", [0, 1])
def test_a_buffer_may_be_longer_than_its_values_and_end_in_the_middle_of_one(
    kind: pa.DataType, spare: int, offset: int
) -> None:
    """Arrow accepts it, so a state or a file may have it."""
    whole = pa.array([1, 2, 3], pa.int64()).cast(kind)
    longer = [None if each is None else pa.py_buffer(each.to_pybytes() + bytes(spare)) for each in whole.buffers()]
    column = pa.Array.from_buffers(kind, 3, longer).slice(offset)
    column.validate(full=True)
    assert written(canonical(column)) == written(canonical(whole.slice(offset)))
    assert taken_rows(column, np.array([1, 0])).equals(whole.slice(offset).take(pa.array([1, 0])))
    if kind != pa.string():
        assert bits_of(column).tolist() == bits_of(whole).tolist()[offset:]
