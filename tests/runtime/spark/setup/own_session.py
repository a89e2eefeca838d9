"""A session that a user made himself, in a process of its own: `python own_session.py SCENARIO FOLDER` prints JSON.

The environment of the process is what is tried: which `python3` is on its PATH, what PYSPARK_PYTHON says, Spark Connect or not.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import fairlead
from fairlead import spark as fl
from fairlead.errors import FairleadError

RULES = """
TYPE A (k INT, at TIMESTAMP) TIME at
TYPE B (k INT, at TIMESTAMP) TIME at
SUBSCRIPTION Pair MATCH A a THEN B b PER k WITHIN 10 SECONDS EMIT Made (k = a.k)
SUBSCRIPTION Twice MATCH Made m[2] WHERE m[1].k < m[2].k
SUBSCRIPTION Alone MATCH A a WITHOUT B b WITHIN 2 SECONDS OF a WHERE b.k = a.k
"""
PLAN = fairlead.compile(RULES)
EVENTS = [{"type": "AB"[nr % 2], "k": nr // 2 % 3, "at": 1_767_225_600 + nr} for nr in range(40)]
SCHEMA = "type string, k int, at long"


def wanted() -> list[str]:
    return sorted(each.id for each in fairlead.match(PLAN, EVENTS, order_by="at"))


def builder() -> Any:
    made = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return made.config("spark.driver.extraJavaOptions", options).config("spark.driver.memory", "1g")


def frame(spark: SparkSession) -> DataFrame:
    rows = [tuple(each.values()) for each in EVENTS]
    return spark.createDataFrame(rows, SCHEMA).withColumn("at", F.timestamp_seconds("at"))


def batch(spark: SparkSession) -> bool:
    with fl.coded_errors():
        found = fl.match(PLAN, frame(spark), order_by="at").collect()
    return sorted(row.relation_id for row in found) == wanted()


def stream(spark: SparkSession, folder: Path, watermark: bool = False) -> bool:
    """All events, and one far behind that releases them."""
    last = frame(spark).where("k = 0 AND type = 'A'").limit(1).withColumn("at", F.lit("2027-01-01").cast("timestamp"))
    frame(spark).unionByName(last).coalesce(1).write.parquet(str(folder / "in"))
    given = spark.readStream.schema(frame(spark).schema).parquet(str(folder / "in"))
    bound: dict[str, Any] = {} if watermark else {"frontier": "stream", "delay": "60 seconds"}
    if watermark:
        given = given.withWatermark("at", "60 seconds")
    with fl.coded_errors():
        found = fl.match(PLAN, given, order_by="at", buckets=2, **bound)
        writer = found.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
        query = writer.format("parquet").option("path", str(folder / "out")).start()
        query.awaitTermination()
    rows = spark.read.parquet(str(folder / "out")).where("verdict = 'in order'").collect()
    return sorted(row.relation_id for row in rows) == wanted()


def error(call: Callable[[], Any]) -> list[str | None]:
    """Code, problem and fix of what it raises."""
    try:
        call()
    except FairleadError as problem:
        return [problem.code, problem.problem, problem.fix]
    return ["nothing was raised", None, None]


def unaware(folder: Path) -> dict[str, Any]:
    """`python3` of the PATH has nothing, and nobody chose an interpreter; then interpreters that somebody chose."""
    spark = builder().master("local[2]").getOrCreate()
    made: dict[str, Any] = {"told": spark.sparkContext.pythonExec, "batch": batch(spark), "stream": stream(spark, folder)}
    made["still told"] = spark.sparkContext.pythonExec
    made["own function"] = spark.range(1).select(F.udf(lambda _: sys.prefix, useArrow=False)("id")).collect()[0][0]
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", HDFS)
    made["store"] = error(lambda: stream(spark, folder / "again"))
    old = frame(spark)
    spark.stop()
    made["stopped"] = error(lambda: fl.match(PLAN, old, order_by="at"))
    for name, python in json.loads(os.environ["INTERPRETERS"]).items():
        os.environ["PYSPARK_PYTHON"] = python
        made[name] = chosen(old, ship=name in ("without fairlead", "other fairlead"))
    return made


def chosen(old: DataFrame, ship: bool) -> list[Any]:
    """With one core: each of its workers loads all anew."""
    spark = builder().master("local[1]").getOrCreate()
    made: list[Any] = [error(lambda: batch(spark)), error(lambda: fl.match(PLAN, {"A": old, "B": frame(spark)}, order_by="at"))]
    if ship:
        fl.ship(spark)  # as the fix says
        made.append(batch(spark))
    spark.stop()
    return made


HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def remote(folder: Path) -> dict[str, Any]:
    """Spark Connect."""
    spark = builder().remote("local[2]").getOrCreate()
    made: dict[str, Any] = {"module": type(spark).__module__, "batch": batch(spark)}
    made["stream"] = stream(spark, folder)
    made["watermark"] = stream(spark, folder / "more", watermark=True)
    made["bad row"] = error(lambda: failing(spark))
    spark.stop()
    return made


def failing(spark: SparkSession) -> None:
    bad = frame(spark).withColumn("at", F.when(F.col("k") == 1, "yesterday").otherwise("2026-01-01T00:00:00Z"))
    with fl.coded_errors():
        fl.match(PLAN, bad.withColumn("nr", F.monotonically_increasing_id()), order_by="nr").collect()


if __name__ == "__main__":
    try:
        found = {"unaware": unaware, "remote": remote}[sys.argv[1]](Path(sys.argv[2]))
    except PySparkException as problem:
        found = {"raised": str(problem)[:4000]}
    print("\n" + json.dumps(found))
