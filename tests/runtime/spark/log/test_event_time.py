"""Rules with ORDER BY over a log with several topics: live subscribers, `fairlead run` over the export, Spark batch and Spark
stream agree, by ids, by verdicts on events and by revisions.

Publishers are generated whose times run back, by less than the delay and by more, on a server. The data source is also read
without Spark, with cuts of any size.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import fairlead
from fairlead import spark as on_spark
from fairlead.cli.command_table import cli
from fairlead.errors import StateError, UsageError
from fairlead.model.events.verdict import EventReport
from fairlead.order.log_holdback import OFFSET, TOPIC
from fairlead.runtime.live.subscriber.stream_reader import pulse
from fairlead.runtime.live.sync_client import SyncClient
from fairlead.runtime.spark.log.link import LogLink
from fairlead.runtime.spark.log.options import log_options
from fairlead.runtime.spark.log.source import LogSource, LogStreamReader
from fairlead.runtime.spark.stream.stream_job import Setup
from tests.runtime.spark.job.in_process import delivered, shown
from tests.runtime.spark.stream.rounds import Streaming
from tests.runtime.spark.stream.test_log_order import setup_of
from tests.runtime.spark.stream.test_revisions import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = "TOPIC b (A) TOPIC a (B) TOPIC c (C)"
TYPES = f"{TOPICS} " + " ".join(f"TYPE {name} (k INT, at TIMESTAMP) TIME at" for name in "ABC")
RULES = """
SUBSCRIPTION Quiet MATCH A a THEN B b WITHOUT C c BETWEEN a AND b PER k
SUBSCRIPTION Chain MATCH A a THEN B b THEN C c PER k
SUBSCRIPTION Pair MATCH A a THEN B b PER k
SUBSCRIPTION Third MATCH C c[3]
"""
NAMES = ("Quiet", "Chain", "Pair", "Third")
"""Of all subscriptions; the first two have one frontier, the others their own."""
REVISING = "ORDER BY at DELAY 1 SECOND PER SOURCE IDLE 4 SECONDS LATE REVISE WITHIN 1 HOUR"
TAGGING = "ORDER BY at DELAY 500 MILLISECONDS AHEAD 1 HOUR"
START = datetime.now(UTC) - timedelta(hours=2)
SECOND = timedelta(seconds=1)


@dataclass
class Heard:
    """Relations that hold, signed deliveries of revisions, and the verdicts on events, by subscription."""

    fold: Counter[str] = field(default_factory=Counter)
    revised: Counter[tuple[int, str]] = field(default_factory=Counter)
    verdicts: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def take(self, relation_id: str, sign: int) -> None:
        self.fold[relation_id] += sign


@pytest.fixture(scope="module")
def fl() -> Iterator[SyncClient]:
    """A log with events of two publishers in three topics, each in blocks of a few events, and heartbeats of readers that
    waited for a topic."""
    random = Random(11)
    with fairlead.connect().sync as main:
        main.declare(TYPES)
        with (
            fairlead.connect(main.url, source="p").sync as p,
            fairlead.connect(main.url, source="q").sync as q,
            LogLink(log_options({"url": main.url, "rules": RULES})) as link,
        ):
            now = 0.0
            for number in range(45):
                for topic in "abc" if number % 15 == 0 else "":
                    link.call(partial(pulse, topic=topic))
                some = []
                for _ in range(random.choice((1, 1, 2, 4))):
                    now += random.choice((0, 0.1, 0.3))
                    lag = random.choice((0, 0, 0, 0.3, 0.8, 1.5, 5))
                    some.append({"type": random.choice("ABC"), "k": random.randrange(2), "at": START + (now - lag) * SECOND})
                random.choice((p, q)).publish_all(some, wait=True)
            p.publish("A", k=0, at=START + timedelta(days=2), wait=True)
            for minutes in (20, 21):  # the second releases the first
                for each in (p, q):
                    each.publish("Heartbeat", {"at": START + timedelta(minutes=minutes)}, wait=True)
        yield main


def live(fl: SyncClient, rules: str) -> Heard:
    heard = Heard()
    with fl.subscribe(rules, start="earliest", emit=False, verdicts=True) as sub:
        ends = sub.ends()
        while not sub.has_passed(ends):
            while (told := sub.next(timeout=0.1)) is not None:
                if isinstance(told, EventReport):
                    for name in told.subscriptions:
                        heard.verdicts[told.verdict.value, name, origin(told.event.source, told.event.sequence)] += 1
                else:
                    heard.take(told.id, told.sign)
                    heard.revised[told.sign, told.id] += 1
    return heard


def of_rows(rows: list[Any]) -> Heard:
    heard = Heard()
    for row in rows:
        if row.verdict in ("in order", "added", "retracted"):
            sign = -1 if row.verdict == "retracted" else 1
            heard.take(row.relation_id, sign)
            heard.revised[sign, row.relation_id] += 1
        else:
            for name in getattr(row, "subscriptions", None) or NAMES:
                heard.verdicts[row.verdict, name, row.reason.partition("; ")[2]] += 1
    return heard


def origin(source: str | None, sequence: int | None) -> str:
    return f"sequence {sequence} of source {source}"


def of_files(rules: str, table: Path, folder: Path) -> Heard:
    """`fairlead run` over the export."""
    (folder / "rules.fl").write_text(f"{TYPES} {rules}")
    out, late = folder / "found.jsonl", folder / "late.jsonl"
    command = ["run", str(folder / "rules.fl"), "--events", str(table), "--out", str(out), "--late", str(late), "--quiet"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    heard = Heard()
    for row in map(json.loads, out.read_text().splitlines()):
        heard.take(row["id"], row.get("sign", 1))
    for row in map(json.loads, late.read_text().splitlines() if late.exists() else ()):
        for name in row["_subscriptions"]:
            heard.verdicts[row["_verdict"], name, origin(row["_source"], row["_sequence"])] += 1
    return heard


def read_by(reader: LogStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a micro-batch, as its tasks read them."""
    return [row for part in reader.partitions(start, end) for batch in reader.read(part) for row in batch.to_pylist()]


