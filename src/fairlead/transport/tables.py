"""Tables: pyarrow, pandas and polars become Columns, without a Python object for a row.

A table is wide: a `type` column and one column for every attribute of any type. A cell that is not an attribute of its
row's type must be null. `type` may be left out where only one type can be published.

Takes: a table in its order. Gives: Columns. Never: imports pandas or polars; it knows their frames by what they can do.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fairlead.errors import DataError
from fairlead.model.columns import Columns
from fairlead.model.types import INTEGER, Catalogue
from fairlead.transport.casts import cast, plain, values_of
from fairlead.transport.columnwise import Grouped, sized_batch
from fairlead.transport.converters import DOUBTS
from fairlead.transport.intake import Batch, Intake, OnBad
from fairlead.transport.problems import SPECIAL, Rejects, unknown_column
from fairlead.transport.sequences import LastSequences
from fairlead.transport.shapes import Shape, Shapes

TABLE_ROWS = 65_536
"""Rows a batch: large enough that per-batch work vanishes, small enough that a batch of 100-byte rows is 6 MB."""

EXACT_FLOAT_MAX = 2**53


def is_table(data: Any) -> bool:
    """Whether `read_table` takes it: pyarrow, pandas, polars, or anything that speaks Arrow's stream interface."""
    if isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)) or _is_pandas(data):
        return True
    return hasattr(data, "columns") and (hasattr(data, "to_arrow") or hasattr(data, "__arrow_c_stream__"))


def read_table(
    data: Any,
    catalogue: Catalogue,
    *,
    start: int = 0,
    batch_rows: int = TABLE_ROWS,
    allow_nan: bool = True,
    on_bad: OnBad = "stop",
    rejects: Rejects | None = None,
    last_sequences: LastSequences | None = None,
) -> Iterator[Columns]:
    """The table's rows as Columns, in order. Raises DataError with the row at the first bad one (or skips it)."""
    intake = Intake(catalogue, start, allow_nan, on_bad, rejects, last_sequences or LastSequences())
    for batch in record_batches(data, catalogue, batch_rows):
        yield take_rows(batch, intake)


def record_batches(data: Any, catalogue: Catalogue, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Any table as record batches of at most `batch_rows` rows, none empty."""
    if _is_pandas(data):
        data = _from_pandas(data, catalogue)
    elif not isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        data = data.to_arrow() if hasattr(data, "to_arrow") else pa.RecordBatchReader.from_stream(data)
    if isinstance(data, pa.Table):
        parts: Any = data.to_batches(max_chunksize=batch_rows)
    else:
        parts = [data] if isinstance(data, pa.RecordBatch) else data
    for part in parts:
        for offset in range(0, part.num_rows, batch_rows):
            yield part.slice(offset, batch_rows)


def take_rows(batch: pa.RecordBatch, intake: Intake, *, file: str | None = None, first_row: int = 0) -> Columns:
    """The Columns of one record batch. `file` and `first_row` say where it stands."""
    columns = _columns(batch, intake.typed, file)
    grouped = _vectorised(columns, batch.num_rows, intake.typed)
    if grouped is not None:
        return intake.admit(grouped, batch.num_rows)
    lines = range(first_row, first_row + batch.num_rows) if file is not None else None
    return intake.take(Batch(_records(columns, batch.num_rows, intake.typed), file, lines, unit="row"))


def _columns(batch: pa.RecordBatch, shapes: Shapes, file: str | None) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        place = f"{file}, column {name!r}" if file else f"column {name!r}"
        if name in columns:
            raise DataError("D015", f"the column '{name}' occurs twice", "name every column once", place)
        if name not in shapes.attribute_names and name not in SPECIAL:
            raise unknown_column(name, shapes.columns_known, place)
        columns[name] = plain(column)
    if "type" not in columns and shapes.default is None:
        fix = "add a column `type` that names each row's event type"
        raise DataError("D014", "the table has no `type` column", fix, file or "table")
    return columns


def _vectorised(columns: Mapping[str, pa.Array], rows: int, shapes: Shapes) -> Grouped | None:
    """The rows by type; None in doubt."""
    try:
        if "type" in columns:
            found = pc.index_in(columns["type"], value_set=pa.array(shapes.names))
            if found.null_count:
                return None
            present = pc.unique(found).to_pylist()
        else:
            code = shapes.code_of[shapes.default or ""]
            found, present = pa.repeat(pa.scalar(code, pa.int32()), rows), [code]
        tables = {}
        for code in sorted(present):
            shape = shapes.by_code[code]
            at = None if len(present) == 1 else pc.indices_nonzero(pc.equal(found, code))
            tables[shape.name] = _rows_of(columns, shape, at, rows)
        return Grouped(_integers(found), tables, _sources(columns.get("_source")), _sequences(columns.get("_sequence")))
    except DOUBTS:
        return None


def _rows_of(columns: Mapping[str, pa.Array], shape: Shape, at: pa.Array | None, rows: int) -> pa.RecordBatch:
    """The rows `at` as the attributes of one type; all other cells must be null."""
    count = rows if at is None else len(at)
    for name, column in columns.items():
        if name in shape.allowed or column.null_count == rows:
            continue
        if (column if at is None else column.take(at)).null_count != count:
            raise ValueError("a value in a column of another type")
    arrays = []
    for attribute in shape.attributes:
        column = columns[attribute.name]
        arrays.append(cast(column if at is None else column.take(at), attribute.type, allow_nan=shape.allow_nan))
    return sized_batch(arrays, shape, count)


def _integers(codes: pa.Array) -> array[int]:
    """An int32 array without nulls as Python's own array: one copy of its bytes."""
    copied = array("i")
    copied.frombytes(memoryview(codes.buffers()[1])[4 * codes.offset : 4 * (codes.offset + len(codes))])
    return copied


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


def _records(columns: Mapping[str, pa.Array], rows: int, shapes: Shapes) -> list[dict[str, Any]]:
    """The rows as dicts for the judge, each with the cells of its type and whatever else is not null."""
    values = {name: values_of(column) for name, column in columns.items()}
    types = values.get("type", [shapes.default] * rows)
    nothing: frozenset[str] = frozenset()
    records = []
    for at in range(rows):
        shape = shapes.by_name.get(types[at]) if isinstance(types[at], str) else None
        keep = shape.allowed if shape is not None else nothing
        records.append({name: cells[at] for name, cells in values.items() if cells[at] is not None or name in keep})
    return records


def _is_pandas(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns")


def _from_pandas(frame: Any, catalogue: Catalogue) -> pa.Table:
    """pandas has no null among its floats: NaN is null here, and a column of integers that became floats only because a
    cell was missing becomes integers again."""
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError("D015", f"the column {twice!r} occurs twice", "name every column once", "table")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = "; ".join(str(each) for each in reversed(error.args))
        raise DataError("D004", f"the frame mixes data types: {reason}", "give every column one type", "table") from None
    whole = {a.name for each in catalogue for a in each.attributes if a.type.kind in INTEGER} | {"_sequence"}
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if field.name in whole and is_.is_floating(field.type) and column.null_count:
            largest = pc.max(pc.abs(column)).as_py()
            if largest is None or (largest <= EXACT_FLOAT_MAX and pc.all(pc.equal(column, pc.floor(column))).as_py()):
                table = table.set_column(at, field.name, column.cast(pa.int64()))
    return table
