"""The fast path for Python values: whole columns at once, accepting only values that are certainly valid.

Takes: a list of records. Gives: their columns by type, or None if in doubt; then the record check (record_check.py) reads the
records one by one. Never: raises for bad input; returns a value that the record check would not return.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.model.events.columns import Codes, Rows, record_batch
from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import INT_RANGE, plain_number
from fairlead.model.limits import LIMITS
from fairlead.transport.admission.converters import DOUBTS, NULL, column, only
from fairlead.transport.admission.positions import Positions, positions_of_values
from fairlead.transport.admission.record_check import VALUE_BYTES, RecordShape, Shapes, is_unicode

STORED = DataType(Kind.TIMESTAMP)


@dataclass
class Grouped:
    """Valid records by type, the result of both paths. `kept`: the indexes within the batch; None for all of them."""

    codes: Sequence[int] | Codes
    tables: dict[str, pa.RecordBatch]
    sources: list[str | None] | None = None
    sequences: list[int | None] | None = None
    stored: list[int | None] | None = None
    kept: list[int] | None = None
    places: Mapping[str, Rows] | None = None
    """The rows of each type, as in Columns, if they are known."""
    positions: Positions | None = None
    """Positions that the records contain."""
    last: int | None = None
    """The last position of all records, rejected ones included, if the records contain positions."""


def columnwise(records: list[Any], shapes: Shapes) -> Grouped | None:
    """The records as columns if every one is a plain dict with plain values; None if in doubt."""
    if set(map(type, records)) != {dict}:
        return None
    try:
        if shapes.default is None:
            codes = list(map(shapes.code_of.__getitem__, map(itemgetter("type"), records)))
        else:
            codes = [shapes.code_of[record.get("type", shapes.default)] for record in records]
        groups: dict[int, list[Any]] = {code: [] for code in set(codes)}
        if len(groups) == 1:
            groups = {codes[0]: records}
        else:
            for code, record in zip(codes, records, strict=True):
                groups[code].append(record)
        plain = [_exact_fields(groups[code], shapes.by_code[code]) for code in groups]
        tables = {shapes.names[code]: table(groups[code], shapes.by_code[code]) for code in sorted(groups)}
        grouped = Grouped(codes, tables)
        if not all(plain):
            grouped.sources = _sources(records)
            grouped.sequences = _sequences(records, shapes.text)
            grouped.stored = _stored(records, shapes.text)
        if shapes.position_field is not None:
            brought = positions_of_values(list(map(itemgetter(shapes.position_field), records)), text=shapes.text)
            grouped.positions, grouped.last = brought, int(brought[-1])
    except DOUBTS:
        return None
    return grouped


def table(rows: list[Any], shape: RecordShape) -> pa.RecordBatch:
    """The attribute columns of records of one type."""
    arrays = [
        column(list(map(itemgetter(each.name), rows)), each.type, allow_nan=shape.allow_nan, text=shape.text)
        for each in shape.attributes
    ]
    return sized_batch(arrays, shape, len(rows))


def sized_batch(arrays: list[pa.Array], shape: RecordShape, rows: int) -> pa.RecordBatch:
    """The arrays as a batch; raises if event times or sizes are in doubt."""
    if shape.time_index is not None and arrays[shape.time_index].null_count:
        raise ValueError("null event time")
    longest = 0
    for array in arrays:
        if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
            import pyarrow.compute as pc

            longest += pc.max(pc.binary_length(array)).as_py() or 0
        elif pa.types.is_nested(array.type):
            longest += int(_sizes(array).max(initial=0))
    if longest > LIMITS.event_bytes_max:
        raise ValueError("perhaps an oversized record")
    return record_batch(arrays, shape.schema, rows)


def _sizes(array: pa.Array) -> npt.NDArray[np.int64]:
    """The bytes of each value, as the record check counts them."""
    if pa.types.is_struct(array.type):
        parts = [VALUE_BYTES + _sizes(each) for each in array.flatten()]
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), sum(parts), 0)
    if pa.types.is_list(array.type):
        ends = array.offsets.to_numpy().astype(np.int64)
        low = int(ends[0])
        inside = array.values.slice(low, int(ends[-1]) - low)
        total = np.concatenate(([0], np.cumsum(VALUE_BYTES + _sizes(inside))))
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), np.diff(total[ends - low]), 0)
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        import pyarrow.compute as pc

        found: npt.NDArray[np.int64] = pc.binary_length(array).fill_null(0).to_numpy().astype(np.int64)
        return found
    return np.zeros(len(array), dtype=np.int64)


def _exact_fields(rows: list[Any], shape: RecordShape) -> bool:
    """True: every record has `type` and as many fields as the type has (and its position). False: some have `_source`,
    `_sequence` or `_stored`. Raises if a record has other fields. A missing attribute shows when the columns are read."""
    wanted = shape.fields
    if set(map(len, rows)) == {wanted + 1} and all("type" in row for row in rows):
        return True
    for row in rows:
        if len(row) != wanted + ("type" in row) + ("_source" in row) + ("_sequence" in row) + ("_stored" in row):
            raise ValueError("missing or extra fields")
    return False


def _sources(records: list[Any]) -> list[str | None] | None:
    values = [record.get("_source") for record in records]
    only(values, str, NULL)
    if not all(value is None or is_unicode(value) for value in values):
        raise ValueError("not Unicode")
    return values if any(value is not None for value in values) else None


def _stored(records: list[Any], text: bool) -> list[int | None] | None:
    values = [record.get("_stored") for record in records]
    if all(value is None for value in values):
        return None
    return list(column(values, STORED, allow_nan=False, text=text).cast(pa.int64()).to_pylist())


def _sequences(records: list[Any], text: bool) -> list[int | None] | None:
    values = [record.get("_sequence") for record in records]
    if text:
        values = [None if value is None else int(plain_number(value)) for value in values]
    only(values, int, NULL)
    present = [value for value in values if value is not None]
    low, high = INT_RANGE[Kind.BIGINT]
    if present and not (low <= min(present) and max(present) <= high):
        raise ValueError("out of range")
    return values if present else None
