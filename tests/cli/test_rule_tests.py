"""`fairlead test`: rule tests in YAML and TOML, what passes, and how a failure reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shop import MARKET, fairlead

EVENTS = """
    events:
      - {type: EarningsReport, symbol: ACME, at: 2026-01-31T10:00:00Z}
      - {type: StockQuote, symbol: ACME, value: 10.0, at: 2026-01-31T10:00:10Z}
      - {type: StockQuote, symbol: ACME, value: 11.1, at: 2026-01-31T10:00:20Z}
      - {type: StockQuote, symbol: ACME, value: 12.3, at: 2026-01-31T10:00:30Z}
"""


def check(folder: Path, expectation: str, *arguments: str, events: str = EVENTS) -> tuple[int, str]:
    (folder / "market.fl").write_text(MARKET)
    (folder / "market.test.yaml").write_text(f"tests:\n  - name: a rally{events}    {expectation}\n")
    result = fairlead("test", folder / "market.fl", *arguments)
    return result.exit_code, result.stdout + result.stderr


@pytest.mark.parametrize(
    "expectation",
    [
        "expect: [{subscription: Rally, positions: [0, 1, 2, 3]}]",
        "expect: [{subscription: Rally, positions: [0, 1, 2, 3], completed_at: 3, emitted: {symbol: ACME, gain: 2.3}}]",
        "expect: [{subscription: Rally, events: [{type: EarningsReport}, {value: 10}, {}, {at: 2026-01-31T10:00:30Z}]}]",
        "expect: {Rally: 1}",
        "expect: {Rally: [{emitted: {gain: 2.3}}]}",
    ],
)
def test_expectations_that_hold(tmp_path: Path, expectation: str) -> None:
    assert check(tmp_path, expectation) == (0, "1 passed, 0 failed\n")


def test_a_difference_shows_expected_got_and_the_events(tmp_path: Path) -> None:
    code, output = check(tmp_path, "expect: [{subscription: Rally, positions: [0, 2, 1, 3], emitted: {gain: 2.5}}]")
    assert code == 1
    assert output.splitlines() == [
        f"FAILED {tmp_path / 'market.test.yaml'}: a rally",
        "  Rally: relation 1 differs",
        "    expected  positions [0, 2, 1, 3]",
        "    got       positions [0, 1, 2, 3]",
        "    expected  emitted gain = 2.5",
        "    got       emitted gain = 2.3000000000000007",
        "      0: {'type': 'EarningsReport', 'symbol': 'ACME', 'at': '2026-01-31T10:00:00Z'}",
        "      1: {'type': 'StockQuote', 'symbol': 'ACME', 'value': 10.0, 'at': '2026-01-31T10:00:10Z'}",
        "      2: {'type': 'StockQuote', 'symbol': 'ACME', 'value': 11.1, 'at': '2026-01-31T10:00:20Z'}",
        "      3: {'type': 'StockQuote', 'symbol': 'ACME', 'value': 12.3, 'at': '2026-01-31T10:00:30Z'}",
        "0 passed, 1 failed",
    ]


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        ("expect: []", "expected no relations, got 1"),
        ("expect: {Rally: 2}", "Rally: expected 2 relations, got 1"),
        ("expect: {Rally: []}", "Rally: expected 0 relations, got 1; the first too many:"),
        (
            "expect: {Rally: [{}, {positions: [4, 5]}]}",
            "Rally: expected 2 relations, got 1; the first that is missing:\n    expected  [4, 5]",
        ),
        ("expect: {Raly: 1}", "there is no subscription 'Raly'; the rules have Rally"),
        ("expect: {Rally: [{events: [{type: StockQuote}, {}, {}, {}]}]}", "got       events[0] of type EarningsReport"),
        (
            "expect: {Rally: [{events: [{value: 1}, {}, {}, {}]}]}",
            "an event of type EarningsReport, which has no attribute 'value'",
        ),
        ("expect: {Rally: [{events: [{}]}]}", "expected  1 event"),
        ("expect: {Rally: [{emitted: {loss: 1}}]}", "got       emitted symbol, gain"),
        ("expect: {Rally: [{emitted: {gain: much}}]}", "expected  emitted gain = much"),
        ("error: D004", "expected error D004\n  got no error, and 1 relation"),
    ],
)
def test_expectations_that_fail(tmp_path: Path, expectation: str, message: str) -> None:
    code, output = check(tmp_path, expectation)
    assert code == 1
    assert message in output


BAD_EVENTS = "\n    events: [{type: StockQuote, symbol: ACME, value: high, at: 2026-01-31}]\n"


def test_an_expected_error_passes(tmp_path: Path) -> None:
    assert check(tmp_path, "error: D004", events=BAD_EVENTS)[0] == 0


def test_an_unexpected_error_is_shown(tmp_path: Path) -> None:
    code, output = check(tmp_path, "expect: []", events=BAD_EVENTS)
    assert code == 1
    assert "D004 record 0" in output


def test_a_date_is_its_midnight(tmp_path: Path) -> None:
    events = "\n    events: [{type: StockQuote, symbol: ACME, value: 1, at: 2026-01-31}]\n"
    assert check(tmp_path, "expect: []", events=events)[0] == 0


DATED = {
    "yaml": """tests:
