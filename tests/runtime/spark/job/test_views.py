"""Views of relations: flat columns for SQL, over batch and streaming frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import fairlead
from fairlead import spark as fl
from fairlead.errors import UsageError
from fairlead.runtime.spark.input.files import Ordered, read
from tests.cli.shop import MARKET, RALLY, quote, write_lines

PAIRS = """
TYPE A (key STRING, value DOUBLE, at TIMESTAMP) TIME at
TYPE B (key STRING, value BIGINT, place STRING, at TIMESTAMP) TIME at
EVENT UNION AB = A + B
SUBSCRIPTION Either MATCH (A x AND B y) OR (B x THEN B y) PER key EMIT Seen(key = x.key, place = y.place, X = x.key)
SUBSCRIPTION Any2 MATCH AB turn[2] PER key
"""


@pytest.fixture
def frame(spark: SparkSession, tmp_path: Path) -> DataFrame:
    write_lines(tmp_path / "events.jsonl", [*RALLY, {"type": "Nope", "at": "2026-01-31T11:00:00Z"}])
    plan = fairlead.compile(MARKET)
    source = read(spark, plan, [str(tmp_path / "events.jsonl")], Ordered(("at",)), on_bad="skip")
    return fl.match(plan, source.good, order_by="at", on_bad="skip")


def test_a_view_has_a_column_for_each_alias_and_each_emitted_attribute(spark: SparkSession, frame: DataFrame) -> None:
    names = fl.register(frame, fairlead.compile(MARKET), prefix="m_")
    assert names["Rally"] == "m_Rally"
    view = spark.table("m_Rally")
    fixed = ["relation_id", "branch", "completed_at", "place", "turn", "positions"]
    assert view.columns == [*fixed, "r", "q", "symbol", "gain"]
    found = spark.sql(
        "SELECT completed_at, r.symbol AS of, q[0].value AS low, q[2].value AS high, gain FROM m_Rally WHERE gain > 2"
    )
    assert [row.asDict() for row in found.collect()] == [
        {"completed_at": 4, "of": "ACME", "low": 10.0, "high": 12.5, "gain": 2.5}
    ]
    assert spark.sql("SELECT emitted.gain FROM m_relations").collect()[0].gain == 2.5
    (refused,) = spark.sql("SELECT * FROM m_rejected").collect()
    assert (refused.position, refused.code) == (5, "D001")
    assert spark.table("m_late").columns == ["type", "reason", "event"]


def test_branches_types_and_names_that_are_taken_have_columns_of_their_own(spark: SparkSession) -> None:
    plan = fairlead.compile(PAIRS)
    at = "2026-01-31T10:00:0{}Z"
    events: list[dict[str, Any]] = [
        {"type": "B", "key": "k", "value": 1, "place": "here", "at": at.format(0)},
        {"type": "A", "key": "k", "value": 5, "at": at.format(1)},
    ]
    given = {
        "A": spark.createDataFrame([("k", 5, at.format(1))], "key string, value bigint, at string"),
        "B": spark.createDataFrame([("k", 1, "here", at.format(0))], "key string, value bigint, place string, at string"),
    }
    given = {name: frame.withColumn("at", F.to_timestamp("at")) for name, frame in given.items()}
    fl.register(fl.match(plan, given, order_by="at"), plan)
    either = spark.table("Either")
    assert either.columns[6:] == ["x", "y", "key", "Seen.place", "Seen.X"]
    (row,) = either.collect()
    assert (row.x.type, row.y.type, row["Seen.place"], row["Seen.X"]) == ("A", "B", "here", "k")
    assert (row.x["A.value"], row.x["B.value"], row.y["value"]) == (5.0, None, 1)
    (both,) = spark.sql("SELECT `member.turn` AS t, turn FROM Any2").collect()
    assert sorted(each.type for each in both.t) == ["A", "B"]
    assert len(fairlead.match(plan, events)) == 2


def test_a_view_of_a_stream_is_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    plan = fairlead.compile(MARKET)
    write_lines(tmp_path / "in.jsonl", [*RALLY, quote("ACME", 1.0, 99)])
    source = read(spark, plan, [str(tmp_path)], Ordered(("at",)), streaming=True, form="json")
    fl.register(fl.match(plan, source.good, order_by="at", frontier="stream"), plan, prefix="s_")
    view = spark.sql("SELECT symbol, gain FROM s_Rally WHERE gain > 2")
    assert view.isStreaming
    query = view.writeStream.format("memory").queryName("rallies").trigger(availableNow=True).start()
    query.awaitTermination()
    assert [tuple(row) for row in spark.table("rallies").collect()] == [("ACME", 2.5)]


def test_two_views_of_one_name_are_refused(frame: DataFrame) -> None:
    plan = fairlead.compile(MARKET.replace("SUBSCRIPTION Rally", "SUBSCRIPTION Late"))
    with pytest.raises(UsageError, match="A220 'late' and 'Late' would have the same view name"):
        fl.register(frame, plan)
