"""A log as Spark sees it: the relations of live subscribers under the same ids in the same order, and back into it, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from nats.js.api import DiscardPolicy

import fairlead
from fairlead import spark as on_spark
from fairlead.cli.command_table import cli
from fairlead.errors import DataError, LogError, StateError, UnsupportedError, UsageError
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.export import export_events
from fairlead.runtime.live.sync_client import SyncClient
from fairlead.runtime.spark.log.options import log_options
from fairlead.runtime.spark.log.source import LogSource, LogStreamReader
from fairlead.transport.log.blocks.block import Block

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = """
TYPE A (k INT, x INT, at TIMESTAMP, due TIMESTAMP) TIME at
TYPE B (k INT, x INT, at TIMESTAMP) TIME at
TYPE D (k INT, x INT, at TIMESTAMP) TIME at
"""
APART = f"{TYPES} TOPIC d (D)"
RULES = """
SUBSCRIPTION Pairs MATCH A a AND B b WHERE a.x < b.x PER k WITHIN 10 SECONDS EMIT D (k = a.k, x = b.x, at = a.due)
SUBSCRIPTION Same MATCH A a AND B b WHERE a.x = b.x AND a.k = b.k
"""
START_US = 1_767_225_600_000_000
RNG = np.random.default_rng(7)


def publish(fl: SyncClient, rounds: int, first: int = 0) -> None:
    """Blocks of all sizes, of two types, in turn."""
    for number in range(first, first + rounds):
        for name in ("A", "B"):
            rows = int(RNG.integers(1, 40))
            times = pa.array(START_US + 1_000_000 * number + np.arange(rows)).cast(pa.timestamp("us", tz="UTC"))
            values = {"k": RNG.integers(0, 20, rows, dtype=np.int32), "x": RNG.integers(0, 50, rows, dtype=np.int32)}
            values["at"] = times
            if name == "A":
                values["due"] = pa.array([each.as_py() if at % 2 else None for at, each in enumerate(times)], times.type)
            fl.publish_many(name, values, wait=True)


def live_ids(fl: SyncClient, *, emit: bool = False) -> list[tuple[str, str]]:
    found = []
    with fl.subscribe(RULES, start="earliest", emit=emit) as sub:
        ends = sub.ends()
        while not sub.has_passed(ends):
            while (relation := sub.next(timeout=0.1)) is not None:
                found.append((relation.subscription, relation.id))
    return found


def of(ids: list[tuple[str, str]], name: str) -> list[str]:
    return [each for subscription, each in ids if subscription == name]


def delivered(table: pa.Table, name: str) -> list[str]:
    """The ids of one subscription in the order of delivery."""
    mine = table.filter(pa.compute.equal(table.column("subscription"), name))
    return mine.sort_by([("completed_at", "ascending"), ("turn", "ascending")]).column("relation_id").to_pylist()


@pytest.fixture
def fl() -> Iterator[SyncClient]:
    with fairlead.connect().sync as client:
        client.declare(TYPES)
        yield client


@pytest.fixture(scope="module")
def plan() -> Plan:
    return fairlead.compile(TYPES + RULES)


def blocks_of_type(fl: SyncClient, name: str) -> list[Block]:
    return [each for each in fl._call(every_block(fl)) if each.type == name]


async def every_block(fl: SyncClient) -> list[Block]:
    log, found = fl._client.log, list[Block]()
    stream = await log.open_topics(["main"])
    last = await log.last(stream)
    async for some in log.read(stream, 0):
        found += [each.block for each in some]
        if len(found) >= last:
            break
    return found


def run_stream(frame: DataFrame, plan: Plan, url: str, checkpoint: Path, **more: Any) -> int:
    """To the end of what there is; gives the number of micro-batches."""
    writer = on_spark.to_log(on_spark.match(plan, frame, position="position"), plan, url, into="Found", **more)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    return len(query.recentProgress)


EITHER = "SUBSCRIPTION Either MATCH (A a AND B b) OR (B b AND D d) WHERE a.x < b.x AND b.x < d.x PER k"


@pytest.fixture
def apart() -> Iterator[SyncClient]:
    """D has a topic of its own."""
    with fairlead.connect().sync as client:
        client.declare(APART)
        yield client


def test_a_disjunction_of_several_streams_agrees_with_live_in_batch_and_in_streams(
    spark: SparkSession, apart: SyncClient, tmp_path: Path
) -> None:
    fl = apart
    publish(fl, 12)
    for at in range(10):
        times = pa.array([START_US + 1_000_000 * at] * 20).cast(pa.timestamp("us", tz="UTC"))
        fl.publish_many("D", {"k": list(range(20)), "x": [5 * at] * 20, "at": times}, wait=True)
    plan = fairlead.compile(f"{APART} {EITHER}")
    with fl.subscribe(EITHER, start="earliest") as sub:
        live, ends = [], sub.ends()
        while not sub.has_passed(ends):
            while (relation := sub.next(timeout=0.1)) is not None:
                live.append(relation)
    by_branch = {at: [each.id for each in live if each.branch == at] for at in (0, 1)}
    assert all(by_branch.values())

    frame = on_spark.log(spark, fl.url, plan=plan)
    assert sorted(frame.columns) == sorted(["position", "type", "source", "sequence", "k", "x", "at", "due", "stream"])
    found = on_spark.match(plan, frame, position="position", stream="stream").toArrow()
    streaming = on_spark.match(
        plan, on_spark.log(spark, fl.url, plan=plan, stream=True, blocks=7), position="position", stream="stream"
    )
    query = streaming.writeStream.format("memory").queryName("either").outputMode("append")
    started = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    assert started.awaitTermination(300)
    for table in (found, spark.table("either").toArrow()):
        for at, wanted in by_branch.items():
            mine = table.filter(pa.compute.equal(table.column("branch"), at))
            assert (
                mine.sort_by([("completed_at", "ascending"), ("turn", "ascending")]).column("relation_id").to_pylist() == wanted
            )

    with pytest.raises(UsageError, match="A264"):
        on_spark.log(spark, fl.url, plan=plan, start=4096)
    with pytest.raises(UsageError, match="A217"):
        on_spark.match(plan, frame, stream="stream")
    with pytest.raises(UsageError, match="A260"):
        on_spark.to_log(on_spark.match(plan, frame, position="position", stream="stream"), plan, fl.url, into="Found").save()
    one = fairlead.compile(f"{APART} SUBSCRIPTION One MATCH A a AND B b")
    with pytest.raises(DataError, match="D025"), on_spark.coded_errors():
        on_spark.match(one, frame, position="position", stream="stream").collect()


def test_live_batch_and_file_agree(spark: SparkSession, fl: SyncClient, plan: Plan, tmp_path: Path) -> None:
    publish(fl, 20)
    live = live_ids(fl)
    assert of(live, "Pairs")
    assert of(live, "Same")

    frame = on_spark.log(spark, fl.url, plan=plan)
    assert frame.columns == ["position", "type", "source", "sequence", "k", "x", "at", "due"]
    found = on_spark.match(plan, frame, position="position").toArrow()
    for name in ("Pairs", "Same"):
        assert delivered(found, name) == of(live, name)

    path = tmp_path / "events.parquet"
    exported = export_events(fl.url, RULES, path)
    assert exported.events == frame.count()
    result = fairlead.match(plan, pq.read_table(path), position="position")
    assert [(each.subscription, each.id) for each in result] == live
    (tmp_path / "rules.fl").write_text(TYPES + RULES)
    command = ["run", str(tmp_path / "rules.fl"), "--events", str(path), "--position", "position"]
    ran = CliRunner().invoke(cli, [*command, "--out", str(tmp_path / "out.jsonl")])
    assert ran.exit_code == 0, ran.output
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(each["subscription"], each["id"]) for each in lines] == live

    fl.publish("A", k=1, x=1, at="2026-01-01T01:00:00Z", due=None, wait=True)
    assert frame.count() == exported.events  # a frame ends where the log ended when it was loaded
    part = spark.read.format("fairlead").option("url", fl.url).option("types", "A").option("start", str(3 << 12)).load()
    rows = part.toArrow()
    assert rows.column_names == ["position", "type", "source", "sequence", "k", "x", "at", "due"]
    assert pa.compute.min(rows.column("position")).as_py() == 3 << 12
    assert set(rows.column("source").to_pylist()) == {fl.source}
    numbers = rows.sort_by("position").column("sequence").to_pylist()
    assert numbers == sorted({*numbers})  # those of a topic, so events of B are between them
    assert numbers[-1] - numbers[0] > len(numbers)


def test_a_stream_goes_on_from_its_checkpoint_and_stores_once(
    spark: SparkSession, fl: SyncClient, plan: Plan, tmp_path: Path
) -> None:
    publish(fl, 5)
    frame = on_spark.log(spark, fl.url, plan=plan, stream=True, blocks=6)
    assert run_stream(frame, plan, fl.url, tmp_path / "checkpoint") >= 2
    publish(fl, 3, first=5)
    assert run_stream(frame, plan, fl.url, tmp_path / "checkpoint") >= 1

    def stored() -> list[dict[str, Any]]:
        return on_spark.log(spark, fl.url, types="Found").orderBy("position").toArrow().to_pylist()

    live, rows, derived = live_ids(fl), stored(), blocks_of_type(fl, "D")
    for name in ("Pairs", "Same"):
        assert [each["relation_id"] for each in rows if each["subscription"] == name] == of(live, name)
    assert sum(each.count for each in derived) == len(of(live, "Pairs")) > 10

    # Spark did not hear that the last micro-batch was stored: it gives it again
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda each: int(each.name))
    commits[-1].unlink()
    (commits[-1].parent / f".{commits[-1].name}.crc").unlink(missing_ok=True)
    run_stream(frame, plan, fl.url, tmp_path / "checkpoint")
    assert stored() == rows
    assert blocks_of_type(fl, "D") == derived

    # a live subscriber that emits the same finds it stored; so does a batch
    assert live_ids(fl, emit=True) == live
    again = on_spark.match(plan, on_spark.log(spark, fl.url, plan=plan), position="position")
    on_spark.to_log(again, plan, fl.url, into="Found").save()
    assert stored() == rows
    assert blocks_of_type(fl, "D") == derived


def test_derived_blocks_are_those_of_a_live_subscriber(spark: SparkSession, fl: SyncClient, plan: Plan) -> None:
    publish(fl, 6)
    assert live_ids(fl, emit=True)
    stored = blocks_of_type(fl, "D")
    assert len(stored) > 1
    with fairlead.connect().sync as other:  # the same events at the same positions, in a log without a subscriber
        other.declare(TYPES)
        copy_log(fl, other)
        relations = on_spark.match(plan, on_spark.log(spark, other.url, plan=plan), position="position")
        on_spark.to_log(relations, plan, other.url).save()
        found = blocks_of_type(other, "D")
    assert [(each.source, each.lane, each.number, each.sequence, each.count, each.schema) for each in found] == [
        (each.source, each.lane, each.number, each.sequence, each.count, each.schema) for each in stored
    ]
    assert [each.payload for each in found] == [each.payload for each in stored]


def copy_log(fl: SyncClient, other: SyncClient) -> None:
    """The published blocks, which are before the derived ones."""

    async def write(blocks: list[Block]) -> None:
        after = 0
        for block in blocks:
            after = await other._client.log.append(block, after)

    other._call(write([each for each in fl._call(every_block(fl)) if each.type != "D"]))


def test_a_stream_that_starts_with_new_events_reads_on_where_it_was(fl: SyncClient) -> None:
    def reader() -> LogStreamReader:
        source = LogSource({"url": fl.url, "types": "B", "start": "new"})
        return source.streamReader(source.schema())

    before = reader()
    begun = before.initialOffset()
    for number in range(3):
        fl.publish("B", k=number, x=0, at="2026-01-01T00:00:00Z", wait=True)
    resumed = reader()  # by the same query, from its checkpoint
    end = resumed.latestOffset(begun)
    found = [row["k"] for part in resumed.partitions(begun, end) for each in resumed.read(part) for row in each.to_pylist()]
    assert found == [0, 1, 2]
    for each in (before, resumed):
        each.stop()


def test_lost_blocks_are_an_error(spark: SparkSession, fl: SyncClient) -> None:
    publish(fl, 3)
    frame = on_spark.log(spark, fl.url, types=["A", "B"])
    assert fl.sweep() == []  # Spark reads it
    log = fl._client.log._log._log  # type: ignore[attr-defined]
    stream = fl._call(log.open_topics(["main"]))
    held = fl._call(log._js.stream_info(stream.name))
    trimmed = held.config.evolve(discard=DiscardPolicy.OLD, max_msgs=held.state.messages - 2)
    fl._call(log._js.update_stream(trimmed))
    with pytest.raises(LogError, match="N020"), on_spark.coded_errors():
        frame.count()
    assert on_spark.log(spark, fl.url, types="A,B", start=3 << 12).count() > 0
    fl._call(log._js.delete_stream(stream.name))
    with pytest.raises(StateError, match="S137"), on_spark.coded_errors():
        frame.count()


def test_bad_options(spark: SparkSession, fl: SyncClient, plan: Plan) -> None:
    for given, kind, code in (
        ({"types": "A"}, UsageError, "A225"),
        ({"url": "memory:", "types": "A"}, UnsupportedError, "U123"),
        ({"url": "x"}, UsageError, "A226"),
        ({"url": "x", "types": "A", "rules": "…"}, UsageError, "A226"),
        ({"url": "x", "types": "A", "blocks": "0"}, UsageError, "A227"),
        ({"url": "x", "types": "A", "heartbeats": "maybe"}, UsageError, "A227"),
        ({"url": "x", "types": "A", "start": "soon"}, UsageError, "A251"),
        ({"url": "x", "types": "A", "strat": "new"}, UsageError, "A224"),
    ):
        with pytest.raises(kind, match=code):
            log_options(given)
    with pytest.raises(DataError, match="D001"):
        on_spark.log(spark, fl.url, types="Nothing")
    with pytest.raises(LogError, match="N001"):
        on_spark.log(spark, "nats://127.0.0.1:1", types="A")
