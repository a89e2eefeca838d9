"""Whole numbers and times in few bytes: as multiples of a unit above a base, if that saves room.

The field of a packed column has the metadata `packed`, with its type, base and unit, and holds numbers in as few bytes as hold
them all: a value is base + unit * number. If all are equal, the column is of Arrow's null type, which takes no room. Whether a
column is packed, and how, is a function of its values alone: equal content is equal bytes.

Takes: a column of a table. Gives: its field and how it is written; and back. Never: changes a value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fairlead.matching.state.canonical_columns import large
from fairlead.model.events.columns import ARROW, bits_of, number_array, of_numbers
from fairlead.model.events.types import Kind

COUNTS = (Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL)
KINDS = {str(kind): kind for kind in (pa.int8(), pa.int16(), *(ARROW[each] for each in COUNTS))}
WIDTHS = {kind: kind.bit_width // 8 for kind in KINDS.values()}
WORTH = 128
"""Bytes that have to be saved: a field's metadata takes about a hundred."""
FIRST = 64
"""Numbers whose greatest common divisor is looked at before that of all: it is 1 for most columns."""
NAME = b"packed"


def packed(name: str, column: pa.Array) -> tuple[pa.Field, pa.Array]:
    plain = pa.field(name, column.type), column
    size = len(column)
    if size * 8 < WORTH or column.type not in WIDTHS:
        return plain
    numbers, known = bits_of(column), None
    if column.null_count:
        known = column.is_valid().to_numpy(zero_copy_only=False)
        numbers = numbers[known]
    if not len(numbers):
        return plain
    low, high = int(numbers.min()), int(numbers.max())
    width, unit = _width(high - low), 1
    if width > 8:
        return plain
    above = numbers.astype(np.int64, copy=False) - low
    if width > 1:
        common = int(np.gcd.reduce(above[:FIRST]))
        common = common if common == 1 else int(np.gcd.reduce(above))
        if _width((high - low) // common) < width:
            unit, above = common, above // common
    width = max(_width((high - low) // unit), 0 if known is None else 1)
    if size * (WIDTHS[column.type] - width) < WORTH:
        return plain
    metadata = {NAME: f"{column.type} {low} {unit}".encode()}
    if not width:
        return pa.field(name, pa.null(), metadata=metadata), pa.nulls(size)
    made = above.astype(f"i{width}")
    if known is not None:
        made, above = np.zeros(size, dtype=made.dtype), made
        made[known] = above
    written = number_array(made) if known is None else pa.array(made, mask=~known)
    return pa.field(name, written.type, metadata=metadata), written


def unpacked(field: pa.Field, column: pa.Array) -> pa.Array:
    """Raises ValueError or LookupError where it was not `packed`."""
    told = (field.metadata or {}).get(NAME)
    if told is None:
        return column
    name, *rest = told.decode().rsplit(" ", 2)
    kind, (low, unit) = KINDS[name], map(int, rest)
    empty = column.is_null().to_numpy(zero_copy_only=False) if column.null_count and not pa.types.is_null(column.type) else None
    numbers = large(column.fill_null(0) if empty is not None else column)
    ends = [low + unit * int(each) for each in (numbers.min(), numbers.max())] if len(numbers) else [low]
    if not (unit > 0 and all(-(1 << 63) <= each < 1 << 63 for each in (low, unit, *ends))):
        raise ValueError("beyond 64 bits")
    values = low + unit * numbers
    return of_numbers(number_array(values) if empty is None else pa.array(values, mask=empty), kind)


def _width(most: int) -> int:
    """Bytes of a signed number."""
    return 0 if not most else next(each for each in (1, 2, 4, 8, 16) if most < 1 << (8 * each - 1))
