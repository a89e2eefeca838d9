"""The commands on a log, on a real server: what is published is tailed, compared, exported and run again with the same ids."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

import fairlead as fl
from fairlead.transport.log.jetstream.server import Server
from tests.cli.shop import MARKET, RALLY, at, command, fairlead, fairlead_process, quote, report, write_lines

TYPES = MARKET.split("\n\n")[0]
RULES = MARKET.split("\n\n")[1]
TWO = f"{MARKET}\nSUBSCRIPTION Cheap MATCH StockQuote c WHERE c.value < 6.0 EMIT CheapSeen(symbol = c.symbol)\n"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server, in the environment; the rules and events in the working directory."""
    with Server(tmp_path / "server", durable=False) as server:
        monkeypatch.setenv("FAIRLEAD_URL", server.url)
        (tmp_path / "work").mkdir()
        monkeypatch.chdir(tmp_path / "work")
        Path("market.fl").write_text(MARKET)
        Path("types.fl").write_text(TYPES)
        Path("rally.fl").write_text(RULES)
        write_lines(Path("quotes.jsonl"), RALLY)
        yield server.url


def fine(*arguments: str) -> Result:
    done = fairlead(*arguments)
    assert done.exit_code == 0, done.output
    return done


def published(events: str, rules: str, *more: str) -> None:
    fine("declare", rules)
    fine("publish", "--from", events, "-q", *more)


def ids(text: str) -> list[str]:
    return [json.loads(line)["id"] for line in text.splitlines()]


def test_publish_tail_compare_export_and_run_agree(url: str) -> None:
    assert fine("declare", "types.fl").output == "declared: EarningsReport, StockQuote\n"
    assert json.loads(fine("publish", "--from", "quotes.jsonl", "--source", "feed", "--json").stdout)["types"] == {
        "EarningsReport": 1,
        "StockQuote": 4,
    }
    seen = fine("tail", "rally.fl", "--start", "earliest", "--until-end")
    (found,) = ids(seen.stdout)
    assert "Rally: 1 relation" in seen.stderr
    for name, out in (("desk-1", "one.parquet"), ("desk-2", "two.jsonl")):
        fine(
            "tail", "rally.fl", "--start", "earliest", "--until-end", "--name", name, "--out", out, "--receipt", f"{name}.json"
        )
    assert ids(Path("two.jsonl").read_text()) == [found]
    equal = "equal: 1 relation, the same in the same order\n"
    assert fine("compare", "desk-1", "desk-2").output == equal
    fine("export", "rally.fl", "--out", "day.parquet")
    fine("run", "market.fl", "--events", "day.parquet", "--position", "position", "--out", "again.jsonl", "--receipt", "r.json")
    assert ids(Path("again.jsonl").read_text()) == [found]
    for pair in (("one.parquet", "again.jsonl"), ("desk-1", "r.json"), ("again.jsonl", "desk-2"), ("desk-1.json", "r.json")):
        assert fine("compare", *pair).output == equal
    assert fine("tail", "rally.fl", "--name", "desk-1", "--until-end", "--quiet").stdout == ""


def test_what_a_log_took_is_run_again_also_where_it_is_not_finite(url: str) -> None:
    with fl.connect(url).sync as client:
        client.declare(TYPES)
        for second, value in enumerate([1.0, float("nan"), float("inf"), float("-inf"), None, 2.0]):
            client.publish("StockQuote", symbol="A", value=value, at=at(second), wait=True)
    Path("each.fl").write_text("SUBSCRIPTION Each MATCH StockQuote q EMIT Copy(value = q.value)")
    Path("all.fl").write_text(f"{TYPES}\n{Path('each.fl').read_text()}")
    live = fine("tail", "each.fl", "--start", "earliest", "--until-end", "-q").stdout
    assert len(ids(live)) == 6
    fine("export", "each.fl", "--out", "day.parquet")
    again = ("run", "all.fl", "--position", "position", "--out", "-", "-q", "--events")
    assert fine(*again, "day.parquet").stdout == live
    assert fine(*again, "day.parquet", "--on-bad", "skip").stdout == live
    place = str(json.loads(live.splitlines()[1])["positions"][0])
    assert "Each: matched" in fine("why", "all.fl", "--events", "day.parquet", "--position", "position", "--at", place).stdout
    pq.write_table(pq.read_table("day.parquet").replace_schema_metadata(None), "another.parquet")
    refused = fairlead(*again, "another.parquet")
    assert (refused.exit_code, refused.stderr[:4]) == (1, "D005")
    assert "fix: use null, or --allow-nan" in refused.stderr
    assert fine(*again, "another.parquet", "--allow-nan").stdout == live


