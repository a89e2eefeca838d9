"""A finite input on Spark: three steps, two shuffles of blobs, answers that do not depend on how Spark runs them.

    input ─sliced─► blobs ─shuffle by slice─► numbered ─► blobs ─shuffle by target─► matched ─► relations

A small job comes first, when `match` is called: it counts the rows, and refuses nulls in the order columns and, unless bad rows
are skipped, what else Spark can see to be wrong. Where there are many rows a second one looks at some thousand order values, to
cut the order into slices of about equal length. Where the cuts are does not matter to the answer, only to who sorts how much.

Takes: an Input and the groups of a plan. Gives: a DataFrame of `Outcome.schema`. Never: collects events on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fairlead.errors import DataError
from fairlead.model.plan import Plan
from fairlead.model.types import Kind
from fairlead.model.values import INT_RANGE
from fairlead.order.total import order_column, sortable
from fairlead.runtime.spark.frames import Input
from fairlead.runtime.spark.groups import Group
from fairlead.runtime.spark.outcome import Outcome
from fairlead.runtime.spark.reading import TYPE, unknown
from fairlead.runtime.spark.steps import SLICES, TARGETS, Job, matched, numbered, sliced

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

SLICE_ROWS = 1_000_000
"""Rows that one task sorts in memory: 100 MB of rows of 100 bytes, and its sort is a tenth of a second."""
SMALL_ROWS = 100_000
"""Below this the whole input is one slice: starting a task costs more than sorting it."""
SAMPLE_ROWS = 10_000
"""Order values that are looked at to find cuts: slices then differ in length by some percent."""


def match_batch(
    plan: Plan,
    given: Input,
    groups: tuple[Group, ...],
    buckets: int,
    until: int | None,
    observation: Observation | None = None,
) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    outcome = Outcome(plan)
    cuts = _cuts(given)
    job = Job(given.reading, groups, buckets, cuts, given.positioned, until)

    def slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return sliced(job, batches)

    def numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return numbered(job, batches)

    def matches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return matched(job, outcome, batches)

    cut = given.frame.mapInArrow(slices, from_arrow_schema(SLICES)).repartitionById(len(cuts) + 1, "slice")
    told = cut.mapInArrow(numbers, from_arrow_schema(TARGETS))
    if observation is not None:
        told = told.observe(observation, F.sum("ties").alias("ties"))
    moved = told.repartitionById(job.targets, "target")
    return moved.sortWithinPartitions("target", "slice").mapInArrow(matches, from_arrow_schema(outcome.schema))


def _cuts(given: Input) -> np.ndarray[Any, Any]:
    """The first order value of every slice but the first. Raises DataError for what a look at all rows shows to be wrong."""
    from pyspark.sql import functions as F

    first = order_column(0)
    kinds = {each: given.frame.schema[each].dataType.simpleString() for each in map(order_column, range(given.reading.keys))}
    wanted = [F.count(F.lit(1)).alias("rows")]
    for each, kind in kinds.items():
        missing = F.col(each).isNull() | F.isnan(each) if kind == "double" else F.col(each).isNull()
        wanted.append(F.count_if(missing).alias(each))
    doubts = list(_doubts(given)) if given.reading.on_bad == "stop" else []
    wanted += [column.alias(f"doubt{at}") for at, (column, _) in enumerate(doubts)]
    found = given.frame.agg(*wanted).collect()[0]
    for each, name in zip(kinds, given.order_by, strict=True):
        if found[each]:
            problem = f"{found[each]:,} rows have no value in the order column '{name}'"
            raise DataError("D019", problem, "filter these rows out, or order by columns that are never null", name)
    for at, (_, error) in enumerate(doubts):
        if found[f"doubt{at}"]:
            raise error(found[f"doubt{at}"])
    rows = found["rows"]
    cores = given.frame.sparkSession.sparkContext.defaultParallelism
    slices = 1 if rows < SMALL_ROWS else max(cores, -(-rows // SLICE_ROWS))
    if kinds[first] not in ("bigint", "double") or slices == 1:
        return np.zeros(0, dtype=np.int64)
    some = F.rand() * rows < SAMPLE_ROWS
    sample = np.sort(sortable(given.frame.select(first).where(some).toArrow().column(0).combine_chunks()).to_numpy())
    return np.unique(sample[[len(sample) * at // slices for at in range(1, slices)]]) if len(sample) else sample


def _doubts(given: Input) -> Iterator[tuple[Column, Callable[[Any], DataError]]]:
    """What Spark itself can see of bad rows, at the cost of a comparison each: how many there are, and the error that this is.
    (Counts alone: with a text among its results, Spark would compute all of them row by row without compiling.) Whatever else
    is wrong with values, the workers find (failures.py)."""
    from pyspark.sql import functions as F

    reading, of_type = given.reading, F.col(TYPE)
    yield F.count_if(of_type.isNull()), lambda rows: unknown(None, reading)
    strange = ~of_type.isin(*reading.types)
    yield F.count_if(strange), lambda rows: unknown(given.frame.where(strange).agg(F.min(TYPE)).collect()[0][0], reading)
    for name, columns in reading.columns.items():
        schema = reading.catalogue[name]
        for attribute in schema.attributes:
            column, mine = F.col(columns[attribute.name]), of_type == name
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
