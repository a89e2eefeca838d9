"""Streams on Spark itself: what they give is what the embedded runtime gives.

Every way to cut a stream is tried in test_stream_steps.py, without Spark; here is what only Spark can break. A query costs
seconds, so those of a test run beside one another. `FAIRLEAD_STREAM_CASES=all` runs every conformance case.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import fairlead
from fairlead import spark as fl
from fairlead.errors import UnsupportedError, UsageError
from fairlead.model.events.columns import arrow_schema
from fairlead.runtime.spark.input.frames import input_of
from fairlead.runtime.spark.stream.frontier import frontier_of
from fairlead.transport.events import read_events
from tests.runtime.spark.job.in_process import counts, delivered, embedded
from tests.runtime.spark.job.test_shuffle import FITTING, ConformanceCase
from tests.runtime.spark.stream.rounds import closed
from tests.runtime.spark.stream.streams import RULES, cut, events, reading, rows, start, written

PLAN = fairlead.compile(RULES)
BESIDE = 3
"""Queries that run beside one another."""
FIXTURE = Path(__file__).parent / "fixtures" / "checkpoint-v6"
FIXTURE_EVENTS, FIXTURE_READ = 1_200, 800


@pytest.fixture
def partitions(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before or 2)


@pytest.mark.usefixtures("partitions")
def test_a_stream_gives_what_embedded_and_batch_give_whatever_its_partitions_and_micro_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(20_000)
    wanted = embedded(PLAN, table, order_by="at")
    assert all(counts(PLAN, wanted).values())
    queries = []
    for at, (partitions, parts, frontier) in enumerate(((1, 3, "types"), (2, 2, "stream"), (4, 1, "types"), (8, 2, "types"))):
        folder = written(tmp_path / f"in{at}", cut(table, parts, seed=at))
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
        found = fl.match(PLAN, reading(spark, folder), order_by="at", frontier=frontier, buckets=partitions)  # type: ignore[arg-type]
        queries.append(start(found, tmp_path / f"checkpoint{at}"))
    for query in queries:
        found = rows(query)
        assert set(found.column("verdict").to_pylist()) == {"in order"}
        assert delivered(found) == wanted
    batch = fl.match(PLAN, spark.read.parquet(str(tmp_path / "in0")), order_by="at").toArrow()
    assert delivered(batch) == wanted


LATER = ("BEFORE a WITHIN", " BEFORE b", "BEFORE a PER", "PER KEY", "LIMIT 3", "CLOCK BY C PER")


def chosen() -> list[ConformanceCase]:
    """The first case of each file that has something to deliver, and of each later clause."""
    if os.environ.get("FAIRLEAD_STREAM_CASES") == "all":
        return FITTING
    first: dict[str, ConformanceCase] = {}
    for case in FITTING:
        if case.expect and not any("_sequence" in each for each in case.events):
            for name in (case.file, *(word for word in LATER if word in case.rules)):
                first.setdefault(name, case)
    return list({case.name: case for case in first.values()}.values())


def frames_of(spark: SparkSession, plan: fairlead.Plan, records: list[dict[str, Any]], folder: Path) -> dict[str, DataFrame]:
    """A stream for each type, ordered by the number of the record."""
    plain = [{name: value for name, value in each.items() if name not in ("_source", "_sequence")} for each in records]
    numbers: dict[str, list[int]] = {}
    tables: dict[str, list[pa.RecordBatch]] = {}
    for batch in read_events(plain, plan.catalogue):
        for name, table in batch.tables.items():
            tables.setdefault(name, []).append(table)
            numbers.setdefault(name, []).extend(batch.position_array[batch.places[name]].tolist())
    found = {}
    for at, name in enumerate(tables):
        held = pa.Table.from_batches(tables[name], arrow_schema(plan.catalogue[name]))
        sources = [records[number].get("_source") for number in numbers[name]]
        sequences = [records[number].get("_sequence") for number in numbers[name]]
        held = held.append_column("_number", pa.array(numbers[name], pa.int64()))
        held = held.append_column("_source", pa.array(sources, pa.string())).append_column(
            "_sequence", pa.array(sequences, pa.int64())
        )
        found[name] = reading(spark, written(folder / str(at), [held]))
    return found


def test_conformance_cases_give_what_they_give_embedded(spark: SparkSession, tmp_path: Path) -> None:
    todo = chosen()
    while todo:
        queries = []
        for at, case in enumerate(todo[:BESIDE]):
            plan = fairlead.compile(case.rules)
            records = closed([dict(each) for each in case.events], case.until)
            frames = frames_of(spark, plan, records, tmp_path / f"{len(todo)}-{at}")
            found = fl.match(plan, frames, order_by="_number", frontier="types", source="_source", sequence="_sequence")
            queries.append((case, plan, start(found, tmp_path / f"checkpoint-{len(todo)}-{at}")))
        for case, plan, query in queries:
            wanted = embedded(plan, [dict(each) for each in case.events], case.until)
            assert delivered(rows(query)) == wanted, case
        todo = todo[BESIDE:]


def moment(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def small(*given: tuple[str | None, int | None, int]) -> pa.Table:
    """Rows of a type, at a second, with an x."""
    return pa.table(
        {
            "type": pa.array([name for name, _, _ in given], pa.string()),
            "k": pa.array([1] * len(given), pa.int32()),
            "x": pa.array([x for _, _, x in given], pa.int32()),
            "at": pa.array([None if at is None else moment(at) for _, at, _ in given], pa.timestamp("us", tz="UTC")),
            "offset": pa.array([at for _, at, _ in given], pa.int64()),
        }
    )


def test_what_cannot_take_part_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """Behind a watermark: late, of no type, without a time. And in a log: what has the position of another row."""
    parts = [
        small(("A", 10, 1), ("X", 11, 2), ("B", 20, 3)),
        small(("A", 13, 4), ("A", 18, 5), ("B", None, 6), ("Heartbeat", 30, 0)),
    ]
    bad = reading(spark, written(tmp_path / "in", parts)).withWatermark("at", "5 seconds")
    query = start(fl.match(PLAN, bad, order_by="at", on_bad="skip"), tmp_path / "checkpoint")
    log = [small(("A", 3, 1), ("B", 7, 2)), small(("B", 7, 2), ("A", 8, 3), ("B", 9, 9))]
    frames = {
        name: reading(
            spark, written(tmp_path / name, [part.filter(pa.compute.equal(part.column("type"), name)) for part in log])
        )
        for name in ("A", "B")
    }
    positions = start(fl.match(PLAN, frames, position="offset"), tmp_path / "positions")
    told = sorted((row for row in rows(query).to_pylist() if row["verdict"] != "in order"), key=lambda row: row["reason"])
    assert [(row["verdict"], row["completed_at"], row["reason"].partition(" ")[0]) for row in told] == [
        ("rejected", 1, "D001"),
        ("rejected", None, "D019"),
        ("late", None, "late:"),
    ]
    assert [(each["type"], each["x"], each["at"]) for each in told[2]["members"]] == [("A", 4, moment(13))]
    found = rows(positions).to_pylist()
    assert [row["members"][0]["x"] for row in found if row["verdict"] == "late"] == [2]
    keyed = [[each["position"] for each in row["members"]] for row in found if row["subscription"] == "Keyed"]
    assert keyed == [[3, 7], [8, 9]]


def endless(spark: SparkSession, folder: Path) -> DataFrame:
    return reading(spark, written(folder / "in", [small(("A", 1, 1))]))


def test_a_stream_without_a_frontier_is_refused_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    frame = endless(spark, tmp_path)
    with pytest.raises(UnsupportedError, match="U110 nothing determines how far the stream is complete") as refused:
        fl.match(PLAN, frame, order_by="at")
    assert "withWatermark('at', '10 seconds')" in str(refused.value)
    with pytest.raises(UnsupportedError, match="U110"):
        fl.match(PLAN, frame.withColumn("other", frame["at"]).withWatermark("other", "1 second"), order_by="at")
    frames = {"A": frame.withWatermark("at", "1 second"), "B": frame, "Heartbeat": frame}
    with pytest.raises(UnsupportedError, match="the stream of 'B' is complete"):
        fl.match(PLAN, frames, order_by="at")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"order_by": "at", "frontier": "all"}, "A214 frontier is 'all'"),
        ({"position": "offset", "frontier": "types"}, "A218 frontier and delay are not supported with position"),
        ({"order_by": "at", "frontier": "types", "delay": "10 bananas"}, "A215 delay is '10 bananas', not a length of time"),
        ({"order_by": "at", "frontier": "types", "delay": timedelta(seconds=-1)}, "A215 .* which is negative"),
        ({"order_by": "at", "delay": "1 second"}, "A219 .* frontier is not set: there is nothing to delay"),
        ({"order_by": "k", "frontier": "types", "delay": "1 second"}, "A219 .* the order column 'k' is int"),
        ({"order_by": "at", "frontier": "types", "until": "2026-01-01T00:00:00Z"}, "A213 `until` is not supported on streams"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    spark: SparkSession, tmp_path: Path, arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        fl.match(PLAN, endless(spark, tmp_path), **arguments)


def test_delays_and_watermarks_are_counted_in_the_units_of_the_order_column(spark: SparkSession, tmp_path: Path) -> None:
    frame = endless(spark, tmp_path)

    def frontier(frames: Any, by: str = "at", stated: str | None = "types", delay: Any = None) -> Any:
        given = input_of(PLAN, frames, [by], None, "type", None, None, "stop")
        return frontier_of(given, frames, stated, delay)

    assert frontier(frame, delay="1 day 2 seconds").delay["A"] == 86_402_000_000
    assert frontier(frame, delay="1 month").delay["A"] == 31 * 86_400_000_000
    assert frontier(frame, delay=timedelta(milliseconds=1)).delay["B"] == 1_000
    dated = frame.withColumn("day", frame["at"].cast("date"))
    assert frontier(dated, "day", delay="25 hours").delay["A"] == 2
    slow, fast = frame.withWatermark("at", "1 minute"), frame.withWatermark("at", "1 second")
    assert frontier(slow, stated=None).delay["A"] == 60_000_000
    assert frontier(slow, stated=None).together
    union = slow.union(fast)
    assert frontier(union, stated=None).delay["A"] == 60_000_000
    each = frontier({"A": slow, "B": fast, "Heartbeat": frame}, stated=None)
    assert (each.together, each.delay) == (False, {"A": 60_000_000, "B": 1_000_000})


ELSEWHERE = "/the/folder/of/the/fixture"


def moved(folder: Path, old: str, new: str) -> None:
    """Spark notes the full names of files that it has read, and of those that say what its state looks like."""
    checkpoint = folder / "checkpoint"
    for noted in [checkpoint / "sources" / "0" / "0", *checkpoint.glob("state/*/_metadata/v2/0")]:
        noted.write_text(noted.read_text().replace(old, new))
        noted.with_name(".0.crc").unlink(missing_ok=True)


def resumed(spark: SparkSession, plan: fairlead.Plan, folder: Path, fixture: Path = FIXTURE) -> Any:
    """The rest of the events of the fixture, read by a query that goes on from a copy of its checkpoint."""
    shutil.copytree(fixture / "checkpoint", folder / "checkpoint")
    moved(folder, ELSEWHERE, str(folder))
    both = events(FIXTURE_EVENTS, every=50)
    given = written(folder / "in", [both.slice(0, FIXTURE_READ), both.slice(FIXTURE_READ)])
    found = fl.match(plan, reading(spark, given), order_by="at", frontier="types")
    writer = found.writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


def test_a_stored_checkpoint_is_resumed_also_with_other_rules(spark: SparkSession, tmp_path: Path) -> None:
    """What is unchanged goes on; what is changed begins, and finds something, too."""
    before = (FIXTURE / "delivered.txt").read_text().split()
    given = events(FIXTURE_EVENTS, every=50)
    other = fairlead.compile(RULES.replace("a.x < b.x", "a.x <= b.x").replace("SUBSCRIPTION Alike", "SUBSCRIPTION Renamed"))
    for plan, changed, folder in ((PLAN, set(), "same"), (other, {"Keyed"}, "other")):
        assert resumed(spark, plan, tmp_path / folder).awaitTermination(300)
        found = pq.read_table(tmp_path / folder / "out", columns=["subscription", "relation_id"]).to_pylist()
        wanted, gone = (
            fairlead.match(plan, given, order_by="at"),
            {each.id for name in changed for each in fairlead.match(PLAN, given, order_by="at").of(name)},
        )
        mine = [row["relation_id"] for row in found if row["subscription"] not in changed]
        assert len(before) > 10
        assert len(mine) > 10
        expected = sorted(each.id for each in wanted if each.subscription not in changed)
        assert sorted([*(each for each in before if each not in gone), *mine]) == expected
        assert len([row for row in found if row["subscription"] in changed]) >= 10 * len(changed)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_older_checkpoint_is_refused_with_a_code(spark: SparkSession, tmp_path: Path, version: int) -> None:
    with pytest.raises(StreamingQueryException) as raised:
        resumed(spark, PLAN, tmp_path, FIXTURE.with_name(f"checkpoint-v{version}")).awaitTermination(300)
    error = fl.fairlead_error(raised.value)
    assert error is not None
    assert (error.code, error.problem) == ("S110", f"the checkpoint has version {version}, this release reads version 6")


def write_fixture(spark: SparkSession, folder: Path) -> None:
    """As the fixture was made; run it by hand where the version of the state changes, into a folder of that version."""
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    given = written(folder / "in", [events(FIXTURE_EVENTS, every=50).slice(0, FIXTURE_READ)])
    found = fl.match(PLAN, reading(spark, given), order_by="at", frontier="types", buckets=2)
    delivered = rows(start(found, folder / "checkpoint"))
    (folder / "delivered.txt").write_text("\n".join(sorted(delivered.column("relation_id").to_pylist())) + "\n")
    moved(folder, str(folder), ELSEWHERE)
    shutil.rmtree(folder / "in")
