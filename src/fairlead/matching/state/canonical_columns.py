"""Arrow columns in a canonical form: equal content is equal bytes, however it was made.

No slices, no spare room; a validity bitmap only if there are nulls; zeros at nulls, no elements in a list that is NULL, NULLs
in a struct that is, and one NaN.

Takes: a column of a type that attributes can have. Gives: an equal column. Never: changes a value (except -NaN).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def canonical(column: pa.Array) -> pa.Array:
    kind, size = column.type, len(column)
    if pa.types.is_null(kind):
        return pa.nulls(size)
    known, bitmap = None, None
    if column.null_count:
        known = column.is_valid().to_numpy(zero_copy_only=False)
        bitmap = _bits(known)
    if pa.types.is_struct(kind):
        return pa.Array.from_buffers(kind, size, [bitmap], children=[canonical(each) for each in column.flatten()])
    if pa.types.is_list(kind):
        return pa.Array.from_buffers(kind, size, [bitmap, _ends(column)], children=[canonical(column.flatten())])
    if pa.types.is_boolean(kind):
        values = (column.fill_null(False) if known is not None else column).to_numpy(zero_copy_only=False)
        return pa.Array.from_buffers(kind, size, [bitmap, _bits(values)])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        nothing = "" if pa.types.is_string(kind) else b""
        return _texts(column.fill_null(nothing) if known is not None else column, bitmap)
    return pa.Array.from_buffers(kind, size, [bitmap, pa.py_buffer(_plain(column, known))])


def small(values: npt.NDArray[np.int64]) -> pa.Array:
    """Integers in as few bytes as hold them all; if they are all 0, in none (`large` reads it)."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if low == high == 0:
        return pa.nulls(len(values))
    dtype = next(
        each for each in (np.int8, np.int16, np.int32, np.int64) if np.iinfo(each).min <= low and high <= np.iinfo(each).max
    )
    return pa.array(values.astype(dtype))


def large(column: pa.Array) -> npt.NDArray[np.int64]:
    """Integers that `small` made, or any other column of them."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.int64)
    if not pa.types.is_signed_integer(column.type):
        raise TypeError(f"{column.type} instead of integers")
    made: npt.NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return made


def _ends(column: pa.Array) -> pa.Buffer:
    """Where the lists end: those that are null have no elements."""
    lengths = np.diff(column.offsets.to_numpy())
    if column.null_count:
        lengths = lengths * column.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))


def _bits(values: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def _plain(column: pa.Array, known: npt.NDArray[np.bool_] | None) -> npt.NDArray[Any]:
    """Values of a fixed size."""
    width = column.type.bit_width // 8
    dtype = np.dtype(np.float64 if pa.types.is_floating(column.type) else f"V{width}")
    if not len(column):
        return np.zeros(0, dtype=dtype)
    values = np.frombuffer(column.buffers()[1], dtype=dtype, count=len(column), offset=column.offset * width)
    wrong = np.isnan(values) if dtype.kind == "f" else None
    if known is None and (wrong is None or not wrong.any()):
        return values
    values = values.copy()
    if wrong is not None:
        values[wrong] = np.nan
    if known is not None:
        values[~known] = np.zeros(1, dtype=dtype)
    return values


def _texts(column: pa.Array, bitmap: pa.Buffer | None) -> pa.Array:
    size, (_, ends, data) = len(column), column.buffers()
    places = np.zeros(1, np.int32)
    if size:
        places = np.frombuffer(ends, dtype=np.int32, count=size + 1, offset=4 * column.offset)
    low, high = int(places[0]), int(places[-1])
    data = pa.py_buffer(b"") if data is None or low == high else data.slice(low, high - low)
    return pa.Array.from_buffers(column.type, size, [bitmap, pa.py_buffer(places - np.int32(low)), data])
