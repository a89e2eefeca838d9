"""Lists whose ends are missing or lie beyond their values, which Arrow's full validation accepts where there are no lists.

A column of lists that has no rows may come without its ends (Arrow allows it, and writers in other languages do it), or with
one end that is anywhere. `flatten`, `concat_arrays`, `nbytes` and `offsets` read that end, and the process crashes. Such a
column can be inside one that has rows: `ARRAY<ARRAY<INT>>` with empty arrays only.

Takes: columns that are validated in full. Gives: equal ones that can be read in every way. Never: copies values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def sound_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch itself if nothing is wrong."""
    columns = [sound_lists(each) for each in batch.columns]
    if all(one is other for one, other in zip(columns, batch.columns, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def sound_lists(column: pa.Array) -> pa.Array:
    """The column itself if nothing is wrong."""
    kind = column.type
    if pa.types.is_struct(kind):
        return _struct(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(column)
    return column


def _struct(column: pa.Array) -> pa.Array:
    given = [column.field(at) for at in range(column.type.num_fields)]
    parts = [sound_lists(each) for each in given]
    if all(one is other for one, other in zip(parts, given, strict=True)):
        return column
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(column.type), mask=mask)


def _list(column: pa.Array) -> pa.Array:
    if not len(column):
        return column if _has_end(column) else pa.array([], column.type)
    given = column.values
    inside = sound_lists(given)
    if inside is given:
        return column
    known, ends = column.buffers()[:2]
    return pa.Array.from_buffers(column.type, len(column), [known, ends], column.null_count, column.offset, [inside])


def _has_end(column: pa.Array) -> bool:
    """Whether the one end of no lists is there, and within the values; and these are sound."""
    ends, width = column.buffers()[1], np.dtype(np.int64 if pa.types.is_large_list(column.type) else np.int32)
    if ends is None or ends.size < width.itemsize * (column.offset + 1):
        return False
    [end] = np.frombuffer(ends, width, 1, column.offset * width.itemsize).tolist()
    given = column.values
    return 0 <= end <= len(given) and sound_lists(given) is given
