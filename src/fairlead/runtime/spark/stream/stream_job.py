"""An unbounded input on Spark: the steps of a batch job, with state between micro-batches.

    input ─packed─► blobs ─one task─► sequenced ─► blobs ─by target─► matched ─► blobs ─unpacked─► relations

`sequenced` is one stateful task for the whole stream: it holds arrivals back until the frontier has passed them
(order/holdback.py) and assigns each its position, as the log does elsewhere. `matched` is a stateful task for every target (a
group, or a bucket of a keyed one). Between them there is one blob for each type and micro-batch, so the cost of a stateful
call, about a millisecond, is paid a few times in a micro-batch, never for a row. The state of a task is one value: the held
rows, or the dumped state of the engine. Spark's side of it is in processors.py.

A stream keeps the number of buckets with which it began: it is in the state, and targets receive it; a run that asks for
another number is rejected. The rules may change: the targets of a group are in the state, too, targets receive the number of
the rule change that added each subscription, and the metrics of the order report the changes.

Takes: an Input, the groups of a plan and a frontier. Gives: a streaming DataFrame of `Outcome.schema`. Never: depends on how
the stream is split into micro-batches or on the number of partitions, except for late events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.errors import DataError
from fairlead.model.blobs import packed, unpacked
from fairlead.model.columns import arrow_schema
from fairlead.model.identity import POSITIONS_MAX
from fairlead.model.plan import Plan
from fairlead.order.holdback import Frontier, HoldBack, head_and_rest, with_head
from fairlead.order.repeats import behind, later
from fairlead.order.total import order_column
from fairlead.runtime.spark.input.arrivals import CODE, REJECTED, TYPE, ArrivalReader
from fairlead.runtime.spark.input.frames import InputFrame
from fairlead.runtime.spark.input.sequences import Sequenced, lasts_in
from fairlead.runtime.spark.job.parcel import Parcel
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.job.shuffle import Job, cut, ordered_rows, shares, together
from fairlead.runtime.spark.job.targets import TargetGroup
from fairlead.runtime.spark.setup.garbage_collection import spare_what_is_loaded
from fairlead.runtime.spark.stream.resumption import ZONE, RuleChange, agree_in, agree_in_buckets, changed, head
from fairlead.runtime.spark.stream.spreading import key_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ARRIVED = pa.schema([("one", pa.int32()), ("type", pa.string()), ("blob", pa.binary())])
TOLD = "target int, buckets int, whose string, type string, blob binary, held bigint, ties bigint, change string"
FOUND = "blob binary"
APART = -1
"""Takes the place of a target: rows that go to the output unchanged."""
COUNTED = -2
"""Takes the place of a target: a row that only contains the number of held rows, of broken ties, and the rule changes."""
UNPLACED = ":unplaced"
"""Takes the place of a type among arrivals: rows that have no place in the order. Their blob goes to the output."""
BLOB_BYTES = 64 << 20
"""The largest blob: a first micro-batch may be a whole log, and a Java array ends at 2 GB."""
ORDER = "fairlead_order"
"""The name of the observation of the order: held rows, broken ties and rule changes, for listeners (progress.py)."""
BLIND = "\0"
"""Suffix of a type's name: rows of it that arrived when no subscription read it."""
LATE_REASON = "late: later events of the order were already released"


@dataclass(frozen=True)
class Begun:
    """A group in a stream: the first of its targets, and by digest the number of the rule change that added each
    subscription."""

    first: int
    since: Mapping[str, int]


@dataclass(frozen=True)
class Setup:
    """Data of the steps. `identity`: what a checkpoint must have in common, by name. `asked`: the number of buckets that the
    user wants, if any. `start`: identifies this start of a query; a worker's cache of another start may have other names and
    types."""

    job: Job
    outcome: ResultRows
    frontier: Frontier
    order_by: tuple[str, ...]
    identity: Mapping[str, Any]
    asked: int | None = None
    start: str = field(default_factory=lambda: uuid4().hex)
    blob_bytes_max: int = BLOB_BYTES

    @property
    def names(self) -> dict[str, str]:
        """By name, the digests of all delivered subscriptions."""
        return {name: digest for each in self.job.groups for name, digest in zip(each.names, each.digests, strict=True)}


