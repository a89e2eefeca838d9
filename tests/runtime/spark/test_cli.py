"""The commands on Spark, in this process with the session of the tests: from files to files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from pyspark.sql import SparkSession

import fairlead as embedded
from fairlead.errors import FairleadWarning
from tests.cli.shop import MARKET, RALLY, command, fairlead, fairlead_process, quote, report, write_lines
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("spark")

TWO_DAYS = [
    *RALLY,
    *({**each, "at": each["at"].replace("01-31", "02-02")} for each in RALLY),
]
ID = "00ab41b30b8777bb479596db377ab5f4"
"""Of the relation at 0, 1, 3, 4 in the order of `at`, as every runtime computes it."""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "market.fl"
    path.write_text(MARKET)
    return path


def done(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def run(rules: Path, events: Path, out: Path, *more: str) -> Result:
    return fairlead("spark", "run", rules, "--events", events, "--out", out, "--json", *more)


def lines(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder of JSON Lines, file after file by name."""
    return [json.loads(line) for file in sorted(folder.rglob("part-*")) for line in file.read_text().splitlines()]


def test_lines_csv_and_parquet_give_the_relations_of_the_embedded_runtime(tmp_path: Path, rules: Path) -> None:
    backwards = write_lines(tmp_path / "events.jsonl", reversed(RALLY))
    cells = "".join(f"{e['at']},{e['symbol']},{e['type']},{e.get('value', '')}\n" for e in RALLY)
    (tmp_path / "events.csv").write_text("at,symbol,type,value\n" + cells)
    stamped = pa.table({name: [each.get(name) for each in RALLY] for name in ("type", "symbol", "value", "at")})
    pq.write_table(stamped.set_column(3, "at", stamped.column("at").cast(pa.timestamp("us", "UTC"))), tmp_path / "e.parquet")
    for number, path in enumerate((backwards, tmp_path / "events.csv", tmp_path / "e.parquet")):
        out = tmp_path / f"out{number}"
        found = done(run(rules, path, out, "--order-by", "at", "--format", "jsonl"))
        assert (found["events"], found["relations"], found["rejected"]) == (5, {"Rally": 1}, 0)
        (relation,) = lines(out)
        assert relation["relation_id"] == ID
        assert relation["emitted"]["gain"] == 2.5
    assert [each.id for each in embedded.match(embedded.compile(MARKET), RALLY, order_by="at")] == [ID]


def test_bad_records_stop_the_job_in_fairleads_words_or_are_set_aside(tmp_path: Path, rules: Path) -> None:
    bad = [
        quote("ACME", "high", 12),
        '{"type": nonsense',
        {**quote("ACME", 1.0, 1), "at": None},
        {**report("A", 3), "type": "Nope"},
    ]
    events = write_lines(tmp_path / "events.jsonl", [*RALLY, *bad])
    stopped = run(rules, events, tmp_path / "out", "--order-by", "at")
    assert stopped.exit_code == 1
    assert stopped.stderr.startswith("D0")
    assert "set bad records aside" in stopped.stderr or stopped.stderr.startswith("D019")
    assert "Traceback" not in stopped.output
    found = done(run(rules, events, tmp_path / "out", "--order-by", "at", "--on-bad", "skip", "--format", "jsonl"))
    assert (found["events"], found["relations"], found["rejected"]) == (6, {"Rally": 1}, 4)
    refused = lines(tmp_path / "out.rejected")
    assert sorted(each["code"] for each in refused) == ["D001", "D019", "D024", "D024"]
    alone = write_lines(tmp_path / "alone.jsonl", [{**report("A", 3), "type": "Nope"}])
    unknown = run(rules, alone, tmp_path / "other", "--order-by", "at")
    assert unknown.exit_code == 1
    assert unknown.stderr.startswith("D001 event type 'Nope' is not declared")