def test_a_named_tail_goes_on_behind_what_it_printed(url: str) -> None:
    write_lines(Path("many.jsonl"), [quote("ACME", float(each % 7), each) for each in range(500)])
    Path("cheap.fl").write_text("SUBSCRIPTION Cheap MATCH StockQuote q WHERE q.value < 3.0")
    published("many.jsonl", "types.fl")
    everything = ids(fine("tail", "cheap.fl", "--start", "earliest", "--until-end", "-q").stdout)
    assert len(everything) > 200
    parts = [
        ids(fine("tail", "cheap.fl", "--name", "n", "--start", "earliest", "--count", "50", "-q").stdout) for _ in range(3)
    ]
    rest = fine("tail", "cheap.fl", "--name", "n", "--until-end", "--json")
    parts.append(ids(rest.stdout))
    assert [each for part in parts for each in part] == everything
    assert json.loads(rest.stderr)["relations"] == {"Cheap": len(everything) - 150}
    assert json.loads(rest.stderr)["receipts"][0]["deliveries"] == len(everything)


def test_a_tail_that_joins_later_says_what_it_delivered_and_what_others_had_before(url: str) -> None:
    Path("each.fl").write_text("SUBSCRIPTION Each MATCH StockQuote q")
    published("quotes.jsonl", "types.fl")
    early = ("tail", "each.fl", "--name", "early", "--start", "earliest", "--until-end")
    assert len(ids(fine(*early, "--quiet").stdout)) == 4
    late = ("tail", "each.fl", "--name", "late", "--start", "new", "--until-end")
    done = fine(*late)
    assert done.stdout == ""
    assert "Each: 0 relations\n" in done.stderr
    assert "after 4 relations: 0 delivered here, 4 before this subscriber joined\n" in done.stderr
    compared = fairlead("compare", "early", "late")
    assert compared.exit_code == 3
    assert "no delivery was delivered by both; up to delivery 4 their lineage is the same" in compared.stdout
    write_lines(Path("more.jsonl"), [quote("ACME", 1.0, second) for second in (50, 51, 52)])
    fine("publish", "--from", "more.jsonl", "-q")
    fine(*early, "--out", "early.jsonl", "--receipt", "early.json", "-q")  # the three new ones
    told = json.loads(fine(*late, "--out", "late.jsonl", "--receipt", "late.json", "--json").stdout)
    assert [(each["deliveries"], each["joined"]) for each in told["receipts"]] == [(3, 4)]
    assert {name: json.loads(Path("late.json").read_text())[name] for name in ("count", "joined", "delivered")} == {
        "count": 7, "joined": 4, "delivered": 3
    }  # fmt: skip
    assert fine("compare", "early.jsonl", "late.jsonl").stdout == "equal: 3 relations, the same in the same order\n"
    assert fine("compare", "late.jsonl", "late").stdout == (
        "equal: 3 relations, the same in the same order; both joined after relation 4\n"
    )
    found = json.loads(fairlead("compare", "early", "late.json", "--json").stdout)
    assert (found["outcome"], found["agreed"], found["start"]) == ("agree", 3, 5)
    lines = {each["name"]: each for each in json.loads(fine("streams", "--json").stdout)["subscribers"]}
    assert {name: (each["acknowledged"], each["joined"]) for name, each in lines.items()} == {"early": (7, 0), "late": (3, 4)}
    shown = [line.split() for line in fine("streams").stdout.splitlines()]
    assert ["subscriber", "reads", "joined", "after", "acknowledged", "lag"] in shown
    assert ["late", "StockQuote", "4", "3", "0"] in shown


