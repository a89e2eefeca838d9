"""What rules with ORDER BY emit is stored by jobs as by live subscribers: the same blocks, byte for byte, each once.

Publishers are generated whose times run back, by less than the delay, by less than late events may revise, and by more. A log
is copied block by block, in the order of storage, so that a live subscriber and jobs begin with equal ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import fairlead
from fairlead import spark as on_spark
from fairlead.runtime.live.subscriber.stream_reader import blocks_between
from fairlead.runtime.live.sync_client import SyncClient
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.protocol import Stored
from tests.runtime.spark.stream.test_crash import driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = " ".join(f"TYPE {name} (k INT, at TIMESTAMP) TIME at" for name in "ABC")
ONE, SEVERAL = TYPES, f"TOPIC b (A) TOPIC a (B) TOPIC c (C) {TYPES}"
RULES = """
SUBSCRIPTION Pair MATCH A a THEN B b PER k WITHIN 3 SECONDS EMIT Paired (k = a.k, at = b.at) TIME at
SUBSCRIPTION Alone MATCH A a WITHOUT B b WITHIN 1 SECOND OF a PER k EMIT Lonely (k = a.k)
SUBSCRIPTION Chain MATCH Paired p THEN C c WITHOUT A a BETWEEN p AND c PER k EMIT Linked (k = p.k, at = c.at)
SUBSCRIPTION Run MATCH A a THEN B b+ THEN C c PER k WITHIN 2 SECONDS EMIT Ran (k = a.k, rows = count(b))
SUBSCRIPTION Steps MATCH B b NEXT C c PER k WITHIN 2 SECONDS EMIT Stepped (k = b.k)
"""
NAMES = ("Paired", "Lonely", "Linked", "Ran", "Stepped")
ORDERS = {
    "revising": "ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 2 SECONDS",
    "by source": "ORDER BY at DELAY 500 MILLISECONDS PER SOURCE IDLE 4 SECONDS AHEAD 1 HOUR LATE REVISE WITHIN 2 SECONDS",
    "tagging": "ORDER BY at DELAY 500 MILLISECONDS AHEAD 1 HOUR",
    "at once": "ORDER BY at, k",
}
CASES = [(ONE, "tagging", 7), (ONE, "at once", 8), (SEVERAL, "revising", 8)]
"""With seeds by which every rule emits something."""
START = datetime.now(UTC) - timedelta(hours=2)
SECOND = timedelta(seconds=1)


def published(fl: SyncClient, seed: int, blocks: int = 50) -> None:
    """Events of two publishers, each in blocks of a few; then one from the future, heartbeats, and events that wait."""
    random, now = Random(seed), 0.0
    with fairlead.connect(fl.url, source="p").sync as p, fairlead.connect(fl.url, source="q").sync as q:
        for _ in range(blocks):
            some = []
            for _ in range(random.choice((1, 1, 2, 4))):
                now += random.choice((0, 0.1, 0.3))
                lag = random.choice((0, 0, 0, 0.3, 0.8, 1.5, 2.4, 9))
                some.append({"type": random.choice("AABBC"), "k": random.randrange(2), "at": START + (now - lag) * SECOND})
            random.choice((p, q)).publish_all(some, wait=True)
        p.publish("A", k=0, at=START + timedelta(days=2) if seed % 2 else START + now * SECOND, wait=True)


def every(fl: SyncClient) -> list[Stored]:
    """All blocks of the topics, in the order of their storage."""

    async def read() -> list[Stored]:
        log, found = fl._client.log, list[Stored]()
        for topic in await fl._client._registry.all_topics():
            stream = await log.open_topics([topic])
            async for some in blocks_between(log, stream, 0, await log.last(stream)):
                found += some
        return sorted(found, key=lambda each: each.time)

    return fl._call(read())


def derived(fl: SyncClient, names: Sequence[str] = NAMES) -> list[tuple[Any, ...]]:
    blocks = [each.block for each in every(fl) if each.block.type in names]
    told = [(b.type, b.source, b.number, b.sequence, b.count, b.schema, b.topic, b.hops, b.payload) for b in blocks]
    return sorted(told)


@contextmanager
def copied(fl: SyncClient, types: str) -> Iterator[SyncClient]:
    """Another log with the published blocks."""
    blocks = [each.block for each in every(fl) if each.block.type in ("A", "B", "C", "Heartbeat", MIXED)]

    async def write(log: Any, some: list[Block]) -> None:
        after = dict[tuple[str, str], int]()
        for block in some:
            source = block.topic, block.source
            after[source] = await log.append(block, after.get(source, 0))

    with fairlead.connect().sync as other:
        other.declare(types)
        other._call(write(other._client.log, blocks))
        yield other


def live(fl: SyncClient, rules: str, *, emit: bool = True) -> list[tuple[str, str, int]]:
    """The signed deliveries of a subscriber that reads everything."""
    found = []
    with fl.subscribe(rules, start="earliest", emit=emit) as sub:
        ends = sub.ends()
        while not sub.has_passed(ends):
            while (told := sub.next(timeout=0.1)) is not None:
                found.append((told.subscription, told.id, told.sign))
    return found


def batch(spark: SparkSession, fl: SyncClient, plan: fairlead.Plan, **more: Any) -> None:
    with on_spark.coded_errors():
        on_spark.to_log(on_spark.match(plan, on_spark.log(spark, fl.url, plan=plan)), plan, fl.url, **more).save()


def stream(spark: SparkSession, fl: SyncClient, plan: fairlead.Plan, checkpoint: Path, blocks: int, **more: Any) -> int:
    """To the end of the log; returns the number of micro-batches."""
    frame = on_spark.log(spark, fl.url, plan=plan, stream=True, blocks=blocks)
    writer = on_spark.to_log(on_spark.match(plan, frame, **frontier(plan)), plan, fl.url, **more)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    with on_spark.coded_errors():
        assert query.awaitTermination(500)
    return len(query.recentProgress)


def frontier(plan: fairlead.Plan) -> dict[str, Any]:
    """Without DELAY, match needs one on a stream; what is stored does not depend on it."""
    return {} if plan.order is not None and plan.order.delay_us is not None else {"frontier": "stream"}


@pytest.mark.slow
@pytest.mark.parametrize(("types", "order", "seed"), CASES, ids=["tagging", "at once", "several topics"])
def test_a_batch_stores_the_blocks_of_a_live_subscriber(spark: SparkSession, types: str, order: str, seed: int) -> None:
    rules = f"{ORDERS[order]} {RULES}"
    plan = fairlead.compile(f"{types} {rules}")
    with fairlead.connect().sync as fl:
        fl.declare(types)
        published(fl, seed)
        with copied(fl, types) as other:
            live(other, rules)
            wanted = derived(other)
        assert {each[0] for each in wanted} == {*NAMES}
        batch(spark, fl, plan)
        assert derived(fl) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("types", "order", "blocks"),
    [(ONE, "revising", 9), (SEVERAL, "by source", 25), (SEVERAL, "tagging", 1000)],
    ids=["one topic", "by source", "at once"],
)
def test_a_stream_stores_them_once_whatever_happens(
    spark: SparkSession, types: str, order: str, blocks: int, tmp_path: Path
) -> None:
    rules = f"{ORDERS[order]} {RULES}"
    plan = fairlead.compile(f"{types} {rules}")
    with fairlead.connect().sync as fl:
        fl.declare(types)
        published(fl, 3, 30)
        fewer = plan if blocks < 1000 else fairlead.compile(f"{types} {rules.partition('SUBSCRIPTION Steps')[0]}")
        count = stream(spark, fl, fewer, tmp_path / "checkpoint", blocks, into="Found")
        assert count > 2 or blocks == 1000
        published(fl, 4, 30)
        live(fl, rules)  # beside the job, and then before it
        stream(spark, fl, plan, tmp_path / "checkpoint", blocks, into="Found")
        with copied(fl, types) as other:
            deliveries = live(other, rules)
            wanted = derived(other)
        assert derived(fl) == wanted

        told = on_spark.log(spark, fl.url, types="Found").orderBy("position").toArrow().to_pylist()
        for name in plan.subscriptions:
            mine = [(each["relation_id"], each["sign"]) for each in told if each["subscription"] == name.name]
            assert mine == [(relation, sign) for owner, relation, sign in deliveries if owner == name.name]
        assert {each["sign"] for each in told} == ({1} if order == "tagging" else {1, -1})

        # Spark did not hear that the last micro-batch was stored: it gives it again
        stored = derived(fl, [*NAMES, "Found"])
        commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda each: int(each.name))
        commits[-1].unlink()
        (commits[-1].parent / f".{commits[-1].name}.crc").unlink(missing_ok=True)
        stream(spark, fl, plan, tmp_path / "checkpoint", blocks, into="Found")
        batch(spark, fl, plan, into="Found")
        assert derived(fl, [*NAMES, "Found"]) == stored


@pytest.mark.slow
def test_a_driver_that_is_killed_and_started_again_stores_them_once(tmp_path: Path) -> None:
    rules = f"{ORDERS['revising']} {RULES}"
    with fairlead.connect().sync as fl:
        fl.declare(SEVERAL)
        published(fl, 5)
        given = fl.url, f"{SEVERAL} {rules}", "12"
        for kill_after in (1, 3):  # blocks that are stored: in the middle of what a micro-batch stores
            with driver("local[2]", tmp_path, *given, module="tests.runtime.spark.log.sink_driver") as running:
                before = len(derived(fl, [*NAMES, "Found"]))
                running.until(lambda: len(derived(fl, [*NAMES, "Found"])) >= before + kill_after)  # noqa: B023
        with driver("local[2]", tmp_path, *given, module="tests.runtime.spark.log.sink_driver") as running:
            running.until((tmp_path / "done").exists)
        with copied(fl, SEVERAL) as other:
            live(other, rules)
            assert derived(fl) == derived(other)
