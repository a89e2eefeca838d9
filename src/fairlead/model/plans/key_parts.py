"""The parts of a key of PER: attributes, and buckets of them.

PER user, bucket(at, 1 HOUR)    ("user", "bucket(at, 3600000000)")
PER address.zip                 ("address.zip",)

A part is a name: that of an attribute, that of a path in one, or one that says which bucket of these it is (no attribute has
such a name). A bucket is the beginning of the stretch of time in which the value lies; they are cut at multiples since 1970.

Gives: names, and the values that they stand for, of events and of columns. Never: knows a matcher.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.model.events.columns import column_inside
from fairlead.model.events.event import Event
from fairlead.model.events.types import PATH, DataType, EventType

_BUCKET = re.compile(r"bucket\(([\w.]+), (\d+)\)")


@dataclass(frozen=True)
class KeyPart:
    """`span_us`: of a bucket."""

    attribute: str
    span_us: int | None = None

    @property
    def name(self) -> str:
        return self.attribute if self.span_us is None else f"bucket({self.attribute}, {self.span_us})"

    def of(self, value: Any) -> Any:
        """What an event with this value has in its key."""
        return value if self.span_us is None or value is None else value - value % self.span_us


@lru_cache(maxsize=4096)
def part_of(name: str) -> KeyPart:
    found = _BUCKET.fullmatch(name) if name.endswith(")") else None
    return KeyPart(name) if found is None else KeyPart(found[1], int(found[2]))


def is_bucket(name: str) -> bool:
    return part_of(name).span_us is not None


def key_value(event: Event, name: str) -> Any:
    part = part_of(name)
    return part.of(event.raw(part.attribute))


def key_place(schema: EventType, name: str) -> tuple[int, ...]:
    """Where its attribute is in the rows of a type (EventType.place)."""
    return schema.place(part_of(name).attribute)


def key_type(schema: EventType, name: str) -> DataType:
    """The data type of its attribute."""
    return schema.type_of(part_of(name).attribute)


def key_column(table: pa.RecordBatch | pa.Table, name: str) -> pa.Array | None:
    """By the names of a table's columns, in one chunk; None if it has no such attribute."""
    part = part_of(name)
    head, *fields = part.attribute.split(PATH)
    at = table.schema.get_field_index(head)
    if at < 0:
        return None
    column = table.column(at)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    for each in fields:
        if not pa.types.is_struct(column.type) or (number := column.type.get_field_index(each)) < 0:
            return None
        column = column_inside(column, (number,))
    return bucketed(column, part)


def bucketed(column: pa.Array, part: KeyPart) -> pa.Array:
    if part.span_us is None:
        return column
    whole = column.cast(pa.int64())
    values = whole.fill_null(0).to_numpy()
    mask = whole.is_null().to_numpy(zero_copy_only=False) if whole.null_count else None
    return pa.array(values - np.mod(values, part.span_us), mask=mask).cast(column.type)
