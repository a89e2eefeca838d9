"""A branch on its kernel gives the matches of the incremental matcher: same members, completed by the same event.

Here the generated source runs as plain Python (compiling takes a second for each); test_kernel_compiled.py runs machine code.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairlead.language import compile_text
from fairlead.matching.incremental import IncrementalSubscription
from fairlead.matching.kernel.branch import Batch, KernelBranch
from fairlead.matching.kernel.shape import Refused, shape_of
from fairlead.matching.kernel.vector import Rows
from fairlead.model.columns import Columns
from fairlead.model.plan import Branch, Plan, Subscription
from fairlead.model.types import Catalogue
from fairlead.transport.events import read_events
from tests.match.generated import DISPOSALS, MATCHINGS, Case, cases, dense_cases

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


def batch_of(columns: Columns, catalogue: Catalogue, first: int) -> Batch:
    codes, positions = np.asarray(columns.codes), np.asarray(columns.positions, dtype=np.int64)
    rows, places = {}, {}
    for code, name in enumerate(columns.types):
        at = np.flatnonzero(codes == code)
        if len(at):
            table, schema = columns.tables[name], catalogue[name]
            times = None if schema.time_index is None else table.column(schema.time_index).cast(pa.int64()).to_numpy()
            rows[name], places[name] = Rows(schema, table, times, positions[at]), at
    return Batch(len(codes), np.arange(first, first + len(codes)), rows, places)


def by_kernel(kernel: KernelBranch, plan: Plan, events: list[dict[str, Any]], size: int) -> Matches:
    found: Matches = []
    first = 0
    for columns in read_events(events, plan.catalogue, batch_rows=size):
        made = kernel.feed(batch_of(columns, plan.catalogue, first))
        found += [(int(at), refs) for at, refs in zip(made.at, made.refs.tolist(), strict=True)]
        first += len(columns)
    return found


def by_incremental(alone: Subscription, plan: Plan, events: list[dict[str, Any]]) -> Matches:
    matcher = IncrementalSubscription(alone, plan.catalogue)
    return [
        (each.position.major, [member.position.major for member in match.members])
        for columns in read_events(events, plan.catalogue)
        for each in columns.events(plan.catalogue)
        for match in matcher.arrive(each)
    ]


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
        if expected:
            seen["matches"] += len(expected)
    return seen


EACH = max(10, settings.default.max_examples // 16)


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("disposal", DISPOSALS)
def test_a_kernel_equals_the_incremental_matcher(matching: str, disposal: str) -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=EACH)
    @given(cases((matching, disposal)), st.integers(1, 13))
    def holds(case: Case, size: int) -> None:
        seen = compared(case.rules, case.events, size)
        for each in seen:
            event(each)
        total.update(seen)

    holds()
    assert total["on a kernel"] > 0, total


@given(dense_cases(), st.integers(1, 13))
def test_every_dense_case_has_a_kernel(case: Case, size: int) -> None:
    seen = compared(case.rules, case.events, size)
    assert seen["on a kernel"] == 1
    event(f"matches: {min(seen['matches'], 5)}")


def test_most_generated_branches_have_a_kernel() -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=200, derandomize=True)
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
