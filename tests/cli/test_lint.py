"""`fairlead lint`: warnings and errors of several files, and what they make of the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shop import MARKET, fairlead

JOINED = """\
TYPE A (k INT)
TYPE B (k INT)
SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k
"""


@pytest.fixture
def joined(tmp_path: Path) -> Path:
    path = tmp_path / "joined.fl"
    path.write_text(JOINED)
    return path


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    path = tmp_path / "clean.fl"
    path.write_text(MARKET)
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.fl"
    path.write_text("TYPE A (k INTEGERS)\n")
    return path


def test_clean_rules(clean: Path) -> None:
    result = fairlead("lint", clean, "--strict")
    assert (result.exit_code, result.stdout) == (0, "1 file: 0 errors, 0 warnings\n")


def test_a_warning_has_code_place_and_fix_and_does_not_fail(joined: Path) -> None:
    result = fairlead("lint", joined)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"W001 {joined}, line 3")
    assert "fix: " in result.stdout
    assert result.stdout.endswith("1 file: 0 errors, 1 warning\n")


def test_strict_fails_on_a_warning(joined: Path) -> None:
    assert fairlead("lint", joined, "--strict").exit_code == 1


def test_an_error_in_one_file_does_not_hide_the_others(clean: Path, broken: Path, joined: Path) -> None:
    result = fairlead("lint", clean, broken, joined)
    assert result.exit_code == 1
    assert f"{broken}, line 1" in result.stdout
    assert f"W001 {joined}, line 3" in result.stdout
    assert result.stdout.endswith("3 files: 1 error, 1 warning\n")


def test_json_lists_every_finding(clean: Path, broken: Path, joined: Path) -> None:
    result = fairlead("lint", clean, broken, joined, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [(each["file"], each["severity"], each["line"]) for each in found] == [
        (str(broken), "error", 1),
        (str(joined), "warning", 3),
    ]
    assert all(each["code"] and each["problem"] and each["fix"] for each in found)


def test_a_missing_file_is_an_error_among_others(clean: Path, tmp_path: Path) -> None:
    result = fairlead("lint", tmp_path / "none.fl", clean)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"D013 {tmp_path / 'none.fl'}")
    assert result.stdout.endswith("2 files: 1 error, 0 warnings\n")
