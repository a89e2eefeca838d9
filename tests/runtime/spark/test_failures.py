"""Errors of a job arrive as one coded error: what is wrong and what to do first, without Spark's thousands of letters."""

from __future__ import annotations

import gc
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import fairlead
from fairlead import spark as fl
from fairlead.errors import FairleadError, UnsupportedError, UsageError
from fairlead.runtime.spark.setup import garbage_collection as collection
from fairlead.runtime.spark.setup.readiness import PARTITIONS, STORE
from fairlead.runtime.spark.setup.settings import QUIET
from fairlead.runtime.spark.setup.workers import OWN, SERVERS
from tests.runtime.spark.stream import streams

PLAN = fairlead.compile("TYPE A (k INT, at TIMESTAMP) TIME at\nTYPE B (k INT)\nSUBSCRIPTION S MATCH A a[2] PER k")
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
LETTERS_MAX = 1_500
"""Of the error and the lines of the test that it passed."""


def rows(*at: str) -> pa.Table:
    return pa.table({"type": ["A"] * len(at), "k": pa.array([1] * len(at), pa.int32()), "at": at, "nr": range(len(at))})


def raised(call: Callable[[], Any]) -> FairleadError:
    """The error, which is short also as Python prints it."""
    with pytest.raises(FairleadError) as caught, fl.coded_errors():
        call()
    printed = "".join(traceback.format_exception(caught.value))
    assert "org.apache" not in printed.replace(str(caught.value), "")
    assert len(printed) < LETTERS_MAX
    assert str(caught.value).startswith(f"{caught.value.code} ")
    assert caught.value.fix
    return caught.value


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true"},
        {"spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true"},
        {"spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled": "true"},
        {"spark.sql.pyspark.jvmStacktrace.enabled": "true"},
    ],
    ids=lambda each: next(iter(each), "as it is"),
)
def test_a_worker_s_error_is_found_however_spark_prints_it(spark: SparkSession, settings: dict[str, str]) -> None:
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    found = fl.match(PLAN, session.createDataFrame(rows("2026-01-01T00:00:00Z", "yesterday")), order_by="nr")
    error = raised(found.collect)
    assert error.code == "D004"
    assert error.fix.startswith("use ISO 8601 text")
    assert "the row at 1 of the order: attribute 'at' of 'A'" in error.problem


def streaming(spark: SparkSession, folder: Path, *at: str) -> DataFrame:
    given = streams.reading(spark, streams.written(folder, [rows(*at)]))
    return fl.match(PLAN, given, order_by="nr", frontier="stream", buckets=1)


def started(found: DataFrame, checkpoint: Path) -> StreamingQuery:
    writer = found.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start()


def test_a_stream_s_error_is_found(spark: SparkSession, tmp_path: Path) -> None:
    query = started(streaming(spark, tmp_path / "in", "2026-01-01T00:00:00Z", "yesterday"), tmp_path / "checkpoint")
    assert raised(lambda: query.awaitTermination(120)).code == "D004"
    spark_s = query.exception()
    assert isinstance(spark_s, StreamingQueryException)
    known = fl.fairlead_error(spark_s)
    assert known is not None
    assert known.code == "D004"


def test_a_checkpoint_of_another_order_is_refused_in_few_words(spark: SparkSession, tmp_path: Path) -> None:
    times = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
    started(streaming(spark, tmp_path / "in", *times), tmp_path / "checkpoint").awaitTermination(120)
    given = streams.reading(spark, streams.written(tmp_path / "in", [rows(*times)]))
    found = fl.match(PLAN, given, order_by=["nr", "k"], frontier="stream", buckets=1)
    query = started(found, tmp_path / "checkpoint")
    error = raised(lambda: query.awaitTermination(120))
    assert error.code == "S111"
    assert "another order_by" in error.problem


def test_what_spark_refuses_at_the_start_of_a_stream_has_a_code(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    found = streaming(session, tmp_path / "in", "2026-01-01T00:00:00Z")
    writer = found.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    assert raised(writer.start).code == "A405"
    session.conf.set(STORE, HDFS)  # after `match` has looked
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    error = raised(lambda: query.awaitTermination(120))
    assert error.code == "U114"
    assert str(error.fix).startswith(f'spark.conf.set("{STORE}", ')


def test_the_store_is_set_where_nobody_chose_one(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set(STORE, HDFS)
    with pytest.raises(UnsupportedError, match="U114 the session stores the state of streams in HDFSBackedStateStoreProvider"):
        streaming(session, tmp_path / "in", "2026-01-01T00:00:00Z")
    session.conf.set(STORE, "com.example.RocksDBStateStoreProvider")
    assert streaming(session, tmp_path / "in", "2026-01-01T00:00:01Z").isStreaming


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("U108", "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11"),
        ("U108", 'java.io.IOException: Cannot run program "python3": error=2, No such file or directory'),
        ("U109", "ModuleNotFoundError: No module named 'fairlead'\n\tat org.apache.spark"),
        ("U109", "ModuleNotFoundError: No module named 'pyarrow'"),
        ("U116", "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"),
        ("U108", 'Python worker failed to connect back.\nCaused by: IOException: Cannot run program "python3": error=2'),
        ("A403", "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."),
        ("A403", "Job 3 cancelled because SparkContext was shut down"),
        (None, "ModuleNotFoundError: No module named 'theirs'"),
        (None, "[DIVIDE_BY_ZERO] Division by zero"),
    ],
)
def test_what_spark_says_of_a_session_has_a_code(code: str | None, text: str) -> None:
    known = fl.fairlead_error(RuntimeError(text))
    assert (known and known.code) == code
    remote = fl.fairlead_error(Remote(text))
    assert (remote and remote.code) == code
    if code in ("U108", "U109"):
        assert str(known and known.fix).startswith(OWN)
        assert str(remote and remote.fix).startswith(SERVERS)


