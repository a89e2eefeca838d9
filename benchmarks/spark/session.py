"""One Spark session for all sides, and W1 as the files that all sides read.

The settings are those of a user with two cores and the tuning guide, and the same for everybody: what a side needs
beyond them it sets itself, within the measured call.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks import workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 8
SCHEMA = "type string, key int, price double, volume int, at timestamp"
MASTER = "local[2]"

BATCH = {
    "spark.sql.shuffle.partitions": "8",  # adaptive execution joins them to about two where they are small
}
STREAM = {
    "spark.sql.shuffle.partitions": "2",  # each one is a state store that commits in every micro-batch
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"  # transformWithState asks for it
    ),
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
}
TUNED = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        # The default forks processes on a local disk: 60 to 90 ms of every micro-batch.
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def session(place: Path, settings: dict[str, str]) -> SparkSession:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(MASTER).appName("fairlead-benchmarks")
    common = {
        "spark.driver.memory": "4g",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(place / "spark"),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
    }
    for name, value in {**common, **settings}.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def files(place: Path, events: int, count: int = FILES) -> Path:
    """W1 as `count` Parquet files of equal size, in order of time, written once. Their modification times rise as well: the
    file source takes them in that order."""
    folder = place / f"w1-seed{workload.SEED}-{events}-{count}"
    if not folder.exists():
        part = folder.with_suffix(".part")
        part.mkdir(parents=True)
        table = workload.table(workload.stream(events))
        size = -(-events // count)
        for at in range(count):
            path = part / f"part-{at:05d}.parquet"
            pq.write_table(table.slice(at * size, size), path)
            os.utime(path, (1_600_000_000 + at, 1_600_000_000 + at))
        part.replace(folder)
    return folder


def rows(folder: Path) -> int:
    """Rows of a folder that Spark wrote, from the files' footers."""
    return sum(pq.ParquetFile(path).metadata.num_rows for path in folder.rglob("*.parquet"))
