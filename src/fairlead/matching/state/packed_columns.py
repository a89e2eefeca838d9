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
from fairlead.model.columns import ARROW
from fairlead.model.types import Kind

KINDS = {
    str(kind): kind
    for kind in (pa.int8(), pa.int16(), *(ARROW[each] for each in (Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.INTERVAL)))
}
WORTH = 128
"""Bytes that have to be saved: a field's metadata takes about a hundred."""
FIRST = 64
"""Numbers whose greatest common divisor is looked at before that of all: it is 1 for most columns."""
NAME = b"packed"


def packed(name: str, column: pa.Array) -> tuple[pa.Field, pa.Array]:
    plain = pa.field(name, column.type), column
    size, nulls = len(column), column.null_count
    if str(column.type) not in KINDS or nulls == size or size * column.type.bit_width // 8 < WORTH:
        return plain
    known = column.is_valid().to_numpy(zero_copy_only=False) if nulls else None
    values = column.drop_null().cast(pa.int64()).to_numpy() if nulls else column.cast(pa.int64()).to_numpy()
    low, high = int(values.min()), int(values.max())
    if high - low > np.iinfo(np.int64).max:
        return plain
    above, unit = values - low, 1
    width = _width(high - low)
    if width > 1:
        common = int(np.gcd.reduce(above[:FIRST]))
        common = int(np.gcd.reduce(above)) if common != 1 else 1
        if _width((high - low) // common) < width:
            unit = common
    width = max(_width((high - low) // unit), 1 if nulls else 0)
    if size * (column.type.bit_width // 8 - width) < WORTH:
        return plain
    field = pa.field(name, pa.null(), metadata={NAME: f"{column.type} {low} {unit}".encode()})
    if not width:
        return field, pa.nulls(size)
    numbers = np.zeros(size, dtype=f"i{width}")
    numbers[slice(None) if known is None else known] = above // unit if unit > 1 else above
    made = pa.array(numbers, mask=None if known is None else ~known)
    return field.with_type(made.type), made


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
    return pa.array(low + unit * numbers, mask=empty).cast(kind)


def _width(most: int) -> int:
    """Bytes of a signed number."""
    return 0 if not most else next(each for each in (1, 2, 4, 8) if most < 1 << (8 * each - 1))
