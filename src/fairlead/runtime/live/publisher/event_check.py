"""Checks the events of a publish call against their type: all of a call is accepted, or none of it.

Takes: attributes of one event, or a table or records of many. Gives: canonical rows, or record batches in the type's columns.
Never: makes an object for an event of a table; accepts an event that would be rejected in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fairlead.errors import DataError, UsageError
from fairlead.model.events.columns import arrow_array, arrow_schema, arrow_type, record_batch
from fairlead.model.events.types import Catalogue, EventType, Kind
from fairlead.transport.admission.problems import oversized
from fairlead.transport.admission.record_check import RecordShape, Shapes
from fairlead.transport.events import read_events
from fairlead.transport.log.blocks.block import schema_digest
from fairlead.transport.tables.table_reader import TABLE_ROWS, examined, is_table, record_batches

Row = tuple[Any, ...]


class EventCheck:
    """One type, prepared for checking. `optional`: attributes that may be omitted, and are null then."""

    def __init__(self, event_type: EventType, optional: frozenset[str]) -> None:
        self.type = event_type
        self.schema = schema_digest(event_type)
        self._optional = dict.fromkeys(sorted(optional))
        self._shape = RecordShape(event_type, 0, allow_nan=True, text=False, position_field=None)
        self._catalogue = Catalogue(
            (EventType(event_type.name, event_type.attributes, time_attribute=event_type.time_attribute),)
        )
        self._shapes = Shapes(self._catalogue, allow_nan=True)
        kinds = {Kind.STRING, Kind.BINARY}
        self._sized = [at for at, each in enumerate(event_type.attributes) if each.type.kind in kinds]
        self._nested = [at for at, each in enumerate(event_type.attributes) if each.type.is_nested]

    def row(self, values: Mapping[str, Any]) -> Row:
        """Raises DataError."""
        return self._shape.row(self._optional | dict(values) if self._optional else values)

    def size(self, row: Row) -> int:
        """The approximate number of bytes of the row in a block."""
        texts = sum(4 * len(row[at]) for at in self._sized if row[at] is not None)
        return 9 * len(row) + texts + sum(_nested_size(row[at]) for at in self._nested)

    def batch(self, rows: list[Row]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True) if self.type.attributes else ()
        arrays = [arrow_array(column, each.type) for column, each in zip(columns, self.type.attributes, strict=True)]
        return record_batch(arrays, arrow_schema(self.type), len(rows))

    def batches(self, events: Any) -> list[pa.RecordBatch]:
        """Record batches of a table of pyarrow, pandas or polars, of a dict of columns, or of records. Raises DataError,
        UsageError."""
        if isinstance(events, Mapping):
            events = _table(events)
        if is_table(events):
            events = self._completed(events)
        elif self._optional and not isinstance(events, (str, bytes)):
            events = [self._optional | each if isinstance(each, dict) else each for each in events]
        found: list[pa.RecordBatch] = self._undoubted(events)
        if found:
            return found
        for columns in read_events(events, self._catalogue):
            if len(columns.tables) > (self.type.name in columns.tables):
                raise DataError(
                    "D026", f"this publisher accepts '{self.type.name}' only", "publish other events by their own type"
                )
            found += columns.tables.values()
        return found

    def _undoubted(self, events: Any) -> list[pa.RecordBatch]:
        """Record batches of an Arrow table that needs no conversion, equal to those of `read_events`, whose preparation costs
        too much for a few events. The list is empty if the table needs the full check. Raises DataError."""
        if not isinstance(events, (pa.Table, pa.RecordBatch)) or not {"_source", "_sequence"}.isdisjoint(events.schema.names):
            return []
        found = [examined(each, self._shapes).grouped for each in record_batches(events, self._catalogue, TABLE_ROWS)]
        if any(each is None or list(each.tables) != [self.type.name] for each in found):
            return []
        return [each.tables[self.type.name] for each in found if each is not None]

    def _completed(self, events: Any) -> Any:
        missing = [name for name in self._optional if name not in _names(events)]
        if not missing:
            return events
        table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else pa.table(events)
        for name in missing:
            attribute = self.type.attributes[self.type.index[name]]
            table = table.append_column(name, pa.nulls(table.num_rows, arrow_type(attribute.type)))
        return table


def _nested_size(value: Any) -> int:
    if type(value) is tuple:
        return 9 * len(value) + sum(map(_nested_size, value))
    return 4 * len(value) if isinstance(value, (str, bytes)) else 0


def _names(events: Any) -> list[str]:
    return list(events.schema.names) if hasattr(events, "schema") and hasattr(events.schema, "names") else list(events.columns)


def _table(columns: Mapping[str, Any]) -> pa.Table:
    try:
        return pa.table(dict(columns))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(
            "A244", f"the columns do not form a table: {error}", "pass columns of equal length, by attribute"
        ) from None


def too_large(count: int, payload: bytes, bytes_max: int, name: str) -> None:
    """Raises DataError if the block, which then holds one event, is larger than the log accepts."""
    if len(payload) > bytes_max:
        raise oversized(f"an event of '{name}'" if count == 1 else f"a block of '{name}'")
