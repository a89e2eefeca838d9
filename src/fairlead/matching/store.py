"""The events that kernels still refer to, as chunks of columns.

A reference is a number that rises along the order; a batch of n rows takes the next n references. Kernels queue references,
relations list them, and the store turns them back into positions and events. A chunk lives while a queue or a relation
needs it; chunks that are mostly dead are packed, so memory follows what is queued, not what has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.model.columns import Columns, arrow_array, arrow_schema, canonical_rows, record_batch
from fairlead.model.event import Event
from fairlead.model.position import Position
from fairlead.model.types import Catalogue

Refs = npt.NDArray[np.int64]
SLACK = 100_000
"""Dead rows that are not worth packing."""


@dataclass(frozen=True)
class Chunk:
    """Rows with rising references; row i is row `inner[i]` of the table of its type."""

    refs: Refs
    majors: npt.NDArray[np.int64]
    codes: npt.NDArray[Any]
    inner: npt.NDArray[np.int64]
    types: tuple[str, ...]
    tables: Mapping[str, pa.RecordBatch]
    sources: Sequence[str | None] | None = None
    sequences: Sequence[int | None] | None = None

    def take(self, rows: npt.NDArray[np.int64]) -> Chunk:
        """The chunk of some of its rows."""
        codes, inner = self.codes[rows], np.zeros(len(rows), dtype=np.int64)
        tables = {}
        for code, name in enumerate(self.types):
            mine = np.flatnonzero(codes == code)
            if len(mine):
                tables[name] = self.tables[name].take(pa.array(self.inner[rows][mine]))
                inner[mine] = np.arange(len(mine))
        sources = None if self.sources is None else [self.sources[at] for at in rows.tolist()]
        sequences = None if self.sequences is None else [self.sequences[at] for at in rows.tolist()]
        return Chunk(self.refs[rows], self.majors[rows], codes, inner, self.types, tables, sources, sequences)

    def events(self, catalogue: Catalogue) -> list[Event]:
        """All rows as events."""
        rows: list[Any] = [None] * len(self.refs)
        for code, name in enumerate(self.types):
            mine = np.flatnonzero(self.codes == code)
            if len(mine):
                schema = catalogue[name]
                values = canonical_rows(self.tables[name], schema)
                for at, inner in zip(mine.tolist(), self.inner[mine].tolist(), strict=True):
                    rows[at] = (schema, values[inner])
        made = []
        for at, (major, (schema, row)) in enumerate(zip(self.majors.tolist(), rows, strict=True)):
            time = None if schema.time_index is None else row[schema.time_index]
            source = None if self.sources is None else self.sources[at]
            sequence = None if self.sequences is None else self.sequences[at]
            made.append(Event(schema, row, Position(major), time, source, sequence))
        return made


def chunk_of_columns(columns: Columns, first_ref: int) -> Chunk:
    codes = columns.code_array
    inner = np.zeros(len(codes), dtype=np.int64)
    for code in range(len(columns.types)):
        mine = np.flatnonzero(codes == code)
        inner[mine] = np.arange(len(mine))
    refs = np.arange(first_ref, first_ref + len(codes), dtype=np.int64)
    return Chunk(refs, columns.position_array, codes, inner, columns.types, columns.tables, columns.sources, columns.sequences)


def chunk_of_events(events: Sequence[Event], first_ref: int) -> Chunk:
    """For events that come from a loaded state."""
    types = tuple(dict.fromkeys(event.type for event in events))
    codes = np.array([types.index(event.type) for event in events], dtype=np.int64)
    inner = np.zeros(len(events), dtype=np.int64)
    tables = {}
    for name in types:
        mine = [at for at, event in enumerate(events) if event.type == name]
        inner[mine] = np.arange(len(mine))
        schema = events[mine[0]].schema
        columns = [arrow_array([events[at].row[c] for at in mine], each.type) for c, each in enumerate(schema.attributes)]
        tables[name] = record_batch(columns, arrow_schema(schema), len(mine))
    refs = np.arange(first_ref, first_ref + len(events), dtype=np.int64)
    majors = np.array([event.position.major for event in events], dtype=np.int64)
    sources, sequences = [event.source for event in events], [event.sequence for event in events]
    return Chunk(refs, majors, codes, inner, types, tables, sources, sequences)


def distinct(refs: Refs) -> Refs:
    """Sorted, each once. (On these sizes sorting beats the hashing of numpy.unique five times.)"""
    ordered = np.sort(refs)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


class Store:
    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.next_ref = 0

    def add(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self.next_ref = int(chunk.refs[-1]) + 1 if len(chunk.refs) else self.next_ref

    def select(self, refs: Refs) -> Chunk:
        """The rows of the given references (sorted, distinct), as one chunk per chunk joined: `events` of it line up with
        the references."""
        parts = [part for part in (_part(chunk, refs) for chunk in self.chunks) if len(part.refs)]
        return _joined(parts)

    def pack(self, queued: int, refs: Callable[[], Refs]) -> None:
        """Let go of what no queue refers to, where that is worth the copying. `queued` is how many nodes are queued, `refs`
        gives their references, sorted and distinct."""
        if sum(len(chunk.refs) for chunk in self.chunks) > 2 * queued + SLACK:
            live = refs()
            self.chunks = [part for part in (_part(chunk, live) for chunk in self.chunks) if len(part.refs)]
            if len(self.chunks) > 8:
                self.chunks = [_joined(self.chunks)]


def _part(chunk: Chunk, refs: Refs) -> Chunk:
    low, high = np.searchsorted(refs, [chunk.refs[0], chunk.refs[-1] + 1]) if len(chunk.refs) else (0, 0)
    wanted = np.searchsorted(chunk.refs, refs[low:high])
    return chunk.take(wanted)


def _joined(parts: list[Chunk]) -> Chunk:
    types = tuple(dict.fromkeys(name for part in parts for name in part.types))
    tables: dict[str, pa.RecordBatch] = {}
    codes, inner = [], []
    for part in parts:
        shift = np.zeros(len(part.types), dtype=np.int64)
        for code, name in enumerate(part.types):
            if name in part.tables:
                before = tables.get(name)
                shift[code] = 0 if before is None else before.num_rows
                tables[name] = part.tables[name] if before is None else pa.concat_batches([before, part.tables[name]])
        codes.append(np.array([types.index(name) for name in part.types], dtype=np.int64)[part.codes])
        inner.append(part.inner + shift[part.codes])
    has_sources = any(part.sources is not None or part.sequences is not None for part in parts)

    def spread(values: list[Sequence[Any] | None]) -> list[Any] | None:
        if not has_sources:
            return None
        return [
            each
            for part, mine in zip(parts, values, strict=True)
            for each in (mine if mine is not None else [None] * len(part.refs))
        ]

    empty = np.zeros(0, dtype=np.int64)
    return Chunk(
        np.concatenate([part.refs for part in parts] or [empty]),
        np.concatenate([part.majors for part in parts] or [empty]),
        np.concatenate([*codes, empty]),
        np.concatenate([*inner, empty]),
        types,
        tables,
        spread([part.sources for part in parts]),
        spread([part.sequences for part in parts]),
    )
