"""A branch on its kernel gives the matches of the incremental matcher: same members, completed by the same event.

Here the generated source runs as plain Python (compiling takes a second for each); test_kernel_compiled.py runs machine code.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from fairlead.language import compile_text
from fairlead.matching.compiled.codegen import queues
from fairlead.matching.compiled.codegen.indexes import ordered_index as tree
from fairlead.matching.compiled.planning.shape_builder import Refused, shape_of
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.branch import KernelBranch
from fairlead.matching.interpreted.matcher import IncrementalSubscription
from fairlead.model.limits import LIMITS
from fairlead.model.plans.plan import Branch, Plan, Subscription
from fairlead.model.relations.identity import MINOR_BITS
from fairlead.transport.events import read_events
from tests.marks import sample_size
from tests.matching.generators.generated import Case, cases, dense_cases
from tests.matching.generators.options import DISPOSALS, EVERY, KEEPING, LEAVING, MATCHINGS

Matches = list[tuple[int, list[int]]]


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    before = os.environ.get("FAIRLEAD_JIT")
    os.environ["FAIRLEAD_JIT"] = "0"
    yield
    if before is None:
        del os.environ["FAIRLEAD_JIT"]
    else:
        os.environ["FAIRLEAD_JIT"] = before


def major(word: int) -> int:
    return (word - LIMITS.derived_per_event_max) >> MINOR_BITS


def by_kernel(kernel: KernelBranch, plan: Plan, events: list[dict[str, Any]], size: int) -> tuple[Matches, Matches]:
    """What events completed, and what absences decided, with the event at which it happened."""
    completed: Matches = []
    decided: Matches = []
    for columns in read_events(events, plan.catalogue, batch_rows=size):
        for found, made in zip(kernel.feed(KernelBatch(columns, plan.catalogue)), (completed, decided), strict=True):
            made += [
                (major(at), [major(ref) for ref in refs]) for at, refs in zip(found.at.tolist(), found.refs.rows(), strict=True)
            ]
    return completed, decided


def by_incremental(alone: Subscription, plan: Plan, events: list[dict[str, Any]]) -> tuple[Matches, Matches]:
    matcher = IncrementalSubscription(alone, plan.catalogue)
    completed: Matches = []
    decided: Matches = []
    for columns in read_events(events, plan.catalogue):
        for each in columns.events(plan.catalogue):
            if each.type not in alone.reads(plan.catalogue):
                continue
            while each.time is not None and (due := matcher.next_due()) is not None and due[0] < each.time:
                match = matcher.take_due()
                if match is not None:
                    decided.append((each.position.major, [member.position.major for member in match.members]))
            for match in matcher.arrive(each):
                completed.append((each.position.major, [member.position.major for member in match.members]))
    return completed, decided


def lone_branches(plan: Plan) -> Iterator[tuple[Subscription, Branch]]:
    """Every branch of input types, as a subscription of its own."""
    for subscription in plan.subscriptions:
        for branch in subscription.branches:
            if not any(plan.catalogue[name].derived for name in branch.types):
                yield replace(subscription, branches=(branch,)), branch


def compared(rules: str, events: list[dict[str, Any]], size: int) -> Counter[str]:
    """Compares every branch that has a kernel; gives how many did, and what the others were refused for."""
    plan, seen = compile_text(rules), Counter[str]()
    for alone, branch in lone_branches(plan):
        try:
            kernel = KernelBranch(alone, branch, plan.catalogue)
        except Refused as refused:
            seen[f"refused: {refused}"] += 1
            continue
        expected = by_incremental(alone, plan, events)
        assert by_kernel(kernel, plan, events, size) == expected
        seen["on a kernel"] += 1
        seen["matches"] += len(expected[0])
        seen["decided"] += len(expected[1])
    return seen


EACH = max(10, settings.default.max_examples // 16)


@pytest.fixture(params=["long queues have trees", "every queue has a tree"])
def trees(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated queues are short: with the second parameter they are looked up as long ones are."""
    if request.param == "every queue has a tree":
        monkeypatch.setattr(queues, "BUILD", 1)
        monkeypatch.setattr(queues, "KEEP", 0)
        monkeypatch.setattr(tree, "STEPS", 1)


@pytest.mark.sampled
@pytest.mark.usefixtures("trees")
@pytest.mark.parametrize("matching", [*MATCHINGS, *EVERY])
@pytest.mark.parametrize("disposal", [*DISPOSALS, *LEAVING, *KEEPING])
def test_a_kernel_equals_the_incremental_matcher(matching: str, disposal: str) -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=EACH, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(cases((matching, disposal)), st.integers(1, 13))
    def holds(case: Case, size: int) -> None:
        seen = compared(case.rules, case.events, size)
        for each in seen:
            event(each)
        total.update(seen)

    holds()
    assert total["on a kernel"] > 0, total


@pytest.mark.usefixtures("trees")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dense_cases(), st.integers(1, 13))
def test_every_dense_case_has_a_kernel(case: Case, size: int) -> None:
    seen = compared(case.rules, case.events, size)
    assert seen["on a kernel"] == 1
    event(f"matches: {min(seen['matches'], 5)}")


def test_most_generated_branches_have_a_kernel() -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=sample_size(200), derandomize=True)
    @given(cases())
    def count(case: Case) -> None:
        plan = compile_text(case.rules)
        for alone, branch in lone_branches(plan):
            try:
                shape_of(alone, branch, plan.catalogue)
                total["on a kernel"] += 1
            except Refused as refused:
                total[str(refused)] += 1

    count()
    assert total["on a kernel"] > 2 * (total.total() - total["on a kernel"]), total
