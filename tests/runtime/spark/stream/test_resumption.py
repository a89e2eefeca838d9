"""A stream is taken up as it was begun, or refused with what to do; and whoever runs it is told what became of its rules."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import fairlead
from fairlead import spark as fl
from fairlead.errors import StateError
from fairlead.order.holdback import Frontier, head_and_rest, with_head
from fairlead.runtime.spark.input.frames import input_of
from fairlead.runtime.spark.stream.checkpoint import Note, agree, noted
from fairlead.runtime.spark.stream.resumption import VERSION, ZONE, RuleChange, agree_in
from fairlead.runtime.spark.stream.sequencing import Sequencing
from tests.runtime.spark.job.in_process import input_table, reading_of
from tests.runtime.spark.stream.rounds import Streaming, setup_of
from tests.runtime.spark.stream.streams import reading, written

TYPES = "TYPE A (k INT, at TIMESTAMP)\nTYPE B (k INT, at TIMESTAMP)\n"
STAYS = "SUBSCRIPTION Stays MATCH A a[2] PER k\n"
LEAVES = "SUBSCRIPTION Leaves MATCH A a[2]\n"
FRONTIER = Frontier((), positioned=True)


def names(change: RuleChange | None) -> Any:
    return change and (change.resumed, change.started, change.dropped, change.position)


# --- the steps, without Spark


def test_what_became_of_the_rules_is_told_by_name_and_from_which_position_on() -> None:
    both, one, other = (fairlead.compile(TYPES + text) for text in (STAYS + LEAVES, STAYS, LEAVES.replace("Leaves", "Renamed")))
    rows = input_table(both, reading_of(both, 1), [{"type": "A", "k": 1, "at": 0}] * 9, [pa.array(range(10, 19), pa.int64())])
    state = None
    told = []
    for at, plan in enumerate((both, both, one, one, other, both)):
        sequencing = Sequencing(setup_of(plan, 2, FRONTIER, positioned=True), state)
        told.append(names(sequencing.change))
        query = Streaming(sequencing.setup, Random(1), crashes=False)
        query.sequence = state
        query.batch(rows.slice(at, 1))
        state = query.sequence
    assert told == [
        ((), ("Stays", "Leaves"), (), 0),
        None,
        (("Stays",), (), ("Leaves",), 12),
        None,
        ((), ("Renamed",), ("Stays",), 14),
        (("Leaves",), ("Stays",), (), 15),  # by digest: Renamed is Leaves
    ]


def test_a_state_that_knows_no_names_tells_digests() -> None:
    both, one = fairlead.compile(TYPES + STAYS + LEAVES), fairlead.compile(TYPES + STAYS)
    head, rest = head_and_rest(Sequencing(setup_of(both, 2, FRONTIER, positioned=True), None).dump())
    del head["names"]
    change = Sequencing(setup_of(one, 2, FRONTIER, positioned=True), with_head(head, bytes(rest))).change
    assert names(change) == (("Stays",), (), (both["Leaves"].digest,), 0)


@pytest.mark.parametrize(
    ("before", "now", "refused"),
    [
        ({ZONE: "UTC"}, {ZONE: "UTC"}, False),
        ({ZONE: "UTC"}, {ZONE: "Asia/Kolkata"}, True),
        ({}, {ZONE: "Asia/Kolkata"}, False),  # no rule read such a time, or a release wrote it that did not note it
        ({ZONE: "UTC"}, {}, False),  # all times have a zone now
    ],
)
def test_another_zone_is_refused_where_it_changes_what_times_mean(
    before: dict[str, str], now: dict[str, str], refused: bool
) -> None:
    found = {"version": VERSION, "identity": {"order_by": ["at"], **before}}
    if not refused:
        agree_in(found, {"order_by": ["at"], **now})
        return
    with pytest.raises(StateError, match="S111 the stream read times without a zone as times in UTC") as raised:
        agree_in(found, {"order_by": ["at"], **now})
    assert str(raised.value.fix).startswith('spark.conf.set("spark.sql.session.timeZone", "UTC")')


# --- on Spark


def test_the_note_of_a_checkpoint_keeps_buckets_and_the_zone_of_texts(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "checkpoint")
    agree(spark, folder, Note("plan", ("at",), None, {"S": "1"}, buckets=4, zone="UTC"))
    with pytest.raises(StateError, match="S111 the stream read times without a zone as times in UTC"):
        agree(spark, folder, Note("plan", ("at",), None, {"S": "1"}, buckets=4, zone="Asia/Kolkata"))
    with pytest.raises(StateError, match="S116 the stream started with buckets = 4"):
        agree(spark, folder, Note("plan", ("at",), None, {"S": "1"}, buckets=8, zone="UTC"), asked=8)
    note, _ = agree(spark, folder, Note("plan", ("at",), None, {"T": "2"}, buckets=2))  # of other cores, and other files
    assert (note.buckets, note.zone) == (4, "UTC")
    assert noted(spark, folder) == note


def test_a_checkpoint_of_another_program_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    assert noted(spark, str(tmp_path)) is None
    (tmp_path / "offsets").mkdir()
    with pytest.raises(StateError, match=f"S117 the checkpoint {tmp_path} belongs to another program: it has no fairlead.json"):
        noted(spark, str(tmp_path))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "1", "{}", '{"plan": "p", "order_by": 1, "position": null}', '{"plan": "p", "order_by": [], "x": 1}'],
)
def test_a_damaged_note_is_refused(spark: SparkSession, tmp_path: Path, text: str) -> None:
    (tmp_path / "fairlead.json").write_text(text)
    with pytest.raises(StateError, match=r"S118 .*fairlead\.json is damaged"):
        noted(spark, str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "order", "zone"),
    [
        ("timestamp", "nr", None),
        ("timestamp_ntz", "nr", "Asia/Kolkata"),
        ("string", "nr", "Asia/Kolkata"),
        ("long", "nr", None),
        ("timestamp", "at", None),
        ("timestamp_ntz", "at", "Asia/Kolkata"),
    ],
)
def test_the_zone_belongs_to_a_stream_where_its_times_have_none(
    spark: SparkSession, kind: str, order: str, zone: str | None
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    frame = session.createDataFrame([], f"nr bigint, type string, k int, at {kind}")
    given = input_of(fairlead.compile(TYPES + STAYS), frame, order, None, "type", None, None, "stop")
    assert given.zone == zone


def run(spark: SparkSession, folder: Path, rules: str, zone: str = "UTC", buckets: int | None = None) -> StreamingQuery:
    """All that is there; its times have no zone."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    given = reading(session, folder / "in")
    found = fl.observed(
        fl.match(fairlead.compile(TYPES + rules), given, position="nr", buckets=buckets), fairlead.compile(TYPES + rules)
    )
    writer = found.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    with fl.coded_errors():
        assert query.awaitTermination(300)
    return query