def test_what_a_named_tail_has_written_is_not_replaced_and_one_receipt_is_of_one_subscription(url: str) -> None:
    published("quotes.jsonl", "types.fl")
    Path("two.fl").write_text("SUBSCRIPTION Cheap MATCH StockQuote q WHERE q.value < 3.0 SUBSCRIPTION Any MATCH StockQuote q")
    arguments = ("tail", "two.fl", "--name", "n", "--start", "earliest", "--until-end", "--out", "found.jsonl")
    done = fairlead(*arguments, "--receipt", "r.json")
    assert (done.exit_code, done.stderr[:4]) == (2, "A296")
    assert not Path("found.jsonl").exists()
    told = json.loads(fine(*arguments, "--json").stdout)["receipts"]
    assert [(each["subscription"], each["deliveries"]) for each in told] == [("Cheap", 0), ("Any", 4)]
    written = Path("found.jsonl").read_text()
    assert len(ids(written)) == 4
    done = fairlead(*arguments)
    assert (done.exit_code, done.stderr[:4]) == (2, "A295")
    assert Path("found.jsonl").read_text() == written


REFUSED_RECEIPTS = [
    *(
        (out, *refused)
        for out in ("-", "found.jsonl")
        for refused in (
            ("/dev/full", 1, "D018 /dev/full: the output is not writable: No space left on device"),
            ("missing/r.json", 1, "D018 missing/r.json"),
            ("folder", 1, "D018 folder"),
        )
    ),
    ("-", "-", 2, "A293"),
    ("-", "rally.fl", 2, "--receipt would overwrite the input rally.fl"),
    ("found.jsonl", "found.jsonl", 2, "--receipt would overwrite what --out writes"),
]


@pytest.mark.parametrize(("out", "receipt", "exit_code", "said"), REFUSED_RECEIPTS)
def test_nothing_is_acknowledged_whose_receipt_is_not_written(
    url: str, out: str, receipt: str, exit_code: int, said: str
) -> None:
    Path("folder").mkdir()
    published("quotes.jsonl", "types.fl")
    named = ("tail", "rally.fl", "--name", "n", "--start", "earliest", "--until-end", "-q")
    done = fairlead(*named, "--out", out, "--receipt", receipt)
    assert (done.exit_code, said in done.stderr) == (exit_code, True), done.output
    assert Path("rally.fl").read_text() == RULES
    assert not list(Path().glob("found*"))
    again = fine(*named, "--receipt", "r.json").stdout
    assert len(ids(again)) == json.loads(Path("r.json").read_text())["count"] == 1
    assert fine(*named).stdout == ""


def test_a_tail_that_follows_is_ended_by_a_signal(url: str) -> None:
    published("quotes.jsonl", "types.fl")
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        arguments = command("tail", "market.fl", "--start", "earliest", "--name", f"n{code}")
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["subscription"] == "Rally"
            process.send_signal(number)
            rest, errors = process.communicate(timeout=30)
        assert (process.returncode, rest) == (code, "")
        assert "receipt" in errors
        assert "Traceback" not in errors
        assert fine("tail", "market.fl", "--name", f"n{code}", "--until-end", "-q").stdout == ""


def test_a_tail_sees_what_is_published_while_it_follows(url: str) -> None:
    fine("declare", "market.fl")
    arguments = command("tail", "rally.fl", "--count", "1", "--start", "earliest", "-q")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        fine("publish", "--from", "quotes.jsonl", "-q")
        found, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(found)["emitted"] == {"symbol": "ACME", "gain": 2.5}