def match_stream(
    plan: Plan, given: InputFrame, groups: tuple[TargetGroup, ...], asked: int | None, cores: int, frontier: Frontier
) -> DataFrame:
    """`asked`: the number of buckets that the user wants; otherwise a new stream has one for each core."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    from fairlead.runtime.spark.stream.processors import MatchProcessor, Sequencer

    setup = setup_of(plan, given, groups, asked, cores, frontier)
    parcel, relations = Parcel(setup), from_arrow_schema(setup.outcome.schema)

    def arrive(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_what_is_loaded()
        return arrived(parcel.content, batches)

    come = given.frame.mapInArrow(arrive, from_arrow_schema(ARRIVED)).groupBy("one")
    told = come.transformWithState(Sequencer(parcel), TOLD, "Append", "None")
    metric = ORDER if plan.whole is None else f"{ORDER} {plan.subscriptions[0].types}"  # each part of a plan has its own
    counts = F.max("held").alias("held"), F.sum("ties").alias("ties"), F.max("change").alias("change")
    found = told.observe(metric, *counts).where(F.col("target") != COUNTED).drop("held", "ties", "change").groupBy("target")
    return found.transformWithState(MatchProcessor(parcel), FOUND, "Append", "None").mapInArrow(delivered, relations)


def setup_of(
    plan: Plan, given: InputFrame, groups: tuple[TargetGroup, ...], asked: int | None, cores: int, frontier: Frontier
) -> Setup:
    kinds = [given.frame.schema[order_column(key)].dataType.simpleString() for key in range(given.reading.keys)]
    identity = {
        "order_by": list(given.order_by),
        "types of the order columns": kinds,
        "use of positions": given.positioned,
        "use of sources": given.reading.sourced,
    }
    if given.zone is not None:
        identity[ZONE] = given.zone
    job = Job(given.reading, groups, asked or cores, np.zeros(0, dtype=np.int64), given.positioned, order=plan.order)
    return Setup(job, ResultRows(plan), frontier, given.order_by, identity, asked)


def arrived(setup: Setup, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the input, checked, as one blob for each type."""
    reader = ArrivalReader(setup.job.reading)
    for batch in together(batches):
        missing = _without_place(setup, batch)
        if missing is not None:
            yield _arrival(UNPLACED, _refused(setup, batch.filter(pa.array(missing))))
            batch = batch.filter(pa.array(~missing))
        for _, name, table in cut(setup.job, reader, batch) if batch.num_rows else ():
            yield _arrival(name, table)


