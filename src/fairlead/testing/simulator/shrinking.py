"""From a case that fails to a small one: the first simpler case that still fails, again and again.

A simpler case is another run, in which a failure may meet another moment. So each is tried with a few seeds as well.

Takes: a simulation, a case that fails. Gives: a case that fails. Never: runs more than it may.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairlead.testing.simulator.outcome import Case, Outcome, Simulation

TRIES_MAX = 400
SEEDS = 2


def shrunk(simulation: Simulation[Case], case: Case, tries: int = TRIES_MAX) -> tuple[Case, Outcome]:
    """The outcome is that of the returned case."""
    outcome, found = simulation.run(case), True
    while found and tries > 0:
        found = False
        for smaller in simulation.smaller(case):
            if simulation.size(smaller) >= simulation.size(case):
                continue
            for variant in _variants(smaller):
                tries -= 1
                judged = simulation.run(variant)
                if judged.problems:
                    case, outcome, found = variant, judged, True
                    break
                if tries <= 0:
                    break
            if found or tries <= 0:
                break
    return case, outcome


def _variants(case: Any) -> list[Any]:
    return [case, *(replace(case, seed=case.seed + 1_000_003 * number) for number in range(1, SEEDS))]
