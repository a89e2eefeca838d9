"""Rows selected from the store, in the requested order and with repetition, column by column.

Takes: the location of each row. Gives: Arrow columns, times, events. Never: copies a column that is not requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.errors import require
from fairlead.matching.results.chunk import Chunk, Numbers, Words
from fairlead.model.events.columns import (
    ARROW,
    Columns,
    bits_of,
    canonical_rows_at,
    field_column,
    number_array,
    record_batch,
    taken_rows,
)
from fairlead.model.events.event import Event
from fairlead.model.events.origin_columns import SequenceColumn, SourceColumn
from fairlead.model.events.types import Catalogue
from fairlead.model.relations.identity import majors_of, position_of

PLAIN: Mapping[pa.DataType, Any] = {
    each: np.int32 if each.bit_width == 32 else np.int64
    for each in ARROW.values()
    if pa.types.is_primitive(each) and each.bit_width in (32, 64)
}
"""Types whose values are copied as numbers, whatever they mean."""


FEW = 8
"""If the chunk has this many times more rows than are requested, each is searched; else all are counted once."""


class ChunkRows(NamedTuple):
    """Rows of one type in one chunk: their indexes among the requested rows, and their places in the chunk and in the table."""

    type: str
    chunk: Chunk
    table: pa.RecordBatch
    at: Numbers
    rows: Numbers
    inner: Numbers


def parts_of(chunk: Chunk, at: Numbers, rows: Numbers) -> Iterator[ChunkRows]:
    """The rows of a chunk by type."""
    if not len(rows):
        return
    tables = chunk.columns.tables
    names = [(code, name) for code, name in enumerate(chunk.columns.types) if name in tables]
    if len(names) == 1:
        yield ChunkRows(names[0][1], chunk, tables[names[0][1]], at, rows, rows)
        return
    codes, few = chunk.columns.code_array[rows], FEW * len(rows) < len(chunk)
    for code, name in names:
        mine = np.flatnonzero(codes == code)
        if len(mine):
            inner = np.searchsorted(chunk.columns.places[name], rows[mine]) if few else chunk.inner[rows[mine]]
            yield ChunkRows(name, chunk, tables[name], at[mine], rows[mine], inner)


class Taken:
    def __init__(self, words: Words, parts: Sequence[ChunkRows]) -> None:
        self.words, self.parts = words, parts

    def __len__(self) -> int:
        return len(self.words)

    def column(self, wanted: pa.DataType, sources: Mapping[str, Sequence[int]]) -> pa.Array:
        """An attribute, or a field of one: for each type that has it its place (EventType.place); NULL for other types."""
        found = [(part, field_column(part.table, sources[part.type])) for part in self.parts if part.type in sources]
        plain = PLAIN.get(wanted)
        if plain is not None and all(column.type == wanted for _, column in found):
            return self._numbers(wanted, plain, found)
        pieces = [column.take(pa.array(part.inner)).cast(wanted) for part, column in found]
        index = np.full(len(self), -1, dtype=np.int64)
        start = 0
        for part, _ in found:
            index[part.at] = np.arange(start, start + len(part.at))
            start += len(part.at)
        joined = pa.concat_arrays(pieces) if pieces else pa.nulls(0, wanted)
        return joined.take(pa.array(index, mask=index < 0 if start < len(index) else None))

    def _numbers(self, wanted: pa.DataType, plain: Any, found: Sequence[tuple[ChunkRows, pa.Array]]) -> pa.Array:
        """Values of a fixed size, by their bytes."""
        values, known = np.zeros(len(self), dtype=plain), None
        if sum(len(part.at) for part, _ in found) < len(self) or any(column.null_count for _, column in found):
            known = np.zeros(len(self), dtype=bool)
        for part, column in found:
            values[part.at] = bits_of(column).take(part.inner)
            if known is not None:
                known[part.at] = column.is_valid().to_numpy(zero_copy_only=False)[part.inner] if column.null_count else True
        return number_array(values, wanted) if known is None else pa.array(values, mask=~known).view(wanted)

    def codes(self, names: Sequence[str]) -> npt.NDArray[np.int32]:
        """The type of each row, as its number among `names`."""
        made = np.empty(len(self), dtype=np.int32)
        for part in self.parts:
            made[part.at] = names.index(part.type)
        return made

    def times(self, catalogue: Catalogue) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """The time of each row, and whether it has one."""
        values, known = np.zeros(len(self), dtype=np.int64), np.zeros(len(self), dtype=bool)
        for part in self.parts:
            given, number = part.chunk.times.get(part.type), catalogue[part.type].time_index
            if given is not None:
                values[part.at], known[part.at] = given[part.inner], True
            elif number is not None:
                column = part.table.column(number).cast(pa.int64()).take(pa.array(part.inner))
                known[part.at] = column.is_valid().to_numpy(zero_copy_only=False)
                values[part.at] = column.fill_null(0).to_numpy()
        return values, known

    def events(self, catalogue: Catalogue) -> list[Event]:
        made: list[Any] = [None] * len(self)
        for part in self.parts:
            schema, columns, given = catalogue[part.type], part.chunk.columns, part.chunk.times.get(part.type)
            values = canonical_rows_at(part.table, schema, part.inner)
            for at, row, inner, value in zip(part.at.tolist(), part.rows.tolist(), part.inner.tolist(), values, strict=True):
                time = None if schema.time_index is None else value[schema.time_index]
                made[at] = Event(
                    schema,
                    value,
                    position_of(int(self.words[at])),
                    time if given is None else int(given[inner]),
                    None if columns.sources is None else columns.sources[row],
                    None if columns.sequences is None else columns.sequences[row],
                    None if columns.identities is None else tuple(columns.identities[row].tolist()),
                )
        return made

    @property
    def is_identified(self) -> bool:
        return any(part.chunk.columns.identities is not None for part in self.parts)

    def identities(self) -> npt.NDArray[np.uint64]:
        """What each is, independent of its place (order/event_identity.py): two words a row."""
        made = np.empty((len(self), 2), dtype=np.uint64)
        for part in self.parts:
            known = part.chunk.columns.identities
            require(known is not None, "an event has no identity", type=part.type)
            assert known is not None
            made[part.at] = known[part.rows]
        return made

    def chunk(self) -> Chunk:
        """A copy of these rows alone; their words increase."""
        types = tuple(dict.fromkeys(part.type for part in self.parts))
        tables, times = {}, {}
        for name in types:
            mine = [part for part in self.parts if part.type == name]
            order = np.argsort(np.concatenate([part.at for part in mine]), kind="stable")
            taken = [[taken_rows(column, part.inner) for column in part.table.columns] for part in mine]
            columns = [taken_rows(pa.concat_arrays(each), order) for each in zip(*taken, strict=True)]
            tables[name] = record_batch(columns, mine[0].table.schema, len(order))
            if all(name in part.chunk.times for part in mine):
                times[name] = np.concatenate([part.chunk.times[name][part.inner] for part in mine])[order]
        given = [each for part in self.parts for each in (part.chunk.columns.sources, part.chunk.columns.sequences)]
        is_sourced, places = any(given), [part.at for part in self.parts]
        sources = [part.chunk.columns.source_column.taken(part.rows) for part in self.parts] if is_sourced else []
        sequences = [part.chunk.columns.sequence_column.taken(part.rows) for part in self.parts] if is_sourced else []
        return Chunk(
            Columns(
                types,
                self.codes(types).astype(np.int64),
                majors_of(self.words),  # type: ignore[arg-type]
                tables,
                SourceColumn.joined(sources, places) if is_sourced else None,
                SequenceColumn.joined(sequences, places) if is_sourced else None,
                identities=self.identities() if self.is_identified else None,
            ),
            self.words,
            times,
        )
