"""LATE REVISE on a stream, without Spark: the rows that are delivered, taken back and added fold to what the embedded runtime
finds in the sorted events, whatever the micro-batches, whatever fails on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fairlead
from fairlead.model.blobs import unpacked
from fairlead.model.events.values import microseconds
from fairlead.model.plans.canonical import with_order
from fairlead.model.plans.event_order import EventOrder, OrderKey
from fairlead.model.plans.partition import alone
from fairlead.model.plans.plan import Plan
from fairlead.order.frontier import NOWHERE, SequenceFrontier
from fairlead.order.holdback import Frontier
from fairlead.runtime.event_time.reviser import SegmentLimits
from fairlead.runtime.spark.input.arrivals import STORED, InputColumns
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.job.shuffle import Job
from fairlead.runtime.spark.job.targets import groups_of
from fairlead.runtime.spark.stream.sequencing import Sequencing
from fairlead.runtime.spark.stream.stream_job import Setup, arrived
from fairlead.runtime.spark.stream.target_task import RevisedTask, resumed
from tests.matching.generators.generated import Case
from tests.matching.generators.plans import plan_cases
from tests.runtime.event_time.sequences import PLANS, TYPES, Record, at, batch_ids, sequence, stored_times
from tests.runtime.spark.input.test_ties import published
from tests.runtime.spark.job.in_process import delivered, embedded, input_table, reading_of
from tests.runtime.spark.job.test_shuffle import compiled
from tests.runtime.spark.stream.rounds import Streaming

SEEDS = st.integers(0, 2**32)
KEYED = {"spread": "SUBSCRIPTION S MATCH A a THEN B b WHERE a.x <= b.x PER k SUBSCRIPTION T MATCH B b THEN C c THEN A a"}
ORDERS = (
    "ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 3 SECONDS ",
    "ORDER BY at, k DESC DELAY 0 SECONDS AHEAD 2 SECONDS LATE REVISE WITHIN 5 SECONDS ",
    "ORDER BY TIME DELAY 2 SECONDS PER SOURCE IDLE 4 SECONDS LATE REVISE WITHIN 100 SECONDS ",
)
RELATIONS = ("in order", "added", "retracted")


SMALL = SegmentLimits(events=4, kept_max=5)
"""Segments of a few events, so that short streams have many."""


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
    return Setup(job, ResultRows(plan), frontier, order.names, {"use of sources": sourced}, limits=SMALL)


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
        self.fold: Counter[tuple[str, str]] = Counter()
        self.floor = NOWHERE
        self.names = {each.name for each in plan.subscriptions}
        """The subscriptions that are there all the time."""

    def batch(self, records: Sequence[Record], stored: Sequence[Any] | None = None) -> None:
        """The fold after it is that of everything that has been released."""
        before = len(self.query.found)
        self.query.batch(rows_of(self.setup, self.plan, records, stored))
        self._judge(records, stored)
        revisions = set()
        for table in self.query.found[before:]:
            for row in table.select(["verdict", "subscription", "relation_id", "revision"]).to_pylist():
                if row["verdict"] in RELATIONS and row["subscription"] in self.names:
                    self.fold[row["subscription"], row["relation_id"]] += -1 if row["verdict"] == "retracted" else 1
                revisions |= {row["revision"]} if row["verdict"] in RELATIONS[1:] else set()
        assert len(revisions) <= 1
        assert None not in revisions
        assert set(self.fold.values()) <= {0, 1}
        released = [each for each in self.accepted if microseconds(each["at"]) < self.frontier.at]
        assert sorted(identity for _, identity in self.fold.elements()) == sorted(batch_ids(self.plan, released))

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
            if time < frontier and (beat or time < max(frontier - self.order.revise_us, self.floor)):
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


@settings(deadline=None, max_examples=20)
@given(plan_cases(), st.sampled_from((1, 3)), SEEDS)
def test_generated_plans_fold_to_what_they_give_embedded(case: Case, buckets: int, seed: int) -> None:
    """In any order of arrival: d is longer than all of it."""
    random = Random(seed)
    order = EventOrder((OrderKey("at"),), delay_us=random.choice((0, 2_000_000)), revise_us=10**12)
    plan = with_order(compiled(case.rules), order)
    records = [each for each in published(case.events, random) if each["type"] != "Heartbeat"]
    assume(records)
    arriving = random.sample(records, len(records))
    followed = Followed(plan, setup_of(plan, buckets, sourced=True), random).follow(arriving)
    assert apart(followed.found) == {}


@settings(deadline=None, max_examples=20)
@given(SEEDS, st.sampled_from(sorted(PLANS | KEYED)), st.sampled_from((1, 3)))
def test_without_late_rows_positions_and_order_are_those_of_sorting(seed: int, name: str, buckets: int) -> None:
    random = Random(seed)
    plan = fairlead.compile(TYPES + "ORDER BY at DELAY 30 SECONDS LATE REVISE WITHIN 3 SECONDS " + (PLANS | KEYED)[name])
    records = [each for each in sequence(random, 40, sourced=0) if each["type"] != "Heartbeat"]
    followed = Followed(plan, setup_of(plan, buckets, sourced=False), random).follow(records)
    assert delivered(followed.query.table) == embedded(plan, records)
    assert set(followed.found) <= {"in order"}


@settings(deadline=None, max_examples=20)
@given(SEEDS, st.sampled_from(sorted(PLANS)), st.sampled_from((1, 3)))
def test_positions_of_a_task_increase_with_the_order_and_are_not_used_twice(seed: int, name: str, buckets: int) -> None:
    """Late rows take the next numbers, and a revision deals them out again: with one task they have no gaps."""
    random = Random(seed)
    plan = fairlead.compile(TYPES + ORDERS[0] + PLANS[name])
    followed = Followed(plan, setup_of(plan, buckets, sourced=True), random).follow(sequence(random, 40, late=0.5))
    sequencing = Sequencing(followed.setup, followed.query.sequence)
    for target, state in followed.query.states.items():
        task = resumed(followed.setup, target, buckets, state, sequencing.whose(target))
        assert isinstance(task, RevisedTask)
        positions = np.concatenate([each.positions for each in task.reviser.segments])
        assert (np.diff(positions) > 0).all()
        keys = np.concatenate([each.keys for segment in task.reviser.segments for each in segment.batches])
        assert (np.diff(keys) >= 0).all()
        assert positions[-1] < sequencing.back.next


RULE = "SUBSCRIPTION S MATCH A a"
REVISING = "ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 3 SECONDS "


def event(second: float, number: int, kind: str = "A") -> Record:
    return {"type": kind, "k": 0, "x": number, "at": at(second), "_source": "p", "_sequence": number}


def verdicts_of(batches: Sequence[Sequence[Record]], rules: str = REVISING + RULE) -> list[tuple[str, Any, int]]:
    plan = fairlead.compile(TYPES + rules)
    followed = Followed(plan, setup_of(plan, 2, sourced=True), Random(1))
    made = []
    for records in batches:
        before = len(followed.query.found)
        followed.batch(records)
        rows = pa.concat_tables([followed.setup.outcome.schema.empty_table(), *followed.query.found[before:]]).to_pylist()
        made += sorted((row["verdict"], row["revision"], len(row["members"] or ())) for row in rows)
    return made


def test_a_row_at_d_behind_the_frontier_is_accepted_and_one_further_behind_is_late() -> None:
    edge = 0.000001
    assert verdicts_of([[event(10, 1)], [event(7, 2)], [event(7 - edge, 3)], [event(10, 4), event(11, 5)]]) == [
        ("added", 1, 1),
        ("late", None, 1),
        ("in order", None, 1),
        ("in order", None, 1),
    ]


def test_a_repeat_is_known_as_long_as_it_is_not_too_late() -> None:
    """Of a released row, of a late one, and in one micro-batch; also at the very edge of d."""
    first, late = event(10, 1), event(8, 2)
    given = [[first, event(11, 3)], [late, late], [first, late], [first | {"_source": "q"}], [event(13, 4)], [first]]
    assert [(verdict, revision) for verdict, revision, _ in verdicts_of(given)] == [
        ("in order", None),
        ("added", 1),
        ("repeated", None),
        ("repeated", None),
        ("repeated", None),
        ("added", 2),
        ("in order", None),
        ("repeated", None),
    ]


def test_a_late_heartbeat_has_no_verdict() -> None:
    beat = {"type": "Heartbeat", "at": at(8)}
    assert verdicts_of([[event(10, 1), event(11, 2)], [beat], [beat | {"at": at(1)}]]) == [("in order", None, 1)]


def test_all_rows_of_a_micro_batch_have_the_number_of_its_round_and_a_repeated_one_has_the_same() -> None:
    plan = fairlead.compile(TYPES + REVISING + RULE)
    setup = setup_of(plan, 2, sourced=True)
    before = Sequencing(setup, None)
    list(before.step(arrivals(setup, plan, [event(10, 1), event(12, 2)])))
    state = before.dump()
    told = []
    for _ in range(2):
        again = Sequencing(setup, state)
        for target, name, _ in again.step(arrivals(setup, plan, [event(11, 3), event(14, 4)])):
            told.append((name, json.loads(again.whose(target))["revision"]))
        assert again.kept() == 3
    assert told == [("A", 1), (":late A", 1)] * 2
    quiet = Sequencing(setup, again.dump())
    list(quiet.step(arrivals(setup, plan, [event(20, 5)])))
    assert quiet.revision == 1
    assert quiet.kept() == 1  # event 4, and not those that are behind by more than d


def arrivals(setup: Setup, plan: Plan, records: Sequence[Record]) -> dict[str, pa.Table]:
    blobs = arrived(setup, rows_of(setup, plan, records).to_batches())
    return {each.column(1)[0].as_py(): unpacked(each.column(2)[0].as_py()) for each in blobs}


@settings(deadline=None, max_examples=20)
@given(SEEDS, st.sampled_from((1, 3)), st.sampled_from(("chain", "recent", "spread")))
def test_when_rules_change_the_past_is_not_revised_any_more(seed: int, buckets: int, name: str) -> None:
    """What stays goes on, and finds what it finds in the rows that were accepted; also where another subscription of its task
    comes and goes."""
    random = Random(seed)
    whole = fairlead.compile(TYPES + ORDERS[0] + (PLANS | KEYED)[name])
    names = [each.name for each in whole.subscriptions]
    records = sequence(random, 50, late=0.4)
    followed = Followed(alone(whole, names[:1]), setup_of(alone(whole, names[:1]), buckets, sourced=True), random)
    low, is_one = 0, True
    while low < len(records):
        if random.random() < 0.2:
            is_one = not is_one
            plan = alone(whole, names[:1] if is_one else names)
            followed.setup = followed.query.setup = setup_of(plan, buckets, sourced=True)
            followed.floor = followed.frontier.at
            followed.names = {names[0]}
        high = low + random.choice((1, 3, 8))
        followed.batch(records[low:high])
        low = high