def test_on_a_terminal_progress_goes_to_the_standard_error(url: str) -> None:
    write_lines(Path("many.jsonl"), [quote("ACME", 1.0, each % 3000) for each in range(20_000)])
    Path("each.fl").write_text("SUBSCRIPTION Each MATCH StockQuote q")
    fine("declare", "types.fl")
    for arguments, word in (
        (["publish", "--from", "many.jsonl", "--json"], "publishing"),
        (["tail", "each.fl", "--start", "earliest", "--until-end", "--out", "out.jsonl", "--json"], "relations"),
    ):
        leader, follower = pty.openpty()
        environment = os.environ | {"COLUMNS": "120", "TERM": "xterm"}
        with subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=follower, env=environment) as process:
            os.close(follower)
            shown = b""
            with contextlib.suppress(OSError):  # the process has closed its end
                while more := os.read(leader, 65536):
                    shown += more
            assert process.stdout is not None
            assert json.loads(process.stdout.read())
        os.close(leader)
        assert word in shown.decode()


def test_every_format_is_published(url: str) -> None:
    fine("declare", "types.fl")
    table = pa.table({"symbol": ["A", "B"], "value": [1.0, 2.0], "at": pa.array([0, 1], pa.timestamp("us", "UTC"))})
    pq.write_table(table, "q.parquet")
    Path("q.csv").write_text("symbol,value,at\nA,1.0,2026-01-31T10:00:00Z\n")
    event = {"specversion": "1.0", "id": "1", "source": "s", "type": "StockQuote", "data": {"symbol": "A", "value": 1.0}}
    event["data"]["at"] = "2026-01-31T10:00:00Z"  # type: ignore[index]
    write_lines(Path("q.cloudevents.jsonl"), [event])
    for name, count in (("q.parquet", 2), ("q.csv", 1), ("q.cloudevents.jsonl", 1)):
        done = fine("publish", "--from", name, "--type", "StockQuote", "--json")
        assert json.loads(done.stdout)["types"] == {"StockQuote": count}
    shown = json.loads(fine("streams", "--json").stdout)
    assert [(each["topic"], each["types"], each["events"]) for each in shown["topics"]] == [
        ("main", ["EarningsReport", "StockQuote"], 4)
    ]


def test_a_bad_record_means_that_nothing_is_published(url: str) -> None:
    fine("declare", "types.fl")
    write_lines(Path("bad.jsonl"), [*RALLY, quote("ACME", "high", 40)])
    done = fairlead("publish", "--from", "bad.jsonl")
    assert done.exit_code == 1
    assert "D004 bad.jsonl, line 6" in done.stderr
    assert all(each["events"] == 0 for each in json.loads(fine("streams", "--json").stdout)["topics"])


def test_streams_shows_routes_and_the_end_is_reached_where_the_last_blocks_are_not_sent(url: str) -> None:
    fine("declare", "types.fl")
    Path("dear.fl").write_text("SUBSCRIPTION Dear MATCH StockQuote q WHERE q.value > 100")
    dear = ("tail", "dear.fl", "--start", "earliest", "--until-end", "--name", "desk-1", "--json", "-q")
    fine(*dear)
    for value in (200.0, 5.0, 300.0, 6.0, 7.0):
        write_lines(Path("one.jsonl"), [quote("ACME", value, 10)])
        fine("publish", "--from", "one.jsonl", "--source", "feed", "-q")
    assert len(fine(*dear).stdout.splitlines()) == 2
    shown = json.loads(fine("streams", "--json").stdout)
    assert [each["routes"] for each in shown["topics"]] == [{"StockQuote": ["(e.value > 100)"]}]
    assert [(each["routes"], each["lag"]) for each in shown["subscribers"]] == [({"StockQuote": 0}, 0)]
    text = fine("streams").output
    assert "route of" in text
    assert "(e.value > 100)" in text


