"""Bad input: each kind has a code, names the file and line, exits with 1 and leaves no output."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairlead.transport.files import event_files as files
from fairlead.transport.files.text_lines import Lines
from tests.cli.shop import MARKET, RALLY, fairlead, fairlead_process, quote, write_lines

BAD: dict[str, tuple[str, Any]] = {
    "unknown type": ("D001", {"type": "StokQuote", "symbol": "A", "value": 1.0, "at": "2026-01-31T10:00:00Z"}),
    "unknown attribute": ("D002", quote("A", 1.0, 0) | {"valu": 2.0}),
    "missing field": ("D003", {"type": "StockQuote", "symbol": "A", "at": "2026-01-31T10:00:00Z"}),
    "wrong type": ("D004", quote("A", "ten", 0)),
    "not a time": ("D004", quote("A", 1.0, 0) | {"at": "noon"}),
    "not a number": ("D005", '{"type": "StockQuote", "symbol": "A", "value": NaN, "at": "2026-01-31T10:00:00Z"}'),
    "infinity": ("D005", '{"type": "StockQuote", "symbol": "A", "value": Infinity, "at": "2026-01-31T10:00:00Z"}'),
    "event time is null": ("D006", quote("A", 1.0, 0) | {"at": None}),
    "oversized text": ("D007", quote("A" * 1_100_000, 1.0, 0)),
    "derived type": ("D008", {"type": "RallySeen", "symbol": "A", "gain": 1.0}),
    "no object": ("D009", "[1, 2]"),
    "source is no text": ("D010", quote("A", 1.0, 0) | {"_source": 7}),
    "not JSON": ("D011", '{"type": "StockQuote",'),
    "named twice": ("D015", '{"type": "StockQuote", "type": "StockQuote"}'),
}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "market.fl"
    path.write_text(MARKET)
    return path


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_bad_record_stops_before_anything_is_written(tmp_path: Path, rules: Path, kind: str, ending: str) -> None:
    code, record = BAD[kind]
    events = write_lines(tmp_path / "events.jsonl", [*RALLY, record, *RALLY])
    out, receipt = tmp_path / f"out.{ending}", tmp_path / "receipt.json"
    result = fairlead("run", rules, "--events", events, "--out", out, "--receipt", receipt)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{code} {events}, line 6")
    assert "fix: " in result.stderr
    assert result.stdout == ""
    assert sorted(each.name for each in tmp_path.iterdir()) == ["events.jsonl", "market.fl"]


def many_then_bad(path: Path, repeats: int = 2_000) -> Path:
    """Several batches of rallies, one after the other, and a bad record at the very end."""
    if path.suffix == ".parquet":
        rows = [{"value": None} | each for each in RALLY * repeats] + [quote("A", 1.0, 0) | {"type": "StokQuote"}]
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3_000)
        return path
    return write_lines(path, [*RALLY * repeats, BAD["unknown type"][1]])


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("events", ["events.jsonl", "events.parquet"])
def test_a_bad_record_at_the_very_end_leaves_what_was_there_before(
    tmp_path: Path, rules: Path, events: str, ending: str
) -> None:
    many_then_bad(tmp_path / events)
    out, receipt = tmp_path / f"out.{ending}", tmp_path / "receipt.json"
    out.write_text("of an earlier run")
    result = fairlead(
        "run", rules, "--events", tmp_path / events, "--out", out, "--receipt", receipt, "--batch-rows", "1000", "--json"
    )
    place = "line 10001" if events.endswith("jsonl") else "row 10000"
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"D001 {tmp_path / events}, {place}")
    assert "fix: did you mean 'StockQuote'?" in result.stderr
    assert out.read_text() == "of an earlier run"
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([events, "market.fl", out.name])
    assert not [each for each in threading.enumerate() if each.name == "fairlead read ahead"]


@pytest.mark.parametrize("events", ["events.jsonl", "events.parquet"])
def test_the_standard_output_stays_empty_if_the_last_record_is_bad(tmp_path: Path, rules: Path, events: str) -> None:
    many_then_bad(tmp_path / events)
    result = fairlead("run", rules, "--events", tmp_path / events, "--out", "-", "--batch-rows", "1000")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("D001 ")


def test_a_pipe_stays_empty_if_the_last_record_is_bad(tmp_path: Path, rules: Path) -> None:
    events = many_then_bad(tmp_path / "events.jsonl")
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    result = fairlead("run", rules, "--events", events, "--out", pipe, "--batch-rows", "1000")
    reader.join(60)
    assert result.exit_code == 1
    assert read == [b""]


def test_input_is_read_once_where_the_output_is_a_file(tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = write_lines(tmp_path / "events.jsonl", RALLY)
    opened: list[Path] = []
    monkeypatch.setattr(files, "Lines", lambda path: opened.append(path) or Lines(path))
    for out, times in ((["--out", tmp_path / "out.jsonl"], 1), ([], 1), (["--out", "-"], 2)):
        opened.clear()
        fairlead("run", rules, "--events", events, *out)
        assert len(opened) == times, out


@pytest.mark.parametrize("kind", BAD)
def test_skip_mode_sets_the_bad_record_aside(tmp_path: Path, rules: Path, kind: str) -> None:
    code, record = BAD[kind]
    events = write_lines(tmp_path / "events.jsonl", [*RALLY[:2], record, *RALLY[2:]])
    out = tmp_path / "out.jsonl"
    result = fairlead("run", rules, "--events", events, "--on-bad", "skip", "--out", out, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert (summary["events"], summary["rejected"], summary["deliveries"]) == (5, 1, 1)
    assert json.loads(out.read_text())["positions"] == [0, 1, 4, 5]
    (rejected,) = [json.loads(line) for line in (tmp_path / "out.jsonl.rejects.jsonl").read_text().splitlines()]
    assert (rejected["code"], rejected["file"], rejected["line"], rejected["position"]) == (code, str(events), 3, 2)
    assert rejected["problem"]


def test_a_file_that_ends_in_the_middle_of_a_line(tmp_path: Path, rules: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", RALLY)
    events.write_text(events.read_text() + '{"type": "StockQuote", "sym')
    result = fairlead("run", rules, "--events", events, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"D012 {events}, line 6")
    assert not (tmp_path / "out.jsonl").exists()
    skipped = fairlead("run", rules, "--events", events, "--on-bad", "skip", "--rejects", tmp_path / "r.jsonl")
    assert skipped.exit_code == 0
    assert "5 events, 1 rejected, 1 relation" in skipped.stdout
    assert f"rejected in {tmp_path / 'r.jsonl'}" in skipped.stdout
    assert json.loads((tmp_path / "r.jsonl").read_text())["code"] == "D012"


def test_nan_comes_in_where_it_is_allowed(tmp_path: Path, rules: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", [BAD["not a number"][1]])
    result = fairlead("run", rules, "--events", events, "--allow-nan", "--json")
    assert json.loads(result.stdout)["events"] == 1


def test_a_bad_row_of_a_parquet_file_is_named(tmp_path: Path, rules: Path) -> None:
    events = tmp_path / "events.parquet"
    rows = [{"value": None} | each for each in RALLY] + [quote("A", float("nan"), 0)]
    pq.write_table(pa.Table.from_pylist(rows), events)
    result = fairlead("run", rules, "--events", events, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"D005 {events}, row 5")
    assert "--allow-nan" in result.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_a_bad_cell_of_a_csv_file_is_named(tmp_path: Path, rules: Path) -> None:
    events = write_lines(tmp_path / "events.csv", ["type,symbol,value,at", "StockQuote,A,ten,2026-01-31T10:00:00Z"])
    result = fairlead("run", rules, "--events", events, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"D004 {events}, line 2")


@pytest.mark.parametrize(
    ("name", "code", "problem"), [("events.xml", "D029", "unknown format"), ("nothing.jsonl", "D013", "does not exist")]
)
@pytest.mark.parametrize("mode", ["stop", "skip"])
def test_files_that_cannot_be_read(tmp_path: Path, rules: Path, name: str, code: str, problem: str, mode: str) -> None:
    (tmp_path / "events.xml").write_text("<event/>")
    result = fairlead("run", rules, "--events", tmp_path / name, "--on-bad", mode, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{code} {tmp_path / name}")
    assert problem in result.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["events.xml", "market.fl"]


def test_bad_rules_are_shown_with_place_caret_and_fix(tmp_path: Path, rules: Path) -> None:
    rules.write_text(MARKET.replace("q[1].at > r.at", "q[1].at > r.att"))
    events = write_lines(tmp_path / "events.jsonl", RALLY)
    for command in ("run", "why", "explain", "lint"):
        more = {"run": ["--events", events, "--out", tmp_path / "out.jsonl"], "why": ["--events", events, "--at", "0"]}
        result = fairlead(command, rules, *more.get(command, []))
        assert result.exit_code == 1
        lines = (result.stdout if command == "lint" else result.stderr).splitlines()
        assert lines[0].startswith(f"L012 {rules}, line 6, column 19: event type 'EarningsReport' has no attribute 'att'")
        assert lines[1].startswith("    WHERE q[1].at > r.att")
        assert lines[2].strip() == "^^^"
        assert lines[3] == "  fix: did you mean 'at'?"
    assert not (tmp_path / "out.jsonl").exists()


def test_a_rule_file_that_is_missing_or_not_text(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", RALLY)
    missing = fairlead("run", tmp_path / "none.fl", "--events", events)
    assert missing.exit_code == 1
    assert missing.stderr.startswith(f"D013 {tmp_path / 'none.fl'}: the rule file does not exist")
    (tmp_path / "latin.fl").write_bytes(b"TYPE A (v INT)\n-- caf\xe9\n")
    latin = fairlead("run", tmp_path / "latin.fl", "--events", events)
    assert latin.exit_code == 1
    assert latin.stderr.startswith(f"D016 {tmp_path / 'latin.fl'}, line 2, column 7")
    directory = fairlead("run", tmp_path, "--events", events)
    assert directory.exit_code == 1
    assert "D013" in directory.stderr


def test_an_old_output_stays_when_the_new_run_fails(tmp_path: Path, rules: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("yesterday\n")
    result = fairlead("run", rules, "--events", write_lines(tmp_path / "e.jsonl", ["{"]), "--out", out)
    assert result.exit_code == 1
    assert out.read_text() == "yesterday\n"


def test_without_out_rejects_go_to_the_working_directory(tmp_path: Path, rules: Path) -> None:
    write_lines(tmp_path / "events.jsonl", [*RALLY, "{"])
    result = fairlead_process("run", "market.fl", "--events", "events.jsonl", "--on-bad", "skip", cwd=tmp_path)
    assert result.returncode == 0
    assert "rejected in rejects.jsonl" in result.stdout
    assert json.loads((tmp_path / "rejects.jsonl").read_text())["code"] == "D011"


def test_a_process_fails_without_a_traceback(tmp_path: Path, rules: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", [BAD["unknown type"][1]])
    result = fairlead_process("run", rules, "--events", events)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "fix: did you mean 'StockQuote'?" in result.stderr


ARRAYS = {
    "a line": json.dumps(RALLY) + "\n",
    "a line without end": json.dumps(RALLY),
    "several lines": json.dumps(RALLY, indent=1) + "\n",
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_file_that_is_one_array_says_how_to_make_lines_of_it(tmp_path: Path, rules: Path, kind: str) -> None:
    events = tmp_path / "events.json"
    events.write_text(ARRAYS[kind])
    result = fairlead("run", rules, "--events", events)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"D009 {events}, line 1")
    assert f"'{events}' | jq -c '.[]'" in result.stderr


def test_an_object_over_several_lines_says_how_to_make_one_of_it(tmp_path: Path, rules: Path) -> None:
    events = tmp_path / "events.json"
    events.write_text(json.dumps(RALLY[0], indent=1))
    assert f"jq -c . '{events}'" in fairlead("run", rules, "--events", events).stderr


@pytest.mark.parametrize("ending", ["jsonl", "csv", "jsonl.gz"])
@pytest.mark.parametrize(
    "more", [[], ["--out", "out.jsonl"], ["--out", "-", "--on-bad", "skip"]], ids=["screen", "file", "skip"]
)
def test_events_come_from_a_pipe(
    tmp_path: Path, rules: Path, ending: str, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(f"events.{ending}")
    lines = "".join(json.dumps(each) + "\n" for each in RALLY).encode()
    cells = "".join(f"{e['at']},{e['symbol']},{e['type']},{e.get('value', '')}\n" for e in RALLY).encode()
    content = {"jsonl": lines, "jsonl.gz": gzip.compress(lines), "csv": b"at,symbol,type,value\n" + cells}[ending]
    writer = threading.Thread(target=Path(f"events.{ending}").write_bytes, args=[content], daemon=True)
    writer.start()
    result = fairlead("run", rules, "--events", f"events.{ending}", *more)
    writer.join()
    assert result.exit_code == 0, result.stderr
    assert "5 events, 1 relation" in result.stdout + result.stderr


def test_a_pipe_that_would_be_read_twice_or_from_its_end_is_refused(tmp_path: Path, rules: Path) -> None:
    """Nobody writes into these: whoever opened one would wait for ever."""
    os.mkfifo(tmp_path / "events.jsonl")
    os.mkfifo(tmp_path / "events.parquet")
    twice = fairlead("run", rules, "--events", tmp_path / "events.jsonl", "--out", "-")
    assert (twice.exit_code, twice.stderr[:4]) == (2, "A292")
    for command in (["run", rules], ["why", rules, "--at", "0"]):
        backwards = fairlead(*command, "--events", tmp_path / "events.parquet")
        assert (backwards.exit_code, backwards.stderr[:4]) == (1, "D029"), command


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], "A211"),
        (["--order-by", "at", "--position", "at"], "A210"),
        (["--order-by", "at", "--stream"], "U110"),
        (["--order-by", "at", "--stream", "--delay", "1 second"], "A219"),
        (["--position", "at", "--stream", "--frontier", "types"], "A218"),
    ],
)
def test_options_of_spark_are_named_as_they_are_typed_and_before_spark_starts(
    tmp_path: Path, rules: Path, arguments: list[str], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.cli.commands.spark.session_for", None)
    result = fairlead("spark", "run", rules, "--events", rules, "--out", tmp_path / "out", *arguments)
    assert result.stderr[:4] == code
    fix = result.stderr.partition("fix: ")[2]
    assert fix
    assert "=" not in result.stderr
    assert "order_by" not in result.stderr


def test_rules_that_have_no_end_or_are_too_large_are_not_read_whole(tmp_path: Path, rules: Path) -> None:
    """A device has no end; a file or pipe is read up to the limit, which a sparse file is over at no cost."""
    events = write_lines(tmp_path / "events.jsonl", RALLY)
    with (tmp_path / "huge.fl").open("wb") as file:
        file.truncate(10**12)
    for given, code in (("/dev/zero", "D013"), ("/dev/null", "D013"), (tmp_path / "huge.fl", "L003")):
        for command in (
            ["run", given, "--events", events],
            ["explain", given],
            ["why", given, "--events", events, "--at", "0"],
        ):
            result = fairlead(*command)
            assert (result.exit_code, result.stderr[: 5 + len(str(given))]) == (1, f"{code} {given}"), command
            assert "fix: " in result.stderr
    process = fairlead_process("explain", "-", stdin=" " * 20_000_000)
    assert (process.returncode, process.stderr[:12]) == (1, "L003 <stdin>")


def test_rules_may_come_through_a_pipe(tmp_path: Path, rules: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", RALLY)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(MARKET))
    writer.start()
    result = fairlead("run", pipe, "--events", events, "--json")
    writer.join(60)
    assert json.loads(result.stdout)["deliveries"] == 1
    endless = threading.Thread(target=lambda: _fill(pipe))
    endless.start()
    result = fairlead("explain", pipe)
    endless.join(60)
    assert (result.exit_code, result.stderr[:4]) == (1, "L003")


def _fill(pipe: Path) -> None:
    """Writes until the reader goes away."""
    try:
        with pipe.open("wb", buffering=0) as file:
            while True:
                file.write(b" " * 65_536)
    except BrokenPipeError:
        pass
