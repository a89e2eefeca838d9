"""ARRAY and STRUCT on Spark: columns of frames, files, and what is refused of both before a job begins."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import fairlead
from fairlead import spark as fl
from fairlead.errors import DataError
from fairlead.runtime.spark.input.files import Ordered, read

PLAN = fairlead.compile("""
TYPE A (n INT, s STRUCT<price: DECIMAL(20,2), at: TIMESTAMP, day: DATE>, t ARRAY<STRING>, l ARRAY<STRUCT<raw: BINARY>>)
SUBSCRIPTION S MATCH A a WHERE s.price >= 1.5 OR size(a.t) = 0 EMIT E (s = a.s, t = a.t, raw = element_at(a.l, -1).raw)
""")
STRUCT = '{"price": 123456789012345.25, "at": "2024-02-29T12:00:00Z", "day": "2024-02-29"}'
LINES = f"""
{{"type": "A", "n": 1, "s": {STRUCT}, "t": ["a", null], "l": [null, {{"raw": "eA=="}}]}}
{{"type": "A", "n": 2, "s": null, "t": [], "l": null}}
{{"type": "A", "n": 3, "s": {{"price": 1.0}}, "t": null, "l": []}}
"""
WRONG = """
{"type": "A", "n": 1, "s": 7, "t": [], "l": []}
{"type": "A", "n": 2, "s": null, "t": [], "l": [{"raw": "?"}]}
"""
EMITTED = [
    {
        "s": {"price": Decimal("123456789012345.25"), "at": datetime(2024, 2, 29, 12, tzinfo=UTC), "day": date(2024, 2, 29)},
        "t": ["a", None],
        "raw": b"x",
    },
    {"s": None, "t": [], "raw": None},
]


def emitted(frame: DataFrame) -> list[dict[str, object]]:
    table = fl.match(PLAN, frame, order_by="n").orderBy("completed_at").select("emitted").toArrow()
    return [{name: each[name] for name in ("s", "t", "raw")} for each in table.column("emitted").to_pylist()]


def test_files_and_frames_have_the_values_of_one_process(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(LINES.lstrip())
    from fairlead.transport import read_files

    engine = fairlead.Engine(PLAN)
    embedded = [each.emitted for batch in read_files(path, PLAN.catalogue) for each in engine.feed(batch)]
    assert embedded == EMITTED
    frame = read(spark, PLAN, [str(path)], Ordered(("n",))).good
    assert emitted(frame) == EMITTED


def test_a_nested_value_that_does_not_fit_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(WRONG.lstrip())
    files = read(spark, PLAN, [str(path)], Ordered(("n",)), on_bad="skip")
    assert files.bad is not None
    assert [row.code for row in files.bad.collect()] == ["D024"]
    rows = fl.match(PLAN, files.good, order_by="n", on_bad="skip").where("verdict = 'rejected'").collect()
    assert ["D004" in row.reason for row in rows] == [True]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("struct<price:decimal(20,2),at:timestamp_ntz,day:date>", "cast it to TIMESTAMP"),
        ("struct<price:decimal(20,2),when:timestamp>", "has a field 'when'"),
        ("struct<price:array<int>>", "field 'price' of the column 's' is array"),
        ("array<int>", "the column 's' is array"),
        ("string", "the column 's' is string"),
    ],
)
def test_a_column_of_another_form_is_refused_before_the_job(spark: SparkSession, kind: str, said: str) -> None:
    frame = spark.createDataFrame([], f"type string, n int, s {kind}, t array<string>, l array<struct<raw:binary>>")
    with pytest.raises(DataError, match="D022") as raised:
        fl.match(PLAN, frame, order_by="n")
    assert said in str(raised.value)


def test_csv_has_no_column_for_it(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("type,n,t\nA,1,x\n")
    with pytest.raises(DataError, match="D043"):
        read(spark, PLAN, [str(path)], Ordered(("n",)))