def test_streams_shows_events_and_lag(url: str) -> None:
    published("quotes.jsonl", "market.fl")
    fine("tail", "market.fl", "--start", "earliest", "--until-end", "--name", "desk-1", "-q")
    shown = json.loads(fine("streams", "--json").stdout)
    assert [(each["name"], each["acknowledged"], each["lag"]) for each in shown["subscribers"]] == [("desk-1", 1, 0)]
    write_lines(Path("more.jsonl"), [report("ACME", 100)])
    fine("publish", "--from", "more.jsonl", "-q")
    assert lag_of("desk-1") == 2  # with the derived event of its own, which it does not read
    text = fine("streams").output
    assert "EarningsReport" in text
    assert "desk-1" in text
    fine("streams", "--forget", "desk-1", "--sweep")
    assert json.loads(fine("streams", "--json").stdout)["merged"] == []


def test_retain_shows_and_trims(url: str) -> None:
    published("quotes.jsonl", "market.fl")
    fine("tail", "market.fl", "--start", "earliest", "--until-end", "--name", "desk-1", "-q")
    write_lines(Path("more.jsonl"), [report("ACME", 100)])
    fine("publish", "--from", "more.jsonl", "-q")
    (shown,) = json.loads(fine("retain", "--json").stdout)["topics"]
    assert (shown["keep"], shown["trimmed"], shown["blocks"]) == ("", 0, 3)
    (shown,) = json.loads(fine("retain", "--read", "--json").stdout)["topics"]
    assert (shown["trimmed"], shown["why"], shown["behind"]) == (1, "read", [])
    Path("keep.fl").write_text("TOPIC main KEEP 1 KB")
    assert fine("declare", "keep.fl").output == "declared: main KEEP 1 KB\n"
    (shown,) = json.loads(fine("retain", "--json").stdout)["topics"]
    assert (shown["keep"], shown["why"], shown["behind"]) == ("1 KB", "size", ["desk-1"])
    assert "would trim" in fine("retain").output
    assert "main" in fine("retain", "--apply").output
    (left,) = json.loads(fine("retain", "--json").stdout)["topics"]
    assert left["first"] == 1 + shown["trimmed"] > 1
    assert "S144" in fairlead("tail", "market.fl", "--name", "desk-1", "--until-end").output
    fine("streams", "--forget", "desk-1")
    fine("tail", "market.fl", "--start", "earliest", "--until-end", "--name", "desk-1", "-q")


def lag_of(name: str) -> int:
    shown = json.loads(fine("streams", "--json").stdout)
    return next(int(each["lag"]) for each in shown["subscribers"] if each["name"] == name)


@pytest.mark.parametrize("topic", ["", "TOPIC reports (EarningsReport)"])
def test_rules_of_several_streams_are_exported_one_by_one(url: str, topic: str) -> None:
    Path("two.fl").write_text(TWO + topic)
    published("quotes.jsonl", "two.fl")
    live: dict[str, list[str]] = {}
    for line in fine("tail", "two.fl", "--start", "earliest", "--until-end", "-q").stdout.splitlines():
        live.setdefault(json.loads(line)["subscription"], []).append(json.loads(line)["id"])
    assert sorted(live) == ["Cheap", "Rally"]
    shown = json.loads(fine("streams", "--json").stdout)
    assert [each["topic"] for each in shown["topics"]] == (["main", "reports"] if topic else ["main"])
    whole = fairlead("export", "two.fl", "--out", "all.parquet")
    if topic:
        assert (whole.exit_code, whole.stderr[:4]) == (2, "A260")
    else:
        found = fine("run", "two.fl", "--events", "all.parquet", "--position", "position", "--out", "-", "-q").stdout
        assert sorted(ids(found)) == sorted(each for mine in live.values() for each in mine)
    for name in live:
        fine("export", "two.fl", "-s", name, "--out", f"{name}.parquet")
        events = ("--events", f"{name}.parquet", "--position", "position")
        assert ids(fine("run", "two.fl", *events, "-s", name, "--out", "-", "-q").stdout) == live[name]


