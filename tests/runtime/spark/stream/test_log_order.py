"""A stream on Spark over a log, without Spark: rows say where in the log they are, so verdicts, relations and revisions are
those of live subscribers, whatever the micro-batches and the order of rows in them.

Logs are generated: topics, blocks, clocks that are set back, equal times of storage, heartbeats of publishers and of readers
that wait. The machine of live subscribers (runtime/event_time) follows the one order of the streams (order/merging.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import StateError
from fairlead.model.events.values import microseconds
from fairlead.model.plans.plan import Plan
from fairlead.order.log_holdback import OFFSET, TOPIC
from fairlead.order.merging import Merging
from fairlead.runtime.event_time import EventTimeMatcher, FrontierGroup, frontier_groups
from fairlead.runtime.spark.stream.sequencing import Sequencing
from fairlead.runtime.spark.stream.stream_job import LOG_ORDER, Setup
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.names import topic_stream
from tests.runtime.event_time.sequences import PLANS, TYPES, Record, as_microseconds, compiled, read, sequence, stored_times
from tests.runtime.spark.stream import test_revisions
from tests.runtime.spark.stream.rounds import Streaming
from tests.runtime.spark.stream.test_revisions import RELATIONS, SMALL, rows_of

TAGGING = (
    "ORDER BY at DELAY 1 SECOND ",
    "ORDER BY at, x DESC DELAY 2 SECONDS PER SOURCE IDLE 3 SECONDS AHEAD 4 SECONDS ",
)
APART = {
    "apart": "SUBSCRIPTION S MATCH A a THEN B b PER k SUBSCRIPTION T MATCH C c[2] SUBSCRIPTION U MATCH B b "
    "SUBSCRIPTION V MATCH B b THEN A a SUBSCRIPTION W MATCH B b WITHOUT C c WITHIN 2 SECONDS OF b PER k"
}
"""Subscriptions with four frontiers, some of which are alone with theirs."""
ORDERS = (*TAGGING, *test_revisions.ORDERS)
NAMES = ("zeta", "Älpha", "main")
"""Streams are not sorted as their topics are."""


@dataclass(frozen=True)
class LoggedBlock:
    topic: str
    number: int
    time: datetime
    records: tuple[Record, ...]

    @property
    def offsets(self) -> list[int]:
        return [(self.number << INDEX_BITS) + at for at in range(len(self.records))]


def log_of(random: Random, records: Sequence[Record], *, everywhere: bool = False) -> list[LoggedBlock]:
    """The records in blocks of topics, in the one order of the streams. `everywhere`: heartbeats are stored in every topic, as
    publishers do, under the same numbers."""
    topics = NAMES[: random.choice((1, 2, 3))]
    topic_of = {name: random.choice(topics) for name in "ABC"}
    numbers: Counter[str] = Counter()
    merging: Merging[LoggedBlock] = Merging([topic_stream(each) for each in topics])
    found: list[Any] = []
    times, low = stored_times(records, random), 0
    while low < len(records):
        topic = topic_of.get(records[low]["type"], random.choice(topics))
        high = low + 1
        while high < len(records) and random.random() < 0.7 and topic_of.get(records[high]["type"], topic) == topic:
            high += 1
        mine = records[low:high]
        if random.random() < 0.2:
            mine = [{"type": "Heartbeat", "at": datetime(1, 1, 1, tzinfo=UTC), "_source": "=pulse", "_sequence": low}]
            high = low
        beats = everywhere and high > low and all(each["type"] == "Heartbeat" for each in mine)
        if beats:
            mine = [each | {"_source": "p", "_sequence": low + at} for at, each in enumerate(mine)]
        for each in topics if beats else [topic]:
            numbers[each] += 1
            time = times[max(0, low - random.choice((0, 0, 0, 1, 4)))]  # some clocks are set back
            block = LoggedBlock(each, numbers[each], time, tuple(mine))
            found += merging.push(topic_stream(each), microseconds(time), block.number, block)
        low = high
    for each in topics:
        found += merging.end(topic_stream(each))
    return [each.item for each in found]


def setup_of(plan: Plan, buckets: int, ahead: bool) -> Setup:
    plain = test_revisions.setup_of(plan, buckets, sourced=True, ahead=ahead)
    reading = replace(plain.job.reading, logged=True)
    return replace(plain, job=replace(plain.job, reading=reading), identity={**plain.identity, LOG_ORDER: True})


def logged_rows(setup: Setup, plan: Plan, blocks: Sequence[LoggedBlock], random: Random) -> pa.Table:
    """The events of these blocks, in any order."""
    records = [each for block in blocks for each in block.records]
    stored = [block.time for block in blocks for _ in block.records]
    made = rows_of(setup, plan, records, stored)
    made = made.append_column(TOPIC, pa.array([block.topic for block in blocks for _ in block.records], pa.string()))
    made = made.append_column(OFFSET, pa.array([at for block in blocks for at in block.offsets], pa.int64()))
    return made.take(pa.array(random.sample(range(len(made)), len(made))))


@dataclass
class Told:
    """What a runtime says to the subscriptions with one frontier: events with a verdict, how many repeats, relations, and the
    changes of each round that has any."""

    verdicts: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    repeats: int = 0
    relations: Counter[str] = field(default_factory=Counter)
    rounds: list[Counter[tuple[str, str]]] = field(default_factory=list)


def live(group: FrontierGroup, blocks: Sequence[LoggedBlock], ahead: bool) -> Told:
    """Blocks without events of its types, or heartbeats, are none of its."""
    plan = group.plan
    matcher = EventTimeMatcher(plan, INDEX_BITS, limits=SMALL)
    told = Told()
    for number, block in enumerate(blocks):
        first = (number + 1) << INDEX_BITS
        (columns,) = read(plan, block.records)
        placed = replace(columns, positions=range(first, first + len(columns)), last_position=first + len(columns) - 1)
        mine = group.share(placed)
        if not len(mine):
            continue
        stored = as_microseconds([block.time] * len(mine)) if ahead else None
        found = matcher.step(mine, stored, closed=True)
        told.repeats += found.duplicates
        for position, verdict in zip(found.verdicts.columns.positions, found.verdicts.verdicts, strict=True):
            if verdict.value == "repeated":
                told.repeats += 1
            else:
                record = block.records[position - first]
                told.verdicts[verdict.value, record["type"], origin(record.get("_source"), record.get("_sequence"))] += 1
        rounds = [-1] * len(found.relations) if found.rounds is None else found.rounds.tolist()
        changes = [
            ("added" if r.sign > 0 else "retracted", r.id) for r, n in zip(found.relations, rounds, strict=True) if n >= 0
        ]
        told.relations.update(r.id for r, n in zip(found.relations, rounds, strict=True) if n < 0)
        told.rounds += [Counter(changes)] if changes else []
    return told


def origin(source: str | None, sequence: int | None) -> str:
    return "" if sequence is None else f"sequence {sequence} of source {source}"


def on_spark(group: FrontierGroup, tables: Sequence[pa.Table]) -> Told:
    told, rounds = Told(), dict[int, Counter[tuple[str, str]]]()
    for row in (row for table in tables for row in table.to_pylist()):
        whose = row.get("subscriptions") or group.names if row["verdict"] not in RELATIONS else [row["subscription"]]
        if not set(whose) <= set(group.names):
            continue
        if row["verdict"] == "repeated":
            told.repeats += 1
        elif row["verdict"] not in RELATIONS:
            _, _, told_origin = row["reason"].partition("; ")
            told.verdicts[row["verdict"], row["members"][0]["type"], told_origin] += 1
        elif row["verdict"] == "in order":
            told.relations[row["relation_id"]] += 1
        else:
            rounds.setdefault(row["revision"], Counter())[row["verdict"], row["relation_id"]] += 1
    told.rounds = [rounds[number] for number in sorted(rounds)]
    return told


def stretches(random: Random, blocks: Sequence[LoggedBlock]) -> Iterator[Sequence[LoggedBlock]]:
    low = 0
    while low < len(blocks):
        size = random.choice((1, 1, 3, 10, len(blocks)))
        yield blocks[low : low + size]
        low += size


@given(st.integers(0, 2**32), st.sampled_from(ORDERS), st.sampled_from(sorted(PLANS | APART)))
def test_micro_batches_of_a_log_say_what_live_subscribers_say(seed: int, order: str, name: str) -> None:
    """Each subscription by the events that it reads, alone with its upstream."""
    random, plan = Random(seed), compiled(TYPES + order + (PLANS | APART)[name])
    records = sequence(random, random.randrange(2, 60))
    blocks, ahead = log_of(random, records), "AHEAD" in order
    setup = setup_of(plan, random.choice((1, 3)), ahead)
    query = Streaming(setup, random)
    for some in stretches(random, blocks):
        query.batch(logged_rows(setup, plan, some, random))
    for each in frontier_groups(plan):
        assert on_spark(each, query.found) == live(each, blocks, ahead)


@given(st.integers(0, 2**32), st.sampled_from(ORDERS))
def test_heartbeats_that_are_stored_in_every_topic_are_no_repeats(seed: int, order: str) -> None:
    """What else is said is what live subscribers say, who do not report them either."""
    random, plan = Random(seed), compiled(TYPES + order + APART["apart"])
    unique = {str(each): each for each in sequence(random, random.randrange(2, 60))}
    blocks, ahead = log_of(random, [*unique.values()], everywhere=True), "AHEAD" in order
    setup = setup_of(plan, random.choice((1, 3)), ahead)
    query = Streaming(setup, random)
    for some in stretches(random, blocks):
        query.batch(logged_rows(setup, plan, some, random))
    for each in frontier_groups(plan):
        assert on_spark(each, query.found) == replace(live(each, blocks, ahead), repeats=0)


@pytest.mark.parametrize("was_logged", [True, False])
def test_a_state_is_refused_if_rows_no_longer_say_where_in_a_log_they_are_or_say_it_now(was_logged: bool) -> None:
    plan = compiled(TYPES + ORDERS[-1] + PLANS["pairs"])
    logged = setup_of(plan, 1, ahead=False)
    plain = test_revisions.setup_of(plan, 1, sourced=True)
    before, now = (logged, plain) if was_logged else (plain, logged)
    with pytest.raises(StateError, match=r"S111.*order of a log"):
        Sequencing(now, Sequencing(before, None).dump())
