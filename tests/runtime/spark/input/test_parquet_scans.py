"""What Arrow reads of plain Parquet files is what Spark reads of them; of all else Spark reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import fairlead
from fairlead import spark as fl
from fairlead.errors import DataError
from fairlead.runtime.spark.input import parquet_scans as scans
from fairlead.runtime.spark.input.frames import input_of
from fairlead.runtime.spark.job import batch_job as batch

RULES = """
TYPE A (k INT, x DOUBLE, s STRING, d DECIMAL(10, 2), at TIMESTAMP) TIME at
TYPE B (k INT, x DOUBLE, s STRING, d DECIMAL(10, 2), at TIMESTAMP) TIME at
SUBSCRIPTION S MATCH A a AND B b WHERE a.x < b.x PER k
"""
PLAN = fairlead.compile(RULES)
ROWS = 3_000
NAME = "a b%20ü"
START = datetime(2026, 1, 1, tzinfo=UTC)


def events(names: str = "AB", seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    decimals = [None if each < 10 else f"{each}.50" for each in random.integers(0, 100, ROWS).tolist()]
    at = [START + timedelta(milliseconds=each) for each in random.permutation(ROWS).tolist()]
    return pa.table(
        {
            "type": pa.array(random.choice(list(names), ROWS).tolist(), pa.string()),
            "k": pa.array(random.integers(0, 20, ROWS), pa.int32()),
            "x": pa.array(random.random(ROWS), mask=random.random(ROWS) < 0.05),
            "s": pa.array(random.choice(["", "ä", "long " * 9], ROWS).tolist()),
            "d": pa.array(decimals, pa.string()).cast(pa.decimal128(10, 2)),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
        }
    )


def written(folder: Path, table: pa.Table, files: int = 3, **options: Any) -> Path:
    """The rows over several files of several row groups, in a folder whose name needs quoting."""
    folder = folder / NAME
    folder.mkdir(parents=True)
    size = -(-len(table) // files)
    for at in range(files):
        pq.write_table(table.slice(at * size, size), folder / f"{at}.parquet", row_group_size=700, **options)
    return folder


def scanned(frames: Any, order_by: str = "at", **options: Any) -> scans.Scan | None:
    given = input_of(PLAN, frames, [order_by], None, "type", None, None, "stop", **options)
    return scans.scan_of(given.sources, 2)


def rows_of(relations: DataFrame) -> list[Any]:
    return sorted(map(str, relations.drop("turn").collect()))


def through_spark(frame: DataFrame) -> DataFrame:
    """The same rows, of a frame that is more than files."""
    return frame.where(F.lit(1) == F.lit(1).cast("int"))


def test_files_give_what_spark_gives(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL_ROWS", 1)
    frame = spark.read.parquet(str(written(tmp_path, events())))
    found = scanned(frame)
    assert found is not None
    assert sum(len(task) for task in found.tasks) == 6
    assert all(found.tasks)
    assert len(found.cuts(4)) == 3
    wanted = rows_of(fl.match(PLAN, through_spark(frame), order_by=["at"]))
    assert len(wanted) > 500
    assert rows_of(fl.match(PLAN, frame, order_by=["at"])) == wanted
    chosen = frame.select("at", "x", "k", "type", "s", "d")
    assert scanned(chosen) is not None
    assert rows_of(fl.match(PLAN, chosen, order_by=["at"])) == wanted


def test_a_frame_for_each_type(spark: SparkSession, tmp_path: Path) -> None:
    one, two = events("A"), events("B", seed=2)
    frames = {name: spark.read.parquet(str(written(tmp_path / name, table))) for name, table in (("A", one), ("B", two))}
    assert scanned(frames) is not None
    wanted = rows_of(fl.match(PLAN, {name: through_spark(frame) for name, frame in frames.items()}, order_by=["at"]))
    assert wanted
    assert rows_of(fl.match(PLAN, frames, order_by=["at"])) == wanted


def test_unknown_types_and_none_are_rejected_alike(spark: SparkSession, tmp_path: Path) -> None:
    table = events("ABX")
    names = pa.array([None if at % 500 == 0 else name for at, name in enumerate(table["type"].to_pylist())], pa.string())
    frame = spark.read.parquet(str(written(tmp_path, table.set_column(0, "type", names))))
    assert scanned(frame) is not None
    wanted = rows_of(fl.match(PLAN, through_spark(frame), order_by=["at"], on_bad="skip"))
    assert any("D027" in row for row in wanted)
    assert rows_of(fl.match(PLAN, frame, order_by=["at"], on_bad="skip")) == wanted
    with pytest.raises(DataError, match=r"D0[02]\d"), fl.coded_errors():
        fl.match(PLAN, frame, order_by=["at"]).collect()


def test_rows_without_a_place_are_refused_by_the_call(spark: SparkSession, tmp_path: Path) -> None:
    table = events()
    at = pa.array([None if row % 1_000 == 0 else each for row, each in enumerate(table["at"].to_pylist())], table["at"].type)
    frame = spark.read.parquet(str(written(tmp_path, table.set_column(5, "at", at))))
    assert scanned(frame) is not None
    with pytest.raises(DataError, match="3 rows have no value in the order column 'at'"):
        fl.match(PLAN, frame, order_by=["at"])


def test_without_statistics_spark_looks_and_arrow_reads(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(written(tmp_path, events(), write_statistics=False)))
    found = scanned(frame)
    assert found is not None
    assert found.nulls() is None
    assert rows_of(fl.match(PLAN, frame, order_by=["at"])) == rows_of(fl.match(PLAN, through_spark(frame), order_by=["at"]))


def _filtered(frame: DataFrame, folder: Path) -> DataFrame:
    return frame.where("k > 3")


def _renamed(frame: DataFrame, folder: Path) -> DataFrame:
    return frame.select("type", "k", "s", "d", "at", F.col("x").alias("x"))


def _partitioned(frame: DataFrame, folder: Path) -> DataFrame:
    frame.write.partitionBy("k").parquet(str(folder / "by_key"))
    return frame.sparkSession.read.parquet(str(folder / "by_key"))


def _old_times(frame: DataFrame, folder: Path) -> DataFrame:
    pq.write_table(events(), folder / "old.parquet", use_deprecated_int96_timestamps=True)
    return frame.sparkSession.read.parquet(str(folder / "old.parquet"))


def _coarse_times(frame: DataFrame, folder: Path) -> DataFrame:
    pq.write_table(events(), folder / "coarse.parquet", coerce_timestamps="ms")
    return frame.sparkSession.read.parquet(str(folder / "coarse.parquet"))


def _two_schemas(frame: DataFrame, folder: Path) -> DataFrame:
    (folder / "two").mkdir()
    pq.write_table(events(), folder / "two" / "a.parquet")
    pq.write_table(events().drop_columns("s"), folder / "two" / "b.parquet")
    return frame.sparkSession.read.parquet(str(folder / "two"))


def _with_options(frame: DataFrame, folder: Path) -> DataFrame:
    return frame.sparkSession.read.option("mergeSchema", "true").parquet(str(folder / NAME))


def _other_format(frame: DataFrame, folder: Path) -> DataFrame:
    frame.write.orc(str(folder / "orc"))
    return frame.sparkSession.read.orc(str(folder / "orc"))


def _in_memory(frame: DataFrame, folder: Path) -> DataFrame:
    return frame.sparkSession.createDataFrame(frame.toArrow())


@pytest.mark.parametrize(
    "changed",
    [
        _filtered,
        _renamed,
        _partitioned,
        _old_times,
        _coarse_times,
        _two_schemas,
        _with_options,
        _other_format,
        _in_memory,
    ],
)
def test_whatever_is_not_plainly_files_spark_reads(spark: SparkSession, tmp_path: Path, changed: Any) -> None:
    frame = spark.read.parquet(str(written(tmp_path, events())))
    assert scanned(frame) is not None
    made = changed(frame, tmp_path)
    assert scanned(made) is None
    assert fl.match(PLAN, made, order_by=["at"]).count() > 0


def test_other_orders_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(written(tmp_path, events())))
    assert scanned(frame, "x") is None
    assert scanned(frame, "s") is None
    assert scanned(frame, "k") is not None
