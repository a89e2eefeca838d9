"""The protocol of docs/simulator.md works, and without one of its tests it does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.testing.simulator.protocol import SimulatedProtocol
from fairlead.testing.simulator.shrinking import shrunk
from tests.root import ROOT

PAGE = (ROOT / "docs" / "simulator.md").read_text("utf-8")
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ASKED = """(*state["queue"], body)}
                return state, """
RUNS = 1500


def made_of(text: str) -> SimulatedProtocol:
    names: dict[str, type[SimulatedProtocol]] = {}
    exec(text, names)
    return names["StopAndWait"]()


def test_the_protocol_of_the_page_holds() -> None:
    protocol = made_of(EXAMPLE)
    assert [seed for seed in range(RUNS) if protocol.run(protocol.case(seed)).problems] == []


@pytest.mark.parametrize(
    ("left_out", "instead", "problem"),
    [
        ('number < state["expected"]', "False", "delivered"),
        ('SetAlarm("again", 0.1)', "", "waits for a confirmation"),
        (f"{ASKED}[StoreState(), *self.first_of(state)]", f"{ASKED}self.first_of(state)", "delivered"),
        ("[Deliver(body), StoreState(), confirm]", "[Deliver(body), confirm]", "delivered"),
    ],
    ids=["repeats", "alarm", "store of requests", "store of deliveries"],
)
def test_without_one_of_its_parts_it_fails_in_a_few_steps(left_out: str, instead: str, problem: str) -> None:
    assert left_out in EXAMPLE
    protocol = made_of(EXAMPLE.replace(left_out, instead).replace(", ]", "]"))
    seed = next(seed for seed in range(RUNS) if protocol.run(protocol.case(seed)).problems)
    case, outcome = shrunk(protocol, protocol.case(seed))
    assert len(case.requests) <= 2
    assert len(case.faults) <= 1
    assert problem in outcome.problems[0]
    assert protocol.run(case) == outcome


def test_the_command_runs_it_and_repeats_a_failing_seed(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(EXAMPLE.replace('number < state["expected"]', "False"), "utf-8")
    (tmp_path / "stop_and_wait.py").write_text(EXAMPLE, "utf-8")

    def command(*given: str) -> subprocess.CompletedProcess[str]:
        called = [sys.executable, "-m", "fairlead.testing.simulator", *given]
        return subprocess.run(called, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    fine = command("stop_and_wait:StopAndWait", "--runs", "200", "--jobs", "2")
    assert fine.returncode == 0, fine.stderr
    assert "200 runs" in fine.stdout
    assert "0 failed" in fine.stdout
    failed = command("broken:StopAndWait", "--runs", "200")
    assert failed.returncode == 1
    assert "PROBLEM: p0 was asked to send" in failed.stdout
    again = re.search(r"--replay (\d+)", failed.stdout)
    assert again is not None
    repeated = command("broken:StopAndWait", "--replay", again[1])
    assert repeated.returncode == 1
    assert "PROBLEM" in repeated.stdout
    assert "A014" in command("nothing").stderr
