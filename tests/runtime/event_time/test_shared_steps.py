"""Matchers that share steps find what each would find alone, wherever their batches differ."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random

import numpy as np
import pytest

import fairlead
from fairlead.matching.results.delivery_order import ids_of
from fairlead.model.events.columns import Columns
from fairlead.runtime.event_time import EventTimeMatcher
from fairlead.runtime.event_time.shared_steps import REMEMBERED, SharedSteps
from tests.runtime.event_time.sequences import PLANS, TYPES, Record, read, sequence

ORDERS = ("ORDER BY at DELAY 2 SECONDS", "ORDER BY at, x DESC DELAY 3 SECONDS PER SOURCE IDLE 4 SECONDS")


def columns_of(plan: fairlead.Plan, records: list[Record]) -> Columns:
    (columns,) = read(plan, records)
    return columns


def cut(columns: Columns, at: list[int]) -> list[Columns]:
    return [columns.part(low, high) for low, high in zip([0, *at], [*at, len(columns)], strict=True)]


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(6))
def test_sharing_changes_nothing(order: str, seed: int) -> None:
    random = Random(seed)
    plans = [fairlead.compile(f"{TYPES} {order} {PLANS[name]}") for name in ("pairs", "keys", "recent")]
    whole = columns_of(plans[0], sequence(random, 120))
    shared = sorted(random.sample(range(1, len(whole)), 8))
    batches = cut(whole, shared)
    steps = SharedSteps(nullcontext())
    matchers, alone = ([EventTimeMatcher(plan) for plan in plans] for _ in range(2))
    laggard, taken = EventTimeMatcher(plans[0]), 0
    for number, batch in enumerate(batches):
        for matcher, one in zip(matchers, alone, strict=True):
            found, expected = matcher.step(batch, steps=steps), one.step(batch)
            assert ids_of(found.relations).tolist() == ids_of(expected.relations).tolist()
            assert found.by.tolist() == expected.by.tolist()
            assert matcher.dump() == one.dump()
        if number < 3:  # other portions, then the same
            for part in cut(batch, [len(batch) // 2]):
                laggard.step(part, steps=steps)
        else:
            before = len(steps._taken), steps._taken[-1]
            laggard.step(batch, steps=steps)
            taken += (len(steps._taken), steps._taken[-1]) == before
    assert laggard.dump() == alone[0].dump()
    assert taken == len(batches) - 3


def test_one_that_was_loaded_shares_again() -> None:
    plan = fairlead.compile(f"{TYPES} {ORDERS[0]} {PLANS['pairs']}")
    first, *rest = cut(columns_of(plan, sequence(Random(1), 60)), [30, 40, 50])
    steps = SharedSteps(nullcontext())
    one = EventTimeMatcher(plan)
    one.step(first, steps=steps)
    other = EventTimeMatcher.load(plan, one.dump())
    for batch in rest:
        one.step(batch, steps=steps)
        last = steps._taken[-1]
        other.step(batch, steps=steps)
        assert steps._taken[-1] is last
        assert other.dump() == one.dump()


def test_few_steps_are_remembered() -> None:
    plan = fairlead.compile(f"{TYPES} {ORDERS[0]} {PLANS['pairs']}")
    whole = columns_of(plan, sequence(Random(2), 100))
    steps, matcher = SharedSteps(nullcontext()), EventTimeMatcher(plan)
    for batch in cut(whole, np.arange(2, len(whole), 2).tolist()):
        matcher.step(batch, steps=steps)
    assert len(steps._taken) == REMEMBERED
