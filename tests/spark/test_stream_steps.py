"""A stream gives what the embedded runtime gives, however it is cut into micro-batches, and whatever fails on the way."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.errors import DataError, StateError
from fairlead.model.position import Position
from fairlead.model.limits import LIMITS
from fairlead.order.holdback import Frontier, head_and_rest, with_head
from fairlead.runtime.spark import stream
from fairlead.runtime.spark.stream import Sequencing, kept, resumed
from fairlead.testing.conformance import Case as ConformanceCase
from fairlead.testing.conformance import ConformanceSuite, Outcome, conforms, load_cases, report
from tests.conformance.cases import FOLDER
from tests.match.generated import Case, cases
from tests.match.plans import plan_cases
from tests.spark.rounds import Streaming, by_subscription, closed, delivery, embedded, rows_of, setup_of, streamed

BUCKETS = st.sampled_from((1, 2, 4, 8))


@given(plan_cases(), BUCKETS, st.randoms(use_true_random=False))
def test_generated_plans_agree_with_the_embedded_runtime(case: Case, buckets: int, random: Random) -> None:
    plan = fairlead.compile(case.rules)
    found = streamed(plan, closed(case.events, case.until), buckets, random)
    assert by_subscription(plan, found.to_pylist()) == embedded(plan, case.events, case.until)


@given(cases(), BUCKETS, st.randoms(use_true_random=False))
def test_generated_subscriptions_agree_with_the_embedded_runtime(case: Case, buckets: int, random: Random) -> None:
    plan = fairlead.compile(case.rules)
    found = streamed(plan, closed(case.events, case.until), buckets, random)
    assert by_subscription(plan, found.to_pylist()) == embedded(plan, case.events, case.until)


def shown(major: int, place: int) -> int | str:
    minor = place if place >= 0 else -place - 1 - LIMITS.derived_per_event_max
    return Position(major, minor).shown


def record(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the output as the conformance suite compares it."""
    emitted = row["emitted"] or {}
    return {
        "subscription": row["subscription"],
        "positions": tuple(shown(each["position"], each["place"]) for each in row["members"]),
        "emitted": {name: value for name, value in emitted.items() if name != "type"},
        "completed_at": shown(row["completed_at"], row["place"]),
        "branch": row["branch"],
    }


@pytest.mark.parametrize("case", load_cases(FOLDER), ids=str)
class TestStream(ConformanceSuite):
    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> Outcome:
        plan = fairlead.compile(rules)
        random = Random(len(rules))
        sourced = any("_sequence" in each for each in events)
        found = streamed(plan, closed(events, until), random.choice((1, 2, 4, 8)), random, sourced).to_pylist()
        rows = sorted((row for row in found if row["verdict"] == "in order"), key=delivery)
        return Outcome([record(row) for row in rows])

    def check(self, case: ConformanceCase) -> None:
        """Subscriptions are delivered apart: each in its own order."""
        if case.expect is None:
            super().check(case)
            return
        outcome = self.run(case.rules, [dict(event) for event in case.events], case.until)
        sorted_case = replace(case, expect=tuple(sorted(case.expect, key=lambda each: each.subscription)), duplicates=None)
        sorted_outcome = Outcome(sorted(outcome.relations, key=lambda each: str(each["subscription"])))
        assert conforms(sorted_case, sorted_outcome), report(case, outcome)
