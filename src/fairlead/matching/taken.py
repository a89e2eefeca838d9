"""Rows taken out of the store, in the order asked for and as often, column by column.

Takes: where each row lies. Gives: Arrow columns, times, events. Never: copies a column that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.chunk import Chunk, Numbers, Words
from fairlead.model.columns import Columns, canonical_rows, record_batch
from fairlead.model.event import Event
from fairlead.model.identity import majors_of, position_of
from fairlead.model.types import Catalogue


class Part(NamedTuple):
    """Rows of one type in one chunk: which of the rows asked for they are, and where they lie."""

    type: str
    chunk: Chunk
    at: Numbers
    rows: Numbers
    inner: Numbers

    @property
    def table(self) -> pa.RecordBatch:
        return self.chunk.columns.tables[self.type]

    @property
    def whole(self) -> bool:
        """So many rows of the table are wanted that its columns are used as they are, not copied twice."""
        return bool(self.table.num_rows <= 2 * len(self.inner))

    def column(self, number: int) -> pa.Array:
        column = self.table.column(number)
        return column if self.whole else column.take(pa.array(self.inner))


def parts_of(chunk: Chunk, at: Numbers, rows: Numbers) -> Iterator[Part]:
    """The rows of a chunk by type."""
    names = [(code, name) for code, name in enumerate(chunk.columns.types) if name in chunk.columns.tables]
    if len(names) == 1:
        yield Part(names[0][1], chunk, at, rows, rows)
        return
    codes, inner = chunk.columns.code_array[rows], chunk.inner[rows]
    for code, name in names:
        mine = np.flatnonzero(codes == code)
        if len(mine) == len(codes):
            yield Part(name, chunk, at, rows, inner)
            return
        if len(mine):
            yield Part(name, chunk, at[mine], rows[mine], inner[mine])


class Taken:
    def __init__(self, words: Words, parts: Sequence[Part]) -> None:
        self.words, self.parts = words, parts

    def __len__(self) -> int:
        return len(self.words)

    def column(self, wanted: pa.DataType, sources: Mapping[str, int]) -> pa.Array:
        """An attribute: for each type that has it the number of its column; NULL for other types."""
        pieces = []
        for part in self.parts:
            number = sources.get(part.type)
            length = part.table.num_rows if part.whole else len(part.inner)
            pieces.append(pa.nulls(length, wanted) if number is None else part.column(number).cast(wanted))
        if not pieces:
            return pa.nulls(0, wanted)
        joined = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        return joined if self._index is None else joined.take(pa.array(self._index))

    @cached_property
    def _index(self) -> Numbers | None:
        """Where each row lies in the parts' columns, one after the other; None where that is its own place."""
        index, start = np.empty(len(self), dtype=np.int64), 0
        for part in self.parts:
            index[part.at] = start + (part.inner if part.whole else np.arange(len(part.inner)))
            start += part.table.num_rows if part.whole else len(part.inner)
        as_it_is = start == len(index) and bool((index == np.arange(len(index))).all())
        return None if as_it_is else index

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
            values = canonical_rows(part.table.take(pa.array(part.inner)), schema)
            for at, row, inner, value in zip(part.at.tolist(), part.rows.tolist(), part.inner.tolist(), values, strict=True):
                time = None if schema.time_index is None else value[schema.time_index]
                made[at] = Event(
                    schema,
                    value,
                    position_of(int(self.words[at])),
                    time if given is None else int(given[inner]),
                    None if columns.sources is None else columns.sources[row],
                    None if columns.sequences is None else columns.sequences[row],
                )
        return made

    def chunk(self) -> Chunk:
        """A copy of these rows alone; their words rise."""
        types = tuple(dict.fromkeys(part.type for part in self.parts))
        tables, times = {}, {}
        for name in types:
            mine = [part for part in self.parts if part.type == name]
            order = np.argsort(np.concatenate([part.at for part in mine]), kind="stable")
            batches = [part.table.take(pa.array(part.inner)) for part in mine]
            columns = [pa.concat_arrays(each).take(pa.array(order)) for each in zip(*(b.columns for b in batches), strict=True)]
            tables[name] = record_batch(columns, batches[0].schema, len(order))
            if all(name in part.chunk.times for part in mine):
                times[name] = np.concatenate([part.chunk.times[name][part.inner] for part in mine])[order]
        given = any(part.chunk.columns.sequences or part.chunk.columns.sources for part in self.parts)
        return Chunk(
            Columns(
                types,
                self.codes(types).astype(np.int64),  # type: ignore[arg-type]
                majors_of(self.words),  # type: ignore[arg-type]
                tables,
                self._spread([part.chunk.columns.sources for part in self.parts]) if given else None,
                self._spread([part.chunk.columns.sequences for part in self.parts]) if given else None,
            ),
            self.words,
            times,
        )

    def _spread(self, values: Sequence[Sequence[Any] | None]) -> list[Any]:
        made: list[Any] = [None] * len(self)
        for part, mine in zip(self.parts, values, strict=True):
            if mine is not None:
                for at, row in zip(part.at.tolist(), part.rows.tolist(), strict=True):
                    made[at] = mine[row]
        return made
