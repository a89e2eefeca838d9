"""Tables: pyarrow, pandas and polars become Columns, without a Python object per row.

A table is wide: a `type` column and one column for every attribute of any type. A cell that is not an attribute of its row's
type must be null. `type` may be omitted if only one type can be published.

Takes: a table in its order. Gives: Columns. Never: imports pandas or polars; it recognizes their frames by their interface.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fairlead.dataclass import dataclass
from fairlead.errors import DataError
from fairlead.model.events.columns import DECIMAL256_DIGITS, Columns
from fairlead.model.events.types import INTEGER, Catalogue
from fairlead.model.events.values import brief
from fairlead.transport.admission.bulk_check import Grouped
from fairlead.transport.admission.gate import Intake, OnBad, RawRecords
from fairlead.transport.admission.positions import no_column
from fairlead.transport.admission.problems import Rejects, quoted, unknown_column
from fairlead.transport.admission.record_check import Shapes
from fairlead.transport.admission.sequences import LastSequences
from fairlead.transport.tables.casts import plain, require_sound, values_of
from fairlead.transport.tables.wide_tables import by_type

TABLE_ROWS = 131_072
"""Rows per batch: large enough that per-batch work vanishes, small enough that a batch of 100-byte rows is 13 MB."""

EXACT_FLOAT_MAX = 2**53
NUMPY_TIMES = (np.datetime64, np.timedelta64)


def is_table(data: Any) -> bool:
    """Whether `read_table` accepts it: pyarrow, pandas, polars, or any object with Arrow's stream interface."""
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
    position: str | None = None,
) -> Iterator[Columns]:
    """The table's rows as Columns, in order. Raises DataError with the row at the first bad one (or skips it). `position`: the
    column with the positions; without it they count from `start`."""
    intake = Intake(catalogue, start, allow_nan, on_bad, rejects, last_sequences or LastSequences(), position)
    for batch in record_batches(data, catalogue, batch_rows, position):
        yield take_rows(examined(batch, intake.typed), intake)


def record_batches(data: Any, catalogue: Catalogue, batch_rows: int, position: str | None = None) -> Iterator[pa.RecordBatch]:
    """Any table as record batches of at most `batch_rows` rows, none empty. Raises DataError if a column is damaged."""
    if _is_pandas(data):
        data = _from_pandas(data, catalogue, position)
    elif not isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        data = _from_frame(data)
    if isinstance(data, pa.Table):
        parts: Any = data.to_batches(max_chunksize=batch_rows)
    else:
        parts = [data] if isinstance(data, pa.RecordBatch) else data
    for part in parts:
        for offset in range(0, part.num_rows, batch_rows):
            batch = part.slice(offset, batch_rows)
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                require_sound(column, name)
            yield batch


@dataclass(frozen=True)
class TablePart:
    """A record batch, checked as far as that depends on no earlier batch. `grouped` is None if in doubt; the columns are needed
    only then, or if its positions may not continue after those before."""

    columns: Mapping[str, pa.Array]
    rows: int
    shapes: Shapes
    grouped: Grouped | None


def examined(batch: pa.RecordBatch, shapes: Shapes, file: str | None = None) -> TablePart:
    """The pure half of reading a record batch. Raises DataError if its columns do not fit the types."""
    columns = _columns(batch, shapes, file)
    grouped = by_type(columns, batch.num_rows, shapes)
    done_with = grouped is not None and shapes.position_field is None
    return TablePart({} if done_with else columns, batch.num_rows, shapes, grouped)


def take_rows(part: TablePart, intake: Intake, *, file: str | None = None, first_row: int = 0) -> Columns:
    """The other half: positions, repeats and errors. `file` and `first_row`: the place of the rows."""
    if part.grouped is not None and intake.goes_on(part.grouped):
        return intake.admit(part.grouped, part.rows)
    lines = range(first_row, first_row + part.rows) if file is not None else None
    return intake.take(RawRecords(_records(part.columns, part.rows, part.shapes), file, lines, unit="row"), part.shapes)


