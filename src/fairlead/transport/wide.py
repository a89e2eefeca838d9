"""The fast way for wide tables: the rows by type, whole columns at once, accepting only what cannot be doubted.

Takes: the columns of a record batch, whose names are known to fit. Gives: the rows by type, or None at the slightest doubt;
then the judge (shapes.py) reads them one by one. Never: raises for bad rows, knows positions, or keeps anything between
batches: a thread that reads ahead may call it.

Every cell is copied once, into the record batch of its type. NumPy does it where it can (numbers without a null), since its
`take` needs half the time of Arrow's. `pa.array` and `pa.scalar` are avoided: their first call imports pandas where it is
installed, a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fairlead.model.columns import Codes, Rows, code_type, rows_by_code
from fairlead.transport.casts import cast, plain
from fairlead.transport.columnwise import Grouped, sized_batch
from fairlead.transport.converters import DOUBTS
from fairlead.transport.shapes import Shape, Shapes

WIDTHS: Mapping[int, type[np.generic]] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
DICTIONARY_MAX = 1_000
"""Names of a dictionary that are looked up instead of the rows; a slice of a table brings the whole dictionary along."""


def by_type(columns: Mapping[str, pa.Array], rows: int, shapes: Shapes) -> Grouped | None:
    """The rows by type; None in doubt. `type` may be a dictionary; all other columns are plain."""
    try:
        codes = _codes(columns.get("type"), rows, shapes)
        places = rows_by_code(codes, len(shapes.names))
        present = [shapes.by_code[code] for code in places]
        tables = {}
        for shape, at in zip(present, places.values(), strict=True):
            tables[shape.name] = _rows_of(columns, shape, None if len(present) == 1 else at, rows)
        _nothing_foreign(columns, rows, present, tables)
        known = {shape.name: at for shape, at in zip(present, places.values(), strict=True)}
        return Grouped(codes, tables, _sources(columns.get("_source")), _sequences(columns.get("_sequence")), places=known)
    except DOUBTS:
        return None


def _codes(column: pa.Array | None, rows: int, shapes: Shapes) -> Codes:
    """The number of each row's type. Raises where a type is null or unknown."""
    narrow = code_type(len(shapes.names))
    if column is None:
        return np.full(rows, shapes.code_of[shapes.default or ""], dtype=narrow)
    if column.null_count:
        raise ValueError("null type")
    if is_.is_dictionary(column.type) and len(column.dictionary) <= DICTIONARY_MAX:
        found = _found(plain(column.dictionary), shapes).to_pylist()
        known = np.array([-1 if code is None else code for code in found], dtype=narrow)
        at = _numbers(column.indices)
        codes: Codes = known.take(at if at.itemsize == 8 else at.view(f"u{at.itemsize}"))
        if codes.min() < 0:  # else the dictionary only lists names that no row of this batch has
            raise ValueError("unknown type")
        return codes
    found = _found(plain(column), shapes)
    if found.null_count:
        raise ValueError("unknown type")
    return _numbers(found).astype(narrow)


def _found(names: pa.Array, shapes: Shapes) -> pa.Array:
    """The codes of type names, null where unknown."""
    if not is_.is_string(names.type):  # Arrow would compare bytes with texts, the judge does not
        raise TypeError("not text")
    return pc.index_in(names, value_set=shapes.name_array)


def _rows_of(columns: Mapping[str, pa.Array], shape: Shape, at: Rows | None, rows: int) -> pa.RecordBatch:
    """The rows `at` (None: all) as the attributes of one type."""
    arrays = []
    for attribute in shape.attributes:
        column = columns[attribute.name]
        arrays.append(cast(column if at is None else _taken(column, at), attribute.type, allow_nan=shape.allow_nan))
    return sized_batch(arrays, shape, rows if at is None else len(at))


def _nothing_foreign(
    columns: Mapping[str, pa.Array], rows: int, present: Sequence[Shape], tables: Mapping[str, pa.RecordBatch]
) -> None:
    """A cell that is no attribute of its row's type must be null: then a column has as many values as the types that have it
    took from it."""
    for name, column in columns.items():
        if all(name in shape.allowed for shape in present):
            continue
        taken = [tables[shape.name].column(shape.names.index(name)) for shape in present if name in shape.allowed]
        if rows - column.null_count != sum(len(each) - each.null_count for each in taken):
            raise ValueError("a value in a column of another type")


def _taken(column: pa.Array, at: Rows) -> pa.Array:
    if column.null_count == 0 and is_.is_primitive(column.type) and column.type.bit_width in WIDTHS:
        return pa.Array.from_buffers(column.type, len(at), [None, pa.py_buffer(_numbers(column).take(at))])
    return column.take(pa.Array.from_buffers(pa.int64(), len(at), [None, pa.py_buffer(at)]))


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """The bytes of a column of fixed width as integers, without a copy; what stands at a null is undefined."""
    return np.frombuffer(column.buffers()[1], dtype=WIDTHS[column.type.bit_width])[column.offset : column.offset + len(column)]


def _sources(column: pa.Array | None) -> list[str | None] | None:
    if column is None or column.null_count == len(column):
        return None
    if not is_.is_string(column.type):
        raise TypeError("not text")
    column.validate(full=True)
    return list(column.to_pylist())


def _sequences(column: pa.Array | None) -> list[int | None] | None:
    if column is None or column.null_count == len(column):
        return None
    if not is_.is_integer(column.type):
        raise TypeError("not integers")
    return list(column.cast(pa.int64()).to_pylist())