def delivered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Blobs of rows become rows."""
    spare_what_is_loaded()
    for batch in batches:
        for blob in batch.column(0):
            yield from unpacked(blob).to_batches()


def _arrival(name: str, table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([value], kind) for value, kind in zip((0, name, packed(table)), ARRIVED.types, strict=True)], schema=ARRIVED
    )


def _without_place(setup: Setup, batch: pa.RecordBatch) -> npt.NDArray[np.bool_] | None:
    """Which rows have no place in the order: an order column is null or NaN, or a position is invalid. None if all have one."""
    missing = np.zeros(batch.num_rows, dtype=bool)
    beats = setup.job.reading.heartbeats(batch)
    for key in range(setup.job.reading.keys):
        column = batch.column(order_column(key))
        if column.null_count:
            missing |= column.is_null().to_numpy(zero_copy_only=False) & ~(beats & (key > 0))
        if pa.types.is_floating(column.type):
            missing |= pc.is_nan(column).fill_null(False).to_numpy(zero_copy_only=False)
        if setup.job.positioned:
            positions = column.fill_null(0).to_numpy(zero_copy_only=False)
            missing |= (positions < 0) | (positions >= POSITIONS_MAX)
    return missing if missing.any() else None


def _refused(setup: Setup, batch: pa.RecordBatch) -> pa.Table:
    """Rows without a place, as rows of the output. Raises DataError if bad rows stop the stream."""
    if setup.job.positioned:
        code, fix = "D023", "name the column that numbers all rows, such as the offset of a log"
        problems = [f"{value!r} is no position" for value in batch.column(order_column(0)).to_pylist()]
    else:
        code, fix = "D019", "filter these rows out, or order by columns that are never null"
        columns = [batch.column(order_column(key)).to_pylist() for key in range(setup.job.reading.keys)]
        firsts = [
            next(at for at, value in enumerate(row) if value is None or value != value) for row in zip(*columns, strict=True)
        ]
        problems = [f"the row has no value in the order column '{setup.order_by[at]}'" for at in firsts]
    if setup.job.reading.on_bad == "stop":
        raise DataError(code, problems[0], fix)
    names = pc.coalesce(pa.array(setup.job.reading.types, pa.string()).take(batch.column(CODE)), batch.column(TYPE))
    nothing = pa.nulls(len(problems), pa.int64())
    return setup.outcome.rejected(nothing, pa.array([code] * len(problems)), pa.array(problems), names)


class Sequencing:
    """The one order of a stream: arrivals in, numbered rows for each target out."""

    def __init__(self, setup: Setup, state: bytes | None) -> None:
        self.setup, self.job = setup, setup.job
        self.back = HoldBack(setup.frontier, setup.job.reading.keys, setup.job.descending)
        self.lasts: dict[str | None, int] = {}
        self.ties = 0
        self.groups: dict[str, Begun] = {}
        self.next_target = self.changes = 0
        self.change: RuleChange | None = None
        names: dict[str, str] = {}
        if state is not None:
            found, rest = opened(state, setup)
            agree_in_buckets(found["buckets"], setup.asked)
            names = found.get("names", {})
            self.job = replace(setup.job, buckets=found["buckets"])
            self.lasts = dict(found["sequences"])
            self.next_target, self.changes = found["next"], found["changes"]
            self.groups = {name: Begun(first, dict(since)) for name, (first, since) in found["groups"].items()}
            self.back.load(rest)
            self.back.held = self._fitted(self.back.held)
        self._settle(names)

    def _settle(self, names: Mapping[str, str]) -> None:
        """Assigns targets to groups, and records the rule change that added each subscription. A target that was given up is
        never reused, nor is the earlier state of a subscription that was removed and added again. `names`: digests by the names
        of the subscriptions in the last micro-batch."""
        before = {name: sorted(each.since) for name, each in self.groups.items()}
        now = {each.identity: sorted(set(each.digests)) for each in self.job.groups}
        if before == now:
            return
        self.changes += 1
        had = {digest for each in before.values() for digest in each}
        self.change = changed(had, names, self.setup.names, self.back.next_position)
        kept = self.groups
        self.groups = {}
        for each in self.job.groups:
            old = kept.get(each.identity)
            if old is None:
                old = Begun(self.next_target, {})
                self.next_target += self.job.targets_of(each)
            self.groups[each.identity] = Begun(old.first, {d: old.since.get(d, self.changes) for d in each.digests})

    def _fitted(self, held: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Adapts rows that were held back under other types and rules. Rows that no subscription read then arrived without
        their attributes: such a row keeps its place in the order, and new subscriptions begin after it. Rows that no
        subscription reads any more keep only their place."""
        found = {}
        for name, table in held.items():
            if name == REJECTED or name.endswith(BLIND):
                found[name] = table
                continue
            if name not in self.job.reading.columns:
                found[name] = table.select(list(self.job.reading.reserved))
                continue
            schema, given = arrow_schema(self.job.reading.catalogue[name]), set(table.column_names)
            if len(schema) and not given.intersection(schema.names):
                found[name + BLIND] = table
                continue
            columns = {each.name: _column(table, each) for each in schema}
            columns |= {each: table.column(each) for each in self.job.reading.reserved}
            found[name] = pa.table(columns)
        return found

    @property
    def buckets(self) -> int:
        return self.job.buckets

    def key(self, target: int) -> int:
        """The key of a target in Spark."""
        return key_of(target)

    def whose(self, target: int) -> str:
        """The description of its group that a target receives."""
        for name, each in self.groups.items():
            size = next(self.job.targets_of(group) for group in self.job.groups if group.identity == name)
            if each.first <= target < each.first + size:
                return json.dumps({"group": name, "since": dict(sorted(each.since.items()))})
        return ""

    @cached_property
    def _targets(self) -> list[int]:
        """By the number of a target in this job, its number in the checkpoint."""
        sizes = [(self.groups[each.identity].first, self.job.targets_of(each)) for each in self.job.groups]
        return [first + at for first, size in sizes for at in range(size)]

    def step(self, arrivals: Mapping[str, pa.Table]) -> Iterator[tuple[int, str, bytes]]:
        """One micro-batch: blobs for targets, with the type of their rows."""
        given = self.back.step(arrivals)
        self.ties = given.order.ties
        for name, table in given.late.items():
            yield APART, "", packed(self._late(name, table))
        again = np.zeros(len(given.order), dtype=bool)
        if self.job.reading.sourced:
            by_value = self.job.order is not None
            sequenced = Sequenced(given.order, given.tables, self.job.positioned, by_value)
            rows = np.flatnonzero(sequenced.here) if by_value else self._repeats(sequenced)
            again[sequenced.places[rows]] = True
            if len(rows):
                yield APART, "", packed(self._repeated(sequenced, rows, given.first))
        wanted = {REJECTED}.union(*(group.reads for group in self.job.groups))
        for name in (each for each in given.order.types if each in wanted):
            places = given.order.places[name]
            fresh = ~again[places]
            numbers = given.order.rows_of(name)[fresh], places[fresh] + given.first
            for target, part in shares(self.job, name, ordered_rows(self.job, name, given.tables[name], *numbers)):
                for piece in pieces(part, self.setup.blob_bytes_max):
                    yield self._targets[target], name, packed(piece)

    def _repeats(self, rows: Sequenced) -> npt.NDArray[np.int64]:
        """Which rows repeat a sequence of their source, here or in an earlier micro-batch."""
        found = np.flatnonzero(rows.here | behind(rows.sources, rows.sequences, self.lasts))
        self.lasts = later(self.lasts, lasts_in(rows.lasts))
        return found

    def _repeated(self, rows: Sequenced, chosen: npt.NDArray[np.int64], first: int) -> pa.Table:
        positions = rows.positions[chosen] + (0 if self.job.positioned else first)
        at = pa.array(chosen)
        return self.setup.outcome.repeated(pa.array(positions), rows.sources.take(at), rows.sequences.take(at))

    def _late(self, name: str, table: pa.Table) -> pa.Table:
        if name == REJECTED:
            nothing = pa.nulls(len(table), pa.int64())
            texts = (table.column(each).combine_chunks() for each in ("code", "problem", "record"))
            return self.setup.outcome.rejected(nothing, *texts)
        return self.setup.outcome.late(name, table, LATE_REASON)

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories."""
        sequences = sorted(self.lasts.items(), key=lambda each: (each[0] is not None, each[0] or ""))
        groups = {name: [each.first, dict(sorted(each.since.items()))] for name, each in self.groups.items()}
        more = {"buckets": self.job.buckets, "sequences": sequences, "next": self.next_target, "changes": self.changes}
        more |= {"groups": groups, "names": self.setup.names}
        return with_head(head(self.setup.identity) | more, self.back.dump())


def _column(table: pa.Table, wanted: pa.Field) -> Any:
    """An attribute as the type is declared now; NULL if it did not exist, or had another type."""
    if wanted.name in table.column_names and table.schema.field(wanted.name).type == wanted.type:
        return table.column(wanted.name)
    return pa.nulls(len(table), wanted.type)


def pieces(table: pa.Table, bytes_max: int) -> Iterator[pa.Table]:
    rows = max(1, len(table) * bytes_max // max(1, table.nbytes))
    for start in range(0, len(table), rows):
        yield table.slice(start, rows)


def opened(state: bytes, setup: Setup) -> tuple[dict[str, Any], memoryview]:
    found, rest = head_and_rest(state)
    agree_in(found, setup.identity)
    return found, rest
