"""DATE on Spark: columns of dates and of texts, files, and the order by a date, as in one process."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fairlead
from fairlead import spark as fl
from fairlead.errors import DataError

RULES = """
TYPE A (n INT, due DATE)
ORDER BY due DESC
SUBSCRIPTION S MATCH A a THEN A b DISPOSAL FIRST PREFIX
  EMIT E (first = a.due, last = b.due, late = cast(a.due - b.due AS BIGINT))
"""
DUES = (date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31))
FILES = {
    "csv": "type,n,due\n" + "".join(f"A,{n},{due}\n" for n, due in enumerate(DUES)),
    "jsonl": "".join(f'{{"type": "A", "n": {n}, "due": "{due}"}}\n' for n, due in enumerate(DUES)),
}


def expected() -> list[dict[str, object]]:
    events = [{"type": "A", "n": n, "due": due} for n, due in enumerate(DUES)]
    return [dict(each.emitted) for each in fairlead.match(fairlead.compile(RULES), events)]


def test_a_frame_of_dates_has_the_order_and_the_values_of_one_process(spark: SparkSession) -> None:
    given = spark.createDataFrame(pa.table({"type": ["A"] * 4, "n": pa.array(range(4), pa.int32()), "due": pa.array(DUES)}))
    rows = fl.match(fairlead.compile(RULES), given).orderBy("completed_at", "turn").collect()
    assert [{name: row.emitted[name] for name in ("first", "last", "late")} for row in rows] == expected()
    assert rows[0].emitted["first"] == date(9999, 12, 31)


def test_dates_as_texts_are_refused_as_an_order_and_read_as_values(spark: SparkSession) -> None:
    texts = spark.createDataFrame(pa.table({"type": ["A"] * 4, "n": pa.array(range(4), pa.int32()), "due": [*map(str, DUES)]}))
    with pytest.raises(DataError, match="D021 due: the order column 'due' is text, and its attribute is a DATE"):
        fl.match(fairlead.compile(RULES), texts)
    plan = fairlead.compile("TYPE A (n INT, due DATE) SUBSCRIPTION S MATCH A a EMIT E (due = a.due)")
    rows = fl.match(plan, texts, order_by="n").orderBy("completed_at").collect()
    assert [row.emitted["due"] for row in rows] == [*DUES]


@pytest.mark.parametrize("ending", FILES)
def test_files_have_the_dates_of_one_process(spark: SparkSession, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"events.{ending}"
    path.write_text(FILES[ending])
    plan = fairlead.compile(RULES)
    from fairlead.runtime.spark.input.files import Ordered, ordered_as_stated, read

    frame = read(spark, plan, [str(path)], ordered_as_stated(plan, Ordered())).good
    rows = fl.match(plan, frame).orderBy("completed_at", "turn").collect()
    assert [{name: row.emitted[name] for name in ("first", "last", "late")} for row in rows] == expected()
