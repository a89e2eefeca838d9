"""A finite input on Spark: three steps, two shuffles of blobs, answers that do not depend on how Spark runs them.

    input ─sliced─► blobs ─shuffle by slice─► numbered ─► blobs ─shuffle by target─► matched ─► relations

A small job runs first, when `match` is called: it counts the rows and, unless bad rows are skipped, rejects nulls in the order
columns and other errors that Spark can see. If there are many rows that are not evenly distributed, a second job samples some
thousand order values, to split the order into slices of about equal length. The cuts do not affect the answer, only how the
sorting work is distributed. For plain Parquet files the footers contain all of this (parquet_scans.py).

Takes: an Input and the groups of a plan. Gives: a DataFrame of `Outcome.schema`. Never: collects events on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fairlead.errors import DataError
from fairlead.model.events.types import HEARTBEAT, Kind
from fairlead.model.events.values import INT_RANGE
from fairlead.model.plans.plan import Plan
from fairlead.order.total import one_zero, order_column, sortable
from fairlead.runtime.spark.input.arrivals import CODE, TYPE, unknown
from fairlead.runtime.spark.input.frames import InputFrame
from fairlead.runtime.spark.input.parquet_scans import Scan, scan_of
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.job.shuffle import SLICES, TARGETS, Job, matched, numbered, sliced
from fairlead.runtime.spark.setup.garbage_collection import spare_what_is_loaded
from fairlead.runtime.spread.targets import TargetGroup

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

SLICE_ROWS = 1_000_000
"""Rows that one task sorts in memory: 100 MB of rows of 100 bytes, and its sort is a tenth of a second."""
SMALL_ROWS = 100_000
"""Below this the whole input is one slice: starting a task costs more than sorting it."""
BUCKET_ROWS = 1_000_000
"""Rows of a bucket: the queues of its keys should fit into the processor's caches. Twenty million events of W1, Q1: 17 CPU s of
matching with all keys of a task together, 9.5 with buckets."""
SHARE_ROWS = 16_384
"""Rows that a bucket should have of a slice: calls and blobs for fewer would cost more than the caches save."""
EVEN = 0.02
"""How far, as a fraction of the range, mean and deviation may differ from those of evenly distributed values."""
SAMPLE_ROWS = 10_000
"""Order values that are sampled to find cuts: slices then differ in length by some percent."""


def match_batch(
    plan: Plan,
    given: InputFrame,
    groups: tuple[TargetGroup, ...],
    cores: int,
    buckets: int,
    until: int | None,
    observation: Observation | None = None,
) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    reading = given.reading
    outcome = ResultRows(plan, certain=reading.on_bad == "stop" and not reading.sourced and reading.ahead is None)
    spark = given.frame.sparkSession
    scan = scan_of(given.sources, cores)
    cuts, rows = _cuts(given, scan, cores)
    together = _together(rows, buckets)
    job = Job(given.reading, groups, buckets * together, cuts, until, together, plan.order)

    def slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_what_is_loaded()
        return sliced(job, batches if scan is None else scan.read(number for each in batches for number in each[0].to_pylist()))

    def numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_what_is_loaded()
        return numbered(job, batches)

    def matches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_what_is_loaded()
        return matched(job, outcome, batches)

    parts = given.frame if scan is None else spark.range(0, len(scan.tasks), 1, len(scan.tasks))
    cut = parts.mapInArrow(slices, from_arrow_schema(SLICES)).repartitionById(len(cuts) + 1, "slice")
    told = cut.mapInArrow(numbers, from_arrow_schema(TARGETS))
    if observation is not None:
        told = told.observe(observation, F.sum("ties").alias("ties"))
    moved = told.repartitionById(job.tasks, "task")
    return moved.sortWithinPartitions("target", "slice").mapInArrow(matches, from_arrow_schema(outcome.schema))


def _together(rows: int, tasks: int) -> int:
    """Buckets that one task matches one after the other."""
    return max(1, min(rows // (tasks * BUCKET_ROWS), SLICE_ROWS // (tasks * SHARE_ROWS)))


def _cuts(given: InputFrame, scan: Scan | None, cores: int) -> tuple[np.ndarray[Any, Any], int]:
    """The first order value of every slice but the first, and the number of rows. Raises DataError for errors that a look at
    all rows shows."""
    nulls = None if scan is None else scan.nulls()
    if scan is None or nulls is None or any(nulls[1:]):  # of heartbeats, perhaps
        return _cuts_of_rows(given, cores)
    _require_values(given, nulls)
    count = sum(group.rows for group in scan.groups)
    slices = _slices(cores, count)
    return scan.cuts(slices) if slices > 1 else np.zeros(0, dtype=np.int64), count


def _slices(cores: int, rows: int) -> int:
    return 1 if rows < SMALL_ROWS else cores * -(-rows // (cores * SLICE_ROWS))


def _require_values(given: InputFrame, missing: Iterable[int]) -> None:
    """`missing`: for each order column, the number of rows without a value. If bad rows are skipped, workers refuse them."""
    for name, rows in zip(given.order_by, missing, strict=True) if given.reading.on_bad == "stop" else ():
        if rows:
            problem = f"{rows:,} rows have no value in the order column '{name}'"
            raise DataError("D019", problem, "filter these rows out, or order by columns that are never null", name)


def _cuts_of_rows(given: InputFrame, cores: int) -> tuple[np.ndarray[Any, Any], int]:
    """By a job over all rows."""
    from pyspark.sql import functions as F

    first = order_column(0)
    kinds = {each: given.frame.schema[each].dataType.simpleString() for each in map(order_column, range(given.reading.keys))}
    wanted = [F.count(F.lit(1)).alias("rows")]
    types = given.reading.types
    of_event = F.col(CODE) != types.index(HEARTBEAT.name) if HEARTBEAT.name in types else F.lit(True)
    for each, kind in kinds.items():
        missing = _missing(each, kind) if each == first else _missing(each, kind) & of_event
        wanted.append(F.count_if(missing).alias(each))
    if kinds[first] == "bigint":
        wanted += [F.min(first).alias("least"), F.max(first).alias("most")]
        wanted += [F.avg(first).alias("mean"), F.stddev_pop(first).alias("deviation")]
    doubts = list(_doubts(given)) if given.reading.on_bad == "stop" else []
    wanted += [column.alias(f"doubt{at}") for at, (column, _) in enumerate(doubts)]
    found = given.frame.agg(*wanted).collect()[0]
    _require_values(given, [found[each] for each in kinds])
    for at, (_, error) in enumerate(doubts):
        if found[f"doubt{at}"]:
            raise error(found[f"doubt{at}"])
    rows = found["rows"]
    slices = _slices(cores, rows)
    if kinds[first] not in ("bigint", "double") or slices == 1:
        return np.zeros(0, dtype=np.int64), rows
    if "least" in found and _is_even(found["least"], found["most"], found["mean"], found["deviation"]):
        return np.unique(np.linspace(found["least"], found["most"], slices + 1).astype(np.int64)[1:-1]), rows
    some = (F.rand() * rows < SAMPLE_ROWS) & ~_missing(first, kinds[first])
    sample = np.sort(sortable(one_zero(given.frame.select(first).where(some).toArrow().column(0).combine_chunks())).to_numpy())
    return np.unique(sample[[len(sample) * at // slices for at in range(1, slices)]]) if len(sample) else sample, rows


def _missing(name: str, kind: str) -> Column:
    """Whether a row has no value in an order column."""
    from pyspark.sql import functions as F

    return F.col(name).isNull() | F.isnan(name) if kind == "double" else F.col(name).isNull()


def _is_even(least: int, most: int, mean: float, deviation: float) -> bool:
    """Order values that are as evenly distributed as times mostly are can be cut by their range alone, without a sample."""
    width = most - least
    return abs(mean - least - width / 2) <= EVEN * width and abs(deviation - width / 12**0.5) <= EVEN * width


def _doubts(given: InputFrame) -> Iterator[tuple[Column, Callable[[Any], DataError]]]:
    """Errors of bad rows that Spark itself can count, at the cost of a comparison each: the count, and its error. (Counts
    alone: with a text among its results, Spark would compute all of them row by row without compiling.) The workers find all
    other errors in values (failures.py)."""
    from pyspark.sql import functions as F

    reading, of_none = given.reading, F.col(CODE).isNull()
    yield F.count_if(of_none & F.col(TYPE).isNull()), lambda rows: unknown(None, reading)
    strange = of_none & F.col(TYPE).isNotNull()
    yield F.count_if(strange), lambda rows: unknown(given.frame.where(strange).agg(F.min(TYPE)).collect()[0][0], reading)
    for name, columns in reading.columns.items():
        schema = reading.catalogue[name]
        for attribute in schema.attributes:
            column, mine = F.col(columns[attribute.name]), F.col(CODE) == reading.types.index(name)
            if attribute.name == schema.time_attribute:
                problem = f"the event time '{attribute.name}' of '{name}' is null"
                yield F.count_if(mine & column.isNull()), _error("D006", problem, "every event of a type with TIME has a time")
            if (
                attribute.type.kind is Kind.INT
                and given.frame.schema[columns[attribute.name]].dataType.simpleString() == "bigint"
            ):
                low, high = INT_RANGE[Kind.INT]
                problem = f"attribute '{attribute.name}' of '{name}': a value is out of the range of INT"
                yield F.count_if(mine & ~column.between(low, high)), _error("D004", problem, "declare it as BIGINT")


def _error(code: str, problem: str, fix: str) -> Callable[[Any], DataError]:
    return lambda rows: DataError(code, problem, fix, f"{rows:,} rows" if rows > 1 else "one row")