ORDERED = """
TYPE A (k STRING, at TIMESTAMP) TIME at
TYPE B (k STRING, at TIMESTAMP) TIME at
TYPE C (k STRING, at TIMESTAMP) TIME at
SUBSCRIPTION Pair MATCH B b THEN A a PER k
SUBSCRIPTION Triple MATCH C c THEN B b THEN A a PER k
SUBSCRIPTION Alone MATCH C c WITHOUT A a WITHIN 1 HOUR OF c PER k
"""


@pytest.mark.parametrize("rows", [None, 3, 1])
def test_subscribers_see_the_batches_of_a_file_in_its_order(url: str, rows: int | None) -> None:
    """The types of a batch in the order of their first events, here against that of their names: as `run` over the file."""
    Path("ordered.fl").write_text(ORDERED)
    events = [{"type": name, "k": key, "at": at(second)} for second, name in enumerate("CBA") for key in "xyz"]
    write_lines(Path("ordered.jsonl"), [*events, {"type": "Heartbeat", "at": "2027-01-01T00:00:00Z"}])
    size = () if rows is None else ("--batch-rows", str(rows))
    published("ordered.jsonl", "ordered.fl", *size)
    live = [
        json.loads(line) for line in fine("tail", "ordered.fl", "--start", "earliest", "--until-end", "-q").stdout.splitlines()
    ]
    file = [
        json.loads(line)
        for line in fine("run", "ordered.fl", "--events", "ordered.jsonl", "--out", "-", "-q").stdout.splitlines()
    ]

    def told(relations: list[dict[str, Any]]) -> list[Any]:
        return sorted((each["subscription"], json.dumps(each["events"])) for each in relations)

    assert len(file) == 6
    assert told(live) == told(file)


def test_run_takes_only_subscriptions_that_are_there(tmp_path: Path) -> None:
    rules = tmp_path / "two.fl"
    rules.write_text(f"{MARKET}\nSUBSCRIPTION Twice MATCH RallySeen s[2] PER symbol\n")
    events = write_lines(tmp_path / "quotes.jsonl", RALLY)
    for name, code in (("Rolly", "A001"), ("Twice", "A291")):
        done = fairlead("run", rules, "--events", events, "-s", name)
        assert (done.exit_code, done.stderr[:4]) == (2, code)
    assert json.loads(fairlead("run", rules, "--events", events, "-s", "Rally", "--json").stdout)["relations"] == {"Rally": 1}


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (["publish", "--from", "quotes.jsonl"], 1, "D001"),
        (["publish", "--from", "quotes.jsonl", "--type", "Quote"], 1, "D001"),
        (["publish", "--from", "none.jsonl"], 1, "D013"),
        (["tail", "rally.fl", "--until-end"], 1, "L010 rally.fl, line 2"),
        (["tail", "market.fl", "--start", "yesterday"], 2, "A251"),
        (["tail", "market.fl", "--name", "a b"], 2, "A240"),
        (["compare", "desk-1", "desk-2"], 2, "A250"),
        (["streams", "--forget", "desk-1"], 2, "A250"),
        (["export", "market.fl", "--out", "day.csv"], 2, "A103"),
        (["streams", "--url", "nats://127.0.0.1:1"], 1, "N001"),
        (["declare", "none.fl"], 1, "D013"),
    ],
)
def test_errors_have_codes(url: str, arguments: list[str], exit_code: int, code: str) -> None:
    done = fairlead(*arguments)
    assert done.exit_code == exit_code, done.output
    assert done.stderr.startswith(code)
    assert "fix: " in done.stderr


def test_an_incompatible_type_is_refused(url: str) -> None:
    fine("declare", "types.fl")
    Path("other.fl").write_text("TYPE StockQuote (symbol INT)")
    done = fairlead("declare", "other.fl")
    assert (done.exit_code, done.stderr[:4]) == (2, "A243")
    Path("other.fl").write_text("TYPE EarningsReport (symbol STRING, at TIMESTAMP, surprise DOUBLE) TIME at")
    fine("declare", "other.fl")


