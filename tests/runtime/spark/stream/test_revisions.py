"""LATE REVISE on a stream, without Spark: the rows that are delivered, taken back and added fold to what the embedded runtime
finds in the sorted events, whatever the micro-batches, whatever fails on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairlead
from fairlead.model.plan import Plan
from fairlead.model.values import microseconds
from fairlead.order.frontier import NOWHERE, SequenceFrontier
from fairlead.order.holdback import Frontier
from fairlead.runtime.event_time import reviser
from fairlead.runtime.spark.input.arrivals import STORED, InputColumns
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.job.shuffle import Job
from fairlead.runtime.spark.job.targets import groups_of
from fairlead.runtime.spark.stream.stream_job import Setup
from tests.runtime.event_time.sequences import PLANS, TYPES, Record, batch_ids, sequence, stored_times
from tests.runtime.spark.job.in_process import input_table, reading_of
from tests.runtime.spark.stream.rounds import Streaming

SEEDS = st.integers(0, 2**32)
KEYED = {"spread": "SUBSCRIPTION S MATCH A a THEN B b WHERE a.x <= b.x PER k SUBSCRIPTION T MATCH B b THEN C c THEN A a"}
ORDERS = (
    "ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 3 SECONDS ",
    "ORDER BY at, k DESC DELAY 0 SECONDS AHEAD 2 SECONDS LATE REVISE WITHIN 5 SECONDS ",
    "ORDER BY TIME DELAY 2 SECONDS PER SOURCE IDLE 4 SECONDS LATE REVISE WITHIN 100 SECONDS ",
)
RELATIONS = ("in order", "added", "retracted")


@pytest.fixture(autouse=True, scope="module")
def small_segments() -> Any:
    """Segments of a few events, so that short streams have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reviser, "SEGMENT", 4)
        patch.setattr(reviser, "SEGMENTS_MAX", 5)
        yield


def setup_of(plan: Plan, buckets: int, sourced: bool, ahead: bool = False) -> Setup:
    order = plan.order
    assert order is not None
    plain = reading_of(plan, len(order.keys), sourced)
    reading = InputColumns(
        plan.catalogue, plain.columns, plain.others, plain.keys, sourced, "stop", order.ahead_us if ahead else None
    )
    delays = dict.fromkeys(reading.types, order.delay_us or 0)
    frontier = Frontier(reading.types, True, delays, idle=order.idle_us, revise=order.revise_us)
    job = Job(reading, groups_of(plan), buckets, np.zeros(0, dtype=np.int64), order=order)
    return Setup(job, ResultRows(plan), frontier, order.names, {"use of sources": sourced})


def rows_of(setup: Setup, plan: Plan, records: Sequence[Record], stored: Sequence[Any] | None = None) -> pa.Table:
    """The records as Spark hands them over."""
    order = plan.order
    assert order is not None
    columns = [pa.array([microseconds(each["at"]) for each in records], pa.int64())]
    for key in order.keys[1:]:
        columns.append(pa.array([each.get(key.attribute) for each in records], pa.int64()))
    made = input_table(plan, setup.job.reading, records, columns)
    if stored is not None:
        made = made.append_column(STORED, pa.array([microseconds(each) for each in stored], pa.int64()))
    return made


