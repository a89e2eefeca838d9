"""Whatever a session is set to, the ids are those of the embedded runtime: batch and stream.

Settings are combined so that every pair of values meets (a covering array, first the cases that cover most). By default the
first few run; `FAIRLEAD_SESSIONS=200` runs the whole array, and beyond it combinations by chance.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from decimal import Decimal
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import fairlead
from fairlead import spark as fl
from fairlead.errors import FairleadWarning
from tests.spark import streams
from tests.spark.in_process import counts, delivered, shown

BATCHES = int(os.environ.get("FAIRLEAD_SESSIONS", "12"))
STREAMS = BATCHES // 6
ROWS = 600
RULES = """
TYPE A (k INT, x INT, at TIMESTAMP, s STRING, d DECIMAL(10,2)) TIME at
TYPE B (k INT, x INT, at TIMESTAMP, s STRING, d DECIMAL(10,2)) TIME at
TYPE C (k INT, x INT, at TIMESTAMP, s STRING, d DECIMAL(10,2)) TIME at
SUBSCRIPTION Keyed MATCH A a AND B b WHERE a.x < b.x PER k WITHIN 60 SECONDS
SUBSCRIPTION Texts MATCH B b THEN C c WHERE b.s = c.s AND b.d < c.d DISPOSAL INFIX
SUBSCRIPTION Derived MATCH A a THEN B b WHERE a.x + b.x < 60 PER k EMIT D (k = a.k, at = b.at, d = a.d)
SUBSCRIPTION Nested MATCH D e[2] WHERE e[1].d < e[2].d WITHIN 600 SECONDS
SUBSCRIPTION Absent MATCH A a WHERE a.x < 20 WITHOUT B b WITHIN 30 SECONDS OF a WHERE b.k = a.k
"""
PLAN = fairlead.compile(RULES)
CLOCKS = ["2026-03-08T06:50:00", "2026-04-04T14:50:00", "2026-11-01T05:50:00"]
"""Ten minutes before clocks change: New York's, Lord Howe's, New York's again."""
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.session.timeZone": ("America/New_York", "UTC", "Asia/Kolkata", "Australia/Lord_Howe", "Etc/UTC", "-03:30"),
    "spark.sql.adaptive.enabled": ("false", "true"),
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("1", "2", "1000", "0", "-1"),
    "spark.sql.shuffle.partitions": ("1", "200", "7"),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", "TIMESTAMP_LTZ"),
    "spark.sql.caseSensitive": ("true", "false"),
    "spark.sql.execution.arrow.useLargeVarTypes": ("true", "false"),
    "spark.sql.execution.arrow.pyspark.enabled": ("false", "true"),
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", "CORRECTED"),
    "spark.sql.execution.pythonUDF.arrow.enabled": ("true", "false"),
}
ARGUMENTS: Mapping[str, tuple[Any, ...]] = {
    "keys": ("skewed", "even"),
    "frame": ("files", "1", "7", "50", "empty partitions", "types"),
    "buckets": (None, 1, 3),
}
Case = dict[str, Any]


def cases(values: Mapping[str, tuple[Any, ...]], count: int) -> list[Case]:
    """A covering array: of some cases that have a pair which has not met the one with most such pairs; then by chance."""
    random, made = Random(7), []
    apart = dict.fromkeys((a, b, x, y) for a, b in combinations(values, 2) for x, y in product(values[a], values[b]))
    for _ in range(count):
        tried = []
        for number in range(40):
            case = {name: random.choice(each) for name, each in values.items()}
            if apart:
                a, b, x, y = random.choice(list(apart))
                case |= {a: x, b: y}
            tried.append((sum(pair in apart for pair in pairs(case)), number, case))
        made.append(max(tried)[2])
        for pair in pairs(made[-1]):
            apart.pop(pair, None)
    return made


def pairs(case: Case) -> list[tuple[str, str, Any, Any]]:
    return [(a, b, case[a], case[b]) for a, b in combinations(case, 2)]


def test_the_cases_cover_every_pair() -> None:
    values = {**SETTINGS, **ARGUMENTS}
    met = {pair for case in cases(values, 70) for pair in pairs(case)}
    assert met == {(a, b, x, y) for a, b in combinations(values, 2) for x, y in product(values[a], values[b])}