def as_input(setup: Setup, plan: fairlead.Plan, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of the data source in the form in which the steps of a stream take them."""
    records = []
    for row in rows:
        names = ("type", "at", "_source", "_sequence", *(("k",) if row["type"] != "Heartbeat" else ()))
        records.append({name: row[name] for name in names})
    made = rows_of(setup, plan, records, [row["_stored"] for row in rows])
    made = made.append_column(TOPIC, pa.array([row["_topic"] for row in rows], pa.string()))
    return made.append_column(OFFSET, pa.array([row["_offset"] for row in rows], pa.int64()))


@pytest.mark.parametrize("blocks", [1, 7, 1000])
@pytest.mark.parametrize("order", [REVISING, TAGGING], ids=["revising", "tagging"])
def test_the_data_source_has_the_sequence_of_live_subscribers_whatever_the_cuts(
    fl: SyncClient, order: str, blocks: int
) -> None:
    plan = fairlead.compile(f"{TYPES} {order} {RULES}")
    source = LogSource({"url": fl.url, "rules": plan.text, "blocks": str(blocks)})
    reader = source.streamReader(source.schema())
    setup = setup_of(plan, 2, ahead=order == TAGGING)
    query = Streaming(setup, Random(blocks))
    try:
        reader.prepareForTriggerAvailableNow()
        at, batches = reader.initialOffset(), 0
        while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
            query.batch(as_input(setup, plan, read_by(reader, at, end)))
            at, batches = json.loads(json.dumps(end)), batches + 1
        with pytest.raises(StateError, match="S137"):
            reader.latestOffset(at | {"made": ["other", *at["made"][1:]]})
        assert (batches == 1) == (blocks == 1000)
    finally:
        reader.stop()
    found = of_rows([SimpleNamespace(**row) for table in query.found for row in table.to_pylist()])
    wanted = live(fl, f"{order} {RULES}")
    assert (found.revised, found.verdicts) == (wanted.revised, wanted.verdicts)


@pytest.mark.parametrize("order", [REVISING, TAGGING], ids=["revising", "tagging"])
def test_live_files_batch_and_stream_agree(fl: SyncClient, spark: SparkSession, order: str, tmp_path: Path) -> None:
    rules, plan = f"{order} {RULES}", fairlead.compile(f"{TYPES} {order} {RULES}")
    wanted = live(fl, rules)
    kept = +wanted.fold
    if order == TAGGING:
        assert {verdict for verdict, *_ in wanted.verdicts} == {"late", "ahead"}
        late = [{told for verdict, name, told in wanted.verdicts if (verdict, name) == ("late", each)} for each in NAMES]
        assert late[0] == late[1] != late[2] | late[3]
    else:
        assert min(sign for sign, _ in wanted.revised) == -1
    assert len(kept) > 5

    frame = on_spark.log(spark, fl.url, plan=plan, stream=True, blocks=40)
    assert frame.columns[:6] == ["_offset", "type", "_source", "_sequence", "_stored", "_topic"]
    query = on_spark.match(plan, frame, buckets=2).writeStream.format("parquet").option("path", str(tmp_path / "rows"))
    started = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    with on_spark.coded_errors():
        assert started.awaitTermination(500)
    streamed = of_rows(spark.read.parquet(str(tmp_path / "rows")).collect())
    assert (streamed.revised, streamed.verdicts) == (wanted.revised, wanted.verdicts)

    table = tmp_path / "events.parquet"
    fl.export(rules, table)
    of_run = of_files(rules, table, tmp_path)
    assert (+of_run.fold, of_run.verdicts) == (kept, wanted.verdicts)

    sorted_all = fairlead.match(plan, pq.read_table(table))
    for events in (on_spark.log(spark, fl.url, plan=plan), spark.read.parquet(str(table))):
        found = on_spark.match(plan, events, buckets=2).toArrow()
        assert delivered(found) == shown(plan, sorted_all.batches)  # with their positions
        batch = of_rows([SimpleNamespace(**row) for row in found.to_pylist()])
        ahead = [{told for verdict, _, told in each.verdicts if verdict == "ahead"} for each in (batch, wanted)]
        assert ahead[0] == ahead[1]
    if order == REVISING:
        assert batch.fold == kept


def test_a_position_says_nothing_about_several_topics(fl: SyncClient, spark: SparkSession) -> None:
    plan = fairlead.compile(f"{TYPES} {TAGGING} {RULES}")
    with pytest.raises(UsageError, match="A264"):
        on_spark.log(spark, fl.url, plan=plan, start=4096)
