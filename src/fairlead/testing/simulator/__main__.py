"""Simulates a protocol with many seeds, or one seed again: python -m fairlead.testing.simulator PROTOCOL [--runs 1000]
[--seed 1] [--jobs 1] [--replay SEED] [--all]

Prints progress, and the first failing run, shrunk to a few steps, one line a step.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from fairlead.errors import FairleadError
from fairlead.testing.simulator.outcome import Outcome, Simulation
from fairlead.testing.simulator.runs import Failure, RunProgress, many, simulation_of
from fairlead.testing.simulator.shrinking import shrunk


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fairlead.testing.simulator", description="Many runs with random failures.")
    parser.add_argument("protocol", help="live, or module:NAME")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run this seed only, and print all its steps")
    parser.add_argument("--all", action="store_true", help="do not stop at the first failure")
    asked = parser.parse_args(given)
    try:
        simulation = simulation_of(asked.protocol)
    except FairleadError as error:
        print(error, file=sys.stderr)
        return 2
    if asked.replay is not None:
        return _replayed(simulation, asked.replay)
    last = RunProgress(0, (), 0.0)
    for last in many(
        asked.protocol, asked.seed, asked.runs, asked.jobs, stop=lambda told: bool(told.failures) and not asked.all
    ):
        print(_progress(last, asked.runs), end="\r", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(_summary(asked.protocol, last))
    if not last.failures:
        return 0
    first, *others = sorted(last.failures, key=lambda each: each.seed)
    _explain(simulation, asked.protocol, first)
    for each in others:
        print(f"seed {each.seed}: {each.problems[0]}")
    return 1


def _progress(told: RunProgress, runs: int) -> str:
    return f"{told.runs:,} of {runs:,} runs, {len(told.failures)} failed, {told.seconds:.0f} s  "


def _summary(protocol: str, told: RunProgress) -> str:
    each = 1000 * told.seconds / max(1, told.runs)
    return f"{protocol}: {told.runs:,} runs in {told.seconds:.1f} s ({each:.1f} ms a run), {len(told.failures)} failed"


def _replayed(simulation: Simulation[Any], seed: int) -> int:
    case = simulation.case(seed)
    print(case)
    return _printed(simulation.run(case))


def _printed(outcome: Outcome) -> int:
    for line in outcome.lines:
        print(line)
    for problem in outcome.problems:
        print(f"PROBLEM: {problem}")
    return 1 if outcome.problems else 0


def _explain(simulation: Simulation[Any], protocol: str, failure: Failure) -> None:
    print(f"seed {failure.seed}: {failure.problems[0]}")
    print(f"again, all of it: python -m fairlead.testing.simulator {protocol} --replay {failure.seed}")
    case, outcome = shrunk(simulation, simulation.case(failure.seed))
    print(f"shrunk:\n{case}")
    _printed(outcome)


if __name__ == "__main__":
    sys.exit(main())