def test_csv_has_nested_columns_as_json_and_a_folder_is_not_written_over(tmp_path: Path, rules: Path) -> None:
    import csv

    events = write_lines(tmp_path / "events.jsonl", RALLY)
    done(run(rules, events, tmp_path / "out", "--order-by", "at", "--format", "csv"))
    (file,) = (tmp_path / "out").glob("part-*.csv")
    (row,) = csv.DictReader(file.read_text().splitlines())
    assert [each["position"] for each in json.loads(row["members"])] == [0, 1, 3, 4]
    assert [each["type"] for each in json.loads(row["members"])] == ["EarningsReport", *["StockQuote"] * 3]
    again = run(rules, events, tmp_path / "out", "--order-by", "at")
    assert (again.exit_code, again.stderr.split()[0]) == (2, "A221")
    assert done(run(rules, events, tmp_path / "out", "--order-by", "at", "--overwrite"))["relations"] == {"Rally": 1}


def test_repeats_of_a_sequence_are_set_aside(tmp_path: Path, rules: Path) -> None:
    numbered = [{**each, "_source": "feed", "_sequence": number} for number, each in enumerate(RALLY)]
    events = write_lines(tmp_path / "events.jsonl", [*numbered, numbered[4]])
    columns = ("--source", "_source", "--sequence", "_sequence")
    found = done(run(rules, events, tmp_path / "out", "--order-by", "at", "--format", "jsonl", *columns))
    assert (found["events"], found["relations"], found["repeated"]) == (6, {"Rally": 1}, 1)
    assert [each["position"] for each in lines(tmp_path / "out.repeated")] == [5]


def test_delta_without_delta_says_how_to_get_it(tmp_path: Path, rules: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", RALLY)
    refused = run(rules, events, tmp_path / "out", "--order-by", "at", "--format", "delta")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(
        "U111 the Spark session has no delta\n  fix: start the session with --set spark.jars.packages="
    )


def test_a_stream_goes_on_from_its_checkpoint_with_other_rules_but_not_in_another_order(tmp_path: Path, rules: Path) -> None:
    incoming, out = tmp_path / "incoming", tmp_path / "out"
    incoming.mkdir()
    options = ("--stream", "--once", "--order-by", "at", "--frontier", "stream", "--format", "jsonl", "--on-bad", "skip")
    write_lines(incoming / "1.jsonl", RALLY[:4])
    first = done(run(rules, incoming, out, *options))
    assert (first["events"], first["relations"], first["late"]) == (4, {"Rally": 0}, 0)
    late = quote("ACME", 99.0, 1)
    write_lines(incoming / "2.jsonl", [RALLY[4], quote("ACME", 1.0, 90), late, quote("ACME", "high", 91)])
    second = done(run(rules, incoming, out, *options))
    assert (second["events"], second["relations"], second["late"], second["rejected"]) == (3, {"Rally": 1}, 1, 1)
    assert [each["relation_id"] for each in lines(out)] == [ID]
    assert [each["event"]["value"] for each in lines(tmp_path / "out.late")] == [99.0]
    assert [each["code"] for each in lines(tmp_path / "out.rejected")] == ["D024"]
    assert done(run(rules, incoming, out, *options))["events"] == 0
    for file in (tmp_path / "out.checkpoint" / "commits").glob("*1*"):  # as if it had failed before it was noted as done
        file.unlink()
    assert done(run(rules, incoming, out, *options))["relations"] == {"Rally": 1}
    assert [each["relation_id"] for each in lines(out)] == [ID]
    assert len(lines(tmp_path / "out.late")) == 1
    rules.write_text(MARKET.replace("5 MINUTES", "6 MINUTES").replace("Rally", "Slower"))
    changed = run(rules, incoming, out, *options)
    assert "the rules have changed: started: Slower; dropped: Rally" in changed.stderr
    assert done(changed)["relations"] == {"Slower": 0}
    refused = run(rules, incoming, out, *[{"at": "value"}.get(each, each) for each in options])
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"S111 the checkpoint {out}.checkpoint was started with order_by")
    refused = run(rules, incoming, out, *options, "--buckets", "3")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("S116 the stream started with buckets = 2, and this run has buckets = 3")


