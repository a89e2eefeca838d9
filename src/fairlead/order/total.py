"""One total order for rows without positions, which depends on the rows alone.

    1. the order columns that the user named, ascending or descending; a heartbeat may have only the first, and then stands
       after all events with its value there, since it is about everything up to its time
    2. source, then the source's sequence, if there are any: rows that a source numbered keep its order
    3. the type, by name; heartbeats last
    4. the content: the attributes, column by column

Rows that are equal in all of this are interchangeable, so their numbers are the same whichever is first. How rows arrived, in
which files, batches or partitions, has no influence.

Takes: arrivals, by type a table of its attributes and of the reserved columns below. Gives: the order. Never: reads a clock,
moves a row unnecessarily.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.model.events.origin_columns import SequenceColumn, SourceColumn
from fairlead.model.events.types import HEARTBEAT
from fairlead.order.nested_bytes import nested_bytes
from fairlead.order.stable_sort import stable_order

SOURCE, SEQUENCE = "_source", "_sequence"
Arrivals = Mapping[str, pa.Table]
"""By type: attributes in the order of declaration, then `_order0`, `_order1` …, then `_source` and `_sequence` if given."""
Numbers = npt.NDArray[np.int64]


def order_column(number: int) -> str:
    return f"_order{number}"


@dataclass(frozen=True, eq=False)
class RowOrder:
    """The rows of arrivals, first to last: `types[codes[i]]`, and row `rows[i]` of that type's table."""

    types: tuple[str, ...]
    codes: npt.NDArray[np.int32]
    rows: Numbers
    alike: npt.NDArray[np.bool_]
    """Whether the order columns of each row equal those of the row before."""

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def ties(self) -> int:
        """How many rows are equal to the row before in their order columns."""
        return int(self.alike.sum())

    @cached_property
    def doubles(self) -> npt.NDArray[np.bool_]:
        """Whether each row is also of the same type as the row before."""
        found = self.alike.copy()
        found[1:] &= self.codes[1:] == self.codes[:-1]
        return found

    def rows_of(self, name: str) -> Numbers:
        """The rows of a type's table in their order."""
        return self.rows[self.places[name]]

    def column(self, name: str, tables: Arrivals, types: Sequence[str], kind: pa.DataType) -> pa.Array:
        """A reserved column of the tables of these types, in the order of their rows."""
        places = np.concatenate([np.zeros(0, dtype=np.int64), *(self.places[each] for each in types)])
        parts = [tables[each].column(name).cast(kind).take(pa.array(self.rows_of(each))) for each in types]
        joined = pa.chunked_array([chunk for part in parts for chunk in part.chunks], kind).combine_chunks()
        return joined.take(pa.array(stable_order([places])))

    def sources(self, tables: Arrivals) -> SourceColumn:
        """The sources of all rows, in their order."""
        return SourceColumn.joined([sources_of(tables[each]).taken(self.rows_of(each)) for each in self.types], self._all)

    def sequences(self, tables: Arrivals) -> SequenceColumn:
        """The sequences of all rows, in their order."""
        return SequenceColumn.joined([sequences_of(tables[each]).taken(self.rows_of(each)) for each in self.types], self._all)

    @property
    def _all(self) -> list[Numbers]:
        return [self.places[each] for each in self.types]

    @cached_property
    def places(self) -> Mapping[str, Numbers]:
        """By type, the places of its rows in the order."""
        return {name: np.flatnonzero(self.codes == code) for code, name in enumerate(self.types)}


def in_order(arrivals: Arrivals, keys: int, descending: Sequence[bool] = ()) -> RowOrder:
    """The total order by `keys` order columns, none of which has a null, except those of heartbeats after the first."""
    types = tuple(sorted((name for name in arrivals if len(arrivals[name])), key=_rank))
    sizes = [len(arrivals[name]) for name in types]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    columns = list(_columns(arrivals, types, keys, descending)) if types else []
    order = _sorted(columns)  # 1, and 3: the sort is stable, and the tables are concatenated by the rank of their types
    codes = np.repeat(np.arange(len(types), dtype=np.int32), sizes)[order]
    rows = order - starts[codes]
    same = _like_before(columns, order)
    alike = same.copy()
    if same.any() and any(_is_sourced(arrivals[name]) for name in types):
        _by_source(arrivals, types, codes, rows, same, alike)  # 2
    alike[1:] &= codes[1:] == codes[:-1]
    if alike.any():
        _settle(arrivals, types, codes, rows, alike, keys)
    return RowOrder(types, codes, rows, same)


def sources_of(table: pa.Table) -> SourceColumn:
    return SourceColumn.of(table.column(SOURCE) if SOURCE in table.column_names else None, len(table))


def sequences_of(table: pa.Table) -> SequenceColumn:
    return SequenceColumn.of(table.column(SEQUENCE) if SEQUENCE in table.column_names else None, len(table))


def _columns(arrivals: Arrivals, types: Sequence[str], keys: int, descending: Sequence[bool]) -> Iterator[pa.Array]:
    """Columns whose ascending order is that of the rows."""
    for key in range(keys):
        joined = one_zero(_joined([arrivals[name].column(order_column(key)) for name in types]))
        if joined.null_count:
            yield joined.is_null().cast(pa.int64())
            joined = _filled(joined)
        yield _reversed(joined) if key < len(descending) and descending[key] else joined


def _filled(column: pa.Array) -> pa.Array:
    """With some value in place of nulls."""
    known = column.drop_null()
    return column.fill_null(known[0]) if len(known) else pa.array(np.zeros(len(column), dtype=np.int64))