class Followed:
    """A stream by micro-batches, and by definition what becomes of each row: the frontier is that of the micro-batches before,
    and a round is a micro-batch."""

    def __init__(self, plan: Plan, setup: Setup, random: Random) -> None:
        self.plan, self.setup, self.random = plan, setup, random
        self.query = Streaming(setup, random)
        order = plan.order
        assert order is not None
        self.order = order
        self.frontier = SequenceFrontier(order.delay_us or 0, order.idle_us, NOWHERE, {})
        self.accepted: list[Record] = []
        self.held: list[Record] = []
        self.verdicts: Counter[str] = Counter()
        self.known: set[tuple[Any, ...]] = set()
        self.fold: Counter[str] = Counter()

    def batch(self, records: Sequence[Record], stored: Sequence[Any] | None = None) -> None:
        """The fold after it is that of everything that has been released."""
        before = len(self.query.found)
        self.query.batch(rows_of(self.setup, self.plan, records, stored))
        self._judge(records, stored)
        revisions = set()
        for table in self.query.found[before:]:
            for row in table.select(["verdict", "relation_id", "revision"]).to_pylist():
                if row["verdict"] in RELATIONS:
                    self.fold[row["relation_id"]] += -1 if row["verdict"] == "retracted" else 1
                revisions |= {row["revision"]} if row["verdict"] in RELATIONS[1:] else set()
        assert len(revisions) <= 1
        assert None not in revisions
        assert set(self.fold.values()) <= {0, 1}
        released = [each for each in self.accepted if microseconds(each["at"]) < self.frontier.at]
        assert sorted(self.fold.elements()) == sorted(batch_ids(self.plan, released))

    def _judge(self, records: Sequence[Record], stored: Sequence[Any] | None) -> None:
        counted, frontier = [], self.frontier.at
        for number, each in enumerate(records):
            beat, time = each["type"] == "Heartbeat", microseconds(each["at"])
            if (
                stored is not None
                and self.order.ahead_us is not None
                and time > microseconds(stored[number]) + self.order.ahead_us
            ):
                self.verdicts["ahead"] += not beat
                continue
            counted.append(each)
            identity = (each["type"], each.get("_source"), each.get("_sequence"), *(str(each.get(k)) for k in self.order.names))
            is_again = each.get("_sequence") is not None and identity in self.known
            assert self.order.revise_us is not None
            if time < frontier and (beat or time < frontier - self.order.revise_us):
                self.verdicts["late"] += not beat
            else:
                self.verdicts["repeated"] += is_again
                self.known.add(identity)
                self.accepted += [] if is_again else [each]
        values = np.array([microseconds(each["at"]) for each in counted], dtype=np.int64)
        beats = np.array([each["type"] == "Heartbeat" for each in counted], dtype=bool)
        self.frontier.follow(
            values, beats, [each.get("_source") if self.setup.job.reading.sourced else None for each in counted]
        )

    def follow(self, records: Sequence[Record], stored: Sequence[Any] | None = None) -> Followed:
        low = 0
        while low < len(records):
            high = low + self.random.choice((1, 1, 2, 5, 12, 40))
            self.batch(records[low:high], None if stored is None else stored[low:high])
            low = high
        end = {"type": "Heartbeat", "at": max(each["at"] for each in records) + timedelta(hours=1)}
        sources = ({each.get("_source") for each in records} | {None}) if self.setup.job.reading.sourced else {None}
        ends = [end | {"_source": source} for source in sorted(sources, key=str)]
        self.batch(ends, None if stored is None else [each["at"] for each in ends])
        return self

    @property
    def found(self) -> Counter[str]:
        return Counter(self.query.table.column("verdict").to_pylist())


def apart(found: Counter[str]) -> dict[str, int]:
    return {verdict: found[verdict] for verdict in ("late", "repeated", "ahead") if found[verdict]}


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.sampled_from(ORDERS), st.sampled_from(sorted(PLANS | KEYED)), st.sampled_from((1, 3)), st.booleans())
def test_after_every_micro_batch_the_fold_is_what_the_sorted_events_give(
    seed: int, order: str, name: str, buckets: int, sourced: bool
) -> None:
    """Also where micro-batches fail and are delivered again, and where states are loaded."""
    random = Random(seed)
    plan = fairlead.compile(TYPES + order + (PLANS | KEYED)[name])
    records = sequence(random, random.choice((20, 60)), late=random.choice((0, 0.3, 0.8)), sourced=0.7 if sourced else 0)
    stored = stored_times(records, random) if random.random() < 0.5 else None
    followed = Followed(plan, setup_of(plan, buckets, sourced, stored is not None), random).follow(records, stored)
    assert apart(followed.found) == {verdict: count for verdict, count in followed.verdicts.items() if count}
