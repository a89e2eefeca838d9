"""What a column means that stands for a time or orders rows: by its type, the session's zone and its ANSI mode."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import fairlead
from fairlead import spark as fl
from fairlead.errors import DataError

ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
CLOCKS = [
    "2026-01-01T00:00:00",
    "2026-03-08T01:59:59.999999",
    "2026-03-08T02:30:00",  # New York's clocks skip it
    "2026-03-08T03:00:00",
    "2026-04-05T01:45:00.5",  # Lord Howe's show it twice
    "2026-10-04T02:15:00",  # and skip this
    "2026-11-01T01:30:00",  # New York's show it twice
    "2026-11-01T02:00:00",
    "1883-11-18T12:00:00",  # New York had seconds in its offset
]
OFFSETS = ["Z", "+00:00", "-05:00", "+05:30", "+10:30", "Z", "-0400", "-05:00", "Z"]
KINDS = ["ltz", "ntz", "plain", "spaced", "offset", "day", "whole", "real"]
RULES = f"""
TYPE A ({", ".join(f"{name} TIMESTAMP" for name in KINDS)})
SUBSCRIPTION S MATCH A a EMIT M ({", ".join(f"{name} = a.{name}" for name in KINDS)})
"""
PLAN = fairlead.compile(RULES)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    return round((moment - EPOCH).total_seconds() * 1e6)


def in_zone(text: str, zone: str) -> int:
    """The instant of a clock's reading, as Java and Python have it: twice shown is the earlier, skipped is that much later."""
    return micros(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)))


def session_of(spark: SparkSession, zone: str, ansi: str) -> SparkSession:
    made = spark.newSession()
    made.conf.set("spark.sql.session.timeZone", zone)
    made.conf.set("spark.sql.ansi.enabled", ansi)
    return made


def rows() -> pa.Table:
    moments = [datetime.fromisoformat(each) for each in CLOCKS]
    return pa.table(
        {
            "nr": range(len(CLOCKS)),
            "ltz": pa.array([each.replace(tzinfo=UTC) for each in moments], pa.timestamp("us", tz="UTC")),
            "ntz": pa.array(moments, pa.timestamp("us")),
            "plain": CLOCKS,
            "spaced": [each.replace("T", " ") for each in CLOCKS],
            "offset": [clock + offset for clock, offset in zip(CLOCKS, OFFSETS, strict=True)],
            "day": [each[:10] for each in CLOCKS],
            "whole": [int(each.replace(tzinfo=UTC).timestamp()) for each in moments],
            "real": [float(int(each.replace(tzinfo=UTC).timestamp())) for each in moments],
        }
    )