def _reversed(column: pa.Array) -> pa.Array:
    """Numbers whose ascending order is the descending one of the values; equal for equal values."""
    plain = sortable(column)
    numbers = plain if pa.types.is_int64(plain.type) else pc.rank(plain, tiebreaker="dense").cast(pa.int64())
    return pa.array(~numbers.to_numpy())


def _rank(name: str) -> tuple[bool, str]:
    return name == HEARTBEAT.name, name


def _joined(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    kind = next((each.type for each in columns if not pa.types.is_null(each.type)), columns[0].type)
    chunks = [chunk if chunk.type == kind else chunk.cast(kind) for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, kind).combine_chunks()


def _sorted(columns: Sequence[pa.Array]) -> Numbers:
    if not columns:
        return np.zeros(0, dtype=np.int64)
    plain = [sortable(column) for column in columns]
    return stable_order([each.to_numpy() for each in plain]) if all(map(_is_numbers, plain)) else _by(plain)


def _is_numbers(column: pa.Array) -> bool:
    return bool(pa.types.is_int64(column.type)) and not column.null_count


def _by(columns: Sequence[pa.Array]) -> Numbers:
    names = [str(at) for at in range(len(columns))]
    found = pc.sort_indices(pa.table(dict(zip(names, columns, strict=True))), sort_keys=[(name, "ascending") for name in names])
    return found.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _like_before(columns: Sequence[pa.Array], order: Numbers) -> npt.NDArray[np.bool_]:
    """Whether each row in the order has the same order columns as the one before."""
    same = np.ones(len(order), dtype=bool)
    same[:1] = False
    for column in columns:
        plain = sortable(column)
        if pa.types.is_int64(plain.type):
            values = plain.to_numpy()[order]
            same[1:] &= values[1:] == values[:-1]
        else:
            taken = plain.take(pa.array(order))
            same[1:] &= pc.equal(taken[1:], taken[:-1]).to_numpy(zero_copy_only=False)
    return same


def _is_sourced(table: pa.Table) -> bool:
    return any(name in table.column_names and table.column(name).null_count < len(table) for name in (SOURCE, SEQUENCE))


def _by_source(
    arrivals: Arrivals,
    types: Sequence[str],
    codes: npt.NDArray[np.int32],
    rows: Numbers,
    same: npt.NDArray[np.bool_],
    alike: npt.NDArray[np.bool_],
) -> None:
    """Step 2, for rows that are equal in step 1: corrects `codes` and `rows`. Rows that are equal here, too, stay ordered by
    type; the others are no longer `alike`."""
    tied = same.copy()
    tied[:-1] |= same[1:]
    places = np.flatnonzero(tied)
    mine, inner = codes[places], rows[places]
    own = [(arrivals[name], np.flatnonzero(mine == code)) for code, name in enumerate(types)]
    at = [each for _, each in own]
    sources = SourceColumn.joined([sources_of(table).taken(inner[each]) for table, each in own], at)
    sequences = SequenceColumn.joined([sequences_of(table).taken(inner[each]) for table, each in own], at)
    given = [np.cumsum(~same)[places], sources.ranks(), *sequences.keys()]
    order = stable_order(given)
    codes[places], rows[places] = mine[order], inner[order]
    equal = np.ones(max(0, len(places) - 1), dtype=bool)
    for column in given:
        ordered = column.take(order)
        equal &= ordered[1:] == ordered[:-1]
    alike[places[1:]] &= equal


def _settle(
    arrivals: Arrivals,
    types: Sequence[str],
    codes: npt.NDArray[np.int32],
    rows: Numbers,
    alike: npt.NDArray[np.bool_],
    keys: int,
) -> None:
    """Step 4, for rows of one type that are equal in steps 1 and 2: corrects `rows`."""
    tied = alike.copy()
    tied[:-1] |= alike[1:]
    group = np.cumsum(~alike)
    for code, name in enumerate(types):
        places = np.flatnonzero(tied & (codes == code))
        if not len(places):
            continue
        reserved = {SOURCE, SEQUENCE, *(order_column(key) for key in range(keys))}
        named = [each for each in arrivals[name].column_names if each not in reserved]
        if named:
            table = arrivals[name].select(named).take(pa.array(rows[places]))
            columns = [pa.array(group[places]), *(sortable(_joined([each])) for each in table.columns)]
            rows[places] = rows[places][_by(columns)]


def one_zero(column: pa.Array) -> pa.Array:
    """The values of an order key: 0.0 and -0.0 are equal, as in conditions, so rows with them tie."""
    return pc.add(column, 0.0) if pa.types.is_float64(column.type) else column


def sortable(column: pa.Array) -> pa.Array:
    """The column in a form whose Arrow order distinguishes all different values: floats by their bits, in the order of
    values."""
    kind = column.type
    if pa.types.is_floating(kind):
        known = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
        values = column.fill_null(0.0).cast(pa.float64()).to_numpy(zero_copy_only=False)
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)  # every NaN is the same value, after all others
        return pa.array(np.where(bits >= 0, bits, bits ^ np.iinfo(np.int64).max), mask=None if known is None else ~known)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return column.view(pa.int64())
    if pa.types.is_date32(kind):
        return column.view(pa.int32()).cast(pa.int64())
    if pa.types.is_nested(kind):
        return pa.array(nested_bytes(column), pa.binary())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column.cast(pa.int64())
    return column
