"""A batch of ordered events as columns: the output of transports and the input of matchers.

Row i of the batch has the type `types[codes[i]]` and the position `positions[i]` (increasing). Its attribute values are the
next row of that type's record batch in `tables`, whose columns are the type's attributes in order, in Arrow's form of the
declared data types (see ARROW; an ARRAY is a list, a STRUCT a struct). So the j-th row of a type's record batch is row
`places[type][j]` of the batch. `sources` and `sequences` are absent if the input has none; `identities` are there if the events
are in an order by value (order/event_identity.py), two words a row.

Gives: `Columns` and its row view. Never: reorders, validates (transport/ does) or drops a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.model.events.event import Event
from fairlead.model.events.origin_columns import SequenceColumn, SourceColumn
from fairlead.model.events.position import Position
from fairlead.model.events.types import NESTED, Attribute, Catalogue, DataType, EventType, Kind

ARROW: Mapping[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.DATE: pa.date32(),
    Kind.BINARY: pa.binary(),
    Kind.INTERVAL: pa.duration("us"),
}


COUNTED = (Kind.TIMESTAMP, Kind.INTERVAL, Kind.DATE)
"""Kinds whose canonical value is a number of microseconds, or of days."""
DECIMAL256_DIGITS = 76
ONE_BY_ONE_MAX = 8
"""Rows that are read from a batch one by one: eight of four values take 22 microseconds, as a batch of their own 36."""


def arrow_type(data_type: DataType) -> pa.DataType:
    if data_type.kind is Kind.DECIMAL:
        return pa.decimal128(data_type.precision, data_type.scale)
    if data_type.element is not None:
        return pa.list_(pa.field("element", arrow_type(data_type.element)))
    if data_type.kind is Kind.STRUCT:
        return pa.struct([(each.name, arrow_type(each.type)) for each in data_type.fields])
    return ARROW[data_type.kind]


def data_type_of_column(kind: pa.DataType) -> DataType:
    """The inverse of `arrow_type`."""
    if pa.types.is_list(kind):
        return DataType(Kind.ARRAY, element=data_type_of_column(kind.value_type))
    if pa.types.is_struct(kind):
        fields = (kind.field(at) for at in range(kind.num_fields))
        return DataType(Kind.STRUCT, fields=tuple(Attribute(each.name, data_type_of_column(each.type)) for each in fields))
    if pa.types.is_decimal(kind):
        return DataType(Kind.DECIMAL, kind.precision, kind.scale)
    return DataType(next(known for known, each in ARROW.items() if each == kind))


def arrow_schema(event_type: EventType) -> pa.Schema:
    return pa.schema([(each.name, arrow_type(each.type)) for each in event_type.attributes])


Codes = npt.NDArray[np.signedinteger[Any]]
Rows = npt.NDArray[np.int64]

WIDTHS: Mapping[int, type[np.generic]] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
SEPARATE_SCANS_MAX = 8
"""Types up to which one scan for each is cheaper than one stable sort of all: a scan costs 0.6 ns per row, the sort 4.5."""


def code_type(types: int) -> type[np.signedinteger[Any]]:
    """The narrowest integers that can number this many types."""
    return np.int8 if types <= 2**7 else np.int16 if types <= 2**15 else np.int32


def rows_by_code(codes: Codes, types: int) -> dict[int, Rows]:
    """For every code that occurs, in order, its rows, increasing. Raises ValueError if a code is negative."""
    counts = np.bincount(codes, minlength=types)
    present = np.flatnonzero(counts).tolist()
    if len(present) == 1:
        return {present[0]: np.arange(len(codes))}
    if len(present) <= SEPARATE_SCANS_MAX:
        return {code: np.flatnonzero(codes == code) for code in present}
    ends = np.cumsum(counts[present])
    return dict(zip(present, np.split(np.argsort(codes, kind="stable"), ends[:-1]), strict=True))


@dataclass(frozen=True, eq=False)
class Columns:
    types: tuple[str, ...]
    codes: Sequence[int] | Codes
    positions: Sequence[int]
    tables: Mapping[str, pa.RecordBatch]
    sources: Sequence[str | None] | None = None
    sequences: Sequence[int | None] | None = None
    duplicates: int = 0
    """Records that the transport dropped as repeats of a source's sequence, within the positions of this batch."""
    last_position: int | None = field(default=None)
    """The last position that the batch accounts for, dropped records included."""
    known_places: Mapping[str, Rows] | None = field(default=None, repr=False)
    """`places`, if the transport had to compute them anyway."""
    identities: npt.NDArray[np.uint64] | None = field(default=None, repr=False)
    stored: npt.NDArray[np.int64] | None = field(default=None, repr=False)
    """When a log stored each event (microseconds), if the input tells it; the largest number where it does not."""

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def code_array(self) -> Codes:
        """The codes, in integers as narrow as the number of types allows (see code_type): use them as indexes, not in
        arithmetic."""
        return np.asarray(self.codes, dtype=code_type(len(self.types)))

    @cached_property
    def places(self) -> Mapping[str, Rows]:
        """For every type that occurs, in the order of `types`, its rows in the batch."""
        if self.known_places is not None:
            return self.known_places
        found = rows_by_code(self.code_array, len(self.types))
        return {self.types[code]: rows for code, rows in found.items()}

    @cached_property
    def position_array(self) -> npt.NDArray[np.int64]:
        given = self.positions
        if isinstance(given, range):
            return np.arange(given.start, given.stop, given.step, dtype=np.int64)
        return np.asarray(given, dtype=np.int64)

    @cached_property
    def source_column(self) -> SourceColumn:
        return SourceColumn.of(self.sources, len(self))

    @cached_property
    def sequence_column(self) -> SequenceColumn:
        return SequenceColumn.of(self.sequences, len(self))

    def part(self, low: int, high: int) -> Columns:
        """The rows from `low` to before `high`, not copied."""
        tables = {}
        for name, rows in self.places.items():
            start, end = np.searchsorted(rows, (low, high)).tolist()
            tables[name] = self.tables[name].slice(start, end - start)
        sources, sequences = (None if each is None else each[low:high] for each in (self.sources, self.sequences))
        codes, positions = self.code_array[low:high], self.positions[low:high]
        identities, stored = (None if each is None else each[low:high] for each in (self.identities, self.stored))
        return Columns(self.types, codes, positions, tables, sources, sequences, identities=identities, stored=stored)  # type: ignore[arg-type]

    def follow(self, last: int) -> bool:
        """Whether the positions increase, and all are after `last`."""
        if not len(self.positions):
            return True
        if isinstance(self.positions, range):
            return self.positions[0] > last and (self.positions.step > 0 or len(self.positions) == 1)
        positions = self.position_array
        return int(positions[0]) > last and bool((positions[1:] > positions[:-1]).all())

    def last_after(self, last: int) -> int:
        """The last position accounted for, if it was `last` before this batch."""
        own = last if not len(self.positions) else int(self.positions[-1])
        return max(last, own, own if self.last_position is None else self.last_position)

    def events(self, catalogue: Catalogue) -> Iterator[Event]:
        """The rows as events, in order."""
        tables = [(code, self.tables[name], catalogue[name]) for code, name in enumerate(self.types) if name in self.tables]
        rows = {code: iter(canonical_rows(table, schema)) for code, table, schema in tables}
        schemas = [catalogue[name] for name in self.types]
        codes = self.codes.tolist() if isinstance(self.codes, np.ndarray) else self.codes
        positions = self.positions.tolist() if isinstance(self.positions, np.ndarray) else self.positions
        identities = None if self.identities is None else list(map(tuple, self.identities.tolist()))
        for at, (code, major) in enumerate(zip(codes, positions, strict=True)):
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
                identities[at] if identities is not None else None,
            )