def told(query: StreamingQuery, rules: str) -> Any:
    metrics = fl.Metrics(fairlead.compile(TYPES + rules))
    for each in query.recentProgress:
        metrics.note(json.loads(each.json))
    return names(metrics.snapshot().change)


def events(*numbers: int, kind: str = "A") -> pa.Table:
    at = [datetime(2026, 1, 1, 0, number) for number in numbers]  # noqa: DTZ001
    size = len(numbers)
    return pa.table({"nr": numbers, "type": [kind] * size, "k": pa.array([1] * size, pa.int32()), "at": at})


def test_a_rule_that_stayed_goes_on_and_one_that_comes_back_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "in", [events(0)])
    first = run(spark, tmp_path, STAYS + LEAVES, buckets=2)
    assert told(first, STAYS + LEAVES) == ((), ("Stays", "Leaves"), (), 0)
    written(tmp_path / "in", [events(1)])
    assert told(run(spark, tmp_path, STAYS), STAYS) == (("Stays",), (), ("Leaves",), 1)
    written(tmp_path / "in", [events(2, 3, 4, 5)])
    with pytest.raises(StateError, match=r"S116 the stream started with buckets = 2, and this run has buckets = 3") as refused:
        run(spark, tmp_path, STAYS + LEAVES, buckets=3)
    assert refused.value.fix == "leave buckets out, or use 2; another number needs a new checkpoint folder"
    with pytest.raises(StateError, match="S111 the stream read times without a zone"):
        run(spark, tmp_path, STAYS + LEAVES, zone="Asia/Kolkata")
    last = run(spark, tmp_path, STAYS + LEAVES, zone="Etc/UTC", buckets=2)
    assert told(last, STAYS + LEAVES) == (("Stays",), ("Leaves",), (), 2)

    plan = fairlead.compile(TYPES + STAYS + LEAVES)
    anew = pa.concat_tables([events(0, 1, kind="B"), events(2, 3, 4, 5)])  # it never saw the first two
    wanted = {
        name: [each.id for each in fairlead.match(plan, table.drop_columns(["nr"])).of(name)]
        for name, table in (("Stays", events(*range(6))), ("Leaves", anew))
    }
    found = pq.read_table(tmp_path / "out").sort_by("completed_at").to_pylist()
    assert {name: [row["relation_id"] for row in found if row["subscription"] == name] for name in wanted} == wanted
    assert {name: len(each) for name, each in wanted.items()} == {"Stays": 3, "Leaves": 2}
