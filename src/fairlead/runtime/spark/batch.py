"""A finite input on Spark: three steps, two shuffles of blobs, answers that do not depend on how Spark runs them.

    input ─sliced─► blobs ─shuffle by slice─► numbered ─► blobs ─shuffle by target─► matched ─► relations

One small job comes first: it counts the rows, looks for nulls in the order columns and finds where to cut the order into slices
of about equal length. Where the cuts are does not matter to the answer, only to who sorts how much.

Takes: an Input and the groups of a plan. Gives: a DataFrame of `Outcome.schema`. Never: collects rows on the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fairlead.errors import DataError
from fairlead.model.plan import Plan
from fairlead.order.total import order_column
from fairlead.runtime.spark.frames import Input
from fairlead.runtime.spark.groups import Group
from fairlead.runtime.spark.outcome import Outcome
from fairlead.runtime.spark.steps import SLICES, TARGETS, Job, matched, numbered, sliced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SLICE_ROWS = 1_000_000
"""Rows that one task sorts in memory: 100 MB of rows of 100 bytes, and its sort is a tenth of a second."""
SMALL_ROWS = 100_000
"""Below this the whole input is one slice: starting a task costs more than sorting it."""


def match_batch(plan: Plan, given: Input, groups: tuple[Group, ...], buckets: int, until: int | None) -> DataFrame:
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
    told = cut.mapInArrow(numbers, from_arrow_schema(TARGETS)).repartitionById(job.targets, "target")
    return told.sortWithinPartitions("target", "slice").mapInArrow(matches, from_arrow_schema(outcome.schema))


def _cuts(given: Input) -> np.ndarray[Any, Any]:
    """The first order value of every slice but the first. Raises DataError where an order column is null or NaN somewhere."""
    from pyspark.sql import functions as F

    first = order_column(0)
    kinds = {each: given.frame.schema[each].dataType.simpleString() for each in map(order_column, range(given.reading.keys))}
    wanted = [F.count(F.lit(1)).alias("rows")]
    for each, kind in kinds.items():
        missing = F.col(each).isNull() | F.isnan(each) if kind == "double" else F.col(each).isNull()
        wanted.append(F.count_if(missing).alias(each))
    cuttable = kinds[first] in ("bigint", "double")
    if cuttable:
        steps = [at / 256 for at in range(1, 256)]
        wanted.append(F.percentile_approx(first, steps, 4096).alias("steps"))
    found = given.frame.agg(*wanted).collect()[0]
    for each, name in zip(kinds, given.order_by, strict=True):
        if found[each]:
            problem = f"{found[each]:,} rows have no value in the order column '{name}'"
            raise DataError("D019", problem, "filter these rows out, or order by columns that are never null", name)
    rows = found["rows"]
    cores = given.frame.sparkSession.sparkContext.defaultParallelism
    slices = 1 if rows < SMALL_ROWS else max(cores, -(-rows // SLICE_ROWS))
    if not cuttable or slices == 1:
        return np.zeros(0, dtype=np.int64)
    wanted_at = [min(254, round(256 * at / slices)) for at in range(1, slices)]
    values = np.unique(np.array([found["steps"][at - 1] for at in wanted_at]))
    if kinds[first] == "double":
        bits = (values + 0.0).view(np.int64)
        return np.where(bits >= 0, bits, bits ^ np.iinfo(np.int64).max)
    return values.astype(np.int64)
