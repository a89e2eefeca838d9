"""The command as a process: pipes that break, interrupts, terminals. No half-written file is left behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.shop import command, write_lines
from tests.waiting import wait_until

EACH = "TYPE A (v INT)\nSUBSCRIPTION Each MATCH A a\n"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Enough events that a run takes a second or two."""
    (tmp_path / "each.fl").write_text(EACH)
    return write_lines(tmp_path / "many.jsonl", ['{"type": "A", "v": 1}'] * 150_000)


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path, many: Path) -> None:
    arguments = command(
        "run", tmp_path / "each.fl", "--events", many, "--on-bad", "skip", "--rejects", tmp_path / "r.jsonl", "--out", "-"
    )
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["positions"] == [0]
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == ""
    assert not (tmp_path / "r.jsonl").exists()


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["explain", "lint", "why", "run"])
def test_a_reader_that_is_gone_ends_every_command_alike(tmp_path: Path, name: str) -> None:
    rules, events = tmp_path / "each.fl", write_lines(tmp_path / "few.jsonl", ['{"type": "A", "v": 1}'])
    rules.write_text(EACH)
    given = {"why": ["--events", events, "--at", "0"], "run": ["--events", events]}.get(name, [])
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as gone:
        result = subprocess.run(command(name, rules, *given), stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.sampled
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_an_interrupted_run_leaves_no_file(tmp_path: Path, many: Path, number: signal.Signals, code: int, ending: str) -> None:
    out, receipt = tmp_path / f"out.{ending}", tmp_path / "receipt.json"
    arguments = command("run", tmp_path / "each.fl", "--events", many, "--out", out, "--receipt", receipt)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        part = tmp_path / f".out.{ending}.{process.pid}.part"
        wait_until(lambda: part.exists() or process.poll() is not None)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert sorted(each.name for each in tmp_path.iterdir()) == ["each.fl", "many.jsonl"]


def test_on_a_terminal_a_bar_with_the_rate_goes_to_the_standard_error(tmp_path: Path, many: Path) -> None:
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": "120", "TERM": "xterm"}
    arguments = command("run", tmp_path / "each.fl", "--events", many, "--json")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=follower, env=environment) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                shown += os.read(leader, 65536)
            except OSError:  # the process has closed its end
                break
        assert process.stdout is not None
        summary = json.loads(process.stdout.read())
    os.close(leader)
    assert summary["events"] == 150_000
    text = shown.decode()
    assert "matching" in text
    assert "events" in text
    assert "/s" in text


def test_errors_are_coloured_on_a_terminal_only(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    arguments = command("run", tmp_path / "none.fl", "--events", tmp_path / "none.jsonl")
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    subprocess.run(arguments, stderr=follower, env=environment, timeout=60)
    os.close(follower)
    assert b"\x1b[31m\x1b[1mD013\x1b[0m" in os.read(leader, 65536)
    os.close(leader)
