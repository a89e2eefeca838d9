"""The benchmarks still run: a query on few events, in a process of its own as they are run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.root import ROOT


@pytest.mark.slow
def test_one_query_is_measured_and_all_sides_agree() -> None:
    pytest.importorskip("numba")
    arguments = ["Q1", "--events", "5000", "--repeat", "1", "--python-seconds", "0.1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.one_query", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "failed" not in told
    assert told["matcher"]


@pytest.mark.slow
def test_two_trees_are_compared_side_by_side() -> None:
    arguments = [str(ROOT), "--queries", "Q1", "--events", "2000", "--rounds", "1", "--repeat", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.side_by_side", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = [line.split("|")[1:3] for line in done.stdout.splitlines() if line.startswith("| Q1")]
    assert told == [[" Q1 ", " matcher alone "], [" Q1 ", " match "]]