def test_options_of_streams_need_a_stream_and_what_is_missing_is_told(tmp_path: Path, rules: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", RALLY)
    assert "--once needs --stream" in run(rules, events, tmp_path / "out", "--once").stderr
    assert run(rules, events, tmp_path / "out").stderr.startswith("A211 ")
    assert run(rules, tmp_path / "event.jsonl", tmp_path / "out", "--order-by", "at").stderr.startswith("D013 ")
    assert run(rules, events, tmp_path / "out", "--order-by", "at", "--master", "local[7]").stderr.startswith("A401 ")
    assert run(rules, events, tmp_path / "out", "--order-by", "when").stderr.startswith("D0")


@pytest.mark.parametrize(
    ("order", "stored", "form"),
    [
        ("ORDER BY at AHEAD 1 HOUR", True, "jsonl"),
        ("ORDER BY at DESC, y", False, "parquet"),
        ("ORDER BY TIME, y DELAY 1 DAY AHEAD 1 HOUR LATE REVISE WITHIN 1 DAY", True, "parquet"),
        ("ORDER BY at AHEAD 1 HOUR", False, "parquet"),
    ],
)
def test_a_backtest_leaves_out_what_is_ahead_and_counts_the_rest_by_its_day(
    order: str, stored: bool, form: str, tmp_path: Path
) -> None:
    """Rows that are ahead, without a key, or of no type stand between the others, on every day: the days of relations are those
    of the embedded runtime, which is given the others only."""
    text = f"TYPE A (k INT, y DOUBLE, at TIMESTAMP) TIME at {order} SUBSCRIPTION S MATCH A a[2] PER k DISPOSAL PREFIX INFIX"
    random, start = Random(order + form), datetime(2026, 1, 1, tzinfo=UTC)
    events: list[dict[str, Any]] = []
    fine = []
    for number in range(120):
        at = start + timedelta(hours=number)
        event: dict[str, Any] = {"type": "A", "k": number % 3, "y": float(number % 5), "at": at, "_stored": at}
        if random.random() < 0.2:
            event["_stored"] = at - timedelta(minutes=random.choice((61, 600)))
        elif random.random() < 0.1:
            event["_stored"] = None if form == "parquet" else at
        elif random.random() < 0.1 and form == "parquet":
            event |= random.choice(({"at": None}, {"y": float("nan")}, {"type": "None"}))
        keyless = event["at"] is None or ("y" in order and event["y"] != event["y"])
        is_ahead = stored and not keyless and event["_stored"] is not None and event["_stored"] + timedelta(hours=1) < at
        if event["type"] == "A" and not keyless and not is_ahead:
            fine.append({name: value for name, value in event.items() if name != "_stored" or value is not None})
        events.append(event if stored else {name: value for name, value in event.items() if name != "_stored"})
    (tmp_path / "rules.fl").write_text(text)
    path = tmp_path / f"events.{form}"
    if form == "jsonl":
        write_lines(path, [each | {name: each[name].isoformat() for name in ("at", "_stored")} for each in events])
    else:
        time, rest = pa.timestamp("us", "UTC"), [("type", pa.string()), ("k", pa.int32()), ("y", pa.float64())]
        times = [("at", time), ("_stored", time)] if stored else [("at", time)]
        pq.write_table(pa.Table.from_pylist(events, pa.schema([*rest, *times])), path)
    with pytest.warns(FairleadWarning, match="W102") if "AHEAD" in order and not stored else nullcontext():
        found = done(fairlead("backtest", tmp_path / "rules.fl", "--events", path, "--on-bad", "skip", "--json"))
    plan = embedded.compile(text.replace(" AHEAD 1 HOUR", ""))
    wanted = Counter(str(each.events[-1]["at"].date()) for each in embedded.match(plan, fine))
    assert {day: count for day, count in found["relations"]["S"]["days"].items() if count} == wanted
    assert len(wanted) > 3
    ahead = len(events) - len(fine) - found["rejected"]
    assert found.get("ahead", 0) == ahead
    assert bool(ahead) == stored


def test_a_backtest_counts_by_day_with_bars(tmp_path: Path, rules: Path) -> None:
    events = write_lines(tmp_path / "events.jsonl", TWO_DAYS)
    shown = fairlead("backtest", rules, "--events", events, "--plot", tmp_path / "days.png")
    assert shown.exit_code == 0, shown.output
    body = [line.split() for line in shown.stdout.splitlines()[4:]]
    assert body == [
        ["Rally", "all", "2"],
        ["2026-01-31", "1", "█" * 40],
        ["2026-02-01", "0"],
        ["2026-02-02", "1", "█" * 40],
    ]
    assert (tmp_path / "days.png").read_bytes().startswith(b"\x89PNG")
    found = done(fairlead("backtest", rules, "--events", events, "--since", "2026-02-01", "--until", "2026-02-02", "--json"))
    assert (found["events"], found["relations"]) == (5, {"Rally": {"total": 1, "days": {"2026-02-02": 1}}})


def test_a_stream_in_a_process_ends_cleanly_when_it_is_terminated(tmp_path: Path, rules: Path) -> None:
    incoming, out, ready = tmp_path / "incoming", tmp_path / "out", tmp_path / "out" / "batch=0" / "_SUCCESS"
    incoming.mkdir()
    write_lines(incoming / "1.jsonl", [*RALLY, quote("ACME", 1.0, 99)])
    arguments = (
        "spark",
        "run",
        rules,
        "--events",
        incoming,
        "--out",
        out,
        "--stream",
        "--order-by",
        "at",
        "--frontier",
        "stream",
    )
    fast = (
        "--set",
        "spark.driver.memory=1g",
        "--set",
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    process = subprocess.Popen(
        command(*arguments, *fast, "--master", "local[2]", "--metrics-port", "0", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: ready.exists() or process.poll() is not None, 240)
        process.send_signal(signal.SIGTERM)
        told, noise = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 143, noise
    assert json.loads(told)["relations"] == {"Rally": 1}
    assert re.fullmatch(r"metrics at http://127.0.0.1:\d+/metrics\n", noise)
    (relation,) = pq.read_table(next(out.rglob("*.parquet"))).to_pylist()
    assert relation["relation_id"] == ID


def test_what_is_derived_or_absent_counts_on_the_day_it_was_completed(tmp_path: Path) -> None:
    rules = tmp_path / "rules.fl"
    rules.write_text(
        MARKET
        + "SUBSCRIPTION Again MATCH RallySeen s[2]\n"
        + "SUBSCRIPTION Silence MATCH EarningsReport r WITHOUT StockQuote q WITHIN 1 HOUR OF r PER symbol\n"
    )
    silent = {**report("QUIET", 0), "at": "2026-01-31T23:30:00Z"}
    events = write_lines(tmp_path / "events.jsonl", [silent, *TWO_DAYS])
    found = done(fairlead("backtest", rules, "--events", events, "--until", "2026-02-02", "--json"))["relations"]
    assert {name: {day: n for day, n in each["days"].items() if n} for name, each in found.items()} == {
        "Rally": {"2026-01-31": 1, "2026-02-02": 1},
        "Again": {"2026-02-02": 1},
        "Silence": {"2026-02-02": 1},
    }


def test_without_java_a_process_says_so_in_one_sentence(tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    events = write_lines(tmp_path / "events.jsonl", RALLY)
    ended = fairlead_process("spark", "run", rules, "--events", events, "--order-by", "at", "--out", tmp_path / "out")
    assert ended.returncode == 1
    assert ended.stderr.startswith("U106 JAVA_HOME is")


def test_the_session_of_the_tests_is_used(spark: SparkSession) -> None:
    assert spark.sparkContext.master == "local[2]"
    assert os.environ.get("PYSPARK_GATEWAY_PORT") is None
