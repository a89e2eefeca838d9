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
from fairlead.model.relations.identity import POSITIONS_MAX
from fairlead.order.log_holdback import LOGGED, STORED
from fairlead.order.total import SEQUENCE, SOURCE, order_column
from fairlead.transport.admission.converters import MICROSECONDS
from fairlead.transport.admission.gate import Intake, OnBad
from fairlead.transport.admission.problems import Rejected, at, not_published, unknown_type
from fairlead.transport.tables.table_reader import examined, take_rows

REJECTED = ":rejected"
"""Takes the place of a type among arrivals: the rejected rows, at their places."""
CODE, TYPE = "_code", "_type"
AHEAD_OF = ":ahead "
"""Before the name of a type among arrivals: its rows whose time is too far after that of their storage."""
UNPLACED = ":unplaced"
"""The same for rows that have no place in the order."""
REFUSED = [("code", pa.string()), ("problem", pa.string()), ("record", pa.string())]


@dataclass(frozen=True)
class InputColumns:
    """`columns`: for every type that is read, the input column of each attribute. `others`: types that may occur and are not
    read. `keys`: the number of order columns. `ahead`: how far the first of them may be after the time of storage, in
    microseconds; None if that does not matter, or is not known. `logged`: rows say where in a log they are."""

    catalogue: Catalogue
    columns: Mapping[str, Mapping[str, str]]
    others: tuple[str, ...]
    keys: int
    sourced: bool = False
    on_bad: OnBad = "stop"
    ahead: int | None = None
    logged: bool = False
    order_by: tuple[str, ...] = ()
    """The order columns, as the user calls them."""
    positioned: bool = False
    """Whether the order column is the position itself."""

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
        if self.logged:
            return [*self.reserved, *LOGGED]
        return [*self.reserved, *([] if self.ahead is None else [STORED])]


class ArrivalReader:
    """Reads batches in one process."""

    def __init__(self, reading: InputColumns) -> None:
        self.reading = reading
        self.intakes = {name: _intake(reading, name) for name in reading.columns}

    def codes(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """The number of each row's type among `reading.types`; one past the last if the type is unknown or null."""
        return batch.column(CODE).fill_null(len(self.reading.types)).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def placed(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Table | None]:
        """The rows that have a place in the order, and the others, refused; None if there are none. Raises DataError if bad
        rows stop the job."""
        missing = self._without_place(batch)
        if not missing.any():
            return batch, None
        return batch.filter(pa.array(~missing)), self._unplaced(batch.filter(pa.array(missing)))

    def _without_place(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows have a null or NaN in an order column, or no valid position."""
        reading, missing = self.reading, np.zeros(batch.num_rows, dtype=bool)
        for key in range(reading.keys):
            column = batch.column(order_column(key))
            if column.null_count:
                beats = reading.heartbeats(batch) & (key > 0)
                missing |= column.is_null().to_numpy(zero_copy_only=False) & ~beats
            if pa.types.is_floating(column.type):
                missing |= pc.is_nan(column).fill_null(False).to_numpy(zero_copy_only=False)
            if reading.positioned:
                positions = column.fill_null(0).to_numpy(zero_copy_only=False)
                missing |= (positions < 0) | (positions >= POSITIONS_MAX)
        return missing

    def _unplaced(self, batch: pa.RecordBatch) -> pa.Table:
        reading = self.reading
        if reading.positioned:
            code, fix = "D023", "name the column that numbers all rows, such as the offset of a log"
            problems = [f"{value!r} is no position" for value in batch.column(order_column(0)).to_pylist()]
        else:
            code, fix = "D019", "filter these rows out, or order by columns that are never null"
            columns = [batch.column(order_column(key)).to_pylist() for key in range(reading.keys)]
            firsts = [
                next(at for at, value in enumerate(row) if value is None or value != value)
                for row in zip(*columns, strict=True)
            ]
            problems = [f"the row has no value in the order column '{reading.order_by[at]}'" for at in firsts]
        if reading.on_bad == "stop":
            raise DataError(code, problems[0], fix)
        names = pc.coalesce(pa.array(reading.types, pa.string()).take(batch.column(CODE)), batch.column(TYPE))
        return pa.table([pa.repeat(code, len(problems)), pa.array(problems), names], [name for name, _ in REFUSED])

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
            table = table if self.reading.logged else table.drop_columns([STORED])
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
