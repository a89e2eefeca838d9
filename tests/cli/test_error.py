"""`fairlead error`: one code, several, all."""

from __future__ import annotations

import json

import pytest

from fairlead.error_codes import CODES
from tests.cli.shop import fairlead


def test_one_code_is_shown_with_its_fix() -> None:
    result = fairlead("error", "d005")
    meaning, remedy = CODES["D005"]
    assert (result.exit_code, result.stdout) == (0, f"D005 {meaning}\n  fix: {remedy}\n")


def test_codes_are_shown_as_asked_for_and_all_without_any() -> None:
    assert [each[:4] for each in fairlead("error", "S110", "A001").stdout.splitlines()[::2]] == ["S110", "A001"]
    assert [each[:4] for each in fairlead("error").stdout.splitlines()[::2]] == list(CODES)


def test_json_has_the_entry_or_all() -> None:
    one = json.loads(fairlead("error", "N001", "--json").stdout)
    assert one == {"code": "N001", "class": "LogError", "meaning": CODES["N001"][0], "remedy": CODES["N001"][1]}
    assert [each["code"] for each in json.loads(fairlead("error", "--json").stdout)] == list(CODES)


@pytest.mark.parametrize(
    ("given", "fix"), [("D999", "codes from D001 to D043"), ("7", "lists all codes"), ("", "lists all codes")]
)
def test_a_code_that_does_not_exist_is_refused(given: str, fix: str) -> None:
    result = fairlead("error", given)
    assert (result.exit_code, result.stderr[:4]) == (2, "A297")
    assert fix in result.stderr
