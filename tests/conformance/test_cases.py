"""The case files themselves: read strictly, enough of them, and a report that a reader can use."""

from itertools import product
from pathlib import Path

import pytest

from fairlead.errors import UsageError
from fairlead.model.plans.options import PAPER_DISPOSALS, PAPER_MATCHINGS
from fairlead.testing.conformance import (
    Case,
    CaseOutcome,
    ConformanceSuite,
    ExpectedDelivery,
    conforms,
    load_cases,
    moment,
    report,
    same_value,
)
from tests.conformance.cases import CASES

HEAD = "topic: t\ncases:\n  - name: n\n    source: s\n"


def test_there_are_at_least_180_cases_and_their_names_are_unique() -> None:
    assert len(CASES) >= 180
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_combination_of_the_papers_stands_in_at_least_two_cases() -> None:
    for matching, disposal in product(PAPER_MATCHINGS, PAPER_DISPOSALS):
        clause = f"MATCHING {matching.words} DISPOSAL {disposal.words}\n"
        assert sum(clause in case.rules for case in CASES) >= 2, clause


def test_every_theorem_has_a_case() -> None:
    for number in range(1, 11):
        assert any(case.source.startswith(f"dissertation theorem {number}") for case in CASES) or any(
            f"theorem {number}," in case.name for case in CASES
        ), number


def written(folder: Path, text: str) -> Path:
    (folder / "one.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEAD + "    rules: ''\n    events: []\n    expect: []\n    expected: []\n", "unknown key 'expected'"),
        (HEAD + "    rules: ''\n    events: []\n    expect: []\n    expect: []\n", "'expect' stands twice"),
        (HEAD + "    rules: ''\n    events: []\n", "either expect or error"),
        (HEAD + "    rules: ''\n    expect: []\n", "either events or a stream"),
        (HEAD + "    rules: ''\n    stream: lost\n    expect: []\n", "no stream 'lost'"),
        (HEAD + "    events: []\n    expect: []\n", "'rules' is missing"),
        (HEAD + "    rules: ''\n    events: []\n    expect: [{subscription: S}]\n", "'positions' is missing"),
        ("cases: [", "not valid YAML"),
        ("[]", "expected a mapping"),
    ],
)
def test_a_file_that_is_not_in_order_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        load_cases(written(tmp_path, text))


def test_the_same_name_in_two_files_is_refused(tmp_path: Path) -> None:
    text = HEAD + "    rules: ''\n    events: []\n    expect: []\n"
    written(tmp_path, text)
    (tmp_path / "two.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="two cases are named 'n'"):
        load_cases(tmp_path)


def test_scalars_are_those_of_json_plus_nan(tmp_path: Path) -> None:
    text = HEAD + "    rules: ''\n    expect: []\n    events: [{a: on, b: 1:30, c: 2026-01-01, d: 7-1, e: ~, f: 1.5, g: 007}]\n"
    (case,) = load_cases(written(tmp_path, text))
    assert case.events == ({"a": "on", "b": "1:30", "c": "2026-01-01", "d": "7-1", "e": None, "f": 1.5, "g": "007"},)


@pytest.mark.parametrize(
    ("wanted", "got", "same"),
    [
        (3, 3, True),
        (3, 3.0, False),
        (True, 1, False),
        (None, None, True),
        (None, 0, False),
        (float("nan"), float("nan"), True),
        (float("nan"), None, False),
        ("2026-01-01T01:00:00+01:00", moment("2026-01-01T00:00:00"), True),
        ("1.5", 1.5, False),
        ("AAE=", b"\0\1", True),
    ],
)
def test_values_are_the_same_in_value_and_kind(wanted: object, got: object, same: bool) -> None:
    assert same_value(wanted, got) is same


def relation(*positions: int) -> dict[str, object]:
    return {"subscription": "S", "positions": positions, "emitted": {}, "completed_at": positions[-1], "branch": 0}


def test_relations_are_compared_in_order_and_none_may_be_missing_or_too_many() -> None:
    case = Case("n", "s", "", (), expect=(ExpectedDelivery("S", (0, 1)), ExpectedDelivery("S", (2, 3))))
    assert conforms(case, CaseOutcome([relation(0, 1), relation(2, 3)]))
    assert not conforms(case, CaseOutcome([relation(2, 3), relation(0, 1)]))
    assert not conforms(case, CaseOutcome([relation(0, 1)]))
    assert not conforms(case, CaseOutcome([relation(0, 1), relation(2, 3), relation(4, 5)]))


def test_the_report_shows_expected_and_got_side_by_side() -> None:
    case = Case(
        "a name", "here", "MATCH A", ({"type": "A", "v": 1},), expect=(ExpectedDelivery("S", (0,)),), why="so", file="f.yaml"
    )
    shown = report(case, CaseOutcome([relation(0), relation(1)]))
    assert "a name (f.yaml, from here)" in shown
    assert "0  {type: 'A', v: 1}" in shown
    assert "  S [0]    | S [0]\n" in shown
    assert "  –        | S [1] branch=0 completed_at=1 emitted={}  <<<" in shown


def test_a_case_that_wants_an_error_fails_without_one() -> None:
    class Silent(ConformanceSuite):
        def run(self, *_: object) -> CaseOutcome:
            return CaseOutcome()

    with pytest.raises(AssertionError, match=r"expected: error D003\ngot: +no error"):
        Silent().check(Case("n", "s", "", (), error="D003"))
