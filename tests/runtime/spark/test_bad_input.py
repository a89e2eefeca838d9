"""What is wrong with frames, arguments and rows is refused with a code, or set aside where that is asked for."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import fairlead
from fairlead import spark as fl
from fairlead.errors import DataError, FairleadError, UsageError
from fairlead.model.events.verdict import EventVerdict
from fairlead.runtime.event_time import EventVerdicts
from fairlead.runtime.spark.job import batch_job
from fairlead.transport.events import read_events
from tests.runtime.spark.job.in_process import delivered, embedded

RULES = """
TYPE A (k INT, x DOUBLE, at TIMESTAMP) TIME at
TYPE B (k INT, s STRING, at TIMESTAMP) TIME at
TYPE N ()
TYPE Unread (k INT)
EVENT UNION U = A + B
SUBSCRIPTION Pair MATCH A a AND B b PER k EMIT Made (k = a.k)
SUBSCRIPTION Nothing MATCH N n AND A a
"""
PLAN = fairlead.compile(RULES)
AT = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"]


def rows(**changed: Any) -> pa.Table:
    columns = {
        "type": pa.array(["A", "B", "N", "Unread"]),
        "k": pa.array([1, 1, None, 1], pa.int32()),
        "x": pa.array([1.0, None, None, None], pa.float64()),
        "s": pa.array([None, "b", None, None], pa.string()),
        "at": pa.array(AT).cast(pa.timestamp("us", tz="UTC")),
        "nr": pa.array([0, 1, 2, 3], pa.int64()),
    }
    return pa.table({name: column for name, column in {**columns, **changed}.items() if column is not None})


def frame(spark: SparkSession, **changed: Any) -> DataFrame:
    return spark.createDataFrame(rows(**changed))


def refused(spark: SparkSession, plan: Any = PLAN, frames: Any = None, **options: Any) -> FairleadError:
    """The error, which comes before the result is asked for."""
    with pytest.raises(FairleadError) as error:
        fl.match(plan, frame(spark) if frames is None else frames, **({"order_by": "nr"} | options))
    return error.value


def test_what_is_right_is_taken(spark: SparkSession) -> None:
    found = fl.match(PLAN, frame(spark), order_by="nr").toArrow()
    assert found.column("subscription").to_pylist() == ["Pair", "Nothing"] or found.num_rows == 2
    events = [
        {"type": "A", "k": 1, "x": 1.0, "at": AT[0]},
        {"type": "B", "k": 1, "s": "b", "at": AT[1]},
        {"type": "N"},
        {"type": "Unread", "k": 1},
    ]
    assert delivered(found) == embedded(PLAN, events)


@pytest.mark.parametrize(
    ("code", "said", "options"),
    [
        ("A211", "have no order", {"order_by": None}),
        ("A211", "have no order", {"order_by": []}),
        ("A210", "both order_by and position", {"position": "nr"}),
        ("A003", "compiled plan, not str", {"plan": RULES}),
        ("A101", "on_bad is 'leave'", {"on_bad": "leave"}),
        ("A216", "buckets is 0", {"buckets": 0}),
        ("A004", "until", {"until": "tomorrow"}),
        ("D020", "no column 'when', an order column", {"order_by": "when"}),
        ("D020", "did you mean 'nr'", {"order_by": "NR"}),
        ("D020", "no column 'kind', the type column", {"type_column": "kind"}),
        ("D020", "no column 'who'", {"source": "who"}),
        ("D020", "no column 'turn'", {"sequence": "turn"}),
        ("D022", "the source of a row is text", {"source": "k"}),
        ("D022", "the sequence of a row is a whole number", {"sequence": "s"}),
        ("D022", "the type of a row", {"type_column": "k"}),
        ("D021", "is timestamp, not a whole number", {"order_by": None, "position": "at"}),
        ("A212", "not list", {"frames": []}),
        ("A212", "not int", {"frames": {"Order": 5}}),
        ("A212", "the dict has no DataFrame", {"frames": {}}),
    ],
)
def test_arguments_are_checked(spark: SparkSession, code: str, said: str, options: dict[str, Any]) -> None:
    error = refused(spark, **options)
    assert error.code == code
    assert said in str(error)


@pytest.mark.parametrize(
    ("code", "said", "changed"),
    [
        ("D020", "no column 'x', an attribute of 'A'", {"x": None}),
        ("D022", "'x' is string, the attribute 'A.x' is DOUBLE", {"x": pa.array(["1", None, None, None])}),
        ("D022", "'x' is array", {"x": pa.array([[1.0], None, None, None])}),
        ("D022", "'k' is double, the attribute 'A.k' is INT", {"k": pa.array([1.0, 1.0, None, 1.0])}),
        ("D021", "the order column 'nr' is struct, which has no order", {"nr": pa.array([{"a": 1}] * 4)}),
        ("D021", "the order column 'nr' is array, which has no order", {"nr": pa.array([[1]] * 4)}),
        ("D021", "the order column 'nr' is text, and no event type declares it", {"nr": pa.array(["0", "1", "2", "10"])}),
        ("D019", "1 rows have no value in the order column 'nr'", {"nr": pa.array([0, None, 2, 3])}),
        (
            "D019",
            "2 rows have no value in the order column 'nr'",
            {"nr": pa.array([0, float("nan"), None, 3.0], from_pandas=False)},
        ),
        ("D001", "'Z' is not declared", {"type": pa.array(["A", "Z", "N", "N"])}),
        ("D008", "'Made' is derived", {"type": pa.array(["A", "Made", "N", "N"])}),
        ("D008", "'U' is a union", {"type": pa.array(["A", "U", "N", "N"])}),
        ("D027", "has no type", {"type": pa.array(["A", None, "N", "N"])}),
        ("D006", "the event time 'at' of 'A' is null", {"at": pa.array([None, *AT[1:]]).cast(pa.timestamp("us", tz="UTC"))}),
        ("D004", "out of the range of INT", {"k": pa.array([2**31, 1, 1, 1], pa.int64())}),
    ],
)
def test_columns_and_what_spark_sees_of_rows_are_checked_by_the_call(
    spark: SparkSession, code: str, said: str, changed: dict[str, Any]
) -> None:
    error = refused(spark, frames=frame(spark, **changed))
    assert isinstance(error, DataError)
    assert error.code == code
    assert said in str(error)


def test_a_column_that_is_there_twice_is_refused(spark: SparkSession) -> None:
    once = frame(spark)
    assert refused(spark, frames=once.select("*", once.x)).code == "D015"
    assert fl.match(PLAN, once.select("*", once.nr.alias("more"), once.nr.alias("more")), order_by="nr").count() == 2


def test_names_that_differ_in_case_alone_are_different(spark: SparkSession) -> None:
    plan = fairlead.compile("TYPE A (x INT, X INT)\nSUBSCRIPTION S MATCH A a WHERE a.x < a.X")
    given = spark.createDataFrame(pa.table({"x": [1, 2], "X": [2, 1], "a.b`c": [1, 2]}))
    assert [[each.position for each in row.members] for row in fl.match(plan, given, order_by="a.b`c").collect()] == [[0]]


@pytest.mark.parametrize(
    ("code", "said", "name"),
    [
        ("D001", "did you mean 'A'", "a"),
        ("D008", "is a union", "U"),
        ("D008", "is derived", "Made"),
        ("D001", "not declared", "Q"),
    ],
)
def test_frames_of_types_that_cannot_come_are_refused(spark: SparkSession, code: str, said: str, name: str) -> None:
    error = refused(spark, frames={"A": frame(spark), name: frame(spark)})
    assert error.code == code
    assert said in str(error)


def test_order_columns_have_one_type_in_all_frames(spark: SparkSession) -> None:
    texts = frame(spark, nr=pa.array(["0", "1", "2", "3"]))
    error = refused(spark, frames={"A": frame(spark), "B": texts})
    assert error.code == "D021"
    assert "bigint in the frame of 'A' and string in that of 'B'" in str(error)
    times = frame(spark, nr=pa.array(AT).cast(pa.timestamp("us", tz="UTC")))
    assert refused(spark, frames={"A": frame(spark), "B": times}).code == "D021"
    short = frame(spark, nr=pa.array([0, 1, 2, 3], pa.int16())).where("type = 'A'")
    assert fl.match(PLAN, {"A": short, "B": frame(spark).where("type = 'B'")}, order_by="nr").count() == 1


def test_what_only_a_worker_sees_has_its_code_in_sparks_exception(spark: SparkSession) -> None:
    bad = frame(spark, at=pa.array(["2026-01-01T00:00:00Z", "yesterday", None, None]))
    found = fl.match(PLAN, bad, order_by="nr")
    with pytest.raises(PythonException, match="DataError: D004 the row at 1 of the order: attribute 'at' of 'B'") as error:
        found.collect()
    known = fl.fairlead_error(error.value)
    assert isinstance(known, DataError)
    assert known.code == "D004"
    assert known.fix.startswith("use ISO 8601 text")
    with pytest.raises(DataError, match="D004 the row at 1 of the order"), fl.coded_errors():
        found.collect()


def test_errors_that_are_not_fairleads_are_left_alone(spark: SparkSession) -> None:
    assert fl.fairlead_error(ValueError("fairlead")) is None
    with pytest.raises(ZeroDivisionError), fl.coded_errors():
        raise ZeroDivisionError
    with pytest.raises(UsageError), fl.coded_errors():
        raise UsageError("A001", "as it is")


def test_bad_rows_are_set_aside_with_position_code_and_reason(spark: SparkSession) -> None:
    bad = frame(
        spark,
        type=pa.array(["A", "Z", "B", None]),
        k=pa.array([1, 1, 2**40, 1], pa.int64()),
        at=pa.array(["2026-01-01T00:00:00Z", None, "2026-01-01T00:00:01Z", None]),
    )
    more = frame(spark, k=pa.array([1, 1, 1, 1], pa.int64()), at=pa.array(["never", *AT[1:]]), nr=pa.array([10, 11, 12, 13]))
    found = fl.match(PLAN, bad.union(more), order_by="nr", on_bad="skip").orderBy("completed_at", "turn").collect()
    told = [(row.verdict, row.completed_at, (row.reason or "").split(" ")[0]) for row in found]
    assert told == [
        ("rejected", 1, "D001"),
        ("rejected", 2, "D004"),
        ("rejected", 3, "D027"),
        ("rejected", 4, "D004"),
        ("in order", 5, ""),
        ("in order", 6, ""),
    ]
    assert "expected TIMESTAMP" in found[3].reason
    assert '"never"' in found[3].reason
    assert [[each.position for each in row.members] for row in found[4:]] == [[0, 5], [0, 6]]


@pytest.mark.parametrize("kind", ["rows", "one file", "slices"])
@pytest.mark.parametrize("order", ["at", "y, at", "at, y DESC"])
def test_rows_without_an_order_value_are_rejected_as_by_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, order: str
) -> None:
    """Spark's own rows, Parquet files that workers read, and many slices: the verdicts and relations of the embedded runtime,
    which sees the events one by one."""
    types = "TYPE A (k INT, y DOUBLE, at TIMESTAMP) TYPE B (k INT, y DOUBLE, at TIMESTAMP) "
    rules = "SUBSCRIPTION S MATCH A a THEN B b PER k"
    plan = fairlead.compile(f"{types} ORDER BY {order} {rules}")
    random, events = Random(order), list[dict[str, Any]]()
    for number in range(60):
        time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
        event = {"type": random.choice("AB"), "k": number % 3, "y": number % 5 / 2, "at": time}
        if number % 7 == 3:
            event |= random.choice(({"at": None}, {"y": None} if "y" in order else {"at": None}))
        elif number % 11 == 5 and "y" in order:
            event["y"] = float("nan")
        events.append(event)
    if kind == "slices":
        monkeypatch.setattr(batch_job, "SMALL_ROWS", 1)
    kinds = {"type": pa.string(), "k": pa.int32(), "y": pa.float64(), "at": pa.timestamp("us", tz="UTC")}
    frame = spark.createDataFrame(table := pa.Table.from_pylist(events, pa.schema(kinds.items())))
    if kind == "one file":
        pq.write_table(table, tmp_path / "events.parquet")
        frame = spark.read.parquet(str(tmp_path / "events.parquet"))
    found = fl.match(plan, frame, on_bad="skip").toArrow()
    reports: list[EventVerdicts] = []
    held = f"{types} ORDER BY {'at, y' if 'y' in order else 'at'} DELAY 1 DAY {rules}"
    files = fairlead.Run(fairlead.compile(held), rejects=True, late=reports.append)
    for columns in read_events(events, plan.catalogue):
        files.feed(columns)
    wanted = [each for each in events if each["at"] is not None and ("y" not in order or (each["y"] or 0) == each["y"])]
    assert delivered(found) == embedded(plan, wanted) != []
    rejected = [row for row in found.to_pylist() if row["verdict"] == "rejected"]
    assert len(rejected) == len(events) - len(wanted) == sum(map(len, reports)) == files.verdicts[EventVerdict.REJECTED]
    assert Counter(row["reason"].rpartition(" ")[2] for row in rejected) == Counter(
        each.columns.types[code] for each in reports for code in each.columns.codes
    )
    with pytest.raises(DataError, match=r"D019 .* rows have no value in the order column"):
        fl.match(plan, frame)


def test_empty_frames_give_nothing(spark: SparkSession) -> None:
    empty = frame(spark).limit(0)
    assert fl.match(PLAN, empty, order_by="nr", until="2030-01-01").count() == 0
    assert fl.match(PLAN, {"A": empty, "B": empty}, order_by="nr").count() == 0
    assert fl.match(PLAN, {"A": empty, "B": frame(spark)}, order_by=["nr", "at"]).count() == 0
    assert fl.match(PLAN, empty, position="nr").count() == 0


def test_types_may_never_come(spark: SparkSession) -> None:
    mine = frame(spark)
    assert fl.match(PLAN, {"A": mine.where("type = 'A'")}, order_by="nr").count() == 0
    assert fl.match(PLAN, {"Unread": mine.where("type = 'Unread'").select("nr")}, order_by="nr").count() == 0
    assert fl.match(PLAN, {"N": mine.select("nr"), "A": mine.where("type = 'A'")}, order_by="nr").count() == 1


def test_a_plan_of_one_type_needs_no_type_column(spark: SparkSession) -> None:
    plan = fairlead.compile("TYPE A (k INT)\nSUBSCRIPTION S MATCH A a WHERE a.k = 1")
    assert fl.match(plan, frame(spark, type=None), order_by="nr").count() == 3


def test_heartbeats_need_a_time(spark: SparkSession) -> None:
    plan = fairlead.compile("TYPE A (k INT)\nTYPE B (k INT)\nSUBSCRIPTION S MATCH A a AND B b")
    beats = frame(spark, type=pa.array(["A", "B", "Heartbeat", "A"]), at=None)
    error = refused(spark, plan=plan, frames=beats)
    assert error.code == "D003"
    assert "'at' of 'Heartbeat'" in str(error)
    timeless = frame(spark, type=pa.array(["A", "B", "A", "A"]), at=pa.array([True] * 4))
    assert fl.match(plan, timeless, order_by="nr").count() == 1


@pytest.mark.parametrize("kind", ["INT", "DOUBLE", "STRING", "DECIMAL(5,2)", "BOOLEAN", "TIMESTAMP", "DATE", "BINARY"])
def test_keys_of_every_kind_meet_and_null_and_nan_belong_to_none(spark: SparkSession, kind: str) -> None:
    plan = fairlead.compile(f"TYPE A (k {kind})\nTYPE B (k {kind})\nSUBSCRIPTION S MATCH A a THEN B b PER k")
    sql = {"INT": "{}", "DOUBLE": "{}e0D", "STRING": "'{}'", "DECIMAL(5,2)": "{}.50BD", "BINARY": "X'0{}'"}
    sql |= {"BOOLEAN": "{} = 1", "TIMESTAMP": "timestamp_seconds({})", "DATE": "date_from_unix_date({})"}
    keys = [sql[kind].format(number) for number in (1, 0)]
    keys += ["double('NaN')", "-0.0D"] if kind == "DOUBLE" else []
    values = [f"('{name}', {key})" for name in "AB" for key in [*keys, "NULL"]]
    numbered = ", ".join(value[:-1] + f", {at})" for at, value in enumerate(values))
    given = spark.sql(f"SELECT * FROM VALUES {numbered} AS t(type, k, nr)")
    if kind == "DECIMAL(5,2)":
        given = given.withColumn("k", given.k.cast("decimal(12,4)"))
    found = fl.match(plan, given, order_by="nr", buckets=4)
    events = [
        {"type": row.type, "k": float(row.k) if kind == "DOUBLE" and row.k is not None else row.k}
        for row in given.orderBy("nr").collect()
    ]
    if kind == "TIMESTAMP":
        events = [{"type": each["type"], "k": None if each["k"] is None else int(each["k"].timestamp())} for each in events]
    if kind == "BINARY":
        events = [{"type": each["type"], "k": None if each["k"] is None else bytes(each["k"])} for each in events]
    assert delivered(found.toArrow()) == embedded(plan, events)
    assert found.count() >= 2
