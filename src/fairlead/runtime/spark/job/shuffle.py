"""The steps of a job, as functions over Arrow batches that Spark's Python workers run.

    sliced      the input of one task            ─► checked arrivals, split into slices of the order
    numbered    the arrivals of one slice        ─► its rows in order, numbered within the slice, for each target
    matched     all slices of some targets       ─► relations

A target is a group (targets.py), or one bucket of a keyed group; a task of Spark may have several of these, which it matches
one after the other. Numbers become positions in `matched`: a slice begins where the slices before it end, and every target
receives the length of every slice.

Takes: values from the driver (pickled). Gives: generators for `mapInArrow`. Never: makes a Python object for an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.engine import Engine
from fairlead.errors import DataError
from fairlead.model.blobs import packed, unpacked
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.plans.key_parts import key_column
from fairlead.order.event_identity import event_identities
from fairlead.order.repeats import behind, later
from fairlead.order.total import SEQUENCE, SOURCE, RowOrder, in_order, one_zero, order_column, sortable
from fairlead.runtime.spark.input.arrivals import AHEAD_OF, REJECTED, UNPLACED, ArrivalReader, InputColumns
from fairlead.runtime.spark.input.sequences import POSITION, Sequenced, lasts_in
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.job.target_rows import IDENTITY, bytes_of, columns_of
from fairlead.runtime.spread.buckets import buckets_of
from fairlead.runtime.spread.targets import TargetGroup

SLICES = pa.schema([("slice", pa.int32()), ("type", pa.string()), ("blob", pa.binary())])
TARGETS = pa.schema(
    [
        ("task", pa.int32()),
        ("target", pa.int32()),
        ("slice", pa.int32()),
        ("type", pa.string()),
        ("rows", pa.int64()),
        ("ties", pa.int64()),
        ("blob", pa.binary()),
    ]
)
LASTS = ":lasts"
"""Takes the place of a type: the last sequence of each source in a slice, which every target receives."""
SEQUENCES = ":sequences"
"""Takes the place of a type: positions, sources and sequences, from which one target for each source finds the repeats."""
AHEAD_REASON = "ahead: the event time is later than the time of storage by more than AHEAD allows"
ROWS_TOGETHER = 262_144
"""Input rows that are split into slices together: a blob of fewer would be mostly schema."""
BYTES_TOGETHER = 4 << 20
"""Bytes of blobs in one batch for Spark: a batch for each would cost a fifth of a millisecond."""


@dataclass(frozen=True)
class Job:
    """Data of every step. `cuts`: the first order value of each slice but the first. `buckets`: of every keyed group; one task
    of Spark has `together` of them."""

    reading: InputColumns
    groups: tuple[TargetGroup, ...]
    buckets: int
    cuts: npt.NDArray[Any]
    until: int | None = None
    together: int = 1
    order: EventOrder | None = None
    """None if the rows have positions, or are ordered by columns that are no attributes."""

    @property
    def positioned(self) -> bool:
        return self.reading.positioned

    @property
    def descending(self) -> tuple[bool, ...]:
        return () if self.order is None else self.order.descending

    @property
    def targets(self) -> int:
        return self.first_target(len(self.groups))

    @property
    def tasks(self) -> int:
        return sum(self.buckets // self.together if group.is_keyed else 1 for group in self.groups)

    def first_target(self, number: int) -> int:
        return sum(self.targets_of(group) for group in self.groups[:number])

    def targets_of(self, group: TargetGroup) -> int:
        return self.buckets if group.is_keyed else 1

    def group_of(self, target: int) -> TargetGroup:
        return self._place(target)[0]

    def task_of(self, target: int) -> int:
        return self._place(target)[1]

    def _place(self, target: int) -> tuple[TargetGroup, int]:
        task = 0
        for group in self.groups:
            each = self.together if group.is_keyed else 1
            if target < self.targets_of(group):
                return group, task + target // each
            target -= self.targets_of(group)
            task += self.targets_of(group) // each
        raise IndexError(target)


def sliced(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    reader = ArrivalReader(job.reading)
    for batch in together(batches):
        for number, name, table in cut(job, reader, batch):
            yield _rows(SLICES, [(number, name, packed(table))])


def cut(job: Job, reader: ArrivalReader, batch: pa.RecordBatch) -> Iterator[tuple[int, str, pa.Table]]:
    """The rows of a batch by slice and type, checked; those without a place in the order are in the first slice."""
    batch, unplaced = reader.placed(batch)
    if unplaced is not None:
        yield 0, UNPLACED, unplaced
    codes = reader.codes(batch).astype(np.int32)
    kinds = len(job.reading.types) + 1
    if len(job.cuts):
        slices = np.searchsorted(job.cuts, _values(batch.column(order_column(0))), side="right")
        if job.descending and job.descending[0]:
            slices = len(job.cuts) - slices
        codes += slices.astype(np.int32) * kinds
    counts = np.bincount(codes)
    if (counts > 0).sum() > 1:
        batch = batch.take(pa.array(np.argsort(codes.astype(np.int16) if len(counts) < 2**15 else codes, kind="stable")))
    start = 0
    for code in np.flatnonzero(counts).tolist():
        rows = int(counts[code])
        arrivals = reader.arrivals(code % kinds, batch.slice(start, rows))
        for name, table in (arrivals if job.reading.ahead is None else reader.apart(arrivals)).items():
            if len(table):
                yield code // kinds, name, table
        start += rows


def _values(column: pa.Array) -> npt.NDArray[Any]:
    return sortable(one_zero(column)).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def numbered(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found: dict[int, dict[str, list[pa.Table]]] = {}
    for batch in batches:
        for number, name, blob in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), batch.column(2), strict=True):
            found.setdefault(number, {}).setdefault(name, []).append(unpacked(blob))
    for number in sorted(found):
        arrivals = {name: pa.concat_tables(tables) for name, tables in found.pop(number).items()}
        apart = {name: arrivals.pop(name) for name in sorted(arrivals) if name == UNPLACED or name.startswith(AHEAD_OF)}
        order = in_order(arrivals, job.reading.keys, job.descending)
        rows = _end_of_positions(order, arrivals) if job.positioned else len(order)
        held: list[tuple[Any, ...]] = [
            (job.task_of(target), target, number, "", rows, 0 if target else order.ties, None) for target in range(job.targets)
        ]
        size = 0
        for target, name, table in (*((0, *each) for each in apart.items()), *_told(job, number, order, arrivals)):
            blob = packed(table)
            held.append((job.task_of(target), target, number, name, 0, 0, blob))
            size += len(blob)
            if size >= BYTES_TOGETHER:
                yield _rows(TARGETS, held)
                held, size = [], 0
        if held:
            yield _rows(TARGETS, held)


def _told(job: Job, number: int, order: RowOrder, arrivals: Mapping[str, pa.Table]) -> Iterator[tuple[int, str, pa.Table]]:
    """The targets' share of a slice: rows of the types that they read, without repeats, and rejected rows."""
    sequenced = Sequenced(order, arrivals, job.positioned, by_value=job.order is not None) if job.reading.sourced else None
    wanted = {REJECTED}.union(*(group.reads for group in job.groups))
    for name in (each for each in order.types if each in wanted):
        rows, places = order.rows_of(name), order.places[name]
        if sequenced is not None:
            fresh = ~sequenced.repeated[places]
            rows, places = rows[fresh], places[fresh]
        if not len(rows):
            continue
        table = ordered_rows(job, name, arrivals[name], rows, places)
        if sequenced is not None and number > 0 and name != REJECTED and job.order is None:
            table = sequenced.beside(table, places)
        for target, part in shares(job, name, table):
            yield target, name, part
    if sequenced is not None:
        for target in range(job.targets) if job.order is None else ():
            yield target, LASTS, sequenced.lasts
        for target, part in sequenced.by_owner(job.targets, is_known=number == 0 or job.order is not None):
            yield target, SEQUENCES, part


