"""Kernels conform, from the first event on: the rules with runs. (Cases are small: they would be matched event by event.)"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.matching.compiled.planning.eligibility import refusal_of
from fairlead.model.events.values import microseconds
from fairlead.testing.conformance import CaseOutcome, ConformanceSuite
from fairlead.transport.events import read_events
from tests.conformance.cases import CASES, outcome

RUNS = [case for case in CASES if case.file in ("18-runs.yaml", "27-fold.yaml")]


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    """Compiling a kernel for each case would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLEAD_JIT", "0")
        yield


def test_there_are_cases_of_runs() -> None:
    assert len(RUNS) >= 50


@pytest.mark.parametrize("case", RUNS, ids=str)
class TestRunsOnKernels(ConformanceSuite):
    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
        plan = compile_text(rules)
        engine = Engine(plan, kernels_from=0)
        made = [relation for columns in read_events(events, plan.catalogue) for relation in engine.feed(columns)]
        made += engine.finish(None if until is None else microseconds(until))
        runs = [each for each in plan.subscriptions if each.has_runs and not (each.has_folds and each.has_sequences)]
        assert [refusal_of(plan, each) for each in runs] == [None] * len(runs)
        return outcome(made, 0)