@pytest.mark.parametrize(
    ("zone", "ansi", "form"),
    [
        (zone, ansi, form)
        for at, zone in enumerate(ZONES)
        for ansi, form in zip(("true", "false"), ("rows", "files") if at % 2 else ("files", "rows"), strict=True)
    ],
)  # every pair of values
def test_what_has_no_zone_is_of_the_sessions_as_in_sparks_own_cast(
    spark: SparkSession, tmp_path: Path, zone: str, ansi: str, form: str
) -> None:
    session = session_of(spark, zone, ansi)
    pq.write_table(rows(), tmp_path / "rows.parquet")
    frame = session.read.parquet(str(tmp_path))
    given = frame.where("nr >= 0") if form == "rows" else frame
    with fl.coded_errors():
        relations = fl.match(PLAN, given, order_by="nr")
        found = relations.orderBy("completed_at").select(*(F.unix_micros(f"emitted.{name}").alias(name) for name in KINDS))
        told = found.collect()
    made = {name: [row[name] for row in told] for name in KINDS}
    clocks = [in_zone(each, zone) for each in CLOCKS]
    seconds = [in_zone(each, "UTC") // 1_000_000 * 1_000_000 for each in CLOCKS]
    assert made == {
        "ltz": [in_zone(each, "UTC") for each in CLOCKS],
        "ntz": clocks,
        "plain": clocks,
        "spaced": clocks,
        "offset": [micros(datetime.fromisoformat(a + b)) for a, b in zip(CLOCKS, OFFSETS, strict=True)],
        "day": [in_zone(each[:10], zone) for each in CLOCKS],
        "whole": seconds,
        "real": seconds,
    }
    casts = {"ntz": "ntz", "plain": "plain", "spaced": "spaced", "day": "day", "offset": "offset"}
    by_spark = frame.orderBy("nr").select(*(F.unix_micros(F.col(name).cast("timestamp_ltz")).alias(name) for name in casts))
    said = {name: [row[name] for row in by_spark.collect()] for name in casts}
    assert said == {name: made[name] for name in casts}
    if zone == "UTC":
        here = fairlead.match(PLAN, rows().drop_columns(["nr"])).to_arrow("S")
        assert made == {name: here.column(name).cast(pa.int64()).to_pylist() for name in KINDS}


BAD = ["2026", "2026-1-1", "T10:00", "10:00", " 2026-01-01", "20260101T000000", "2026-01-01T10", "2026-01-01T00:00:00.1234567"]
BAD += ["2026-13-01T00:00:00", "2026-02-30", "2026-01-01 10:00 America/New_York", "never", "9999-12-31T23:59:59", ""]


def test_texts_that_spark_and_fairlead_read_differently_are_bad_records_where_the_zone_matters(spark: SparkSession) -> None:
    """Spark would take some of them: '2026' as a day, '10:00' as today's, digits beyond the sixth as nothing."""
    plan = fairlead.compile("TYPE A (at TIMESTAMP)\nSUBSCRIPTION S MATCH A a")
    session = session_of(spark, "America/New_York", "false")
    given = session.createDataFrame(pa.table({"nr": range(len(BAD)), "at": BAD}))
    found = fl.match(plan, given, order_by="nr", on_bad="skip").orderBy("completed_at").collect()
    assert [(row.verdict, row.completed_at, row.reason[:4]) for row in found] == [
        ("rejected", at, "D004") for at in range(len(BAD))
    ]


# --- order columns

ORDERED = fairlead.compile("TYPE A (id INT, name STRING)\nSUBSCRIPTION S MATCH A a EMIT M (id = a.id)")
TYPED = fairlead.compile("TYPE A (id INT, at TIMESTAMP)\nTYPE B (at STRING)\nSUBSCRIPTION S MATCH A a")
MIXED = ["2026-01-01T10:00:00+02:00", "2026-01-01T09:00:00Z", "2026-01-01T04:30:00-05:00"]


def ordered(frame: DataFrame, **options: Any) -> list[int]:
    with fl.coded_errors():
        found = fl.match(ORDERED, frame, order_by="order", **options)
        return [row.emitted.id for row in found.orderBy("completed_at").collect()]


def by_order(session: SparkSession, values: pa.Array) -> DataFrame:
    return session.createDataFrame(pa.table({"id": range(len(values)), "name": [""] * len(values), "order": values}))


ORDERS: dict[str, pa.Array] = {
    "date": pa.array([date(2026, 3, 8), date(1969, 1, 1), date(2026, 3, 7)]),
    "whole": pa.array([10, -3, 9]),
    "double": pa.array([0.5, -1e300, -0.0]),
    "decimal": pa.array([Decimal("10.00"), Decimal("-9.99"), Decimal("9.00")]),
    "binary": pa.array([b"b", b"", b"\xff"]),
}
PLACES = {"date": [1, 2, 0], "whole": [1, 2, 0], "double": [1, 2, 0], "decimal": [1, 2, 0], "binary": [1, 0, 2]}


@pytest.mark.parametrize("kind", ORDERS)
def test_order_columns_have_the_order_of_their_type(spark: SparkSession, kind: str) -> None:
    assert ordered(by_order(session_of(spark, "America/New_York", "true"), ORDERS[kind])) == PLACES[kind]


@pytest.mark.parametrize("zone", ZONES)
def test_times_without_a_zone_are_ordered_as_instants(spark: SparkSession, zone: str) -> None:
    instants = [in_zone(each, zone) for each in CLOCKS]
    texts = by_order(session_of(spark, zone, "true"), pa.array(CLOCKS))
    frame = texts.withColumn("order", F.col("order").cast("timestamp_ntz"))
    assert ordered(frame) == sorted(range(len(CLOCKS)), key=lambda at: (instants[at], at))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_texts_are_not_compared_by_accident(spark: SparkSession, ansi: str) -> None:
    session = session_of(spark, "America/New_York", ansi)
    texts = session.createDataFrame(pa.table({"type": ["A"] * 3, "id": [0, 1, 2], "at": MIXED}))
    with pytest.raises(DataError, match="D021 at: the order column 'at' is text, and its attribute is a TIMESTAMP") as caught:
        fl.match(TYPED, texts, order_by="at")
    assert str(caught.value.fix).startswith('frame.withColumn("at", F.to_timestamp("at"))')
    cast = eval(str(caught.value.fix).partition("  #")[0], {"frame": texts, "F": F})  # as it is pasted
    rows = fl.match(TYPED, cast, order_by="at").orderBy("completed_at").collect()
    assert [row.members[0].at for row in rows] == sorted(row.members[0].at for row in rows)
    records = [{"type": "A", "id": at, "at": text} for at, text in enumerate(MIXED)]
    assert [row.relation_id for row in rows] == [each.id for each in fairlead.match(TYPED, records, order_by="at")]

    undeclared = by_order(session, pa.array(["10", "9"]))
    with pytest.raises(DataError, match="D021 order: the order column 'order' is text, and no event type declares it"):
        fl.match(ORDERED, undeclared, order_by="order")
    assert ordered(undeclared.withColumn("order", F.col("order").cast("bigint"))) == [1, 0]
    assert ordered(undeclared.withColumn("order", F.col("order").cast("binary"))) == [0, 1]


def test_texts_that_the_rules_declare_as_texts_have_their_order(spark: SparkSession) -> None:
    session = session_of(spark, "America/New_York", "true")
    names = pa.array(["b", "B", "ä", "a", "\U0001f600", "\uffff"])
    frame = session.createDataFrame(pa.table({"id": range(len(names)), "name": names}))
    found = fl.match(ORDERED, frame, order_by="name").orderBy("completed_at").collect()
    records = [{"type": "A", "id": at, "name": name} for at, name in enumerate(names.to_pylist())]
    assert [row.relation_id for row in found] == [each.id for each in fairlead.match(ORDERED, records, order_by="name")]
    assert [row.emitted.id for row in found] == [1, 3, 0, 2, 5, 4]


@pytest.mark.parametrize("values", [pa.array([None, 0], pa.timestamp("us")), pa.array([1.0, None])])
def test_rows_without_an_order_value_are_refused(spark: SparkSession, values: pa.Array) -> None:
    with pytest.raises(DataError, match="D019 order: 1 rows have no value in the order column 'order'"):
        ordered(by_order(session_of(spark, "Asia/Kolkata", "true"), values))
