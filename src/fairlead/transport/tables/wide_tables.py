"""The fast path for wide tables: the rows by type, whole columns at once, accepting only values that are certainly valid.

Takes: the columns of a record batch, whose names are known to fit. Gives: the rows by type, or None if in doubt; then the
record check (record_check.py) reads them one by one. Never: raises for bad rows, knows positions, or keeps anything between
batches: a thread that reads ahead may call it.

Every cell is copied once, into the record batch of its type. `pa.array` and `pa.scalar` are avoided: their first call imports
pandas if it is installed, a quarter of a second. pyarrow.compute is avoided, too, if NumPy does as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fairlead.model.events.columns import Codes, Rows, bits_of, code_type, rows_by_code, taken_rows
from fairlead.transport.admission.bulk_check import STORED, Grouped, sized_batch
from fairlead.transport.admission.converters import DOUBTS
from fairlead.transport.admission.positions import positions_of_column
from fairlead.transport.admission.record_check import RecordShape, Shapes
from fairlead.transport.tables.casts import cast, plain

DICTIONARY_MAX = 1_000
"""Entries of a dictionary up to which they are looked up instead of the rows; a slice of a table contains the whole
dictionary."""


def by_type(columns: Mapping[str, pa.Array], rows: int, shapes: Shapes) -> Grouped | None:
    """The rows by type; None if in doubt. `type` may be a dictionary; all other columns are plain."""
    try:
        codes = _codes(columns.get("type"), rows, shapes)
        places = rows_by_code(codes, len(shapes.names))
        present = [shapes.by_code[code] for code in places]
        tables = {}
        for shape, at in zip(present, places.values(), strict=True):
            tables[shape.name] = _rows_of(columns, shape, None if len(present) == 1 else at, rows)
        _nothing_foreign(columns, rows, present, tables)
        known = {shape.name: at for shape, at in zip(present, places.values(), strict=True)}
        found = Grouped(codes, tables, _sources(columns.get("_source")), _sequences(columns.get("_sequence")), places=known)
        found.stored = _stored(columns.get("_stored"))
        if shapes.position_field is not None:
            found.positions = positions_of_column(columns[shapes.position_field])
            found.last = int(found.positions[-1])
        return found
    except DOUBTS:
        return None


def _codes(column: pa.Array | None, rows: int, shapes: Shapes) -> Codes:
    """The number of each row's type. Raises if a type is null or unknown."""
    narrow = code_type(len(shapes.names))
    if column is None:
        return np.full(rows, shapes.code_of[shapes.default or ""], dtype=narrow)
    if column.null_count:
        raise ValueError("null type")
    if is_.is_dictionary(column.type) and len(column.dictionary) <= DICTIONARY_MAX:
        names = _texts(plain(column.dictionary)).to_pylist()
        known = np.array([shapes.code_of.get(name, -1) for name in names], dtype=narrow)
        at = bits_of(column.indices)
        codes: Codes = known.take(at if at.itemsize == 8 else at.view(f"u{at.itemsize}"))
        if codes.min() < 0:  # else the dictionary only lists names that no row of this batch has
            raise ValueError("unknown type")
        return codes
    import pyarrow.compute as pc  # loading it takes a twentieth of a second

    found = pc.index_in(_texts(plain(column)), value_set=shapes.name_array)
    if found.null_count:
        raise ValueError("unknown type")
    return bits_of(found).astype(narrow)


def _texts(names: pa.Array) -> pa.Array:
    if not is_.is_string(names.type):  # Arrow would compare bytes with texts, the record check does not
        raise TypeError("not text")
    return names


def _rows_of(columns: Mapping[str, pa.Array], shape: RecordShape, at: Rows | None, rows: int) -> pa.RecordBatch:
    """The rows `at` (None: all) as the attributes of one type."""
    arrays = []
    for attribute in shape.attributes:
        column = columns[attribute.name]
        arrays.append(cast(column if at is None else taken_rows(column, at), attribute.type, allow_nan=shape.allow_nan))
    return sized_batch(arrays, shape, rows if at is None else len(at))


def _nothing_foreign(
    columns: Mapping[str, pa.Array], rows: int, present: Sequence[RecordShape], tables: Mapping[str, pa.RecordBatch]
) -> None:
    """A cell that is not an attribute of its row's type must be null: then a column has as many values as the types with this
    attribute read from it."""
    for name, column in columns.items():
        if all(name in shape.allowed for shape in present):
            continue
        taken = [tables[shape.name].column(shape.names.index(name)) for shape in present if name in shape.allowed]
        if rows - column.null_count != sum(len(each) - each.null_count for each in taken):
            raise ValueError("a value in a column of another type")


def _sources(column: pa.Array | None) -> list[str | None] | None:
    if column is None or column.null_count == len(column):
        return None
    if not is_.is_string(column.type):
        raise TypeError("not text")
    column.validate(full=True)
    return list(column.to_pylist())


def _stored(column: pa.Array | None) -> list[int | None] | None:
    if column is None or column.null_count == len(column):
        return None
    return list(cast(column, STORED, allow_nan=False).cast(pa.int64()).to_pylist())


def _sequences(column: pa.Array | None) -> list[int | None] | None:
    if column is None or column.null_count == len(column):
        return None
    if not is_.is_integer(column.type):
        raise TypeError("not integers")
    return list(column.cast(pa.int64()).to_pylist())