def _end_of_positions(order: RowOrder, arrivals: Mapping[str, pa.Table]) -> int:
    """The number after the last position of a slice; 0 if it has no rows. Raises DataError if two rows have the same
    position."""
    if order.ties:
        fix = "name a column that numbers all rows, such as the offset of a log with one partition"
        raise DataError("D034", f"{order.ties:,} rows have the position of another row", fix)
    lasts = (arrivals[name].column(order_column(0))[int(order.rows_of(name)[-1])].as_py() for name in order.types)
    return max((last + 1 for last in lasts), default=0)


def ordered_rows(
    job: Job, name: str, table: pa.Table, rows: npt.NDArray[np.int64], places: npt.NDArray[np.int64], sourced: bool = False
) -> pa.Table:
    """The rows of a type in their order, with their numbers and identities in place of the order columns. `sourced`: with their
    sources and sequences, too."""
    positions: Any = places
    if job.positioned:
        positions = _values(table.column(order_column(0)).combine_chunks())[rows]
    if len(rows) != len(table) or not (rows[1:] > rows[:-1]).all():
        table = table.take(pa.array(rows))
    if job.order is not None and name in job.reading.columns:
        table = table.append_column(IDENTITY, bytes_of(event_identities(job.reading.catalogue[name], table, job.order)))
    dropped = [each for each in job.reading.reserved if not (sourced and each in (SOURCE, SEQUENCE))]
    return table.append_column(POSITION, pa.array(positions, pa.int64())).drop_columns(dropped)