def events(keys: str) -> pa.Table:
    """Every seven seconds two events; the last row is a heartbeat, which releases all of them."""
    random = np.random.default_rng(5)
    starts = np.array([np.datetime64(each, "us").astype(np.int64) for each in CLOCKS])
    steps = np.arange(ROWS // len(CLOCKS)) // 2 * 7_000_000
    at = np.concatenate([start + steps for start in starts])
    spread = random.integers(0, 5, ROWS)
    keyed = np.where(random.random(ROWS) < 0.95, 1, spread) if keys == "skewed" else spread
    cents = random.integers(-500, 500, ROWS)
    rows = pa.table(
        {
            "type": np.array(["A", "B", "C"])[random.integers(0, 3, ROWS)],
            "k": pa.array(keyed, pa.int32()),
            "x": pa.array(random.integers(0, 100, ROWS), pa.int32()),
            "at": pa.array(at).view(pa.timestamp("us", tz="UTC")),
            "s": np.array(["ä", "a", "B", "", "\U0001f600"])[random.integers(0, 5, ROWS)],
            "d": pa.array([Decimal(each).scaleb(-2) for each in cents.tolist()], pa.decimal128(10, 2)),
        }
    )
    beat = {"type": pa.array(["Heartbeat"]), "at": rows.column("at")[-1:]}
    nothing = {field.name: pa.nulls(1, field.type) for field in rows.schema}
    return pa.concat_tables([rows, pa.table({**nothing, **beat}, schema=rows.schema)]).combine_chunks()


@pytest.fixture(scope="module")
def wanted() -> dict[str, list[str]]:
    found = {}
    for keys in ARGUMENTS["keys"]:
        found[keys] = shown(PLAN, fairlead.match(PLAN, events(keys), order_by="at").batches)
    assert min(counts(PLAN, found["even"]).values()) > 10, counts(PLAN, found["even"])
    return found


def session_of(spark: SparkSession, case: Case) -> SparkSession:
    made = spark.newSession()
    for name in SETTINGS:
        made.conf.set(name, case[name])
    return made


def frames(session: SparkSession, case: Case, folder: Path) -> DataFrame | dict[str, DataFrame]:
    rows = events(case["keys"])
    rows = rows.take(pa.array(np.random.default_rng(3).permutation(len(rows))))
    for number in range(3):
        pq.write_table(rows.slice(number * 200, 200 if number < 2 else None), folder / f"{number}.parquet")
    read = session.read.parquet(str(folder))
    if case["frame"] == "files":
        return read
    if case["frame"] == "types":
        return {name: read.where(read.type == name).drop("type") for name in ("A", "B", "C", "Heartbeat")}
    return read.repartition(50, "k") if case["frame"] == "empty partitions" else read.repartition(int(case["frame"]))


def named(case: Case) -> str:
    return " ".join(f"{name.rpartition('.')[2]}={value}" for name, value in case.items())


@pytest.mark.parametrize("case", cases({**SETTINGS, **ARGUMENTS}, BATCHES), ids=named)
def test_a_batch_gives_the_ids_of_the_embedded_runtime(
    spark: SparkSession, wanted: dict[str, list[str]], tmp_path: Path, case: Case
) -> None:
    session = session_of(spark, case)
    with fl.coded_errors():
        found = fl.match(PLAN, frames(session, case, tmp_path), order_by="at", buckets=case["buckets"]).toArrow()
    assert delivered(found) == wanted[case["keys"]]


STREAMED = {**SETTINGS, "keys": ARGUMENTS["keys"], "buckets": ARGUMENTS["buckets"]}


@pytest.mark.parametrize("case", cases(STREAMED, STREAMS), ids=named)
def test_a_stream_gives_the_ids_of_the_embedded_runtime(
    spark: SparkSession, wanted: dict[str, list[str]], tmp_path: Path, case: Case
) -> None:
    """In two micro-batches. Each has two hundred stateful tasks where the session says so: a long run has such cases, too."""
    case = case | (
        {"spark.sql.shuffle.partitions": "11"} if STREAMS < 10 and case["spark.sql.shuffle.partitions"] == "200" else {}
    )
    session = session_of(spark, case)
    rows = events(case["keys"])
    folder = streams.written(tmp_path / "in", streams.cut(rows, 2))
    SparkSession._activeSession = session
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # type: ignore[union-attr]
    given = streams.reading(session, folder)
    with fl.coded_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FairleadWarning)  # of 200 partitions
        found = fl.match(PLAN, given, order_by="at", frontier="stream", delay="1 day", buckets=case["buckets"])
        table = streams.rows(streams.start(found, tmp_path / "checkpoint"))
    assert delivered(table) == wanted[case["keys"]]