def _columns(batch: pa.RecordBatch, shapes: Shapes, file: str | None) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    if shapes.position_field is not None and shapes.position_field not in batch.schema.names:
        raise no_column(shapes.position_field, batch.schema.names, file or "table")
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        place = f"{file}, column {name!r}" if file else f"column {name!r}"
        if name in columns:
            raise DataError("D015", f"the column '{name}' occurs twice", "name every column once", place)
        if name not in shapes.attribute_names and name not in shapes.special:
            raise unknown_column(name, shapes.columns_known, place)
        if isinstance(column.type, pa.BaseExtensionType) and column.type.extension_name == "pandas.period":
            fix = f"use instants: frame[{name!r}].dt.to_timestamp()"
            raise DataError("D004", "a period has no meaning as a number: its unit is not that of a time", fix, place)
        columns[name] = column if name == "type" else plain(column)
    if "type" not in columns and shapes.default is None:
        fix = "add a column `type` that names each row's event type"
        raise DataError("D014", "the table has no `type` column", fix, file or "table")
    return columns


def _records(columns: Mapping[str, pa.Array], rows: int, shapes: Shapes) -> list[dict[str, Any]]:
    """The rows as dicts for the record check, each with the cells of its type and whatever else is not null."""
    values = {name: values_of(plain(column)) for name, column in columns.items()}
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


def _from_frame(frame: Any) -> pa.Table | pa.RecordBatchReader:
    """Tables of polars and other libraries with Arrow's interface. Some polars types have no Arrow equivalent: 128 bits, Python
    objects."""
    try:
        return frame.to_arrow() if hasattr(frame, "to_arrow") else pa.RecordBatchReader.from_stream(frame)
    except Exception as error:
        raise _not_arrow(error) from None


def _not_arrow(error: Exception) -> DataError:
    reason = "; ".join(brief(each, 200) if not isinstance(each, str) else each[:200] for each in reversed(error.args))
    return DataError("D004", f"the frame mixes data types: {reason}", "give every column one type", "table")


def _not_for_arrow(frame: Any) -> None:
    """Raises for columns of objects that have no Arrow equivalent and break Arrow's conversion: it would convert
    Decimal('1E+999999') among timestamps to an integer, for minutes; it crashes on np.datetime64 beside other NumPy scalars."""
    for name, kind in frame.dtypes.items():
        if kind.kind != "O":
            continue
        values = frame[name].array
        kinds = set(map(type, values))
        if (int in kinds and any(type(each) is int and each.bit_length() > 64 for each in values)) or (
            Decimal in kinds and any(type(each) is Decimal and abs(each.adjusted()) > DECIMAL256_DIGITS for each in values)
        ):
            fix = "filter such rows out, or write the numbers as text"
            raise DataError("D004", f"the column {quoted(name)} has a number that fits no data type", fix, "table")
        if not kinds.isdisjoint(NUMPY_TIMES) and len(kinds - {type(None)}) > 1:
            raise DataError("D004", f"the column {quoted(name)} mixes data types", "give every column one type", "table")


def _from_pandas(frame: Any, catalogue: Catalogue, position: str | None) -> pa.Table:
    """pandas has no null among its floats: NaN is null here, and a column of integers that became floats only because a
    cell was missing becomes integers again."""
    import pyarrow.compute as pc

    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError("D015", f"the column {twice!r} occurs twice", "name every column once", "table")
    _not_for_arrow(frame)
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except Exception as error:  # errors of the objects in its columns
        raise _not_arrow(error) from None
    whole = {a.name for each in catalogue for a in each.attributes if a.type.kind in INTEGER} | {"_sequence", position}
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if field.name in whole and is_.is_floating(field.type) and column.null_count:
            numbers = column.cast(pa.float64())
            largest = pc.max(pc.abs(numbers)).as_py()
            if largest is None or (largest <= EXACT_FLOAT_MAX and pc.all(pc.equal(numbers, pc.floor(numbers))).as_py()):
                table = table.set_column(at, field.name, numbers.cast(pa.int64()))
    return table
