"""Spark delivers what the embedded runtime delivers, to the id and in the same order, however the work is spread.

W1 (benchmarks/workload.py) of 20,000 events, in files of any number and order, with ties in the order column, with repeats.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.workload import Q1, Q2, Q3, START_US, TYPES, stream, table
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

import fairlead
from fairlead import spark as fl
from fairlead.model.plans.plan import Plan
from fairlead.runtime.spark.job import batch_job as batch
from tests.order.slow import row_key
from tests.runtime.spark.job.in_process import counts, delivered, embedded

EVENTS = 20_000
RULES = f"""{TYPES}
{Q1}
{Q2}
{Q3}
SUBSCRIPTION Unkeyed MATCH A a AND C c WHERE a.volume = c.volume MATCHING FIRST DISPOSAL INFIX
SUBSCRIPTION Others MATCH B b THEN C c WHERE b.volume > 900 AND c.volume > 950 WITHIN 1 SECOND
SUBSCRIPTION Deal MATCH A a AND B b WHERE a.price < b.price AND a.volume > 800 PER key WITHIN 10 SECONDS
EMIT Deal (key = a.key, gain = b.price - a.price)
SUBSCRIPTION Double MATCH Deal d[2] WHERE d[1].gain < d[2].gain PER key
SUBSCRIPTION Quiet MATCH A a WITHOUT B b WITHIN 2 SECONDS OF a WHERE b.key = a.key AND a.volume > 990
"""
HEARTBEAT_EVERY = 500


@pytest.fixture(scope="module")
def plan() -> Plan:
    return fairlead.compile(RULES)


@pytest.fixture(scope="module")
def events() -> pa.Table:
    """W1, with a heartbeat every half second, in its order."""
    rows = table(stream(EVENTS))
    beats = EVENTS // HEARTBEAT_EVERY
    at = pa.array(START_US + 1_000 * HEARTBEAT_EVERY * np.arange(beats) + 500).view(pa.timestamp("us", tz="UTC"))
    schema = rows.schema
    nulls = {field.name: pa.nulls(beats, field.type) for field in schema}
    made = pa.table({**nulls, "type": pa.array(["Heartbeat"] * beats), "at": at}, schema=schema)
    return pa.concat_tables([rows, made]).sort_by("at").combine_chunks()


@pytest.fixture(scope="module")
def wanted(plan: Plan, events: pa.Table) -> list[str]:
    found = embedded(plan, events, UNTIL, order_by="at")
    assert min(counts(plan, found).values()) > 10, counts(plan, found)
    return found


UNTIL = "2026-01-02T00:00:00Z"


def written(folder: Path, rows: pa.Table, files: int, seed: int) -> str:
    """The rows in any order, over so many files."""
    order = np.random.default_rng(seed).permutation(len(rows))
    for number, part in enumerate(np.array_split(order, files)):
        pq.write_table(rows.take(pa.array(part)), folder / f"part-{number}.parquet")
    return str(folder)


def found_on(plan: Plan, frames: Any, **options: Any) -> list[str]:
    with fl.coded_errors():
        return delivered(fl.match(plan, frames, **options).toArrow())


@pytest.mark.parametrize(("buckets", "files", "partitions"), [(1, 1, 1), (2, 3, 8), (4, 7, 2), (8, 2, 4)])
def test_buckets_partitions_and_files_change_nothing(
    spark: SparkSession,
    plan: Plan,
    events: pa.Table,
    wanted: list[str],
    tmp_path: Path,
    buckets: int,
    files: int,
    partitions: int,
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    frame = session.read.parquet(written(tmp_path, events, files, buckets))
    assert found_on(plan, frame, order_by="at", until=UNTIL, buckets=buckets) == wanted


@pytest.mark.parametrize("told_by", ["footers", "range", "sample"])
def test_slices_of_the_order_and_buckets_that_share_a_task_change_nothing(
    told_by: str,
    spark: SparkSession,
    plan: Plan,
    events: pa.Table,
    wanted: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut, cuts = batch._cuts, []
    monkeypatch.setattr(batch, "_cuts", lambda *given: cuts.append(cut(*given)) or cuts[0])
    monkeypatch.setattr(batch, "SMALL_ROWS", 1_000)
    monkeypatch.setattr(batch, "SLICE_ROWS", 3_000)
    monkeypatch.setattr(batch, "BUCKET_ROWS", 2_500)
    monkeypatch.setattr(batch, "SHARE_ROWS", 100)
    frame = spark.read.parquet(written(tmp_path, events, 5, 9))
    if told_by != "footers":
        frame = frame.where("at IS NOT NULL")
    if told_by == "sample":
        monkeypatch.setattr(batch, "EVEN", -1)
    assert found_on(plan, frame, order_by=["at"], until=UNTIL) == wanted
    assert [(len(each), rows) for each, rows in cuts] == [(7, len(events))]


def test_a_frame_for_each_type_is_the_same_input(
    spark: SparkSession, plan: Plan, events: pa.Table, wanted: list[str], tmp_path: Path
) -> None:
    frame = spark.read.parquet(written(tmp_path, events, 2, 3))
    frames = {name: frame.where(frame.type == name).drop("type") for name in ("C", "A", "B")}
    frames["Heartbeat"] = frame.where(frame.type == "Heartbeat").select("at")
    assert found_on(plan, frames, order_by="at", until=UNTIL) == wanted


def test_one_attribute_may_have_a_different_type_in_each_frame(
    spark: SparkSession, plan: Plan, events: pa.Table, wanted: list[str], tmp_path: Path
) -> None:
    frame = spark.read.parquet(written(tmp_path, events, 2, 4))
    frames = {name: frame.where(frame.type == name) for name in ("A", "B", "C", "Heartbeat")}
    frames["A"] = frames["A"].withColumn("key", frame.key.cast("bigint")).withColumn("volume", frame.volume.cast("smallint"))
    frames["B"] = frames["B"].withColumn("nr", frame.key).drop("key").withColumnRenamed("nr", "key")
    assert found_on(plan, frames, order_by="at", until=UNTIL) == wanted


def test_a_position_is_the_order_and_the_number(spark: SparkSession, plan: Plan, events: pa.Table, tmp_path: Path) -> None:
    numbered = events.append_column("offset", pa.array(np.arange(len(events))))
    frame = spark.read.parquet(written(tmp_path, numbered, 3, 5))
    assert found_on(plan, frame, position="offset", until=UNTIL) == embedded(plan, events, UNTIL)


def test_positions_with_gaps_give_what_the_embedded_runtime_finds_at_them(
    spark: SparkSession, plan: Plan, events: pa.Table, tmp_path: Path
) -> None:
    blocks = np.cumsum(np.random.default_rng(7).integers(0, 50, len(events)) == 0) << 12
    numbered = events.append_column("offset", pa.array(blocks + np.arange(len(events)) % 4096)).sort_by("offset")
    offsets = numbered.column("offset").to_numpy()
    assert (offsets[1:] > offsets[:-1]).all()
    found = embedded(plan, numbered, UNTIL, position="offset")
    assert found != embedded(plan, events, UNTIL)
    frame = spark.read.parquet(written(tmp_path, numbered, 3, 6))
    assert found_on(plan, frame, position="offset", until=UNTIL) == found


def in_their_order(plan: Plan, rows: pa.Table, columns: list[str]) -> pa.Table:
    """Sorted by the definition (tests/order/slow.py)."""

    def key(row: dict[str, Any]) -> Any:
        content = [row[each.name] for each in plan.catalogue[row["type"]].attributes]
        return row_key(row["type"], [row[each] for each in columns], (), content)

    held = rows.to_pylist()
    return rows.take(pa.array(sorted(range(len(held)), key=lambda at: key(held[at]))))


@pytest.mark.parametrize("slices", [1, 4])
def test_ties_in_the_order_are_broken_by_type_and_content(
    spark: SparkSession, plan: Plan, events: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slices: int
) -> None:
    """Times in whole tenths of a second: a hundred events at each."""
    monkeypatch.setattr(batch, "SMALL_ROWS", 1_000 if slices > 1 else 10**9)
    monkeypatch.setattr(batch, "SLICE_ROWS", EVENTS // slices)
    at = events.column("at").cast(pa.int64()).to_numpy()
    tenths = pa.array(at // 100_000 * 100_000).view(pa.timestamp("us", tz="UTC"))
    tied = events.set_column(events.schema.get_field_index("at"), "at", tenths)
    ordered = in_their_order(plan, tied, ["at"])
    frame = spark.read.parquet(written(tmp_path, tied, 4, 6))
    observation = Observation()
    found = found_on(plan, frame, order_by="at", until=UNTIL, buckets=2, observation=observation)
    assert found == embedded(plan, ordered, UNTIL, order_by="at")
    assert observation.get == {"ties": len(tied) - len(set(tenths.to_pylist()))}


def test_several_order_columns(spark: SparkSession, plan: Plan, events: pa.Table, tmp_path: Path) -> None:
    """First the bytes of a text, then a double, then whole numbers: in each some are equal."""
    rng = np.random.default_rng(7)
    few = events.slice(0, 5_000)
    columns = {"day": np.array(["a", "b", "ä"])[rng.integers(0, 3, len(few))], "part": rng.integers(-2, 2, len(few)) / 2}
    for name, values in {**columns, "turn": rng.integers(0, 5, len(few))}.items():
        few = few.append_column(name, pa.array(values))
    ordered = in_their_order(plan, few, ["day", "part", "turn"]).drop_columns(["day", "part", "turn"])
    frame = spark.read.parquet(written(tmp_path, few, 3, 8)).withColumn("day", F.col("day").cast("binary"))
    assert found_on(plan, frame, order_by=["day", "part", "turn"], until=UNTIL) == embedded(plan, ordered, UNTIL)


@pytest.mark.parametrize("slices", [1, 5])
def test_repeats_of_a_source_are_dropped_and_told(
    spark: SparkSession, plan: Plan, events: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slices: int
) -> None:
    monkeypatch.setattr(batch, "SMALL_ROWS", 1_000 if slices > 1 else 10**9)
    monkeypatch.setattr(batch, "SLICE_ROWS", EVENTS // slices)
    rng = np.random.default_rng(11)
    events = events.take(pa.array(np.repeat(np.arange(len(events)), rng.choice([1, 1, 1, 2], len(events)))))  # some come twice
    at = events.column("at").cast(pa.int64()).to_numpy()
    sequences = at // 1_000 % 7_000  # they fall along the order, now and then
    names = np.array(["p", "q", "r", None], dtype=object)[at // 1_000 % 4]
    rows = events.append_column("_source", pa.array(names, pa.string()))
    rows = rows.append_column("_sequence", pa.array(sequences, mask=rng.random(len(events)) < 0.1))
    frame = spark.read.parquet(written(tmp_path, rows, 3, 12))
    with fl.coded_errors():
        found = fl.match(plan, frame, order_by="at", source="_source", sequence="_sequence", until=UNTIL, buckets=2).toArrow()
    assert delivered(found) == embedded(plan, rows, UNTIL, order_by="at")
    assert found.column("verdict").to_pylist().count("repeated") == fairlead.match(plan, rows, order_by="at").duplicates > 1_000


def test_the_zone_of_the_session_changes_nothing(
    spark: SparkSession, plan: Plan, events: pa.Table, wanted: list[str], tmp_path: Path
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    session.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    frame = session.read.parquet(written(tmp_path, events, 2, 13))
    assert found_on(plan, frame, order_by="at", until=UNTIL) == wanted
