"""What is used of pyspark's private interface and of Spark's own classes, tried on a session: it fails where a new version
changes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fairlead.runtime.spark.setup import jvm


def test_spark_is_found_where_pyspark_starts_it() -> None:
    assert [*(Path(jvm.spark_home()) / "jars").glob("spark-core_*.jar")]


def test_a_session_is_made_the_active_one(spark: SparkSession) -> None:
    other = spark.newSession()
    for session in (other, spark):
        jvm.make_active(session)
        active = spark._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession().get()  # type: ignore[union-attr]
        assert active.equals(session._jsparkSession)


def test_formats_that_a_session_has_are_known(spark: SparkSession) -> None:
    assert [jvm.has_format(spark, each) for each in ("parquet", "json", "delta", "nonsense")] == [True, True, False, False]


def test_files_are_reached_by_the_file_systems_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "some file").write_text("whole")
    system = jvm.file_system(spark, str(tmp_path))
    there, half = jvm.hadoop_path(spark, str(tmp_path / "some file")), jvm.hadoop_path(spark, str(tmp_path / "half"))
    assert [system.exists(each) for each in (there, half)] == [True, False]
    stream = system.open(there)
    assert bytes(stream.readAllBytes()) == b"whole"
    stream.close()
    stream = system.create(half, True)
    stream.write(bytearray(b"new"))
    stream.close()
    assert system.delete(there, False)
    assert system.rename(half, there)
    assert (tmp_path / "some file").read_text() == "new"


def stream(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().withColumn("other", F.col("timestamp"))


def test_watermarks_of_a_frame_are_read_with_their_delays(spark: SparkSession) -> None:
    plain = stream(spark)
    assert list(jvm.watermarks(plain, "timestamp")) == []
    one = plain.withWatermark("timestamp", "1 month 2 days 3.5 seconds").filter("value > 3")
    assert list(jvm.watermarks(one, "timestamp")) == [(1, 2, 3_500_000)]
    assert list(jvm.watermarks(one, "other")) == []
    two = plain.withWatermark("timestamp", "5 seconds")
    assert sorted(jvm.watermarks(one.union(two), "timestamp")) == [(0, 0, 5_000_000), (1, 2, 3_500_000)]


def test_a_frame_that_only_reads_parquet_is_told_from_others(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(10).withColumn("part", F.col("id") % 2)
    rows.write.parquet(str(tmp_path / "plain"))
    rows.write.partitionBy("part").parquet(str(tmp_path / "parts"))
    rows.write.json(str(tmp_path / "lines"))
    plain = spark.read.parquet(str(tmp_path / "plain"))
    assert jvm.is_plain_parquet(plain)
    assert jvm.is_plain_parquet(plain.select("part"))
    for other in (
        plain.filter("id > 3"),
        plain.select((F.col("id") + 1).alias("id")),
        plain.union(plain),
        spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "plain")),
        spark.read.parquet(str(tmp_path / "parts")),
        spark.read.json(str(tmp_path / "lines")),
        rows,
    ):
        assert not jvm.is_plain_parquet(other)


def test_the_interpreter_of_workers_can_be_chosen(spark: SparkSession) -> None:
    assert jvm.has_context()
    before = jvm.worker_python(spark)
    try:
        jvm.set_worker_python(spark, "/no/such/python")
        assert jvm.worker_python(spark) == "/no/such/python"
        made = F.udf(lambda value: value)
        with pytest.raises(Exception, match="no/such/python"):
            spark.range(1).select(made("id")).collect()
    finally:
        jvm.set_worker_python(spark, before)


@pytest.mark.parametrize("name", ["_jvm", "_jsparkSession"])
def test_a_session_has_what_is_private(spark: SparkSession, name: str) -> None:
    assert getattr(spark, name) is not None
    assert spark.range(1)._jdf is not None