def arrow_array(values: Sequence[Any], wanted: DataType) -> pa.Array:
    """Canonical values as an Arrow column."""
    if wanted.is_nested:
        return _nested_array(values, wanted)
    if wanted.kind in COUNTED:
        return of_numbers(pa.array(values, type=pa.int64()), arrow_type(wanted))
    return pa.array(values, type=arrow_type(wanted))


def _nested_array(values: Sequence[Any], wanted: DataType) -> pa.Array:
    """Made of the columns of its parts, so that their values are what they are in columns of their own."""
    kind, missing = arrow_type(wanted), np.array([value is None for value in values], dtype=bool)
    mask = pa.array(missing) if missing.any() else None
    if wanted.element is None:
        empty = (None,) * len(wanted.fields)
        columns = zip(*(empty if value is None else value for value in values), strict=True) if values else repeat(())
        arrays = [arrow_array(column, each.type) for column, each in zip(columns, wanted.fields, strict=False)]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)
    inside = arrow_array([each for value in values if value is not None for each in value], wanted.element)
    ends = np.cumsum([0, *(0 if value is None else len(value) for value in values)], dtype=np.int64)
    if not isinstance(inside, pa.Array) or ends[-1] > np.iinfo(np.int32).max:
        raise pa.ArrowCapacityError("more than 2 GB in one column")
    return pa.ListArray.from_arrays(number_array(ends.astype(np.int32)), inside, type=kind, mask=mask)


