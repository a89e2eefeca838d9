"""Fairlead's live part, simulated: all runs hold, one seed fixes a run, and errors put in on purpose are found and shrunk.

FAIRLEAD_SIMULATED_RUNS=100000 runs more.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from fairlead.testing.simulator.live.simulation import LiveSimulation
from fairlead.testing.simulator.runs import failures_in
from fairlead.testing.simulator.shrinking import shrunk
from tests.marks import sample_size
from tests.testing.simulator.mutations import applied, found_after

RUNS = int(os.environ.get("FAIRLEAD_SIMULATED_RUNS", sample_size(150)))
QUICKLY_FOUND = (
    "acknowledgement not written",
    "acknowledgement off by one",
    "block dropped when readers share",
    "confirmed before it is stored",
    "delivered before derived",
    "derived before it is final",
    "derived twice",
    "numbers begin anew",
    "one order lost",
    "retraction dropped",
    "sent again without a look",
    "silence forgotten",
    "snapshot ahead of the acknowledgement",
)
"""Mutations that a few runs find; the others take more (mutations.py)."""


def test_all_runs_hold() -> None:
    assert failures_in("live", range(RUNS)) == []


@pytest.mark.sampled
@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_an_error_in_the_runtime_is_found(name: str) -> None:
    assert found_after(name, runs=60) is not None


def test_a_failing_run_is_shrunk_to_a_few_steps() -> None:
    simulation = LiveSimulation()
    with applied("confirmed before it is stored"):
        seed = next(seed for seed in range(50) if simulation.run(simulation.case(seed)).problems)
        case, outcome = shrunk(simulation, simulation.case(seed), tries=60)
        assert outcome.problems
        assert simulation.run(case) == outcome
    assert simulation.size(case) < simulation.size(simulation.case(seed)) / 2
    assert len(outcome.lines) < 15
    assert simulation.run(case).problems == ()


def digest(seeds: range) -> str:
    simulation = LiveSimulation()
    lines = [line for seed in seeds for line in simulation.run(simulation.case(seed)).lines]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_a_run_is_a_function_of_its_seed_in_every_process() -> None:
    code = "from tests.testing.simulator.test_live import digest; print(digest(range(3, 9)))"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert told.stdout.strip() == digest(range(3, 9))
