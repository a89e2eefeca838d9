"""Workers, in this process: what they find for their keys, put in turn, is what one engine delivers, batch by batch."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from fairlead.engine import Engine, compile
from fairlead.errors import LanguageError
from fairlead.matching.results.delivery_order import completed, ids_of, names_of
from fairlead.matching.results.relation_batches import relation_table
from fairlead.matching.results.transferred import Wanted
from fairlead.model.events.columns import Columns
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.layout import layout_of
from fairlead.model.relations.relation import Relation
from fairlead.runtime.spread.shares import keyed_groups, shares
from fairlead.runtime.spread.spreading import in_turn
from fairlead.runtime.spread.worker import Assignment, matched
from fairlead.transport.admission.gate import Intake, RawRecords
from fairlead.transport.events import read_events
from tests.matching.generators.generated import TYPES, Case
from tests.matching.generators.keyed import KeyedCase, keyed_cases
from tests.matching.generators.runs import run_cases
from tests.matching.generators.unlike_keys import unlike_keys

Told = list[tuple[str, int, tuple[int, ...]]]


def told(found: Sequence[Relation]) -> Told:
    """Subscription, place and id of each delivery, in order."""
    if not len(found):
        return []
    words = map(tuple, ids_of(found).tolist())
    return list(zip(names_of(found, np.arange(len(found))), completed(found).tolist(), words, strict=True))


def written(table: pa.Table) -> bytes:
    target = pa.BufferOutputStream()
    pq.write_table(table.combine_chunks(), target)
    return target.getvalue().to_pybytes()  # type: ignore[no-any-return]


def columns_of(plan: Plan, batches: Sequence[Sequence[dict[str, Any]]]) -> list[Columns]:
    intake = Intake(plan.catalogue)
    return [intake.take(RawRecords(list(each)), intake.typed) for each in batches]


def agree(plan: Plan, batches: Sequence[Columns], workers: int, after: int, kernels_from: int | None) -> None:
    """The state goes to the workers after so many batches."""
    groups, layout = keyed_groups(plan), layout_of(plan)
    one = Engine(plan, kernels_from=kernels_from)
    for each in batches[:after]:
        one.feed(each)
    numbers = {each.name: number for number, each in enumerate(plan.subscriptions)}
    state = one.dump() if after else None
    given = Assignment([each.plan for each in groups], state, kernels_from, numbers, Wanted(layout))
    assignments = [pickle.loads(pickle.dumps(given)) for _ in range(workers)]
    engines = [each.engines() for each in assignments]
    for batch in batches[after:]:
        parts = []
        for mine, assignment, share in zip(engines, assignments, shares(batch, groups, workers), strict=True):
            parts += pickle.loads(pickle.dumps(matched(assignment, mine, pickle.loads(pickle.dumps(share)))))
        spread, alone = in_turn(parts), one.feed(batch)
        assert told(spread) == told(alone)
        if len(alone):
            assert written(spread.to_arrow(layout)) == written(relation_table([alone], layout))
            assert spread.counts() == dict(sorted_counts(alone))


def sorted_counts(found: Sequence[Relation]) -> list[tuple[str, int]]:
    names = [name for name, _, _ in told(found)]
    return [(name, names.count(name)) for name in sorted(set(names))]


def spreadable(rules: str) -> Plan:
    try:
        plan = compile(rules)
    except LanguageError:  # a few are not legal
        reject()
    assume(keyed_groups(plan))
    return plan


LANES = st.sampled_from((0, None))


@pytest.mark.slow
@settings(max_examples=25)
@given(keyed_cases(streams=1), st.integers(1, 4), st.integers(0, 3), LANES)
def test_plans_with_keys(case: KeyedCase, workers: int, after: int, kernels_from: int | None) -> None:
    plan = spreadable(case.rules)
    agree(plan, columns_of(plan, case.streams[0].batches), workers, after, kernels_from)


@settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.one_of(unlike_keys(), run_cases()), st.integers(2, 3), st.integers(0, 1), st.integers(1, 9))
def test_plans_of_every_shape(case: Case, workers: int, after: int, size: int) -> None:
    plan = spreadable(case.rules)
    batches = [case.events[low : low + size] for low in range(0, len(case.events), size)]
    agree(plan, columns_of(plan, batches), workers, after, None)


@pytest.mark.parametrize(
    "rules",
    [
        "SUBSCRIPTION S MATCH A a AND B b",
        "SUBSCRIPTION S MATCH A a AND B b PER k LIMIT 3",
        "SUBSCRIPTION S MATCH A a WITHOUT B b WITHIN 1 SECOND OF a PER k",
        "SUBSCRIPTION S MATCH A a THEN B b PER k EMIT E(k = a.k)\nSUBSCRIPTION T MATCH E e THEN C c PER k",
        "SUBSCRIPTION S MATCH A a THEN B b PER k\nSUBSCRIPTION T MATCH A a THEN B b",
    ],
)
def test_what_needs_one_order_is_not_spread(rules: str) -> None:
    assert keyed_groups(compile(TYPES + rules)) == ()


def test_an_event_without_a_key_goes_to_no_worker() -> None:
    plan = compile(TYPES + "SUBSCRIPTION S MATCH A a THEN B b PER k")
    events = [{"type": "A", "k": None, "x": 1, "y": 0.0, "at": "2026-01-01T00:00:00Z"}] * 3
    (columns,) = read_events(events, plan.catalogue)
    assert [len(share[0]) for share in shares(columns, keyed_groups(plan), 2)] == [0, 0]
    assert [share[0].last_after(-1) for share in shares(columns, keyed_groups(plan), 2)] == [2, 2]
