"""A batch of ordered events as columns: what transports give and matchers take.

Row i of the batch has the type `types[codes[i]]` and the position `positions[i]` (rising). Its attribute values are the next
row of that type's record batch in `tables`, whose columns are the type's attributes in order, in Arrow's form of the
declared data types (see ARROW). `sources` and `sequences` are absent where nobody gave any.

Gives: `Columns` and its row view. Never: reorders, validates (transport/ does) or drops a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.model.event import Event
from fairlead.model.position import Position
from fairlead.model.types import Catalogue, DataType, EventType, Kind

ARROW: Mapping[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.BINARY: pa.binary(),
    Kind.INTERVAL: pa.duration("us"),
}


COUNTED = (Kind.TIMESTAMP, Kind.INTERVAL)
"""Kinds whose canonical value is a number of microseconds."""


def arrow_type(data_type: DataType) -> pa.DataType:
    if data_type.kind is Kind.DECIMAL:
        return pa.decimal128(data_type.precision, data_type.scale)
    return ARROW[data_type.kind]


def arrow_schema(event_type: EventType) -> pa.Schema:
    return pa.schema([(each.name, arrow_type(each.type)) for each in event_type.attributes])


@dataclass(frozen=True)
class Columns:
    types: tuple[str, ...]
    codes: Sequence[int]
    positions: Sequence[int]
    tables: Mapping[str, pa.RecordBatch]
    sources: Sequence[str | None] | None = None
    sequences: Sequence[int | None] | None = None
    duplicates: int = 0
    """Records that the transport dropped as repeats of a source's sequence, within the positions of this batch."""
    last_position: int | None = field(default=None)
    """The last position that the batch accounts for, dropped records included."""

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def code_array(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.codes, dtype=np.int64)

    @cached_property
    def position_array(self) -> npt.NDArray[np.int64]:
        given = self.positions
        if isinstance(given, range):
            return np.arange(given.start, given.stop, given.step, dtype=np.int64)
        return np.asarray(given, dtype=np.int64)

    def follow(self, last: int) -> bool:
        """The positions rise, and all stand after `last`."""
        positions = self.position_array
        return not len(positions) or (int(positions[0]) > last and bool((positions[1:] > positions[:-1]).all()))

    def last_after(self, last: int) -> int:
        """The last position accounted for, if it was `last` before this batch."""
        known = [] if self.last_position is None else [self.last_position]
        return max([last, *self.positions[-1:], *known])

    def events(self, catalogue: Catalogue) -> Iterator[Event]:
        """The rows as events, in order."""
        tables = [(code, self.tables[name], catalogue[name]) for code, name in enumerate(self.types) if name in self.tables]
        rows = {code: iter(canonical_rows(table, schema)) for code, table, schema in tables}
        schemas = [catalogue[name] for name in self.types]
        for at, (code, major) in enumerate(zip(self.codes, self.positions, strict=True)):
            row = next(rows[code])
            schema = schemas[code]
            time = None if schema.time_index is None else row[schema.time_index]
            yield Event(
                schema,
                row,
                Position(major),
                time,
                self.sources[at] if self.sources is not None else None,
                self.sequences[at] if self.sequences is not None else None,
            )


def arrow_array(values: Sequence[Any], wanted: DataType) -> pa.Array:
    """Canonical values as an Arrow column."""
    if wanted.kind in COUNTED:
        return pa.array(values, type=pa.int64()).cast(arrow_type(wanted))
    return pa.array(values, type=arrow_type(wanted))


def canonical_values(column: pa.Array, kind: Kind) -> list[Any]:
    """An Arrow column as canonical values."""
    return (column.cast(pa.int64()) if kind in COUNTED else column).to_pylist()  # type: ignore[no-any-return]


def canonical_rows(table: pa.RecordBatch, schema: EventType) -> list[tuple[Any, ...]]:
    """The rows of one type's record batch."""
    columns = [canonical_values(column, each.type.kind) for column, each in zip(table.columns, schema.attributes, strict=True)]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def columns_of_event(event: Event) -> Columns:
    """A batch of one."""
    arrays = [arrow_array([value], each.type) for each, value in zip(event.schema.attributes, event.row, strict=True)]
    table = record_batch(arrays, arrow_schema(event.schema), 1)
    return Columns((event.type,), [0], [event.position.major], {event.type: table}, [event.source], [event.sequence])


def record_batch(arrays: Sequence[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """A record batch that has its number of rows also without a column, for types without attributes."""
    if len(schema):
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, type=pa.struct([])))
