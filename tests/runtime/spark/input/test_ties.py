"""Rows that tie in the order columns, of sources that number what they publish: nothing is lost but what comes twice.

Embedded with `order_by`, Spark batch and a Spark stream give the same relations, whatever comes first.
"""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.model.events.values import microseconds
from fairlead.model.plans.plan import Plan
from fairlead.runtime.embedded import until_microseconds
from fairlead.runtime.sorting import ordered_plan
from fairlead.runtime.spark.job.result_rows import ResultRows
from tests.matching.generators.generated import Case
from tests.matching.generators.plans import plan_cases
from tests.runtime.spark.job.in_process import delivered, input_table, job_of, reading_of, run, shown
from tests.runtime.spark.job.test_shuffle import BUCKETS, FEWER, compiled
from tests.runtime.spark.stream.rounds import closed, streamed

Event = dict[str, Any]


def published(events: list[Event], random: Random) -> list[Event]:
    """The events in the order of time, among equals in any, each numbered by its source. Heartbeats of one time are one: in a
    stream the first says that nothing more comes up to its time."""
    heartbeats = {each["at"]: each for each in events if each["type"] == "Heartbeat"}
    events = [*(each for each in events if each["type"] != "Heartbeat"), *heartbeats.values()]
    counts: dict[str | None, int] = {}
    made = []
    for each in sorted(random.sample(events, len(events)), key=lambda each: each["at"]):
        source = random.choice(("p", "p", "q", None))
        counts[source] = counts.get(source, 0) + random.choice((1, 1, 3))
        made.append(each | {"_source": source, "_sequence": None if random.random() < 0.1 else counts[source]})
    return made


def on_every_runtime(plan: Plan, events: list[Event], until: Any, buckets: int, cuts: list[int], random: Random) -> int:
    """How many rows are dropped, by all of them."""
    mixed = random.sample(events, len(events))
    found = fairlead.match(plan, mixed, order_by="at", until=until)
    wanted = shown(plan, found.batches)
    limit, plan = until_microseconds(until), ordered_plan(plan, "at")
    reading = reading_of(plan, 1, sourced=True)
    times = [microseconds(each["at"]) for each in mixed]
    rows = input_table(plan, reading, mixed, [pa.array(times, pa.int64())])
    start = microseconds(datetime(2026, 1, 1, tzinfo=UTC))
    job = job_of(plan, reading, buckets, [start + 1_000_000 * each for each in sorted(cuts)], limit)
    batch = run(job, ResultRows(plan, certain=False), rows, random)
    assert delivered(batch) == wanted

    coming = closed(sorted(mixed, key=lambda each: (each["at"], each["type"] == "Heartbeat")), until)
    times = [microseconds(each["at"]) for each in coming[:-1]]
    stream = streamed(plan, coming, buckets, random, True, [*times, max(times, default=0) + 1])
    assert delivered(stream) == wanted
    for table in (batch, stream):
        assert sum(row["verdict"] != "in order" for row in table.to_pylist()) == found.duplicates
    return found.duplicates


@FEWER
@given(plan_cases(), BUCKETS, st.lists(st.integers(0, 20), max_size=3, unique=True), st.integers(0, 2**32), st.integers(0, 3))
def test_of_rows_that_tie_only_those_that_come_twice_are_dropped(
    case: Case, buckets: int, cuts: list[int], seed: int, twice: int
) -> None:
    random = Random(seed)
    events = published(case.events, random)
    numbered = [each for each in events if each["_sequence"] is not None and each["type"] != "Heartbeat"]
    again = random.sample(numbered, min(twice, len(numbered)))
    assert on_every_runtime(compiled(case.rules), [*events, *again], case.until, buckets, cuts, random) == len(again)


@pytest.mark.parametrize("first", ["A", "B"])
def test_a_source_keeps_its_own_order_among_rows_that_tie(first: str) -> None:
    plan = fairlead.compile("TYPE A (t INT) TYPE B (t INT) SUBSCRIPTION S MATCH A a THEN B b SUBSCRIPTION T MATCH B b THEN A a")
    second = "B" if first == "A" else "A"
    events = [
        {"type": second, "t": 1, "_source": "p", "_sequence": 2},
        {"type": first, "t": 1, "_source": "p", "_sequence": 1},
    ]
    found = fairlead.match(plan, events, order_by="t")
    assert found.duplicates == 0
    assert [each.subscription for each in found] == ["S" if first == "A" else "T"]
