"""What the ending of a path says about its events, what it cannot be, and what numbers in text are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead import compile
from fairlead.errors import DataError
from fairlead.runtime.spark.input.files import Ordered, form_of, read
from fairlead.transport import Rejected, read_files
from tests.transport.samples import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_files_of_cloudevents_are_refused_with_another_way(tmp_path: Path) -> None:
    path = write(tmp_path / "in.cloudevents.jsonl", "{}")
    for given in (path, tmp_path, tmp_path / "*.cloudevents.jsonl"):
        with pytest.raises(DataError, match=r"D029 .*files of CloudEvents are not supported on Spark") as raised:
            form_of(str(given))
        assert "fairlead run" in str(raised.value.fix)
    assert form_of(str(write(tmp_path / "plain.jsonl", "{}"))) == "json"


@pytest.mark.parametrize(("name", "code"), [("in.csv", "D033"), ("in.parquet", "D012")])
def test_files_of_no_bytes_are_refused_as_elsewhere(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=code):
        form_of(str(tmp_path / name))


WHOLE = [
    "１",
    "1２",
    "١",
    " 1",
    "1 ",
    "\t1",
    "+1",
    "-0",
    "007",
    "1e1",
    "1.0",
    "1_0",
    "\u00a01",
    "",
    "1,",
    "99999999999999999999",
]
REAL = ["１.5", " 1.5", "1.5 ", "1d", "1f", "0x1p3", "+.5", "1.", ".", "1e5", "1E-3", "1e", "1_0.5", "\u30001", "Infinity", "-"]


def test_numbers_of_csv_are_those_of_the_embedded_runtime(spark: SparkSession, tmp_path: Path) -> None:
    """What is a number, which, and what is a bad record."""
    plan = compile("TYPE N (p BIGINT, i INT, d DOUBLE)\nSUBSCRIPTION S MATCH N n")
    cells = [(text, "1") for text in WHOLE] + [("1", text) for text in REAL] + [('""', "1"), ("1", '""'), ("7", ""), ("", "")]
    path = write(tmp_path / "in.csv", "type,p,i,d", *(f"N,{n},{i},{d}" for n, (i, d) in enumerate(cells)))
    rejected: list[Rejected] = []
    embedded = [
        (event["p"], event["i"], event["d"])
        for columns in read_files(path, plan.catalogue, on_bad="skip", rejects=rejected.append)
        for event in columns.events(plan.catalogue)
    ]
    found = read(spark, plan, [str(path)], Ordered(("p",)), on_bad="skip")
    assert sorted((row.p, row.i, row.d) for row in found.good.collect()) == sorted(embedded)
    assert found.bad is not None
    assert found.bad.count() == len(rejected) == len(cells) - len(embedded)


def test_empty_cells_of_csv_are_null_and_quoted_ones_empty_text(spark: SparkSession, tmp_path: Path) -> None:
    plan = compile("TYPE N (p BIGINT, s STRING, t STRING, at TIMESTAMP, b BOOLEAN)\nSUBSCRIPTION S MATCH N n")
    cells = [",,,", '"",,,', ',"",,', '"","",,', '" ",x,,', "x,NULL,,", "a,b,2026-01-31T10:00:00Z,true"]
    path = write(tmp_path / "in.csv", "type,p,s,t,at,b", *(f"N,{n},{each}" for n, each in enumerate(cells)))
    embedded = [
        (event["p"], event["s"], event["t"], event["b"])
        for columns in read_files(path, plan.catalogue)
        for event in columns.events(plan.catalogue)
    ]
    found = read(spark, plan, [str(path)], Ordered(("p",))).good.collect()
    assert sorted((row.p, row.s, row.t, row.b) for row in found) == embedded
    assert [row.at is None for row in sorted(found, key=lambda row: row.p)] == [True] * 6 + [False]
