"""A job that is cancelled while a kernel searches leaves no worker that goes on searching."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead import compile
from fairlead import spark as fl
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = "\n".join(f"TYPE T{n} (x INT)" for n in range(5))
PLAN = compile(
    f"""{TYPES}
SUBSCRIPTION S MATCH T0 a AND T1 b AND T2 c AND T3 d AND T4 e WHERE a.x + b.x + c.x + d.x + e.x > 1000000"""
)
"""Nothing but trying finds out that there is none: with 1,000 events of each type that takes an hour."""
ROWS = [(f"T{n}", x, n * 1_000 + x) for n in range(4) for x in range(1_000)] + [("T4", 1, 4_000)]
SCHEMA = "type STRING, x INT, n LONG"
PATIENCE_SECONDS = 60


def workers() -> set[int]:
    """Python workers of this process's session: forked from Spark's daemon."""
    found = set()
    for each in Path("/proc").iterdir():
        try:
            words = (each / "cmdline").read_bytes().split(b"\0") if each.name.isdecimal() else []
        except OSError:  # it has ended
            continue
        if b"pyspark.daemon" in words and is_below(int(each.name)):
            found.add(int(each.name))
    return found


def is_below(process: int) -> bool:
    """It was started by this process, or by one of those."""
    while process not in (0, 1, os.getpid()):
        told = stat(process)
        process = int(told[1]) if told else 0
    return process == os.getpid()


def stat(process: int) -> list[str]:
    """What the system tells of a process, from its state on; nothing where it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def ticks(process: int) -> int:
    """The processor time it has taken, in hundredths of a second."""
    told = stat(process)
    return int(told[11]) + int(told[12]) if told else 0


def busy(before: dict[int, int]) -> list[int]:
    """Workers that have taken more than a second since."""
    return [each for each in workers() if ticks(each) - before.get(each, 0) > 100]


@pytest.fixture
def before() -> dict[int, int]:
    return {each: ticks(each) for each in workers()}


def test_a_batch_job_that_is_cancelled(spark: SparkSession, before: dict[int, int]) -> None:
    ended: list[BaseException] = []

    def work() -> None:
        try:
            fl.match(PLAN, spark.createDataFrame(ROWS, SCHEMA), position="n").collect()
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: busy(before), PATIENCE_SECONDS)
    spark.sparkContext.cancelAllJobs()
    thread.join(PATIENCE_SECONDS)
    assert ended
    assert "cancelled" in str(ended[0])
    wait_until(lambda: not still(busy(before)), PATIENCE_SECONDS)


def still(processes: list[int]) -> bool:
    """Any of them computes."""
    before = {each: ticks(each) for each in processes}
    time.sleep(0.2)  # twenty ticks, in which one that computes has some
    return any(ticks(each) > before[each] for each in processes)


def test_a_query_that_is_stopped(spark: SparkSession, tmp_path: Path, before: dict[int, int]) -> None:
    (tmp_path / "in").mkdir()
    spark.createDataFrame(ROWS, SCHEMA).coalesce(1).write.parquet(str(tmp_path / "in" / "rows"))
    source: DataFrame = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in" / "rows"))
    found = fl.match(PLAN, source, position="n")
    query = found.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        wait_until(lambda: busy(before), PATIENCE_SECONDS)
    finally:
        query.stop()
    assert not query.isActive
    wait_until(lambda: not still(busy(before)), PATIENCE_SECONDS)
