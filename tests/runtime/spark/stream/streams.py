"""Streams for tests: tables as files that a stream reads one after the other, and queries that run beside one another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.waiting import wait_until

START_US = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""
_NUMBERS = count()

RULES = """
TYPE A (k INT, x INT, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, at TIMESTAMP) TIME at
TYPE C (k INT, x INT, at TIMESTAMP) TIME at
SUBSCRIPTION Keyed MATCH A a AND B b WHERE a.x < b.x PER k WITHIN 10 SECONDS
SUBSCRIPTION Alike MATCH B b THEN C c WHERE b.x + c.x = 100 PER k DISPOSAL INFIX
SUBSCRIPTION Unkeyed MATCH A a THEN C c WHERE a.x = c.x AND a.k = c.k WITHIN 30 SECONDS
SUBSCRIPTION Derived MATCH A a THEN B b WHERE a.x = b.x AND a.k < 50 PER k EMIT D (k = a.k, x = b.x)
SUBSCRIPTION Nested MATCH D d[2] WHERE d[1].x < d[2].x WITHIN 60 SECONDS
SUBSCRIPTION Absent MATCH A a WHERE a.x = 7 WITHOUT B b WITHIN 1 SECONDS OF a WHERE b.k = a.k AND b.x < 20
"""
"""Every form of group: keyed, ordered, nested with a hierarchy, and an absence."""


def events(rows: int, seed: int = 1, every: int = 500) -> pa.Table:
    """An event a millisecond, as W1, and heartbeats; the last row is one."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 3, rows)
    codes[every::every] = codes[-1] = 3
    beats = codes == 3
    times = START_US + 1_000 * np.arange(rows)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(codes, ["A", "B", "C", "Heartbeat"]).cast(pa.string()),
            "k": pa.array(random.integers(0, 100, rows), pa.int32(), mask=beats),
            "x": pa.array(random.integers(0, 100, rows), pa.int32(), mask=beats),
            "at": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
        }
    )


def as_records(table: pa.Table) -> list[dict[str, Any]]:
    """As the embedded runtime takes them: each record has its type's attributes, no others."""
    rows = table.to_pylist()
    return [{"type": row["type"], "at": row["at"]} if row["type"] == "Heartbeat" else row for row in rows]


def written(folder: Path, parts: Sequence[pa.Table]) -> Path:
    """One file a part, each newer than the one before: a stream reads them in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        at = len(list(folder.iterdir()))
        path = folder / f"part-{at:04}.parquet"
        pq.write_table(part, folder.parent / f".{path.name}")
        os.utime(folder.parent / f".{path.name}", (1_700_000_000 + at, 1_700_000_000 + at))
        (folder.parent / f".{path.name}").rename(path)
    return folder


def cut(table: pa.Table, parts: int, seed: int = 1) -> list[pa.Table]:
    """Parts of uneven length; within a part the rows are in any order."""
    random = Random(seed)
    cuts = [0, *sorted(random.sample(range(1, len(table)), parts - 1)), len(table)]
    return [
        table.slice(low, high - low).take(pa.array(random.sample(range(high - low), high - low)))
        for low, high in pairwise(cuts)
    ]


def reading(spark: SparkSession, folder: Path) -> DataFrame:
    """The files of a folder, one a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def start(frame: DataFrame, checkpoint: Path) -> StreamingQuery:
    """A query that ends when it has read what is there; its rows are in memory.

    It is waited for until it is planned: Spark starts Python processes for that and gives each of them ten seconds, which on a
    busy machine is too little for those of several queries at once."""
    writer = frame.writeStream.format("memory").queryName(f"found{next(_NUMBERS)}").outputMode("append")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    wait_until(lambda: (checkpoint / "state" / "1" / "_metadata").exists() or not query.isActive)
    return query


def rows(query: StreamingQuery) -> pa.Table:
    """What it found, when it has ended."""
    return frame(query).toArrow()


def frame(query: StreamingQuery) -> DataFrame:
    assert query.awaitTermination(300)
    return SparkSession.active().table(query.name)
