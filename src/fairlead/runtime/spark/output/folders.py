"""Writes the results of a job to folders: relations, and separately late, ahead, rejected and repeated rows.

A folder is complete when it has `_SUCCESS`. Each micro-batch of a stream has its own folder, `batch=7`, and rewrites it
completely when it is repeated after a failure: so every row is there once. Delta records the numbers of micro-batches itself.

Takes: a frame of `match`. Gives: files. Never: overwrites a folder without `overwrite`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fairlead.errors import UnsupportedError, UsageError
from fairlead.runtime.spark.output.views import (
    AHEAD,
    LATE,
    REJECTED,
    REPEATED,
    ahead_events,
    all_relations,
    late_events,
    rejected_records,
    repeated_records,
)
from fairlead.runtime.spark.setup.jvm import file_system, hadoop_path, has_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Format = Literal["parquet", "jsonl", "csv", "delta", "iceberg"]
WRITERS = {"parquet": "parquet", "jsonl": "json", "csv": "csv", "delta": "delta", "iceberg": "iceberg"}
ADDED = {
    "delta": "io.delta:delta-spark_2.13:4.0.0",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
}
"""Formats that a session must provide, and the packages with them."""
ATOMS = ("string", "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal", "timestamp", "date")


@dataclass(frozen=True)
class Outputs:
    """The folder of each verdict, and the format."""

    relations: str
    late: str
    rejected: str
    repeated: str
    ahead: str
    form: Format = "parquet"

    def places(self) -> dict[str, str]:
        apart = {LATE: self.late, AHEAD: self.ahead, REJECTED: self.rejected, REPEATED: self.repeated}
        return {"relations": self.relations} | apart


def outputs(
    relations: str, form: Format = "parquet", late: str | None = None, rejected: str | None = None, repeated: str | None = None
) -> Outputs:
    """Omitted folders are placed beside the relations."""
    base = relations.rstrip("/")
    made = (late or f"{base}.late", rejected or f"{base}.rejected", repeated or f"{base}.repeated", f"{base}.ahead")
    return Outputs(base, *made, form)


def parts(frame: DataFrame) -> dict[str, DataFrame]:
    """By verdict, the rows to write."""
    return {
        "relations": all_relations(frame),
        LATE: late_events(frame),
        AHEAD: ahead_events(frame),
        REJECTED: rejected_records(frame),
        REPEATED: repeated_records(frame),
    }


def require_format(spark: SparkSession, form: Format, streaming: bool) -> None:
    if form not in ADDED:
        return
    if form == "iceberg" and streaming:
        problem = "streams into Iceberg are not supported: a repeated micro-batch would be stored twice"
        raise UnsupportedError("U112", problem, "write a stream as parquet or delta")
    if not has_format(spark, form):
        fix = f"start the session with --set spark.jars.packages={ADDED[form]}, in the version for your Spark"
        raise UnsupportedError("U111", f"the Spark session has no {form}", fix)


def require_free(spark: SparkSession, places: Outputs, overwrite: bool) -> None:
    """Rejects existing folders, or removes them with `overwrite`."""
    for path in places.places().values():
        if exists(spark, path):
            if not overwrite:
                raise UsageError("A221", f"{path} already exists", "use another --out, or --overwrite")
            _system(spark, path).delete(_path(spark, path), True)


def write(frame: DataFrame, path: str, form: Format, **options: str) -> None:
    """All rows, in the order they have, into a new folder or table."""
    path = located(frame.sparkSession, path)
    given = flat(frame) if form == "csv" else frame
    mode = "append" if form in ADDED else "overwrite"
    header = {"header": "true", "escape": '"'} if form == "csv" else {}
    given.write.format(WRITERS[form]).mode(mode).options(**header, **options).save(path)


def write_batch(frame: DataFrame, path: str, form: Format, number: int, job: str) -> None:
    """Write one micro-batch of a stream; repeating it has the same result."""
    if form == "delta":
        write(frame, path, form, txnAppId=job, txnVersion=str(number))
    else:
        write(frame, f"{path}/batch={number}", form)


def flat(frame: DataFrame) -> DataFrame:
    """For formats without nested columns: converts these to JSON text."""
    from pyspark.sql import functions as F

    def column(name: str, kind: str) -> Any:
        here = F.col(f"`{name}`")
        if kind.startswith(("array", "struct", "map")):
            return F.to_json(here).alias(name)
        return here if kind.partition("(")[0] in ATOMS else here.cast("string").alias(name)

    return frame.select(*(column(each.name, each.dataType.simpleString()) for each in frame.schema))


def located(spark: SparkSession, path: str) -> str:
    """The absolute path on one machine: the JVM may run in another folder than this process."""
    here = "://" not in path and str(spark.sparkContext.master).startswith("local")
    return os.path.abspath(path) if here else path


def exists(spark: SparkSession, path: str) -> bool:
    return bool(_system(spark, path).exists(_path(spark, path)))


def read_text(spark: SparkSession, path: str) -> str | None:
    """A small file of any file system that Spark reaches; None if it does not exist."""
    system, there = _system(spark, path), _path(spark, path)
    if not system.exists(there):
        return None
    stream = system.open(there)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Writes the file completely or not at all, if the file system supports renaming."""
    system, there, half = _system(spark, path), _path(spark, path), _path(spark, f"{path}.part")
    stream = system.create(half, True)
    stream.write(bytearray(text.encode()))
    stream.close()
    system.delete(there, False)
    system.rename(half, there)


def _path(spark: SparkSession, path: str) -> Any:
    return hadoop_path(spark, located(spark, path))


def _system(spark: SparkSession, path: str) -> Any:
    return file_system(spark, located(spark, path))
