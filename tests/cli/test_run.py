"""`fairlead run`: what comes out, where, and how."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairlead import __version__
from fairlead.cli.command_table import cli
from fairlead.engine import compile
from fairlead.runtime.embedded import match
from tests.cli.shop import MARKET, RALLY, at, fairlead, fairlead_process, write_lines

ABSENCE = """\
TYPE Order (id INT, at TIMESTAMP) TIME at
TYPE Shipment (id INT, at TIMESTAMP) TIME at
SUBSCRIPTION Late MATCH Order o WITHOUT Shipment s WITHIN 60 SECONDS OF o PER id
"""


@pytest.fixture
def market(tmp_path: Path) -> Path:
    (tmp_path / "market.fl").write_text(MARKET)
    write_lines(tmp_path / "quotes.jsonl", RALLY)
    return tmp_path


def test_without_out_the_counts_relations_guarantees_and_receipt_are_shown(market: Path) -> None:
    result = fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("5 events, 1 relation in ")
    for part in ("Rally", "[EarningsReport, StockQuote × 3]", "0, 1, 3, 4", "symbol = ACME, gain = 2.5", "kept", "lost"):
        assert part in result.stdout
    expected = match(compile(MARKET), RALLY)
    assert f"receipt  {expected.receipt.digest}  after 1 relation" in result.stdout


def test_the_files_say_what_the_python_api_gives(market: Path) -> None:
    out, receipt = market / "out.jsonl", market / "receipt.json"
    result = fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl", "--out", out, "--receipt", receipt)
    assert result.exit_code == 0, result.output
    expected = match(compile(MARKET), RALLY)
    assert [json.loads(line) for line in out.read_text().splitlines()] == [each.to_json() for each in expected]
    assert json.loads(receipt.read_text())["digest"] == expected.receipt.digest
    assert sorted(each.name for each in market.iterdir()) == ["market.fl", "out.jsonl", "quotes.jsonl", "receipt.json"]


def test_parquet_in_and_out(market: Path) -> None:
    pq.write_table(pa.Table.from_pylist([{"value": None} | each for each in RALLY]), market / "quotes.parquet")
    out = market / "out.parquet"
    result = fairlead("run", market / "market.fl", "--events", market / "quotes.parquet", "--out", out, "--json")
    assert result.exit_code == 0, result.output
    assert pq.read_table(out).to_pylist()[0]["positions"] == [0, 1, 3, 4]
    assert json.loads(result.stdout)["relations"] == {"Rally": 1}


def test_csv_in(market: Path) -> None:
    rows = [f"{each['type']},{each['symbol']},{each.get('value', '')},{each['at']}" for each in RALLY]
    csv = write_lines(market / "quotes.csv", ["type,symbol,value,at", *rows])
    result = fairlead("run", market / "market.fl", "--events", csv, "--json")
    assert json.loads(result.stdout)["deliveries"] == 1


def test_several_files_after_one_option_are_one_input_in_this_order(market: Path) -> None:
    first, second = write_lines(market / "a.jsonl", RALLY[:2]), write_lines(market / "b.jsonl", RALLY[2:])
    for arguments in (["--events", first, second], ["--events", first, "--events", second], [f"--events={first}", second]):
        result = fairlead("run", market / "market.fl", *arguments, "--out", "-", "--quiet")
        assert json.loads(result.stdout)["positions"] == [0, 1, 3, 4]
    result = fairlead("run", "--events", first, second, "--quiet", "--out", "-", market / "market.fl")
    assert json.loads(result.stdout)["positions"] == [0, 1, 3, 4]
    result = fairlead("run", "--events", first, second, "--", market / "market.fl")
    assert result.exit_code == 0


def test_a_directory_stands_for_its_files_by_name(market: Path) -> None:
    (market / "days").mkdir()
    write_lines(market / "days" / "2.jsonl", RALLY[2:])
    write_lines(market / "days" / "1.jsonl", RALLY[:2])
    result = fairlead("run", market / "market.fl", "--events", market / "days", "--out", "-", "--quiet")
    assert json.loads(result.stdout)["positions"] == [0, 1, 3, 4]


def test_relations_on_the_standard_output_stand_alone(market: Path) -> None:
    result = fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl", "--out", "-")
    assert [json.loads(line)["subscription"] for line in result.stdout.splitlines()] == ["Rally"]
    assert "receipt" in result.stderr


def test_the_json_summary_is_one_object(market: Path) -> None:
    result = fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl", "--json")
    summary = json.loads(result.stdout)
    assert summary.pop("seconds") >= 0
    assert len(summary.pop("receipt")) == 32
    assert len(summary.pop("plan")) == 64
    assert summary == {
        "events": 5, "duplicates": 0, "rejected": 0, "relations": {"Rally": 1}, "waiting": [], "deliveries": 1, "warnings": [],
    }  # fmt: skip


def test_quiet_says_nothing(market: Path) -> None:
    result = fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_rules_come_from_the_standard_input(market: Path) -> None:
    result = fairlead("run", "-", "--events", market / "quotes.jsonl", "--json", stdin=MARKET)
    assert json.loads(result.stdout)["deliveries"] == 1


def test_duplicates_are_dropped_and_counted(market: Path) -> None:
    numbered = [each | {"_source": "feed", "_sequence": at} for at, each in enumerate(RALLY)]
    lines = write_lines(market / "twice.jsonl", [each for each in numbered for _ in range(2)])
    result = fairlead("run", market / "market.fl", "--events", lines, "--json")
    summary = json.loads(result.stdout)
    assert (summary["events"], summary["duplicates"], summary["deliveries"]) == (5, 5, 1)


def test_what_waits_for_a_deadline_is_said_and_until_decides_it(tmp_path: Path) -> None:
    (tmp_path / "late.fl").write_text(ABSENCE)
    lines = write_lines(tmp_path / "orders.jsonl", [{"type": "Order", "id": 1, "at": at(0)}])
    waiting = fairlead("run", tmp_path / "late.fl", "--events", lines)
    assert "Late: relations wait for a deadline that no event it reads has passed; --until TIME decides them" in waiting.stdout
    decided = fairlead("run", tmp_path / "late.fl", "--events", lines, "--until", at(60), "--json")
    assert json.loads(decided.stdout)["relations"] == {"Late": 1}
    too_early = fairlead("run", tmp_path / "late.fl", "--events", lines, "--until", at(59), "--json")
    assert json.loads(too_early.stdout)["waiting"] == ["Late"]


def test_a_sequence_without_a_time_limit_waits_for_the_end_of_everything(tmp_path: Path) -> None:
    (tmp_path / "fall.fl").write_text(
        "TYPE Price (value INT, at TIMESTAMP) TIME at\n"
        "SUBSCRIPTION Fall MATCH Price d{2,} LONGEST WHERE d.value < prev(d.value)\n"
        "SUBSCRIPTION Timed MATCH Price d{2,} LONGEST WITHIN 1 MINUTE OF PREVIOUS WHERE d.value < prev(d.value)\n"
    )
    lines = write_lines(tmp_path / "prices.jsonl", [{"type": "Price", "value": 9 - n, "at": at(n)} for n in range(2)])
    run = ("run", tmp_path / "fall.fl", "--events", lines)
    begun, waiting = "Fall: a sequence has begun", "Timed: relations wait for a deadline"
    assert [each in fairlead(*run).stdout for each in (begun, waiting)] == [True, True]
    later = fairlead(*run, "--until", "2026-12-31").stdout
    assert [each in later for each in (begun, waiting)] == [True, False]
    told = later.split("--until ")[1].split()[0]
    assert json.loads(fairlead(*run, "--until", told, "--json").stdout)["waiting"] == []


def test_the_size_of_a_batch_does_not_change_the_receipt(market: Path) -> None:
    receipts = set()
    for rows in ("1", "2", "1000"):
        result = fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl", "--batch-rows", rows, "--json")
        receipts.add(json.loads(result.stdout)["receipt"])
    assert len(receipts) == 1


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("batch", ["1", "1000"])
def test_ordered_files_give_what_match_gives_whatever_their_order(market: Path, seed: int, batch: str) -> None:
    """Several files of shuffled records with equal times, and records that are there twice."""
    events = [
        {**each, "at": at(second // 2), "_source": f"s{second % 3}", "_sequence": second}
        for second, each in enumerate(RALLY * 20)
    ]
    expected = match(compile(MARKET), [*events, *events[:7]], order_by="at")
    assert len(expected) > 1
    shuffled = [*events, *events[:7]]
    Random(seed).shuffle(shuffled)
    files = [write_lines(market / f"{at}.jsonl", shuffled[at::3]) for at in range(3)]
    given = (market / "market.fl", "--events", *files, "--order-by", "at", "--batch-rows", batch)
    summary = json.loads(fairlead("run", *given, "--json").stdout)
    assert (summary["receipt"], summary["duplicates"]) == (expected.receipt.digest, 7)
    lines = fairlead("run", *given, "--out", "-", "-q").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [each.id for each in expected]
    position = expected[0].positions[0]
    asked = json.loads(fairlead("why", *given[:-2], "--at", str(position), "--json").stdout)
    assert asked["event"]["at"] == expected[0].events[0]["at"].isoformat().replace("+00:00", "Z")
    assert [each["verdict"] for each in asked["findings"]] == ["matched"]


def test_nothing_in_order_is_nothing(market: Path) -> None:
    (market / "none.jsonl").write_text("")
    result = fairlead("run", market / "market.fl", "--events", market / "none.jsonl", "--order-by", "at", "--json")
    assert json.loads(result.stdout)["relations"] == {"Rally": 0}


def test_warnings_about_the_rules_are_counted(market: Path) -> None:
    text = MARKET.replace("PER symbol\n", "").replace("q[1].at > r.at", "q[1].symbol = r.symbol")
    (market / "joined.fl").write_text(text)
    shown = fairlead("run", market / "joined.fl", "--events", market / "quotes.jsonl").stdout
    found = len(compile(text).warnings)
    assert f"{found} warning{'s' if found > 1 else ''} about the rules: fairlead lint" in shown
    assert "about the rules" not in fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl").stdout


def test_an_empty_file_has_no_relations(market: Path) -> None:
    result = fairlead(
        "run", market / "market.fl", "--events", write_lines(market / "none.jsonl", []), "--out", market / "o.jsonl"
    )
    assert result.exit_code == 0
    assert (market / "o.jsonl").read_text() == ""


def test_only_the_first_relations_are_shown(market: Path) -> None:
    (market / "one.fl").write_text("TYPE A (v INT)\nSUBSCRIPTION Each MATCH A a\n")
    lines = write_lines(market / "a.jsonl", [{"type": "A", "v": each} for each in range(12)])
    result = fairlead("run", market / "one.fl", "--events", lines)
    assert "7 more: --out FILE" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rejects", "r.jsonl"], "--rejects needs --on-bad skip"),
        (["--out", "relations.xml"], "A103"),
        (["--until", "tomorrow"], "A004"),
        (["--on-bad", "ignore"], "Invalid value for '--on-bad'"),
        (["--batch-rows", "0"], "Invalid value for '--batch-rows'"),
        (["--nonsense"], "No such option"),
        (["--order-by", "at", "--position", "at"], "A210"),
        (["--order-by", "at", "--on-bad", "skip"], "--order-by is not supported with --state"),
        (["--order-by", "at", "--state", "s.state"], "--order-by is not supported with --state"),
    ],
)
def test_wrong_usage_exits_with_2(market: Path, arguments: list[str], message: str) -> None:
    result = fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(("option", "name"), [("--out", "quotes.jsonl"), ("--receipt", "market.fl"), ("--receipt", "o.jsonl")])
def test_an_output_never_overwrites_an_input_or_another_output(market: Path, option: str, name: str) -> None:
    before = {each.name: each.read_bytes() for each in market.iterdir()}
    more = [] if option == "--out" else ["--out", market / "o.jsonl"]
    result = fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl", option, market / name, *more)
    assert result.exit_code == 2
    assert "would overwrite" in result.stderr
    assert {each.name: each.read_bytes() for each in market.iterdir()} == before


def test_an_output_that_cannot_be_written_is_said_before_the_run(market: Path) -> None:
    result = fairlead("run", market / "market.fl", "--events", market / "quotes.jsonl", "--out", market / "no" / "o.jsonl")
    assert result.exit_code == 1
    assert "D018" in result.stderr


def test_version_and_help() -> None:
    assert fairlead("--version").stdout == f"fairlead {__version__}\n"
    module = subprocess.run([sys.executable, "-m", "fairlead", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout == f"fairlead {__version__}\n"
    for name in ("run", "explain", "lint", "test", "why", "compare"):
        for flag in ("-h", "--help"):
            result = fairlead(name, flag)
            assert result.exit_code == 0
            assert "Example" in result.stdout


def test_help_imports_neither_arrow_nor_rich_nor_the_parser(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from fairlead.cli.command_table import cli\n"
        "try: cli(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('pyarrow', 'rich', 'lark', 'yaml', 'fairlead.engine') if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_process_prints_plain_text_where_there_is_no_terminal(market: Path) -> None:
    result = fairlead_process("run", market / "market.fl", "--events", market / "quotes.jsonl")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert result.stderr == ""


SLOW = """TYPE A (s STRING) TYPE B (m INT)
SUBSCRIPTION Parts MATCH A a AND B b WHERE substring(a.s, b.m) = 'x'
"""


def test_rules_that_cannot_be_compiled_are_refused_with_their_place_unless_asked_to_go_event_by_event(tmp_path: Path) -> None:
    (tmp_path / "slow.fl").write_text(SLOW)
    (tmp_path / "events.jsonl").write_text('{"type": "A", "s": "ax"}\n{"type": "B", "m": 2}\n')
    arguments = ("run", tmp_path / "slow.fl", "--events", tmp_path / "events.jsonl", "--out", tmp_path / "out.jsonl")
    refused = fairlead(*arguments)
    assert refused.exit_code == 1
    assert refused.stderr.splitlines() == [
        f"U001 {tmp_path / 'slow.fl'}, line 2, column 44: 'Parts' cannot be compiled to machine code "
        "(substring of a text and numbers of different events)",
        "    SUBSCRIPTION Parts MATCH A a AND B b WHERE substring(a.s, b.m) = 'x'",
        "                                               ^^^^^^^^^^^^^^^^^^^^^^^^^",
        "  fix: rewrite that condition, or ask for the slow matcher: event_by_event=True, --event-by-event",
    ]
    assert not (tmp_path / "out.jsonl").exists()
    slow = fairlead(*arguments, "--event-by-event")
    assert slow.exit_code == 0
    assert "2 events, 1 relation" in slow.stderr
    assert f"warning W013 {tmp_path / 'slow.fl'}, line 2, column 44: 'Parts' cannot be compiled" in slow.stderr
    linted = fairlead("lint", tmp_path / "slow.fl")
    assert "'Parts' cannot be compiled to machine code" in linted.stdout
    assert linted.exit_code == 0


def test_rule_tests_of_such_rules_are_refused_likewise(tmp_path: Path) -> None:
    (tmp_path / "slow.fl").write_text(SLOW)
    events = "[{type: A, s: ax}, {type: B, m: 2}]"
    (tmp_path / "slow.test.yaml").write_text(f"tests:\n  - name: one\n    events: {events}\n    expect: {{Parts: 1}}\n")
    refused = fairlead("test", tmp_path / "slow.fl")
    assert refused.exit_code == 1
    assert "U001" in refused.stdout
    assert fairlead("test", tmp_path / "slow.fl", "--event-by-event").exit_code == 0


def test_a_subscription_that_is_chosen_without_its_upstream_names_all_that_is_missing(tmp_path: Path) -> None:
    rules = "TYPE A (x INT)\n" + "\n".join(
        f"SUBSCRIPTION S{at} MATCH {'A' if at == 0 else f'E{at - 1}'} a EMIT E{at} (x = a.x)" for at in range(4)
    )
    (tmp_path / "rules.fl").write_text(rules)
    lines = write_lines(tmp_path / "events.jsonl", [{"type": "A", "x": 1}])
    result = fairlead("run", tmp_path / "rules.fl", "--events", lines, "-s", "S3", "-s", "S1")
    assert result.exit_code == 2
    assert "A291" in result.output
    assert "add --subscription S2 --subscription S0" in result.output


TIMED = """\
TYPE A (k INT, at TIMESTAMP) TIME at
TYPE B (k INT, at TIMESTAMP) TIME at
SUBSCRIPTION S MATCH A a THEN B b PER k
"""
MIXED = [("A", 0), ("B", 3), ("A", 1), ("B", 2), ("A", 9), ("B", 20), ("A", 4)]
"""Records as they come, each with its second."""


def timed(folder: Path, order: str, records: list[tuple[str, int]] = MIXED) -> tuple[Path, Path]:
    (folder / "timed.fl").write_text(order + TIMED)
    events = [{"type": name, "k": 1, "at": f"2026-01-01T00:00:{second:02}Z"} for name, second in records]
    return folder / "timed.fl", write_lines(folder / "timed.jsonl", events)


def test_times_that_run_backwards_are_told_where_the_order_of_the_records_counts(tmp_path: Path) -> None:
    rules, events = timed(tmp_path, "")
    assert "times run backwards: 3 events after a later one" in fairlead("run", rules, "--events", events).stdout
    told = json.loads(fairlead("run", rules, "--events", events, "--json").stdout)
    assert told["times_backwards"] == 3
    for more in (("--order-by", "at"), ()):
        rules, events = timed(tmp_path, "" if more else "ORDER BY at ")
        assert "times run backwards" not in fairlead("run", rules, "--events", events, *more).stdout


def test_with_a_delay_events_are_held_back_and_late_ones_written(tmp_path: Path) -> None:
    rules, events = timed(tmp_path, "ORDER BY at DELAY 6 SECONDS ")
    late, out = tmp_path / "late.jsonl", tmp_path / "out.jsonl"
    result = fairlead("run", rules, "--events", events, "--late", late, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["late"] == 1
    told = [json.loads(line) for line in late.read_text().splitlines()]
    assert told == [{"type": "A", "k": 1, "at": "2026-01-01T00:00:04Z", "_verdict": "late"}]
    expected = match(
        compile("ORDER BY at DELAY 6 SECONDS " + TIMED), [json.loads(line) for line in events.read_text().splitlines()][:-1]
    )
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == [each.id for each in expected]
    assert "1 late" in fairlead("run", rules, "--events", events).stdout


@pytest.mark.parametrize("cut", range(1, len(MIXED)))
def test_what_is_held_back_at_the_end_of_a_run_is_in_its_state(tmp_path: Path, cut: int) -> None:
    order, end = "ORDER BY at DELAY 6 SECONDS ", [("A", 59)]
    ids: list[list[str]] = []
    for folder, pieces in (("whole", [MIXED + end]), ("parts", [MIXED[:cut], MIXED[cut:] + end])):
        (tmp_path / folder).mkdir()
        found: list[str] = []
        for piece in pieces:
            rules, events = timed(tmp_path / folder, order, piece)
            out = tmp_path / folder / "out.jsonl"
            result = fairlead("run", rules, "--events", events, "--state", tmp_path / folder / "state", "--out", out)
            assert result.exit_code == 0, result.output
            found += [json.loads(line)["id"] for line in out.read_text().splitlines()]
        ids.append(found)
    assert ids[0] == ids[1] != []


@pytest.mark.parametrize(
    ("order", "more", "told"),
    [
        ("ORDER BY at ", ("--order-by", "at"), "A210"),
        ("ORDER BY at ", ("--position", "p"), "A210"),
        ("ORDER BY at ", ("--state", "s"), "say how late events may be"),
        ("ORDER BY at ", ("--on-bad", "skip"), "say how late events may be"),
    ],
)
def test_orders_that_contradict_each_other_are_refused(tmp_path: Path, order: str, more: tuple[str, ...], told: str) -> None:
    rules, events = timed(tmp_path, order)
    result = fairlead("run", rules, "--events", events, *more)
    assert result.exit_code != 0
    assert told in result.stderr


@pytest.mark.parametrize("command", ["run", "why", "backtest", "spark run"])
def test_an_option_is_named_as_it_was_written(tmp_path: Path, command: str) -> None:
    rules, events = timed(tmp_path, "ORDER BY at DESC ")
    more = {"why": ("--at", "0"), "spark run": ("--out", str(tmp_path / "out"))}
    result = fairlead(*command.split(), rules, *more.get(command, ()), "--events", events, "--order-by", "at")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("A210 --order-by is set, and the rules say ORDER BY at DESC\n  fix: leave --order-by out")


@pytest.mark.parametrize("out", ["found.jsonl", "found.parquet", "-", None], ids=str)
@pytest.mark.parametrize("rejects", ["bad.jsonl", "-"], ids=["rejects in a file", "rejects -"])
@pytest.mark.parametrize("as_json", [False, True], ids=["for people", "--json"])
def test_the_summary_is_beside_what_is_written(
    out: str | None, rejects: str, as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standard output has what was asked for there, and nothing else: relations, rejects, or JSON; the summary for people
    only if it is the only output."""
    monkeypatch.chdir(tmp_path)
    Path("market.fl").write_text(MARKET)
    write_lines(Path("events.jsonl"), [*RALLY, '{"type": "None"}'])
    named = () if out is None else ("--out", out)
    asked = ("--json",) if as_json else ()
    done = fairlead("run", "market.fl", "--events", "events.jsonl", "--on-bad", "skip", "--rejects", rejects, *named, *asked)
    assert done.exit_code == 0, done.output
    lines = (out == "-") + (rejects == "-")
    summary = '"receipt"' if as_json else "receipt  "
    if lines or (out is not None and not as_json):
        assert [*map(type, map(json.loads, done.stdout.splitlines()))] == [dict] * lines
        assert summary in done.stderr
    else:
        assert summary in done.stdout
        assert summary not in done.stderr


def test_these_commands_write_a_file_and_a_summary() -> None:
    """What `tail` and `export` print is tested in tests/cli/live/test_reports.py, the folder of `spark run` in its page."""
    commands = dict(cli.commands)
    for group, each in cli.commands.items():
        commands |= {f"{group} {name}": inner for name, inner in getattr(each, "commands", {}).items()}
    found = {name for name, each in commands.items() if any("--out" in option.opts for option in each.params)}
    assert found == {"run", "tail", "export", "spark run"}
