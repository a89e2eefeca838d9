"""ORDER BY on Spark: the ids and the order of the embedded runtime, in batch and on streams, however the rows arrive; what is
ahead; and what late rows revise."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fairlead
import fairlead.spark as fl
from fairlead.runtime.event_time import frontier_groups
from tests.runtime.event_time import sequences
from tests.runtime.spark.job.in_process import delivered, shown
from tests.runtime.spark.stream.test_revisions import FollowedGroup

pytestmark = pytest.mark.spark

TYPES = "TYPE A (k INT, x DOUBLE, at TIMESTAMP) TIME at TYPE B (k INT, x DOUBLE, at TIMESTAMP) TIME at "
RULES = """
SUBSCRIPTION Pairs MATCH A a THEN B b PER k EMIT D (k = a.k, x = b.x)
SUBSCRIPTION Alone MATCH D d WITHOUT A a WITHIN 3 SECONDS OF d
SUBSCRIPTION Rise MATCH A a[2] WHERE a[1].x < a[2].x MATCHING RECENT
"""


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    made = []
    for number in range(count):
        if number % 17 == 16:
            made.append({"type": "Heartbeat", "k": None, "x": None, "at": f"2026-01-01T00:00:{number // 10:02}Z"})
            continue
        event = {"type": random.choice("AB"), "k": random.randrange(4), "x": random.randrange(6) / 2}
        made.append(event | {"at": f"2026-01-01T00:00:{number // 10:02}.{random.randrange(4)}Z"})
    return made


def table(records: list[dict[str, Any]]) -> pa.Table:
    made = pa.Table.from_pylist(records)
    kinds = {"k": pa.int32(), "at": pa.timestamp("us", tz="UTC"), "_stored": pa.timestamp("us", tz="UTC")}
    return made.cast(pa.schema([each.with_type(kinds.get(each.name, each.type)) for each in made.schema]))


def written(folder: Path, records: list[dict[str, Any]], parts: int) -> str:
    folder.mkdir()
    for part in range(parts):
        stored(folder, part, records[part * len(records) // parts : (part + 1) * len(records) // parts])
    return str(folder)


def stored(folder: Path, number: int, records: list[dict[str, Any]]) -> None:
    """A file; a stream reads them by the time of their change."""
    path = folder / f"{number}.parquet"
    pq.write_table(table(records), path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


@pytest.mark.parametrize(
    "order", ["ORDER BY at ", "ORDER BY TIME, k, x DESC ", "ORDER BY x DESC, at ", "ORDER BY at DELAY 1 HOUR "]
)
def test_batch_gives_what_sorting_gives(spark: Any, tmp_path: Path, order: str) -> None:
    plan = fairlead.compile(TYPES + order + RULES)
    records = [each for each in rows(600, 3) if each["type"] != "Heartbeat" or not order.startswith("ORDER BY x")]
    wanted = fairlead.match(plan, [{k: v for k, v in each.items() if v is not None} for each in records])
    assert len(wanted) > 50
    mixed = Random(1).sample(records, len(records))
    for given in (records, mixed):
        frame = spark.read.parquet(written(tmp_path / str(id(given)), given, 3))
        with fl.coded_errors():
            assert delivered(fl.match(plan, frame, buckets=3).toArrow()) == shown(plan, wanted.batches)


@pytest.mark.parametrize("delay", ["DELAY 8 SECONDS", "DELAY 8 SECONDS PER SOURCE IDLE 1 MINUTE"])
def test_streams_give_what_sorting_gives_and_tell_what_is_late(spark: Any, tmp_path: Path, delay: str) -> None:
    plan = fairlead.compile(f"{TYPES} ORDER BY at {delay} {RULES}")
    records = [
        each | {"p": "pq"[number % 2], "n": number} for number, each in enumerate(rows(300, 5)) if each["type"] != "Heartbeat"
    ]
    random = Random(2)
    arriving = sorted(records, key=lambda each: each["n"] / 10 + 4 * random.random())
    end = {"type": "Heartbeat", "k": None, "x": None, "at": "2026-01-01T00:10:00Z", "n": None}
    beats = [end | {"p": source, "at": f"2026-01-01T00:{minute}:00Z"} for minute in (10, 20) for source in "pq"]
    late = {"type": "A", "k": 1, "x": 1.0, "at": "2026-01-01T00:00:01Z", "p": "p", "n": 10_000}
    folder = tmp_path / "in"
    schema = written(folder, [*arriving, *beats], 4)
    stored(folder, 9, [late])
    reading = spark.readStream.schema(spark.read.parquet(schema).schema).option("maxFilesPerTrigger", 1)
    found = fl.match(plan, reading.parquet(str(folder)), source="p", sequence="n", buckets=2)
    query = found.writeStream.format("memory").queryName(f"q{abs(hash(delay))}").outputMode("append")
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination(300)
    got = spark.table(f"q{abs(hash(delay))}").toArrow()
    named = [
        {k: v for k, v in each.items() if k not in "pn"} | {"_source": each["p"], "_sequence": each["n"]} for each in records
    ]
    told = [(row["verdict"], tuple(row["subscriptions"])) for row in got.to_pylist() if row["verdict"] != "in order"]
    assert sorted(told) == [("late", ("Pairs", "Alone")), ("late", ("Rise",))]
    for each in frontier_groups(plan):  # each has its own order
        mine = got.filter(pc.is_in(pc.field("subscription"), pa.array(each.names)))
        read = [record for record in named if record["type"] in each.types]
        wanted = fairlead.match(each.plan, read, until="2026-01-01T00:09:59.999999Z")
        assert delivered(mine) == shown(plan, wanted.batches)
        assert len(mine) > 20


START = datetime(2026, 1, 1, tzinfo=UTC)


def record(kind: str, second: float, key: int, number: int, stored: float) -> dict[str, Any]:
    at = {name: START + timedelta(seconds=value) for name, value in (("at", second), ("_stored", stored))}
    return {"type": kind, "k": key, "x": float(number % 3), "p": "p", "n": number} | at


def embedded_ids(plan: Any, records: list[dict[str, Any]], **options: Any) -> list[tuple[str, str]]:
    """Of the embedded runtime, which also leaves out what is ahead of `_stored`."""
    named = [
        {k: v for k, v in each.items() if k not in ("p", "n") and v is not None}
        | {"_source": each["p"], "_sequence": each["n"]}
        for each in records
    ]
    return sorted((each.subscription, each.id) for each in fairlead.match(plan, named, **options))


def test_late_rows_revise_a_stream_and_its_table_folds_to_what_sorting_gives(spark: Any, tmp_path: Path) -> None:
    """Rows late within d, a repeat of one, rows too late, rows ahead; the query is stopped and resumes from its checkpoint. The
    rules have keys, an absence, and a chain."""
    plan = fairlead.compile(TYPES + "ORDER BY at DELAY 1 SECOND AHEAD 10 SECONDS LATE REVISE WITHIN 20 SECONDS " + RULES)
    random, late = Random(4), []
    arriving: list[list[dict[str, Any]]] = [[], [], [], []]
    for number in range(160):
        second = number / 2
        made = record(random.choice("AB"), second, random.randrange(3), number, second)
        part = number // 40
        if part < 3 and random.random() < 0.3 and second > part * 20 + 5:
            part += 1
            late.append(number)
        arriving[part].append(made)
    assert len(late) > 15
    again, too_late = dict(arriving[1][-1]), record("A", 19, 1, 1000, 60)
    ahead = record("B", 400, 1, 1001, 60)
    ends = [
        record("Heartbeat", second, 0, 0, second) | {"k": None, "x": None, "n": None} for second in (300, 600)
    ]  # the second one releases the first
    arriving[2] += [again, ahead]
    arriving[3] += [too_late, *ends]
    folder, out = tmp_path / "in", str(tmp_path / "out")
    folder.mkdir()
    progress = []
    for run, parts in enumerate(((0, 1), (2, 3))):
        for part in parts:
            stored(folder, part, arriving[part])
        schema = spark.read.parquet(str(folder)).schema
        reading = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
        found = fl.observed(fl.match(plan, reading, source="p", sequence="n", buckets=2), plan)
        writer = (
            found.writeStream.format("parquet").option("path", out).option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        query = writer.trigger(availableNow=True).start()
        with fl.coded_errors():
            assert query.awaitTermination(300)
        progress += [json.loads(each.json) for each in query.recentProgress]
        assert query.lastProgress["batchId"] == 2 * run + 1
    table = spark.read.parquet(out)
    verdicts = Counter(row["verdict"] for row in table.collect())
    told = [(row["verdict"], tuple(row["subscriptions"])) for row in table.where("subscriptions IS NOT NULL").collect()]
    first, second = ("Pairs", "Alone"), ("Rise",)
    assert again["type"] == ahead["type"] == "B"
    assert sorted(told) == [("ahead", first), ("late", first), ("late", second), ("repeated", first)]
    assert verdicts["added"] > 5
    assert verdicts["retracted"] > 5
    counted = fl.Metrics(plan)
    for each in progress:
        counted.note(each)
    now = counted.snapshot()
    assert dict(now.verdicts) == {name: verdicts[name] for name in now.verdicts}
    assert now.kept is not None
    assert {row["revision"] for row in table.where("verdict in ('added', 'retracted')").collect()} == {1, 2, 3}
    accepted = [each for part in arriving for each in part if each not in (too_late, ahead, *ends)]
    wanted = embedded_ids(plan, accepted, until=ends[0]["at"])
    twice = table.union(table.where("verdict = 'added'"))  # a sink that stored a micro-batch twice
    for rows in (table, twice):
        held = fl.current(rows)
        assert sorted((row["subscription"], row["relation_id"]) for row in held.collect()) == wanted
    assert held.columns == [name for name in table.columns if name != "revision"]
    names = fl.register(table, plan, prefix="late_")
    assert spark.table(names["ahead"]).collect()[0]["event"]["k"] == 1
    assert sorted(tuple(row["subscriptions"]) for row in spark.table(names["late"]).collect()) == [first, second]
    assert spark.table(names["Rise"]).where("verdict = 'retracted' AND revision IS NULL").count() == 0
    with pytest.raises(fairlead.UsageError, match="A232"):
        fl.current(found)


@pytest.mark.slow
def test_a_source_that_is_silent_holds_each_subscription_back_by_the_types_that_it_reads(spark: Any, tmp_path: Path) -> None:
    """PER SOURCE IDLE and LATE REVISE, over files: after every micro-batch, verdicts, revisions and relations are those of the
    definition, by frontier."""
    rules = (
        "SUBSCRIPTION S MATCH A a THEN B b PER k SUBSCRIPTION T MATCH B b WITHOUT C c WITHIN 2 SECONDS OF b PER k "
        "SUBSCRIPTION U MATCH C c[2] SUBSCRIPTION V MATCH B b[2] AND A a"
    )
    order = "ORDER BY at DELAY 1 SECOND PER SOURCE IDLE 4 SECONDS LATE REVISE WITHIN 3 SECONDS "
    plan = fairlead.compile(sequences.TYPES + order + rules)
    records = sequences.sequence(Random(5), 150, late=0.4)
    for each in records[40:90]:
        each |= {"_source": "p"} if each.get("_source") == "q" else {}
    folder = tmp_path / "in"
    folder.mkdir()
    nothing = dict.fromkeys(("k", "x", "_source", "_sequence"))
    records += [{"type": "Heartbeat", "at": sequences.at(1000), "_source": source} for source in ("p", "q", None)]
    parts = [records[low : low + 30] for low in range(0, len(records), 30)]
    for number, part in enumerate(parts):
        stored(folder, number, [nothing | each for each in part])
    schema = "k int, x bigint, _source string, _sequence bigint, type string, at timestamp"
    reading = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    batches: list[list[dict[str, Any]]] = []
    query = fl.match(plan, reading, buckets=2).writeStream.foreachBatch(
        lambda frame, _: batches.append([row.asDict() for row in frame.collect()])
    )
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    with fl.coded_errors():
        assert query.awaitTermination(300)
    groups = [FollowedGroup(each, sourced=True) for each in frontier_groups(plan)]
    assert [each.group.names for each in groups] == [("S", "V"), ("T",), ("U",)]
    for part, rows in zip(parts, batches, strict=True):
        for each in groups:
            each.judge(part, None)
            each.check(rows)
    assert [+each.found for each in groups] == [+each.verdicts for each in groups]
    assert all(each.found["late"] for each in groups)
    assert len({each.found["late"] for each in groups}) == len(groups)
    assert {row["verdict"] for rows in batches for row in rows} >= {"in order", "added", "retracted", "late", "repeated"}


def test_rows_ahead_of_their_storage_are_not_matched_in_batch(spark: Any, tmp_path: Path) -> None:
    plan = fairlead.compile(TYPES + "ORDER BY at AHEAD 10 SECONDS " + RULES)
    random = Random(5)
    records = [
        record(random.choice("AB"), number / 2, random.randrange(3), number, number / 2 - random.choice((0, 10, 10.000001)))
        for number in range(120)
    ]
    ahead = [each for each in records if each["at"] > each["_stored"] + timedelta(seconds=10)]
    wanted = embedded_ids(plan, records)
    assert len(ahead) > 20
    files = spark.read.parquet(written(tmp_path / "in", records, 3))
    for frame in (files, files.where("k >= 0")):  # Arrow reads the files, or Spark does
        rows = fl.match(plan, frame, source="p", sequence="n", buckets=2).collect()
        assert sorted((row["subscription"], row["relation_id"]) for row in rows if row["verdict"] == "in order") == wanted
        told = [row["members"][0] for row in rows if row["verdict"] == "ahead"]
        assert sorted((each["type"], each["at"]) for each in told) == sorted(
            (each["type"], each["at"].replace(tzinfo=None)) for each in ahead
        )
    with pytest.warns(fairlead.errors.FairleadWarning, match="W102"):
        rows = fl.match(plan, files.drop("_stored"), source="p", sequence="n", buckets=2).collect()
    with pytest.warns(fairlead.errors.FairleadWarning, match="W102"):
        unknown = embedded_ids(plan, [each | {"_stored": None} for each in records])
    assert sorted((row["subscription"], row["relation_id"]) for row in rows) == unknown != wanted
    with pytest.raises(fairlead.DataError, match="D022"):
        fl.match(plan, files.withColumn("_stored", files["_stored"].cast("string")))
