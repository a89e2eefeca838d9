"""Standard streams that are full or closed, and a working directory that is gone: an error with a code, never a trace."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.shop import MARKET, RALLY, command, write_lines

pytestmark = pytest.mark.slow  # each starts a process
COMMANDS = {
    "run": "run market.fl --events events.jsonl",
    "run --json": "run market.fl --events events.jsonl --json",
    "run --out -": "run market.fl --events events.jsonl --out -",
    "run --rejects -": "run market.fl --events bad.jsonl --on-bad skip --rejects -",
    "explain": "explain market.fl",
    "lint": "lint market.fl",
    "why": "why market.fl --events events.jsonl --at 0",
    "test": "test market.fl",
    "compare": "compare events.jsonl.out events.jsonl.out",
    "version": "--version",
    "help": "run --help",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "market.fl").write_text(MARKET)
    (tmp_path / "market.test.yaml").write_text("tests:\n  - {name: none, events: [], expect: []}\n")
    write_lines(tmp_path / "events.jsonl", RALLY)
    write_lines(tmp_path / "bad.jsonl", ["{"])
    (tmp_path / "events.jsonl.out").touch()
    return tmp_path


def in_shell(folder: Path, arguments: str, more: str, before: str = "") -> subprocess.CompletedProcess[str]:
    line = f"{before} {shlex.join(command())} {arguments} {more}"
    return subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("more", ["> /dev/full", ">&-"], ids=["full", "closed"])
@pytest.mark.parametrize("which", COMMANDS)
def test_an_output_that_cannot_be_written_has_a_code(folder: Path, which: str, more: str) -> None:
    result = in_shell(folder, COMMANDS[which], more)
    assert result.returncode == 1
    assert result.stderr.startswith("D018 standard output: the standard output is not writable: ")
    assert len(result.stderr.splitlines()) == 2, result.stderr


def test_also_where_nothing_is_buffered(folder: Path) -> None:
    result = in_shell(folder, "explain market.fl", "> /dev/full", before="PYTHONUNBUFFERED=1")
    assert (result.returncode, result.stderr[:4], "Traceback" in result.stderr) == (1, "D018", False)


def test_a_run_whose_files_are_written_says_so(folder: Path) -> None:
    arguments = "run market.fl --events events.jsonl --state state --out out.jsonl --json"
    result = in_shell(folder, arguments, "> /dev/full")
    assert (result.returncode, result.stderr[:4]) == (1, "D018")
    assert "all files are written" in result.stderr
    assert len((folder / "out.jsonl").read_text().splitlines()) == 1


def test_a_closed_output_does_not_matter_where_nothing_is_printed(folder: Path) -> None:
    """And what is opened first is not printed into."""
    result = in_shell(folder, "run market.fl --events events.jsonl --out out.jsonl --quiet", ">&- 2>&- <&-")
    assert result.returncode == 0
    assert json.loads((folder / "out.jsonl").read_text())["positions"] == [0, 1, 3, 4]


def test_errors_where_nobody_hears_them_keep_their_exit_code(folder: Path) -> None:
    assert in_shell(folder, "run none.fl --events events.jsonl", "2>&-").returncode == 1


def test_rules_of_a_closed_input(folder: Path) -> None:
    result = in_shell(folder, "explain -", "<&-")
    assert (result.returncode, result.stderr[:4], "Traceback" in result.stderr) == (1, "D013", False)


@pytest.mark.parametrize("which", COMMANDS)
def test_a_working_directory_that_is_gone(folder: Path, which: str) -> None:
    before = "mkdir gone; cd gone; rmdir ../gone;"
    arguments = COMMANDS[which].replace("market.fl", f"{folder}/market.fl").replace("events.jsonl", f"{folder}/events.jsonl")
    result = in_shell(folder, arguments.replace("bad.jsonl", f"{folder}/bad.jsonl") + " ", "", before=before)
    assert "Traceback" not in result.stderr
    assert result.returncode == 0 or result.stderr[:4] in ("A294", "D013", "D018")


def test_a_relative_name_without_a_working_directory(folder: Path) -> None:
    arguments = f"run {folder}/market.fl --events {folder}/events.jsonl --out out.jsonl"
    result = in_shell(folder, arguments, "", before="mkdir gone; cd gone; rmdir ../gone;")
    assert (result.returncode, result.stderr[:4]) == (2, "A294")