def is_counted(kind: pa.DataType) -> bool:
    """Whether its values are numbers of microseconds, or of days."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date32(kind))


def as_numbers(column: pa.Array) -> pa.Array:
    """Whole numbers, times, durations and dates as whole numbers of 64 bits. Arrow has no cast for dates; a cast loads
    pyarrow.compute, so times are only looked at as what they are."""
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        return column.view(pa.int64())
    return (column.cast(pa.int32()) if pa.types.is_date32(column.type) else column).cast(pa.int64())


def of_numbers(numbers: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The inverse. Raises ArrowInvalid where the wanted type has no such number."""
    return numbers.cast(pa.int32()).cast(wanted) if pa.types.is_date32(wanted) else numbers.cast(wanted)


def decimals_at(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Decimals at another precision and scale. Raises ArrowInvalid if a value has more digits, or if that could be too much
    even for 256 bits. Arrow's own cast to 128 bits wraps around there, silently."""
    given = column.type
    if given.equals(wanted):
        return column
    whole = given.precision - given.scale
    if isinstance(given, pa.Decimal128Type) and whole <= wanted.precision - wanted.scale and given.scale <= wanted.scale:
        return column.cast(wanted)  # every value fits
    scale = max(given.scale, wanted.scale)
    if whole + scale > DECIMAL256_DIGITS:
        raise pa.ArrowInvalid("perhaps more digits than 256 bits hold")
    return column.cast(pa.decimal256(DECIMAL256_DIGITS, scale)).cast(wanted)


def number_array(values: npt.NDArray[Any], wanted: pa.DataType | None = None) -> pa.Array:
    """Numbers without a null, not copied. `pa.array` would import numpy.ma, and pandas if it is installed."""
    kind = wanted or pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def taken_rows(column: pa.Array, rows: Rows) -> pa.Array:
    """The values at these rows. For numbers without a null NumPy needs half the time of Arrow, and does not load
    pyarrow.compute, which alone takes a twentieth of a second."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(taken_rows(column.indices, rows), column.dictionary)
    if column.null_count == 0 and pa.types.is_primitive(column.type) and column.type.bit_width in WIDTHS:
        return number_array(bits_of(column).take(rows), column.type)
    return column.take(number_array(rows))


def bits_of(column: pa.Array) -> npt.NDArray[Any]:
    """The bytes of a column of fixed width as integers, without a copy; the values at nulls are undefined."""
    return fixed_words(column, np.dtype(WIDTHS[column.type.bit_width]))


def fixed_words(column: pa.Array, dtype: np.dtype[Any], each: int = 1) -> npt.NDArray[Any]:
    """The buffer of values of fixed width as numbers, so many of them for each value. As far as there are values: a buffer may
    be longer, and end in the middle of one."""
    count = each * len(column)
    if not count:
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(column.buffers()[1], dtype=dtype, count=count, offset=each * column.offset * dtype.itemsize)


def text_array(values: Sequence[str]) -> pa.Array:
    """Texts as an Arrow column; unlike `pa.array`, without a search for pandas, whose import takes a quarter of a second."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


def canonical_values(column: pa.Array, kind: Kind) -> list[Any]:
    """An Arrow column as canonical values."""
    if kind in NESTED:
        return _nested_values(column)
    return (as_numbers(column) if kind in COUNTED else column).to_pylist()  # type: ignore[no-any-return]


def _nested_values(column: pa.Array) -> list[Any]:
    """By the Arrow type alone, which says what each part is."""
    kind = column.type
    if pa.types.is_struct(kind):
        parts = [_nested_values(each) for each in column.flatten()]  # NULL where the struct is
        values: list[Any] = list(zip(*parts, strict=True))
    elif pa.types.is_list(kind):
        ends = column.offsets.to_pylist()
        first = ends[0]
        inside = _nested_values(column.values.slice(first, ends[-1] - first))  # of a slice, only what it has
        values = [tuple(inside[low - first : high - first]) for low, high in pairwise(ends)]
    else:
        found: list[Any] = (as_numbers(column) if is_counted(kind) else column).to_pylist()
        return found
    if column.null_count:
        known = column.is_valid().to_pylist()
        return [value if each else None for value, each in zip(values, known, strict=True)]
    return values


def attribute_column(table: pa.RecordBatch, schema: EventType, name: str) -> pa.Array:
    """The column of an attribute, or of a field of one by its path."""
    return field_column(table, schema.place(name))


def field_column(table: pa.RecordBatch, place: Sequence[int]) -> pa.Array:
    """The column at a place (EventType.place): NULL where a STRUCT on the way is."""
    head, *fields = place
    return column_inside(table.column(head), fields)


def column_inside(column: pa.Array, fields: Sequence[int]) -> pa.Array:
    """The column of a field of a STRUCT, of a field of that, and so on."""
    for at in fields:
        column = column.flatten()[at]
    return column


def columns_inside(column: pa.Array) -> Iterator[pa.Array]:
    """The column, and all that it is made of: without the values under a NULL, or outside its slice."""
    yield column
    if pa.types.is_struct(column.type):
        for each in column.flatten():
            yield from columns_inside(each)
    elif pa.types.is_list(column.type):
        yield from columns_inside(column.flatten())


def canonical_rows(table: pa.RecordBatch, schema: EventType) -> list[tuple[Any, ...]]:
    """The rows of one type's record batch."""
    columns = [canonical_values(column, each.type.kind) for column, each in zip(table.columns, schema.attributes, strict=True)]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def canonical_rows_at(table: pa.RecordBatch, schema: EventType, rows: Rows) -> list[tuple[Any, ...]]:
    """Some rows of one type's record batch. A few are read one by one: extracting them as a batch costs more."""
    if len(rows) > ONE_BY_ONE_MAX or not len(schema.attributes):
        return canonical_rows(table.take(number_array(rows)), schema)
    return [canonical_row(table, schema, row) for row in rows.tolist()]


def canonical_row(table: pa.RecordBatch, schema: EventType, row: int) -> tuple[Any, ...]:
    """One row of one type's record batch."""
    found = []
    for column, each in zip(table.columns, schema.attributes, strict=True):
        if each.type.is_nested:
            found += canonical_values(column.slice(row, 1), each.type.kind)
            continue
        value = column[row]
        found.append(value.value if each.type.kind in COUNTED else value.as_py())
    return tuple(found)


def columns_of_event(event: Event) -> Columns:
    """A batch of one."""
    arrays = [arrow_array([value], each.type) for each, value in zip(event.schema.attributes, event.row, strict=True)]
    table = record_batch(arrays, arrow_schema(event.schema), 1)
    identities = None if event.identity is None else np.array([event.identity], dtype=np.uint64)
    return Columns(
        *((event.type,), [0], [event.position.major], {event.type: table}, [event.source], [event.sequence]),
        identities=identities,
    )


def record_batch(arrays: Sequence[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """A record batch that has its number of rows even without a column, for types without attributes."""
    if len(schema):
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, type=pa.struct([])))