def shares(job: Job, name: str, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Each target's share of the rows of a type."""
    if name == REJECTED:
        yield 0, table
    for number, group in enumerate(job.groups):
        if name not in group.reads:
            continue
        first = job.first_target(number)
        if not group.is_keyed:
            yield first, table
            continue
        keys = [key_column(table, each) for each in group.keys[name]]
        buckets = buckets_of(keys, len(table), job.buckets)
        by_bucket = np.argsort(buckets.astype(np.int16) if job.buckets < 2**15 else buckets, kind="stable")
        counts = np.bincount(buckets + 1, minlength=job.buckets + 1)
        moved = table.take(pa.array(by_bucket)) if (counts > 0).sum() > 1 else table
        start = int(counts[0])
        for bucket, rows in enumerate(counts[1:].tolist()):
            if rows:
                yield first + bucket, moved.slice(start, rows).combine_chunks()
            start += rows


def matched(job: Job, outcome: ResultRows, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of some targets, one after the other, each slice after slice."""
    for target, slices in groupby(_by_slice(batches), key=itemgetter(0)):
        task = Task(job, outcome, job.group_of(target))
        for _, rows, tables in slices:
            yield from task.feed(tables, rows).to_batches()
        yield from task.finish().to_batches()


class Task:
    """A running target: its engine, and how many rows of the whole order have passed."""

    def __init__(self, job: Job, outcome: ResultRows, group: TargetGroup) -> None:
        self.job, self.outcome = job, outcome
        self.group = group
        self.engine = Engine(self.group.plan)
        self.passed = 0
        self.lasts: dict[str | None, int] = {}
        self.since: dict[str, int] = {}
        """On a stream: by digest, the number of the rule change that added each subscription."""

    def feed(self, tables: Mapping[str, Sequence[pa.Table]], rows: int) -> pa.Table:
        """The next part of the order. `rows`: the number of its rows; for a log, the position after its last."""
        offset = 0 if self.job.positioned else self.passed
        self.passed = max(self.passed, rows) if self.job.positioned else self.passed + rows
        made = list(self._apart(tables, offset))
        for each in tables.get(SEQUENCES, ()):
            again = each.filter(pa.array(each.column("repeated").to_numpy() | self._behind(each)))
            if len(again):
                made.append(self.outcome.repeated(_moved(again, offset), again.column(SOURCE), again.column(SEQUENCE)))
        events = {name: self._fresh(pa.concat_tables(parts)) for name, parts in tables.items() if not name.startswith(":")}
        for each in tables.get(LASTS, ()):
            self.lasts = later(self.lasts, lasts_in(each))
        columns = columns_of(self.group, events, offset, self.passed - 1 if self.passed else None)
        if len(columns) or self.passed:
            made.append(self.outcome.relations(self.engine.feed(columns)))
        return pa.concat_tables(made) if made else self.outcome.schema.empty_table()

    def _apart(self, tables: Mapping[str, Sequence[pa.Table]], offset: int) -> Iterator[pa.Table]:
        """Rows that are rejected, or ahead. Those without a place have no position."""
        for each in tables.get(REJECTED, ()):
            texts = (each.column(name).combine_chunks() for name in ("code", "problem", "record"))
            yield self.outcome.rejected(_moved(each, offset), *texts)
        for each in tables.get(UNPLACED, ()):
            yield self.outcome.unplaced(each)
        for name in sorted(each for each in tables if each.startswith(AHEAD_OF)):
            for each in tables[name]:
                yield self.outcome.ahead(name.removeprefix(AHEAD_OF), each, AHEAD_REASON)

    def _behind(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        return behind(table.column(SOURCE).combine_chunks(), table.column(SEQUENCE).combine_chunks(), self.lasts)

    def _fresh(self, table: pa.Table) -> pa.Table:
        """The rows that repeat no sequence of earlier parts."""
        if not self.lasts or SEQUENCE not in table.column_names:
            return table
        again = self._behind(table)
        return table.filter(pa.array(~again)) if again.any() else table

    def finish(self) -> pa.Table:
        return self.outcome.relations(self.engine.finish(self.job.until))


def _moved(table: pa.Table, offset: int) -> pa.Array:
    return pa.array(table.column(POSITION).to_numpy() + offset)


def _by_slice(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, dict[str, list[pa.Table]]]]:
    """The rows of one target and slice together; they arrive sorted by both."""
    current: tuple[int, int] | None = None
    rows = 0
    tables: dict[str, list[pa.Table]] = {}
    for batch in batches:
        for target, number, name, count, blob in zip(
            *(batch.column(each).to_pylist() for each in ("target", "slice", "type", "rows")), batch.column("blob"), strict=True
        ):
            if current is not None and (target, number) != current:
                yield current[0], rows, tables
                rows, tables = 0, {}
            current = (target, number)
            rows += count
            if blob.is_valid:
                tables.setdefault(name, []).append(unpacked(blob))
    if current is not None:
        yield current[0], rows, tables


def together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_TOGETHER:
            yield _combined(held)
            held, rows = [], 0
    if rows:
        yield _combined(held)


def _combined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _rows(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema=schema
    )
