"""A few cases of every target, and all seeds that ever found something. `make fuzz MINUTES=...` runs more.

Cases run in processes of their own (runner.py): one that crashes or hangs fails its test, and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import runner
from tests.fuzz.shrinking import fewer, shrunk

SEED = 1
CASES = {"texts": 25, "states": 40, "plans": 50, "requests": 6, "blocks": 30, "entries": 60}
"""Of each target, about ten seconds; 30 of those that are not named."""
KEPT = runner.corpus()


@pytest.mark.slow
@pytest.mark.parametrize("target", runner.targets())
def test_a_few_cases_find_nothing_new(target: str) -> None:
    report = runner.run([target], 4.0, SEED, print, CASES.get(target, 30), slice_seconds=240)
    assert report.cases[target] > 0
    known = {(each.target, each.seed) for each in KEPT if each.open}
    assert [each for each in report.findings if (each.target, each.seed) not in known] == []


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted({each.target for each in KEPT}) or [None])
def test_what_was_found_once_is_not_found_again(target: str | None) -> None:
    found = []
    for kept in (each for each in KEPT if each.target == target and not each.open):
        found += runner.run([kept.target], 4.0, kept.seed, print, 1).findings
    assert found == []


# --- the runner itself

FAILING = """
import os, sys, time
seen = {}
def case(seed):
    if seed == 2: raise ValueError("wrong")
    if seed == 3: os.kill(os.getpid(), 11)
    if seed == 4:
        while True: pass
    if seed == 5: bytearray(50_000_000_000)
"""


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A target that raises, crashes, hangs and takes too much."""
    path = Path(__file__).parent / "_failing.py"
    path.write_text(FAILING, encoding="utf-8")
    monkeypatch.setenv("FAIRLEAD_FUZZ_SECONDS", "0.5")
    yield "_failing"
    path.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_a_case_that_raises_crashes_hangs_or_takes_too_much_is_a_finding_and_the_others_go_on(failing: str) -> None:
    said: list[str] = []
    report = runner.run([failing], 4.0, 1, said.append, 6, slice_seconds=240)
    assert report.cases[failing] == 6
    assert {each.seed: each.problem.split(":")[0] for each in report.findings} == {
        2: "ValueError", 3: "crash", 4: "hang", 5: "MemoryError",
    }  # fmt: skip
    assert "python -m tests.fuzz --case _failing 3" in "\n".join(said)
    assert [each["seed"] for each in report.as_json()["findings"]] == [2, 3, 4, 5]


def test_findings_are_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("# a comment\nplans 7 fixed\n", encoding="utf-8")
    found = [runner.Finding("plans", 7, "again"), runner.Finding("texts", 8, "Different: a\nb")]
    runner.keep(found, path)
    runner.keep(found, path)
    assert [(str(each), each.open) for each in runner.corpus(path)] == [("plans 7", False), ("texts 8", True)]


def test_a_finding_shrinks_to_what_it_needs() -> None:
    def smaller(items: tuple[int, ...]) -> Any:
        return fewer(items)

    assert shrunk(tuple(range(100)), smaller, lambda items: {17, 60} <= set(items)) == (17, 60)


def test_targets_are_the_modules_with_a_case() -> None:
    assert {"texts", "states", "plans"} <= set(runner.targets())
    assert "child" not in runner.targets()
