"""Converts record batches of the input from Spark to checked arrivals.

Rows are grouped by type and checked as every other input (transport/): valid rows are in Arrow's form of the declared data
types, the others are rejected with a code and the reason. A row of a type that no subscription reads is not checked; it only
has a place in the order.

Takes: `InputColumns`, which describes the columns, then record batches. Gives: arrivals by type. Never: orders, numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.errors import DataError
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.order.total import SEQUENCE, SOURCE, order_column
from fairlead.transport.admission.converters import MICROSECONDS
from fairlead.transport.admission.gate import Intake, OnBad
from fairlead.transport.admission.problems import Rejected, at, not_published, unknown_type
from fairlead.transport.tables.table_reader import examined, take_rows

REJECTED = ":rejected"
"""Takes the place of a type among arrivals: the rejected rows, at their places."""
CODE, TYPE, STORED = "_code", "_type", "_stored"
AHEAD_OF = ":ahead "
"""Before the name of a type among arrivals: its rows whose time is too far after that of their storage."""
REFUSED = [("code", pa.string()), ("problem", pa.string()), ("record", pa.string())]


@dataclass(frozen=True)
class InputColumns:
    """`columns`: for every type that is read, the input column of each attribute. `others`: types that may occur and are not
    read. `keys`: the number of order columns. `ahead`: how far the first of them may be after the time of storage, in
    microseconds; None if that does not matter, or is not known."""

    catalogue: Catalogue
    columns: Mapping[str, Mapping[str, str]]
    others: tuple[str, ...]
    keys: int
    sourced: bool = False
    on_bad: OnBad = "stop"
    ahead: int | None = None

    @property
    def types(self) -> tuple[str, ...]:
        return (*self.columns, *self.others)

    def heartbeats(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows are heartbeats: they have only the first order column."""
        if HEARTBEAT.name not in self.types:
            return np.zeros(batch.num_rows, dtype=bool)
        codes: npt.NDArray[np.int32] = batch.column(CODE).fill_null(-1).to_numpy(zero_copy_only=False)
        found: npt.NDArray[np.bool_] = codes == self.types.index(HEARTBEAT.name)
        return found

    @property
    def reserved(self) -> list[str]:
        order = [order_column(key) for key in range(self.keys)]
        return [*order, *([SOURCE, SEQUENCE] if self.sourced else [])]

    @property
    def carried(self) -> list[str]:
        """The columns of the input that are no attributes."""
        return [*self.reserved, *([] if self.ahead is None else [STORED])]


class ArrivalReader:
    """Reads batches in one process."""

    def __init__(self, reading: InputColumns) -> None:
        self.reading = reading
        self.intakes = {name: _intake(reading, name) for name in reading.columns}

    def codes(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """The number of each row's type among `reading.types`; one past the last if the type is unknown or null."""
        return batch.column(CODE).fill_null(len(self.reading.types)).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def arrivals(self, code: int, batch: pa.RecordBatch) -> dict[str, pa.Table]:
        """Rows of one type."""
        reading = self.reading
        reserved = batch.select(reading.carried)
        if code >= len(reading.types):
            refused = [unknown(name, reading) for name in batch.column(TYPE).to_pylist()]
            if reading.on_bad == "stop":
                raise at(refused[0], _place(batch, 0, reading))
            return {REJECTED: self._refused(refused, range(batch.num_rows), reserved)}
        name = reading.types[code]
        if name not in reading.columns:
            return {name: pa.Table.from_batches([reserved])}
        columns = reading.columns[name]
        given = pa.RecordBatch.from_arrays([self._column(batch, each) for each in columns.values()], list(columns))
        if not columns:
            return {name: pa.Table.from_batches([reserved])}
        refused_here: list[Rejected] = []
        intake = self.intakes[name]
        intake.position, intake.rejects = 0, refused_here.append
        try:
            found = take_rows(examined(given, intake.typed, name), intake, file=name)
        except DataError as error:
            raise _told(error, name, batch, reading) from None
        table = (
            pa.Table.from_batches([found.tables[name]])
            if name in found.tables
            else intake.typed.by_name[name].schema.empty_table()
        )
        if not refused_here:
            kept = reserved
        else:
            bad = [each.position for each in refused_here if each.position is not None]
            kept = reserved.take(pa.array(np.delete(np.arange(batch.num_rows), bad)))
        for each in kept.schema.names:
            table = table.append_column(each, kept.column(each))
        made = {name: table}
        if refused_here:
            made[REJECTED] = self._refused(refused_here, bad, reserved)
        return made

    def apart(self, arrivals: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The arrivals, of which those that are ahead stand apart. A heartbeat that is ahead says nothing."""
        made = {}
        for name, table in arrivals.items():
            ahead = _ahead(table, self.reading.ahead)
            table = table.drop_columns([STORED])
            made[name] = table.filter(pa.array(~ahead)) if ahead.any() else table
            if ahead.any() and name not in (REJECTED, HEARTBEAT.name):
                made[AHEAD_OF + name] = table.filter(pa.array(ahead))
            elif name == REJECTED:
                made[name] = table
        return made

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """The column of an attribute; if it is an order column, it is a time."""
        column = batch.column(name)
        return column.view(MICROSECONDS) if name in self.reading.reserved else column

    def _refused(self, refused: Sequence[Any], rows: Sequence[int], reserved: pa.RecordBatch) -> pa.Table:
        texts = [(each.code, each.problem, getattr(each, "record", None)) for each in refused]
        columns = [pa.array(column, pa.string()) for column in zip(*texts, strict=True)]
        there = reserved.take(pa.array(rows, pa.int64()))
        names = [name for name, _ in REFUSED]
        return pa.table([*columns, *there.columns], [*names, *there.schema.names])


def _ahead(table: pa.Table, allowed: int | None) -> npt.NDArray[np.bool_]:
    """Which rows are ahead; one that does not say when it was stored is not."""
    stored = table.column(STORED)
    late_enough = pc.greater_equal(pc.add(stored, allowed), table.column(order_column(0)).cast(pa.int64()))
    found: npt.NDArray[np.bool_] = pc.invert(late_enough).fill_null(False).to_numpy()
    return found


def _told(error: DataError, name: str, batch: pa.RecordBatch, reading: InputColumns) -> DataError:
    """An error at a row of the batch; only the order columns let a user find the row."""
    head, _, row = str(error.place or "").rpartition(", row ")
    if head != name or not row.isdigit():
        return error
    return at(DataError(error.code, error.problem, error.fix, None, error.excerpt), _place(batch, int(row), reading))


def _place(batch: pa.RecordBatch, row: int, reading: InputColumns) -> str:
    values = [str(batch.column(order_column(key))[row].as_py()) for key in range(reading.keys)]
    return f"the row at {', '.join(values)} of the order"


def _intake(reading: InputColumns, name: str) -> Intake:
    alone = Catalogue((reading.catalogue[name],))
    return Intake(alone, on_bad=reading.on_bad)


def unknown(name: str | None, reading: InputColumns) -> DataError:
    """The error of a row whose type is not part of the input."""
    declared = None if name is None else reading.catalogue.get(name)
    if name is None:
        return DataError("D027", "the record has no type", "name the event type in the type column")
    if declared is None:
        return unknown_type(name, reading.types)
    if declared.name == HEARTBEAT.name:
        return DataError("D003", "attribute 'at' of 'Heartbeat' is missing", "add a column 'at' of timestamps to the frame")
    return not_published(declared)
