"""A batch of ordered events as columns: what transports give and matchers take.

Row i of the batch has the type `types[codes[i]]` and the position `positions[i]` (rising). Its attribute values are the next
row of that type's record batch in `tables`, whose columns are the type's attributes in order, in Arrow's form of the
declared data types (see ARROW). `sources` and `sequences` are absent where nobody gave any.

Gives: `Columns` and its row view. Never: reorders, validates (transport/ does) or drops a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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

    def events(self, catalogue: Catalogue) -> Iterator[Event]:
        """The rows as events, in order."""
        rows = {code: _rows(self.tables[name], catalogue[name]) for code, name in enumerate(self.types) if name in self.tables}
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


def _rows(table: pa.RecordBatch, schema: EventType) -> Iterator[tuple[Any, ...]]:
    columns = []
    for column, attribute in zip(table.columns, schema.attributes, strict=True):
        values = column.cast(pa.int64()) if attribute.type.kind is Kind.TIMESTAMP else column
        columns.append(values.to_pylist())
    return iter(zip(*columns, strict=True)) if columns else iter([()] * table.num_rows)