- name: dated
  events:
  - {type: Bill, due: 2024-02-29, at: 2026-01-31, t: 2026-01-31}
  - {type: Bill, due: "2024-03-01", at: 2026-01-31T00:00:01Z, t: ~}
  - {type: Heartbeat, at: 2026-02-01}
  until: 2026-02-02
  expect:
  - subscription: S
    events: [{due: 2024-02-29, at: 2026-01-31}, {due: 2024-03-01}]
    emitted: {d: 2024-02-29, t: 2026-01-31, s: "2024-03-01"}
""",
    "toml": """[[tests]]
name = "dated"
until = 2026-02-02
events = [
  {type = "Bill", due = 2024-02-29, at = 2026-01-31, t = 2026-01-31},
  {type = "Bill", due = "2024-03-01", at = 2026-01-31T00:00:01Z, t = 2026-01-31},
  {type = "Heartbeat", at = 2026-02-01},
]
[[tests.expect]]
subscription = "S"
events = [{due = 2024-02-29, at = 2026-01-31}, {due = 2024-03-01}]
emitted = {d = 2024-02-29, t = 2026-01-31, s = "2024-03-01"}
""",
}


@pytest.mark.parametrize("form", DATED)
def test_a_date_is_a_day_where_a_date_is_declared(tmp_path: Path, form: str) -> None:
    (tmp_path / "bills.fl").write_text(
        "TYPE Bill (due DATE, t TIMESTAMP, at TIMESTAMP) TIME at\n"
        "SUBSCRIPTION S MATCH Bill b[2] WHERE b[1].due < b[2].due AFTER 1 DAY OF b[2]\n"
        "EMIT R(d = b[1].due, t = b[1].t, s = cast(b[2].due AS STRING))\n"
    )
    (tmp_path / f"bills.test.{form}").write_text(DATED[form])
    assert fairlead("test", tmp_path).stdout == "1 passed, 0 failed\n"
    (tmp_path / f"bills.test.{form}").write_text(
        DATED[form].replace("d: 2024-02-29", "d: 2024-02-28").replace("d = 2024-02-29", "d = 2024-02-28")
    )
    assert "got       emitted d = 2024-02-29" in fairlead("test", tmp_path).stdout


def test_rules_that_do_not_compile_fail_their_tests(tmp_path: Path) -> None:
    (tmp_path / "bad.fl").write_text("TYPE A (v INT)\nSUBSCRIPTION S MATCH B b\n")
    (tmp_path / "bad.test.yaml").write_text(
        "tests:\n- {name: one, events: [], expect: []}\n- {name: two, events: [], error: L010}\n"
    )
    result = fairlead("test", tmp_path)
    assert result.exit_code == 1
    assert f"L010 {tmp_path / 'bad.fl'}, line 2" in result.stdout
    assert result.stdout.endswith("1 passed, 1 failed\n")


def test_until_decides_absences(tmp_path: Path) -> None:
    (tmp_path / "late.fl").write_text(
        "TYPE O (at TIMESTAMP) TIME at\nTYPE S (at TIMESTAMP) TIME at\n"
        "SUBSCRIPTION Late MATCH O o WITHOUT S s WITHIN 1 MINUTE OF o\n"
    )
    (tmp_path / "late.test.yaml").write_text(
        "tests:\n"
        "- {name: open, events: [{type: O, at: 2026-01-31T10:00:00Z}], expect: {Late: 0}}\n"
        "- {name: decided, events: [{type: O, at: 2026-01-31T10:00:00Z}], until: 2026-01-31T10:01:00Z, expect: {Late: 1}}\n"
    )
    assert fairlead("test", tmp_path / "late.fl").stdout == "2 passed, 0 failed\n"


def test_toml_directories_and_the_filter(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "market.fl").write_text(MARKET)
    (tmp_path / "deep" / "er" / "other.test.toml").write_text(
        'rules = "../../market.fl"\n'
        '[[tests]]\nname = "Nothing yet"\nexpect = { Rally = 0 }\n'
        'events = [{ type = "EarningsReport", symbol = "ACME", at = 2026-01-31T10:00:00Z }]\n'
        '[[tests]]\nname = "wrong on purpose"\nexpect = { Rally = 1 }\nevents = []\n'
    )
    assert fairlead("test", tmp_path).stdout.endswith("1 passed, 1 failed\n")
    assert fairlead("test", tmp_path, "-k", "nothing").stdout == "1 passed, 0 failed\n"
    nothing = fairlead("test", tmp_path, "-k", "no such test")
    assert nothing.exit_code == 1
    assert "no test has" in nothing.stderr


def test_json(tmp_path: Path) -> None:
    code, output = check(tmp_path, "expect: {Rally: 2}", "--json")
    assert code == 1
    found = json.loads(output)
    assert (found["passed"], found["failed"]) == (0, 1)
    assert found["tests"][0]["name"] == "a rally"
    assert found["tests"][0]["differences"][0] == "Rally: expected 2 relations, got 1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("tests: [", "not valid YAML"),
        ("- 1", "expected a map with"),
        ("tests: []", "`tests` is not a list of tests"),
        ("test: []", "the key 'test' is not allowed here"),
        ("rules: x.fl", "the key 'tests' is missing"),
        ("tests: [{name: a}]", "the key 'events' is missing"),
        ("tests: [{events: [], expect: [], error: D1}]", "a test needs either `expect` or `error`"),
        ("tests: [{events: []}]", "a test needs either `expect` or `error`"),
        ("tests: [{events: {}, expect: []}]", "`events` is not a list"),
        ("tests: [{events: [], expect: 3}]", "`expect` is neither a list nor a map"),
        ("tests: [{events: [], expect: [{positions: [1]}]}]", "the key 'subscription' is missing"),
        ("tests: [{events: [], expect: {S: [{position: [1]}]}}]", "the key 'position' is not allowed here"),
        ("tests: [{events: [], expect: {S: yes}}]", "neither a number nor a list"),
        ("tests: [{events: [], expect: {S: [{positions: 3}]}}]", "`positions` is not a list"),
        ("tests: [{events: [], expect: {S: [{emitted: 3}]}}]", "`emitted` is not a map"),
        ("tests: [{events: [], expect: {S: [{events: [3]}]}}]", "`events` is not a list of maps"),
    ],
)
def test_a_test_file_that_is_wrong_says_where_and_what(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "market.fl").write_text(MARKET)
    path = tmp_path / "market.test.yaml"
    path.write_text(content)
    result = fairlead("test", path)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"A202 {path}")
    assert message in result.stderr


def test_paths_without_tests(tmp_path: Path) -> None:
    (tmp_path / "market.fl").write_text(MARKET)
    for path in (tmp_path, tmp_path / "market.fl"):
        result = fairlead("test", path)
        assert result.exit_code == 2
        assert "A201" in result.stderr
    missing = fairlead("test", tmp_path / "none.test.yaml")
    assert missing.exit_code == 1
    assert "D013" in missing.stderr


@pytest.mark.parametrize(
    ("ending", "content", "problem"),
    [
        (
            "yaml",
            "tests:\n  - events: [{type: A, at: 2026-02-30}]\n    expect: []\n",
            "line 2, column 28: not valid YAML: '2026-02-30'",
        ),
        ("yaml", "tests: " + "[" * 900 + "]" * 900, "not valid YAML: nested deeper"),
        ("toml", "tests = " + "[" * 5_000, "not valid TOML: nested deeper"),
        ("toml", "[[tests]]\nevents = [{at = 2026-02-30}]\n", "not valid TOML: "),
        ("yaml", f"tests: [{{events: [{{v: {'9' * 5_000}}}], expect: []}}]", "a number has more than 4,300 digits"),
    ],
    ids=["date", "deep YAML", "deep TOML", "date in TOML", "digits"],
)
def test_files_that_no_parser_reads(tmp_path: Path, ending: str, content: str, problem: str) -> None:
    (tmp_path / "a.fl").write_text("TYPE A (v INT, at TIMESTAMP) TIME at\n")
    path = tmp_path / f"a.test.{ending}"
    path.write_text(content)
    result = fairlead("test", path)
    assert (result.exit_code, result.stderr[: len(f"A202 {path}")]) == (2, f"A202 {path}")
    assert problem in result.stderr
    assert len(result.stderr) < 1_000


def test_a_test_file_without_end(tmp_path: Path) -> None:
    (tmp_path / "a.test.yaml").symlink_to("/dev/zero")
    result = fairlead("test", tmp_path / "a.test.yaml")
    assert (result.exit_code, result.stderr[:4]) == (1, "D013")
