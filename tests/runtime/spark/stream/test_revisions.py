"""LATE REVISE on a stream, without Spark: the rows that are delivered, taken back and added fold to what the embedded runtime
finds in the sorted events, whatever the micro-batches, whatever fails on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from fairlead.order.log_holdback import STORED
from fairlead.runtime.event_time import FrontierGroup, frontier_groups
from fairlead.runtime.event_time.reviser import SegmentLimits
from fairlead.runtime.spark.input.arrivals import CODE, TYPE, InputColumns
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.job.shuffle import Job
from fairlead.runtime.spark.stream.sequencing import Sequencing
from fairlead.runtime.spark.stream.stream_job import Setup, arrived
from fairlead.runtime.spark.stream.target_task import RevisedTask, resumed
from fairlead.runtime.spread.targets import stream_groups
from tests.matching.generators.generated import Case
from tests.matching.generators.plans import plan_cases
from tests.runtime.event_time.sequences import PLANS, TYPES, Record, at, batch_ids, sequence, stored_times
from tests.runtime.spark.input.test_ties import published
from tests.runtime.spark.job.in_process import delivered, input_table, reading_of, shown
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
        plan.catalogue,
        plain.columns,
        plain.others,
        plain.keys,
        sourced,
        "stop",
        order.ahead_us if ahead else None,
        order_by=order.names,
    )
    delays = dict.fromkeys(reading.types, order.delay_us or 0)
    frontier = Frontier(reading.types, True, delays, idle=order.idle_us, revise=order.revise_us)
    job = Job(reading, stream_groups(plan), buckets, np.zeros(0, dtype=np.int64), order=order)
    outcome = ResultRows(plan, by_frontier=len(frontier_groups(plan)) > 1)
    return Setup(job, outcome, frontier, {"use of sources": sourced}, limits=SMALL)


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


class FollowedGroup:
    """The subscriptions with one frontier, and by definition what becomes of each row that they read: the frontier is that of
    the micro-batches before, and a round is a micro-batch."""

    def __init__(self, group: FrontierGroup, sourced: bool) -> None:
        self.group, self.sourced = group, sourced
        order = group.plan.order
        assert order is not None
        self.order = order
        self.frontier = SequenceFrontier(order.delay_us or 0, order.idle_us, NOWHERE, {})
        self.accepted: list[Record] = []
        self.verdicts: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.known: set[tuple[Any, ...]] = set()
        self.fold: Counter[tuple[str, str]] = Counter()
        self.floor = NOWHERE

    def check(self, rows: Sequence[Record]) -> None:
        """`rows`: those of a micro-batch. The fold after it is that of everything that has been released."""
        revisions = set()
        for row in rows:
            if row["verdict"] not in RELATIONS:
                self.found[row["verdict"]] += set(row.get("subscriptions") or self.group.names) == set(self.group.names)
            elif row["subscription"] in self.group.names:
                self.fold[row["subscription"], row["relation_id"]] += -1 if row["verdict"] == "retracted" else 1
                revisions |= {row["revision"]} if row["verdict"] in RELATIONS[1:] else set()
        assert len(revisions) <= 1
        assert None not in revisions
        assert set(self.fold.values()) <= {0, 1}
        released = [each for each in self.accepted if microseconds(each["at"]) < self.frontier.at]
        assert sorted(identity for _, identity in self.fold.elements()) == sorted(batch_ids(self.group.plan, released))

    def judge(self, records: Sequence[Record], stored: Sequence[Any] | None) -> None:
        counted, frontier = [], self.frontier.at
        for number, each in enumerate(records):
            beat, time = each["type"] == "Heartbeat", microseconds(each["at"])
            if not beat and each["type"] not in self.group.types:
                continue
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
        self.frontier.follow(values, beats, [each.get("_source") if self.sourced else None for each in counted])


class Followed:
    """A stream by micro-batches. `groups`: the subscriptions that are there all the time."""

    def __init__(self, plan: Plan, setup: Setup, random: Random) -> None:
        self.plan, self.setup, self.random = plan, setup, random
        self.query = Streaming(setup, random)
        self.groups = [FollowedGroup(each, setup.job.reading.sourced) for each in frontier_groups(plan)]

    def batch(self, records: Sequence[Record], stored: Sequence[Any] | None = None) -> None:
        before = len(self.query.found)
        self.query.batch(rows_of(self.setup, self.plan, records, stored))
        rows = [row for table in self.query.found[before:] for row in table.to_pylist()]
        for each in self.groups:
            each.judge(records, stored)
            each.check(rows)

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

    def check_verdicts(self) -> None:
        """Every group has those of its own events, and nobody else has any."""
        for each in self.groups:
            assert +each.found == +each.verdicts
        assert sum((each.found for each in self.groups), Counter()) == Counter(apart(self.found))


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
    Followed(plan, setup_of(plan, buckets, sourced, stored is not None), random).follow(records, stored).check_verdicts()


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
    for each in followed.groups:
        mine = followed.query.table.filter(pc.is_in(pc.field("subscription"), pa.array(each.group.names)))
        read = [record for record in records if record["type"] in each.group.types]
        assert delivered(mine) == shown(plan, fairlead.match(each.group.plan, read).batches)
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
        (order,) = (each for each in sequencing.orders if target in each.targets)
        assert positions[-1] < order.back.next


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


def test_late_rows_have_the_number_of_their_round_and_a_repeated_micro_batch_has_the_same() -> None:
    plan = fairlead.compile(TYPES + REVISING + RULE)
    setup = setup_of(plan, 2, sourced=True)
    before = Sequencing(setup, None)
    list(before.step(arrivals(setup, plan, [event(10, 1), event(12, 2)])))
    state = before.dump()
    told = []
    for _ in range(2):
        again = Sequencing(setup, state)
        told += [name for _, name, _ in again.step(arrivals(setup, plan, [event(11, 3), event(14, 4)]))]
        assert again.kept() == 3
    assert told == ["A", ":late 1 A"] * 2
    quiet = Sequencing(setup, again.dump())
    list(quiet.step(arrivals(setup, plan, [event(20, 5)])))
    assert quiet.orders[0].revision == 1
    assert quiet.kept() == 1  # event 4, and not those that are behind by more than d


def arrivals(setup: Setup, plan: Plan, records: Sequence[Record]) -> dict[str, pa.Table]:
    blobs = arrived(setup, rows_of(setup, plan, records).to_batches())
    return {each.column(1)[0].as_py(): unpacked(each.column(2)[0].as_py()) for each in blobs}


ALIKE = {"alike": "SUBSCRIPTION S MATCH A a THEN B b PER k SUBSCRIPTION T MATCH B b[2] AND A a"}


@settings(deadline=None, max_examples=20)
@given(SEEDS, st.sampled_from((1, 3)), st.sampled_from(("chain", "recent", "spread", "alike")))
def test_when_rules_of_the_same_types_change_the_past_is_not_revised_any_more(seed: int, buckets: int, name: str) -> None:
    """What stays goes on, and finds what it finds in the rows that were accepted; also where another subscription of its task
    comes and goes. Those that read other types change nothing."""
    random = Random(seed)
    whole = fairlead.compile(TYPES + ORDERS[0] + (PLANS | KEYED | ALIKE)[name])
    names = [each.name for each in whole.subscriptions]
    records = sequence(random, 50, late=0.4)
    followed = Followed(alone(whole, names[:1]), setup_of(alone(whole, names[:1]), buckets, sourced=True), random)
    low, is_one = 0, True
    while low < len(records):
        if random.random() < 0.2:
            is_one = not is_one
            plan = alone(whole, names[:1] if is_one else names)
            followed.setup = followed.query.setup = setup_of(plan, buckets, sourced=True)
            if name == "alike":
                followed.groups[0].floor = followed.groups[0].frontier.at
        high = low + random.choice((1, 3, 8))
        followed.batch(records[low:high])
        low = high


def test_an_event_is_late_for_those_whose_frontier_has_passed_it_and_nobody_else_has_a_verdict_on_it() -> None:
    """B is far ahead of A, and C, which nobody reads, of both."""
    rules = "ORDER BY at DELAY 1 SECOND SUBSCRIPTION RA MATCH A a SUBSCRIPTION RB MATCH B b SUBSCRIPTION RC MATCH A a AND B b"
    plan = fairlead.compile(TYPES + rules)
    setup = setup_of(plan, 2, sourced=True)
    query = Streaming(setup, Random(1))
    for batch in ([("C", 90)], [("A", 10), ("B", 50)], [("A", 20), ("B", 30), ("C", 1)], [("A", 40), ("B", 60)]):
        query.batch(rows_of(setup, plan, [event(second, second, kind) for kind, second in batch]))
    rows = query.table.to_pylist()
    assert [
        (row["members"][0]["type"], row["reason"].partition("; ")[2], tuple(row["subscriptions"]))
        for row in sorted(rows, key=lambda row: (row["reason"] or "", row["subscriptions"] or ()))
        if row["verdict"] == "late"
    ] == [
        ("A", "sequence 20 of source p", ("RC",)),
        ("B", "sequence 30 of source p", ("RB",)),
        ("B", "sequence 30 of source p", ("RC",)),
        ("A", "sequence 40 of source p", ("RC",)),
    ]
    found = [(row["subscription"], row["members"][0]["x"], row["completed_at"]) for row in rows if row["verdict"] == "in order"]
    assert sorted(found) == [("RA", 10, 0), ("RA", 20, 1), ("RB", 50, 0), ("RC", 10, 1)]


def test_a_rejected_row_is_reported_at_once_and_once() -> None:
    plan = fairlead.compile(TYPES + "ORDER BY at DELAY 1 SECOND SUBSCRIPTION RA MATCH A a SUBSCRIPTION RB MATCH B b")
    plain = setup_of(plan, 2, sourced=True)
    setup = replace(plain, job=replace(plain.job, reading=replace(plain.job.reading, on_bad="skip")))
    query = Streaming(setup, Random(1), crashes=False)
    rows = rows_of(setup, plan, [event(10, 1), event(11, 2, "B")])
    codes = pa.array([None, rows.column(CODE)[1].as_py()], pa.int32())
    query.batch(rows.set_column(0, CODE, codes).set_column(1, TYPE, pa.array(["Nothing", None])))
    assert [(row["verdict"], row["completed_at"]) for row in query.table.to_pylist()] == [("rejected", None)]
