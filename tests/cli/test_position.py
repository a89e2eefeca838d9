"""`--position`: the events of a log keep the positions that they have there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairlead as api
from tests.cli.shop import MARKET, RALLY, fairlead, write_lines

OFFSETS = (4096, 8192, 8193, 12288, 20480)
LOGGED = [{"offset": offset, **event} for offset, event in zip(OFFSETS, RALLY, strict=True)]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "market.fl"
    path.write_text(MARKET)
    return path


def written(path: Path, events: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        return write_lines(path, events)
    table = pa.Table.from_pylist([{"offset": None, "value": None} | each for each in events])
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        rows = [",".join("" if value is None else str(value) for value in row.values()) for row in table.to_pylist()]
        path.write_text("\n".join([",".join(table.column_names), *rows]) + "\n")
    return path


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_relations_have_the_positions_of_the_log_whatever_the_file(tmp_path: Path, rules: Path, ending: str) -> None:
    events = written(tmp_path / f"events.{ending}", LOGGED)
    result = fairlead("run", rules, "--events", events, "--position", "offset", "--out", "-", "--quiet")
    assert result.exit_code == 0, result.output
    wanted = api.match(api.compile(MARKET), LOGGED, position="offset")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [each.to_json() for each in wanted]
    assert wanted[0].positions == (4096, 8192, 12288, 20480)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_positions_that_do_not_rise_stop_before_anything_is_written(tmp_path: Path, rules: Path, ending: str) -> None:
    events = written(tmp_path / f"events.{ending}", [*LOGGED, LOGGED[1]])
    for out in ("-", str(tmp_path / "out.jsonl")):
        result = fairlead("run", rules, "--events", events, "--position", "offset", "--out", out)
        assert (result.exit_code, result.stdout) == (1, "")
        place = {"jsonl": "line 6, column 1", "csv": "line 7, column 1", "parquet": "row 5"}[ending]
        problem = "'offset' is 8192, not greater than the position before it, 20480"
        assert result.stderr.startswith(f"D034 {events}, {place}: {problem}\n  fix: sort the input by 'offset'")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_record_without_a_position_is_set_aside(tmp_path: Path, rules: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", [LOGGED[0], RALLY[1], *LOGGED[1:]])
    rejects = tmp_path / "rejects.jsonl"
    result = fairlead(
        "run", rules, "--events", events, "--position", "offset", "--on-bad", "skip", "--rejects", rejects, "--json"
    )
    assert json.loads(result.stdout)["receipt"] == api.match(api.compile(MARKET), LOGGED, position="offset").receipt.digest
    (refused,) = map(json.loads, rejects.read_text().splitlines())
    assert (refused["line"], refused["position"], refused["code"]) == (2, None, "D019")


def test_a_file_without_the_column_is_refused(tmp_path: Path, rules: Path) -> None:
    events = written(tmp_path / "events.parquet", LOGGED)
    result = fairlead("run", rules, "--events", events, "--position", "ofset")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"D020 {events}: the position column 'ofset' is missing\n  fix: did you mean 'offset'?")
    pq.write_table(pq.read_table(events).drop_columns("offset"), events)
    result = fairlead("run", rules, "--events", events, "--position", "offset")
    assert result.stderr.startswith(f"D020 {events}: the position column 'offset' is missing")


def test_why_asks_for_a_position_of_the_log(tmp_path: Path, rules: Path) -> None:
    events = written(tmp_path / "events.jsonl", LOGGED)
    result = fairlead("why", rules, "--events", events, "--position", "offset", "--at", "8192")
    assert "StockQuote at position 8192: symbol = ACME, value = 10.0" in result.stdout
    assert "in the relation [4096, 8192, 12288, 20480]" in result.stdout