def test_types_may_lean_on_declared_ones_and_rules_bring_theirs_along(url: str) -> None:
    fine("declare", "types.fl")
    Path("more.fl").write_text("TYPE Tick EXTENDS StockQuote (venue STRING)")
    assert json.loads(fine("declare", "more.fl", "--json").stdout) == {"types": ["Tick"]}
    assert fine("declare", "market.fl").output == "declared: EarningsReport, StockQuote\n"
    done = fairlead("declare", "-", stdin="TYPE Bad (v NOTHING)")
    assert (done.exit_code, "<stdin>, line 1" in done.stderr) == (1, True)


def test_a_reader_that_goes_away_has_acknowledged_what_it_read(url: str) -> None:
    write_lines(Path("many.jsonl"), [quote("ACME", 1.0, each % 3000) for each in range(20_000)])
    Path("each.fl").write_text("SUBSCRIPTION Each MATCH StockQuote q")
    published("many.jsonl", "types.fl")
    arguments = command("tail", "each.fl", "--start", "earliest", "--name", "n", "-q")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["subscription"] == "Each"
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == ""
    rest = ids(fine("tail", "each.fl", "--name", "n", "--until-end", "-q").stdout)
    everything = ids(fine("tail", "each.fl", "--start", "earliest", "--until-end", "-q").stdout)
    assert len(everything) == 20_000
    assert rest == everything[-len(rest) :]


def test_without_a_server_the_commands_say_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLEAD_URL", raising=False)
    done = fairlead("streams")
    assert (done.exit_code, done.stderr[:4]) == (2, "A290")
    assert "fairlead up" in done.stderr
    done = fairlead("compare", str(tmp_path / "a"), str(tmp_path / "b"))
    assert (done.exit_code, done.stderr[:4]) == (1, "D013")


@pytest.mark.parametrize(("arguments", "code"), [(["streams", "--url", "nats://127.0.0.1:1"], "U121"), (["up"], "U120")])
def test_without_the_extra_the_commands_say_what_to_install(tmp_path: Path, arguments: list[str], code: str) -> None:
    (tmp_path / "nats.py").write_text("raise ModuleNotFoundError('no nats', name='nats')\n")
    hidden = "import sysconfig; sysconfig.get_path = lambda name: '/nowhere'; "
    start = f"{hidden}from fairlead.cli.main import main; main()"
    paths = os.pathsep.join([str(tmp_path), str(Path(fl.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", start, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths, "PATH": "/nowhere"},
    )
    assert done.returncode == 1
    assert done.stderr.startswith(code)
    assert "pip install 'fairlead[live]'" in done.stderr


def test_credentials_come_from_options_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = 'authorization: { user: "desk", password: "hidden" }'
    with Server(tmp_path / "server", durable=False, more=more) as server:
        refused = fairlead("streams", "--url", server.url)
        assert (refused.exit_code, refused.stderr[:4]) == (1, "N002")
        assert fairlead("streams", "--url", server.url, "--user", "desk", "--password", "hidden").exit_code == 0
        monkeypatch.setenv("FAIRLEAD_USER", "desk")
        monkeypatch.setenv("FAIRLEAD_PASSWORD", "hidden")
        assert fairlead("streams", "--url", server.url).exit_code == 0


def test_help_does_not_wait_for_what_commands_need() -> None:
    begun = time.perf_counter()
    done = fairlead_process("--help")
    took = time.perf_counter() - begun
    assert all(name in done.stdout for name in ("up", "declare", "publish", "tail", "export", "streams"))
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, fairlead.cli.command_table; print(*sys.modules)"], capture_output=True, text=True
    ).stdout.split()
    heavy: set[Any] = {"pyarrow", "numpy", "nats", "asyncio", "lark", "rich", "pyspark"}
    assert heavy.isdisjoint(loaded), took
