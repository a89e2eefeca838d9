"""The relations that hold, from an append-only table of deliveries and revisions (LATE REVISE).

A relation holds if it was delivered or added once more than it was taken back. No order of the rows is needed for that, and a
row that is in the table twice, because a micro-batch was delivered again, counts once: the revision is part of the row.

Takes: rows of `match`, from wherever they were written to. Gives: a DataFrame of the same columns, but for `revision`. Never:
needs the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.errors import UsageError
from fairlead.runtime.spark.output.views import DELIVERED, IN_ORDER, RETRACTED, REVISION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

IDENTITY = ("subscription", "relation_id")


def current(rows: DataFrame) -> DataFrame:
    """The relations that hold after all of these deliveries and revisions: one row each, with the verdict "in order".

        relations = fl.current(spark.read.parquet("relations"))

    `rows`: all rows that a stream of `match` has delivered so far. Without LATE REVISE these are the delivered relations.
    """
    from pyspark.sql import functions as F

    if rows.isStreaming:
        problem = "`current` needs all rows that were delivered so far, and the frame is a stream"
        raise UsageError("A232", problem, "write the stream to a table, and pass the table: fl.current(spark.read.parquet(…))")
    if REVISION not in rows.columns:
        return rows.filter(F.col("verdict") == IN_ORDER)
    names = [name for name in rows.columns if name not in (*IDENTITY, "verdict", REVISION)]
    delivery = F.struct("verdict", F.coalesce(REVISION, F.lit(0)).alias(REVISION))
    is_taken_back = F.col("verdict") == RETRACTED
    counted = (
        rows.filter(F.col("verdict").isin(*DELIVERED))
        .groupBy(*IDENTITY)
        .agg(
            F.size(F.collect_set(F.when(~is_taken_back, delivery))).alias("delivered"),
            F.size(F.collect_set(F.when(is_taken_back, delivery))).alias("taken_back"),
            F.max_by(F.struct(*names), F.when(is_taken_back, -1).otherwise(F.coalesce(REVISION, F.lit(0)))).alias("row"),
        )
    )
    held = counted.filter(F.col("delivered") > F.col("taken_back"))
    columns = [
        F.lit(IN_ORDER).alias("verdict")
        if name == "verdict"
        else F.col(name if name in IDENTITY else f"row.`{name}`").alias(name)
        for name in rows.columns
        if name != REVISION
    ]
    return held.select(*columns)