class Remote(Exception):
    """As pyspark names the errors of Spark Connect."""


Remote.__module__ = "pyspark.errors.exceptions.connect"


def test_another_spark_is_refused_at_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.createDataFrame(rows("2026-01-01T00:00:00Z"))
    monkeypatch.setattr(pyspark, "__version__", "3.5.6")
    with pytest.raises(UnsupportedError, match=r"U102 pyspark 3\.5\.6 is installed"):
        fl.match(PLAN, frame, order_by="nr")
    monkeypatch.undo()
    with pytest.raises(UnsupportedError, match=r"U102 the session runs on Spark 3.5.6, and Fairlead needs 4.1 or a later 4"):
        fl.match(PLAN, of_another(version="3.5.6"), order_by="nr")


def of_another(version: str) -> Any:
    """As much of a frame as is looked at."""
    context = SimpleNamespace(defaultParallelism=2, applicationId="another", master="local[2]")
    return SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context, version=version))


def test_frames_of_two_applications_cannot_meet(spark: SparkSession) -> None:
    mine = spark.createDataFrame(rows("2026-01-01T00:00:00Z"))
    sibling = spark.newSession().createDataFrame(rows("2026-01-01T00:00:01Z"))
    assert fl.match(PLAN, {"A": mine.drop("type"), "B": sibling.drop("type", "at")}, order_by="nr").count() == 0
    with pytest.raises(UsageError, match="A404 the frames belong to different Spark applications"):
        fl.match(PLAN, {"A": mine, "B": of_another(version="4.3.0")}, order_by="nr")


CODED = "fairlead.errors.DataError: D004 expected INT\n  fix: give one\n"
WRITTEN = {
    f"Traceback:\n  File x\n{CODED} SQLSTATE: 38000": "D004 expected INT",
    "[USER_RAISED_EXCEPTION] D019 no value in the order column 'at' SQLSTATE: P0001": (
        "D019 no value in the order column 'at' SQLSTATE: P0001"
    ),
    "[USER_RAISED_EXCEPTION] my own": None,
    "No space left on device": None,
}


@pytest.mark.parametrize("text", WRITTEN)
def test_spark_s_own_messages_have_one_line_for_an_error_with_a_code_and_all_lines_of_others(
    spark: SparkSession, text: str
) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    log4j = jvm.org.apache.logging.log4j
    read = jvm.java.util.Properties()
    read.load(jvm.java.io.StringReader(QUIET))
    layout = log4j.core.layout.PatternLayout.newBuilder().withPattern(read["appender.stderr.layout.pattern"]).build()
    thrown = jvm.java.lang.RuntimeException(text, jvm.java.lang.RuntimeException(text))
    event = log4j.core.impl.Log4jLogEvent.newBuilder().setLoggerName("org.apache.spark.executor.Executor").setThrown(thrown)
    event = event.setLevel(log4j.Level.ERROR).setMessage(log4j.message.SimpleMessage("Exception in task 1.0")).build()
    printed = layout.toSerializable(event).splitlines()
    if WRITTEN[text] is None:
        assert printed[0].endswith(" ERROR Executor: Exception in task 1.0")
        assert text in printed[1]
        assert len([line for line in printed if line.startswith("\tat ")]) > 2
    else:
        assert [line.partition(" ")[2] for line in printed] == [f"ERROR Executor: {WRITTEN[text]}"]


def test_a_stream_with_many_idle_partitions_is_warned_of_and_a_batch_is_not(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    given = streams.reading(session, streams.written(tmp_path / "in", [rows("2026-01-01T00:00:00Z")]))
    for partitions, buckets, warned in ((200, 1, True), (200, 50, False), (33, 8, True), (31, 1, False)):
        session.conf.set(PARTITIONS, partitions)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fl.match(PLAN, given, order_by="nr", frontier="stream", buckets=buckets)
            fl.match(PLAN, session.createDataFrame(rows("2026-01-01T00:00:00Z")), order_by="nr", buckets=buckets)
        assert [str(each.message)[:4] for each in caught] == ["W101"] * warned
        assert [each.filename for each in caught] == [__file__] * warned
        for each in caught:
            assert f'fix: spark.conf.set("{PARTITIONS}", {max(buckets, 2)})' in str(each.message)


def test_workers_spare_what_is_loaded_when_modules_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(len(sys.modules)))
    monkeypatch.setattr(collection, "_modules", 0)
    collection.spare_what_is_loaded()
    collection.spare_what_is_loaded()
    assert len(calls) == 1
    for number in range(collection.MORE_MODULES):
        monkeypatch.setitem(sys.modules, f"fairlead_tests_{number}", types.ModuleType("one"))
    collection.spare_what_is_loaded()
    assert len(calls) == 2
