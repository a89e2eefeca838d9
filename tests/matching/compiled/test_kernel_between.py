"""WITHOUT … BETWEEN and BEFORE on kernels: what is noted, forbidden and forgotten equals the incremental matcher."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairlead.language import compile_text
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.branch import KernelBranch
from fairlead.matching.interpreted.matcher import IncrementalSubscription
from fairlead.transport.events import read_events
from tests.matching.compiled.test_kernel import compared, interpreted, major
from tests.matching.generators.generated import TYPES, Case, befores, branches, events, predicates
from tests.matching.generators.options import DISPOSALS, MATCHINGS

__all__ = ["interpreted"]


@st.composite
def between_cases(draw: st.DrawFn) -> Case:
    types, negated = draw(st.sampled_from(((("A", "B"), "C"), (("B", "C"), "D"), (("D", "B"), "C"), (("A",), "U"))))
    branch = draw(branches("p", types).filter(lambda each: len(each.members) > 1))
    first, second = draw(st.permutations(branch.members))[:2]
    conditions = [draw(predicates(branch)) for _ in range(draw(st.integers(0, 1)))]
    lines = [TYPES, "SUBSCRIPTION S", f"MATCH {branch.text}", *(["WHERE " + " AND ".join(conditions)] if conditions else [])]
    lines += ["PER k"] if draw(st.booleans()) else []
    lines += [f"WITHIN {draw(st.integers(1, 8))} SECONDS"] if draw(st.booleans()) else []
    where = (
        "",
        " WHERE n.x > 1",
        f" WHERE n.x = {first}.x",
        f" WHERE n.y < {second}.x AND n.x IS NOT NULL",
        " WHERE n.y IS NULL",
    )
    place = draw(st.sampled_from((f"BETWEEN {first} AND {second}", f"BEFORE {first}{draw(befores)}")))
    lines += [f"WITHOUT {negated} n {place}{draw(st.sampled_from(where))}"]
    lines += [f"MATCHING {draw(st.sampled_from(MATCHINGS))}", f"DISPOSAL {draw(st.sampled_from(DISPOSALS))}"]
    return Case("\n".join(lines), draw(events(14)))


@pytest.mark.slow
def test_a_kernel_with_negated_events_equals_the_incremental_matcher() -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=max(200, settings.default.max_examples))
    @given(between_cases(), st.integers(1, 13))
    def holds(case: Case, size: int) -> None:
        seen = compared(case.rules, case.events, size)
        for each in seen:
            event(each)
        total.update(seen)

    holds()
    assert total["on a kernel"] > total.total() // 4, total
    assert total["matches"] > 20, total


@given(between_cases(), st.integers(1, 13))
def test_a_kernel_keeps_exactly_the_noted_events_that_the_incremental_matcher_keeps(case: Case, size: int) -> None:
    plan = compile_text(case.rules)
    (subscription,) = plan.subscriptions
    kernel = KernelBranch(subscription, subscription.branches[0], plan.catalogue)
    matcher = IncrementalSubscription(replace(subscription), plan.catalogue)
    for columns in read_events(case.events, plan.catalogue, batch_rows=size):
        kernel.feed(KernelBatch(columns, plan.catalogue))
        for each in columns.events(plan.catalogue):
            list(matcher.arrive(each))
    assert state_of(kernel) == {
        key: [[each.position.major for each in queue] for queue in (*instance.queues, *instance.noted)]
        for key, instance in matcher.instances[0].items()
        if any(instance.queues) or any(instance.noted)
    }


def state_of(kernel: KernelBranch) -> dict[tuple[Any, ...], list[list[int]]]:
    pool, made = kernel.pool, {}
    if pool.queued_count() == 0:
        return made
    numbers = np.arange(pool.key_count)
    columns = kernel.keys.columns(numbers, [pa.int64()] * len(kernel.keys.parts))
    keys = list(zip(*(column.to_pylist() for column in columns), strict=True)) if columns else [()] * pool.key_count
    for number, key in enumerate(keys):
        nodes = [pool.walk(number, at) for at in range(pool.queues_per_key)]
        if any(nodes):
            made[key] = [[major(int(pool.nodes[node, kernel.source.layout["REF"]])) for node in each] for each in nodes]
    return made
