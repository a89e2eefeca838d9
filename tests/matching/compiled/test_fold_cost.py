"""What docs/complexity.md says of folded runs is true: bytes and events of a key, and steps that do not grow with the run."""

from __future__ import annotations

import re

import pytest

from fairlead.language import compile_text
from fairlead.matching.compiled.codegen.folds.fold_words import FoldWords
from fairlead.matching.compiled.planning.shape_builder import shape_of
from fairlead.matching.compiled.running.folds.fold_kernel import FoldKernel
from fairlead.model.plans.plan import Plan
from fairlead.transport.admission.records import RecordReader
from tests.matching.compiled.test_cost import PAGE
from tests.matching.compiled.test_kernel import interpreted
from tests.matching.compiled.test_run_cost import RunBench

__all__ = ["interpreted"]

SECTION = PAGE[PAGE.index("### Folded runs") : PAGE.index("## Sequences")]
ROWS = re.findall(r"^\| `(A q\+.*?)` \| (\d+) \| (\d+)", SECTION, re.MULTILINE)


def planned(match: str) -> Plan:
    return compile_text(f"TYPE A (k INT, x INT, y INT, at TIMESTAMP) TIME at SUBSCRIPTION S MATCH {match} FOLD q")


def test_the_page_has_rows() -> None:
    assert len(ROWS) == 4


@pytest.mark.parametrize(("match", "size", "events"), ROWS)
def test_bytes_and_events_are_those_of_the_page(match: str, size: str, events: str) -> None:
    plan = planned(match)
    fold = shape_of(plan["S"], plan["S"].branches[0], plan.catalogue).fold
    assert fold is not None
    assert 8 * FoldWords(fold).width == int(size)
    assert len(fold.folding.roles) == int(events)


class FoldBench(RunBench):
    def __init__(self, match: str) -> None:
        self.plan = planned(match)
        (subscription,) = self.plan.subscriptions
        self.branch = FoldKernel(subscription, subscription.branches[0], self.plan.catalogue)
        self.plain, self.reader = self.branch.kernel, RecordReader(self.plan.catalogue, batch_rows=1 << 20)


@pytest.mark.parametrize("match", [match for match, *_ in ROWS])
def test_an_event_costs_the_same_however_long_the_run_is(match: str, interpreted: None) -> None:
    found = []
    for size in (50, 2_000):
        bench = FoldBench(match)
        bench.feed(("A", 1 + at % 3, 0) for at in range(size))
        found.append(bench.accesses(("A", 2, 0)))
    assert found[0] > 0
    assert found[1] == found[0]
