"""Where the events of a batch come from: their sources, and their sequences there, as columns.

A batch has few sources and many events, so a column of sources is a number for each event and the names once. Both columns are
sequences of plain values too, so that code for single events needs to know nothing of this.

Takes: lists, Arrow arrays, runs. Gives: columns that can be taken, cut and compared as whole arrays. Never: makes
a Python object for each event on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
SOURCE_TYPE = pa.dictionary(pa.int32(), pa.string())


class SourceColumn(Sequence[str | None]):
    """Event i comes from `names[codes[i]]`. Names are distinct; None is one of them if some events have no source."""

    def __init__(self, names: tuple[str | None, ...], codes: Codes) -> None:
        self.names, self.codes = names, codes

    @classmethod
    def of(cls, given: Sequence[str | None] | pa.Array | pa.ChunkedArray | None, count: int) -> SourceColumn:
        """`given` may be a list, a column of texts, or one of SOURCE_TYPE; None: all events are without a source."""
        if isinstance(given, SourceColumn):
            return given
        if given is None:
            return cls((None,), np.zeros(count, dtype=np.int32))
        column = pa.array(given, pa.string()) if not isinstance(given, pa.Array | pa.ChunkedArray) else given
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return cls._of_coded(column)

    @classmethod
    def _of_coded(cls, column: pa.DictionaryArray) -> SourceColumn:
        """Values of the dictionary may be equal, or null."""
        values, indices = column.dictionary.to_pylist(), column.indices
        if indices.null_count:
            values, indices = [*values, None], indices.fill_null(len(values))
        codes = indices.to_numpy(zero_copy_only=False)
        names = tuple(dict.fromkeys(values))
        if len(names) < len(values):
            codes = np.array([names.index(each) for each in values], dtype=np.int32)[codes]
        return cls(names, codes.astype(np.int32, copy=False))

    @classmethod
    def of_runs(cls, runs: Iterable[tuple[str | None, int]]) -> SourceColumn:
        """One source for so many events, then the next."""
        numbers: dict[str | None, int] = {}
        told = [(numbers.setdefault(name, len(numbers)), count) for name, count in runs]
        codes, counts = zip(*told, strict=True) if told else ((), ())
        return cls(tuple(numbers), np.repeat(np.array(codes, dtype=np.int32), np.array(counts, dtype=np.int64)))

    @classmethod
    def joined(cls, parts: Sequence[SourceColumn], places: Sequence[Rows]) -> SourceColumn:
        """Columns of which each has some places of the whole."""
        numbers: dict[str | None, int] = {}
        codes = np.zeros(sum(map(len, parts)), dtype=np.int32)
        for part, at in zip(parts, places, strict=True):
            shared = [numbers.setdefault(name, len(numbers)) for name in part.names]
            codes[at] = part.codes if shared == [*range(len(shared))] else np.array(shared, dtype=np.int32)[part.codes]
        return cls(tuple(numbers), codes)

    def taken(self, rows: Rows) -> SourceColumn:
        return SourceColumn(self.names, self.codes.take(rows))

    @property
    def is_empty(self) -> bool:
        """Whether no event has a source."""
        return self.names in ((), (None,)) or (None in self.names and bool((self.codes == self.names.index(None)).all()))

    def ranks(self) -> Codes:
        """By event the rank of its name; None is last."""
        order = sorted(range(len(self.names)), key=lambda at: (self.names[at] is None, self.names[at] or ""))
        ranks = np.empty(len(order), dtype=np.int32)
        ranks[order] = np.arange(len(order), dtype=np.int32)
        return ranks[self.codes]

    def runs(self) -> list[tuple[int, int]]:
        """From where to where the source is the same."""
        cuts = [0, *(np.flatnonzero(self.codes[1:] != self.codes[:-1]) + 1).tolist(), len(self)]
        return list(pairwise(cuts)) if len(self) else []

    def to_arrow(self) -> pa.DictionaryArray:
        """As a column of SOURCE_TYPE."""
        known = [name for name in self.names if name is not None]
        codes = pa.array(self.codes)
        if len(known) < len(self.names):
            at = self.names.index(None)
            codes = pa.array(self.codes - (self.codes > at).astype(np.int32), mask=self.codes == at)
        return pa.DictionaryArray.from_arrays(codes, pa.array(known, pa.string()))

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:
        made = self.to_arrow()
        return made if type is None else made.cast(type)

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[str | None]:
        return map(self.names.__getitem__, self.codes.tolist())

    @overload
    def __getitem__(self, at: int) -> str | None: ...
    @overload
    def __getitem__(self, at: slice) -> SourceColumn: ...
    def __getitem__(self, at: int | slice) -> str | SourceColumn | None:
        return SourceColumn(self.names, self.codes[at]) if isinstance(at, slice) else self.names[self.codes[at]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]


class SequenceColumn(Sequence[int | None]):
    """`known`: which events have a sequence; None: all. The values of the others are 0."""

    def __init__(self, values: Rows, known: Mask | None = None) -> None:
        self.values, self.known = values, known

    @classmethod
    def of(cls, given: Sequence[int | None] | Rows | pa.Array | pa.ChunkedArray | None, count: int) -> SequenceColumn:
        if isinstance(given, SequenceColumn):
            return given
        if isinstance(given, np.ndarray):
            return cls(given.astype(np.int64, copy=False))
        if given is None:
            return cls(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool))
        column = given.cast(pa.int64()) if isinstance(given, pa.Array | pa.ChunkedArray) else pa.array(given, pa.int64())
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if not column.null_count:
            return cls(column.to_numpy())
        return cls(column.fill_null(0).to_numpy(), column.is_valid().to_numpy(zero_copy_only=False))

    @classmethod
    def joined(cls, parts: Sequence[SequenceColumn], places: Sequence[Rows]) -> SequenceColumn:
        """Columns of which each has some places of the whole."""
        count = sum(map(len, parts))
        values, known = np.zeros(count, dtype=np.int64), np.ones(count, dtype=bool)
        for part, at in zip(parts, places, strict=True):
            values[at] = part.values
            if part.known is not None:
                known[at] = part.known
        return cls(values, None if known.all() else known)

    def taken(self, rows: Rows) -> SequenceColumn:
        return SequenceColumn(self.values.take(rows), None if self.known is None else self.known.take(rows))

    @property
    def is_empty(self) -> bool:
        """Whether no event has a sequence."""
        return not len(self.values) or (self.known is not None and not self.known.any())

    def keys(self) -> list[npt.NDArray[Any]]:
        """Columns of numbers that order the events by their sequences; those without one are last."""
        return [self.values] if self.known is None else [~self.known.view(np.int8) & 1, self.values]

    def to_arrow(self) -> pa.Array:
        return pa.array(self.values, pa.int64(), mask=None if self.known is None else ~self.known)

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:
        made = self.to_arrow()
        return made if type is None else made.cast(type)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[int | None]:
        if self.known is None:
            return iter(self.values.tolist())
        pairs: Iterable[tuple[Any, Any]] = zip(self.values.tolist(), self.known.tolist(), strict=True)
        return iter([value if known else None for value, known in pairs])

    @overload
    def __getitem__(self, at: int) -> int | None: ...
    @overload
    def __getitem__(self, at: slice) -> SequenceColumn: ...
    def __getitem__(self, at: int | slice) -> int | SequenceColumn | None:
        if isinstance(at, slice):
            return SequenceColumn(self.values[at], None if self.known is None else self.known[at])
        return int(self.values[at]) if self.known is None or self.known[at] else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
