"""The gate: numbers records, accepts the valid ones as Columns, and stops at the bad ones or skips them.

The order of the steps makes positions, duplicates and errors the same for every kind of input:

1. Every record of the batch takes the next position, valid or not; or has its own, if the records contain positions.
2. The batch is read by the fast path; if in doubt, record by record.
3. A bad record stops everything before any record of its batch is returned or remembered, or (skip) is passed to `rejects`.
4. Of the valid records, repeats of a source's sequence are dropped and counted. A rejected record does not advance the
   sequence, so its corrected repeat is accepted.

Takes: batches of records (or of columns already checked). Gives: Columns. Never: reads files or reorders.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import DataError, Place, UsageError
from fairlead.model.events.columns import Codes, Columns, arrow_array, code_type, record_batch
from fairlead.model.events.types import Catalogue
from fairlead.model.events.values import brief
from fairlead.transport.admission.bulk_check import Grouped, columnwise
from fairlead.transport.admission.positions import position_of
from fairlead.transport.admission.problems import Rejected, Rejects, at, oversized
from fairlead.transport.admission.record_check import RecordShape, Shapes
from fairlead.transport.admission.sequences import LastSequences

UNKNOWN = int(np.iinfo(np.int64).max)
"""When an event was stored, if the record does not tell."""
OnBad = Literal["stop", "skip"]
BATCH_ROWS = 8192
TEXT_LENGTH_MAX = 100_000
"""Characters of a rejected record that are kept: longer texts help nobody."""


@dataclass(frozen=True)
class RawRecords:
    """Raw records and their places. A record that could not be parsed is represented by its DataError."""

    records: list[Any]
    file: str | None = None
    lines: Sequence[int] | None = None
    texts: Sequence[str] | None = None
    unit: str = "record"
    """The word for a place without lines: `record 7`, or `row 7` of a table."""

    def place(self, index: int, position: int) -> Place | str:
        if self.lines is None:
            return f"{self.unit} {position}"
        if self.unit == "row":
            return f"{self.file}, row {self.lines[index]}"
        return Place(line=self.lines[index], file=self.file)

    def text(self, index: int) -> str:
        if self.texts is not None:
            return self.texts[index][:TEXT_LENGTH_MAX]
        try:
            return json.dumps(self.records[index], default=str)[:TEXT_LENGTH_MAX]
        except Exception:  # keys that JSON does not have, numbers of more than 4,300 digits, objects whose methods fail
            return brief(self.records[index], TEXT_LENGTH_MAX)


@dataclass
class Intake:
    """`position`: the next position. `last_sequences` may be from an earlier run. `position_field`: the field with the position
    of each record, if records contain positions; these must be at least `position`."""

    catalogue: Catalogue
    position: int = 0
    allow_nan: bool = True
    on_bad: OnBad = "stop"
    rejects: Rejects | None = None
    last_sequences: LastSequences = field(default_factory=LastSequences)
    position_field: str | None = None
    records: int = 0
    rejected: int = 0
    duplicates: int = 0

    def __post_init__(self) -> None:
        if self.on_bad not in ("stop", "skip"):
            raise UsageError("A101", f"on_bad is {self.on_bad!r}", fix="use 'stop' or 'skip'")
        self.typed = Shapes(self.catalogue, allow_nan=self.allow_nan, position_field=self.position_field)

    @cached_property
    def text(self) -> Shapes:
        return Shapes(self.catalogue, allow_nan=self.allow_nan, text=True, position_field=self.position_field)

    @cached_property
    def stored(self) -> Shapes:
        """The shapes of events that a log has stored; they accept NaN and infinities."""
        return Shapes(self.catalogue, allow_nan=True, position_field=self.position_field)

    def take(self, batch: RawRecords, shapes: Shapes) -> Columns:
        """The Columns of a batch of records. `shapes`: `typed`, or `text` if the values are text cells (CSV), or `stored`."""
        grouped = columnwise(batch.records, shapes)
        if grouped is None or not self.goes_on(grouped):
            grouped = self._judged(batch, shapes)
        return self.admit(grouped, len(batch.records))

    def goes_on(self, grouped: Grouped) -> bool:
        """Whether the increasing positions of these records continue after those before."""
        return grouped.positions is None or not len(grouped.positions) or int(grouped.positions[0]) >= self.position

    def _judged(self, batch: RawRecords, shapes: Shapes) -> Grouped:
        rows: dict[int, list[tuple[Any, ...]]] = {}
        found = Grouped(codes := [], {}, sources := [], sequences := [], stored := [], kept := [])
        refused: list[Rejected] = []
        field, least, brought = self.position_field, self.position, []  # type: str | None, int, list[int]
        first = self.position if field is None else self.records
        for index, record in enumerate(batch.records):
            position = self.position + index if field is None else None
            try:
                if field is not None and isinstance(record, Mapping):
                    position = position_of(record, field, least, text=shapes.text)
                    least = position + 1
                shape, row, source, sequence, moment = shapes.judge(record)
            except DataError as error:
                if self.on_bad == "stop":
                    raise at(error, batch.place(index, first + index)) from None
                refused.append(_rejected(batch, index, position, error))
                continue
            if position is not None:
                brought.append(position)
            rows.setdefault(shape.code, []).append(row)
            codes.append(shape.code)
            sources.append(source)
            sequences.append(sequence)
            stored.append(moment)
            kept.append(index)
        if field is not None:
            found.positions, found.last = np.array(brought, dtype=np.int64), least - 1
        found.tables = {shapes.names[code]: _table(rows[code], shapes.by_code[code]) for code in sorted(rows)}
        for each in refused:
            self.rejected += 1
            if self.rejects is not None:
                self.rejects(each)
        return found

    def _positions(self, grouped: Grouped, count: int) -> Sequence[int]:
        """The positions of the valid ones among `count` records. The next record comes after all of them."""
        if grouped.positions is not None:
            self.position = self.position if grouped.last is None else grouped.last + 1
            return grouped.positions  # type: ignore[return-value]
        start, self.position = self.position, self.position + count
        given = range(start, start + count)
        complete = grouped.kept is None or len(grouped.kept) == count
        return given if complete else [given[index] for index in grouped.kept or ()]

    def admit(self, grouped: Grouped, count: int) -> Columns:
        """Positions for `count` records, of which the grouped ones are valid; repeats among them are dropped."""
        positions = self._positions(grouped, count)
        self.records += count
        codes = np.asarray(grouped.codes, dtype=code_type(len(self.typed.names)))
        tables, places = grouped.tables, grouped.places
        sources, sequences, stored = map(_present, (grouped.sources, grouped.sequences, grouped.stored))
        dropped = 0
        fresh = None if sequences is None else self.last_sequences.fresh(sources, sequences)
        if fresh is not None:
            tables, places = _filtered(self.typed, codes, tables, fresh), None
            codes = codes[np.array(fresh)]
            positions = positions[np.array(fresh)] if isinstance(positions, np.ndarray) else _where(positions, fresh)
            sources = None if sources is None else _where(sources, fresh)
            sequences = _where(sequences or (), fresh)
            stored = None if stored is None else _where(stored, fresh)
            dropped = fresh.count(False)
            self.duplicates += dropped
        last = self.position - 1 if count and self.position else None
        times = None if stored is None else np.array([UNKNOWN if each is None else each for each in stored], dtype=np.int64)
        return Columns(self.typed.names, codes, positions, tables, sources, sequences, dropped, last, places, stored=times)


def _rejected(batch: RawRecords, index: int, position: int | None, error: DataError) -> Rejected:
    line = batch.lines[index] if batch.lines is not None else None
    text = batch.text(index).encode("utf-8", "replace").decode()
    return Rejected(batch.file, line, position, error.code, error.problem, text)


def _present(values: list[Any] | None) -> list[Any] | None:
    return None if values is None or all(value is None for value in values) else values


def _where(values: Sequence[Any], fresh: list[bool]) -> list[Any]:
    return [value for value, keep in zip(values, fresh, strict=True) if keep]


def _filtered(shapes: Shapes, codes: Codes, tables: dict[str, pa.RecordBatch], fresh: list[bool]) -> dict[str, pa.RecordBatch]:
    keep = np.array(fresh)
    masks = {name: keep[codes == shapes.code_of[name]] for name in tables}
    return {name: table.filter(pa.array(masks[name])) for name, table in tables.items() if masks[name].any()}


def _table(rows: list[tuple[Any, ...]], shape: RecordShape) -> pa.RecordBatch:
    arrays = []
    for attribute, values in zip(shape.attributes, zip(*rows, strict=True), strict=False):
        made = arrow_array(values, attribute.type)
        if not isinstance(made, pa.Array):  # more than 2 GB of text: only many huge records in one batch do this
            raise oversized(f"a batch of {len(rows)} records of '{shape.name}'")
        arrays.append(made)
    return record_batch(arrays, shape.schema, len(rows))
