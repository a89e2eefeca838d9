"""What strangers wrote is shown, not obeyed: no control character of a rule, an event or a name reaches the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.errors import UNSAFE, DataError, Place, printable
from tests.cli.shop import fairlead, write_lines

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202eevil\r\x00\x7f\u2028\u2066x"
NAME = EVIL.replace("\x00", "")
TYPES = "TYPE A (x INT, s STRING)\nTYPE B (x INT, s STRING)\n"
RULES = f"""{TYPES}
SUBSCRIPTION S MATCH A a AND B b WHERE a.s = b.s EMIT D(s = a.s, c = '{EVIL}')
SUBSCRIPTION Q MATCH A a THEN B b WHERE a.s != b.s AND a.s NOT IN ('{EVIL}', NULL)
"""
GOOD = [{"type": "A", "x": 1, "s": EVIL}, {"type": "B", "x": 1, "s": EVIL}, {"type": "A", "x": 1, "s": EVIL}]
BAD = (
    json.dumps({"type": EVIL, "x": 1, "s": ""}),
    json.dumps({"type": "A", "x": 1, "s": "", EVIL: 1}),
    json.dumps({"type": "A", "x": EVIL, "s": ""}),
    '{"type": "A", ' + NAME.replace("\r", ""),
    json.dumps({"type": "A", "x": 1, "s": [EVIL]}),
    f'{{"type": "A", "{NAME}": 1, "{NAME}": 2}}',
)


def clean(*arguments: str | Path) -> None:
    result = fairlead(*arguments)
    assert result.exit_code in (0, 1, 2), result.output
    found = UNSAFE.search(result.output.replace("\r\n", "\n"))
    assert found is None, repr(result.output[max(0, found.start() - 60) : found.end() + 20])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("r.fl").write_bytes(RULES.encode())
    Path("r.test.yaml").write_text(json.dumps({"tests": [{"name": EVIL, "events": GOOD, "expect": {"S": 7, "Q": 0}}]}))
    for number, events in enumerate((GOOD, [{**each, "s": "other\x9b"} for each in GOOD])):
        write_lines(Path(f"e{number}.jsonl"), events)
        fairlead("run", "r.fl", "--events", f"e{number}.jsonl", "--out", f"o{number}.jsonl", "-q")
    return tmp_path


COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", "r.fl", "--events", "e0.jsonl"),
    "run json": ("run", "r.fl", "--events", "e0.jsonl", "--json"),
    "why": ("why", "r.fl", "--events", "e0.jsonl", "--at", "1"),
    "why json": ("why", "r.fl", "--events", "e0.jsonl", "--at", "1", "--json"),
    "explain": ("explain", "r.fl", "--counterexample"),
    "explain json": ("explain", "r.fl", "--json"),
    "kernel": ("explain", "r.fl", "--kernel"),
    "lint": ("lint", "r.fl"),
    "lint json": ("lint", "r.fl", "--json"),
    "test": ("test", "r.fl"),
    "test json": ("test", "r.fl", "--json"),
    "compare": ("compare", "o0.jsonl", "o1.jsonl"),
    "compare json": ("compare", "o0.jsonl", "o1.jsonl", "--json"),
    "no rules": ("run", NAME, "--events", "e0.jsonl"),
    "no events": ("run", "r.fl", "--events", NAME),
    "no folder": ("run", "r.fl", "--events", "e0.jsonl", "--out", f"none/{NAME}.jsonl"),
    "no subscription": ("run", "r.fl", "--events", "e0.jsonl", "-s", NAME),
    "no position": ("run", "r.fl", "--events", "e0.jsonl", "--position", NAME),
    "nothing to compare": ("compare", NAME, NAME),
    "nothing to lint": ("lint", NAME),
    "nothing to test": ("test", NAME),
    "no code": ("error", NAME),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_control_characters(command: str, folder: Path) -> None:
    clean(*COMMANDS[command])


@pytest.mark.parametrize("number", range(len(BAD)))
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_nor_does_an_error_about_a_record(number: int, ending: str, folder: Path) -> None:
    line = BAD[number] if ending == "jsonl" else 'type,x,s,"' + BAD[number].replace('"', '""') + '"'
    (folder / f"bad.{ending}").write_bytes(line.encode() + b"\n")
    clean("run", "r.fl", "--events", f"bad.{ending}")
    clean("run", "r.fl", "--events", f"bad.{ending}", "--on-bad", "skip")


WRONG: dict[str, Callable[[str], str]] = {
    "a text before it": lambda evil: f"SUBSCRIPTION S MATCH A a WHERE a.s = '{evil}' AND a.y = 3",
    "a name": lambda evil: f"SUBSCRIPTION S{evil} MATCH A a",
    "a quote": lambda evil: f'SUBSCRIPTION S MATCH A a WHERE a.s = "{evil}"',
    "a pattern": lambda evil: f"SUBSCRIPTION S MATCH A a WHERE a.s LIKE '{evil}\\'",
    "a time": lambda evil: f"SUBSCRIPTION S MATCH A a WHERE TIMESTAMP '{evil}' = a.s",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_nor_does_an_error_in_rules(wrong: str, folder: Path) -> None:
    (folder / "w.fl").write_bytes((TYPES + WRONG[wrong](EVIL.replace("\r", ""))).encode())
    clean("lint", "w.fl")
    clean("run", "w.fl", "--events", "e0.jsonl")


def test_the_caret_stays_below_its_place() -> None:
    line = "a.s = '\x1b\x1b' AND usr"
    error = str(DataError("D011", "wrong", None, Place(1, line.index("usr") + 1, 3), line))
    shown, carets = error.splitlines()[1:]
    assert shown[carets.index("^") :] == "usr"
    assert printable("\x1b[0m \u202e\n\t\u00e9") == "\\x1b[0m \\u202e\n\t\u00e9"
