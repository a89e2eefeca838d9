"""A stream gives what the embedded runtime gives, however it is cut into micro-batches, and whatever fails on the way."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairlead
from fairlead.engine import Engine
from fairlead.errors import DataError, StateError
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.plans.partition import alone
from fairlead.model.plans.plan import Plan
from fairlead.order.holdback import Frontier, head_and_rest, with_head
from fairlead.runtime.spark.input.arrivals import CODE
from fairlead.runtime.spark.stream import target_task
from fairlead.runtime.spark.stream.sequencing import Sequencing
from fairlead.runtime.spark.stream.stream_job import BLOB_BYTES
from fairlead.runtime.spark.stream.target_task import fed, kept, resumed
from fairlead.transport.events import read_events
from tests.matching.generators.generated import Case, cases
from tests.matching.generators.nested import nested_cases
from tests.matching.generators.plans import plan_cases
from tests.runtime.spark.job.in_process import counts, delivered, embedded, input_table, reading_of, shown
from tests.runtime.spark.job.test_shuffle import BUCKETS, FEWER, FITTING, ConformanceCase, compiled, repeats
from tests.runtime.spark.stream.rounds import Streaming, closed, mixed, setup_of, streamed

SEEDS = st.integers(0, 2**32)
ONE = fairlead.compile("TYPE A (x INT)\nTYPE B (x INT)\nSUBSCRIPTION S MATCH A a AND B b WHERE a.x = b.x PER x")


def compared(
    plan: Plan, events: list[dict[str, Any]], until: Any, buckets: int, random: Random, blob_bytes_max: int = BLOB_BYTES
) -> None:
    sourced = any("_sequence" in each or "_source" in each for each in events)
    found = streamed(plan, closed(events, until), buckets, random, sourced, blob_bytes_max=blob_bytes_max)
    assert delivered(found) == embedded(plan, events, until)
    again = [row["completed_at"] for row in found.to_pylist() if row["verdict"] != "in order"]
    assert sorted(again) == repeats(events)


@given(st.one_of(plan_cases(), cases()), BUCKETS, SEEDS)
def test_generated_plans_give_what_they_give_embedded(case: Case, buckets: int, seed: int) -> None:
    compared(compiled(case.rules), case.events, case.until, buckets, Random(seed))


@pytest.mark.parametrize("case", FITTING, ids=str)
def test_conformance_cases_give_what_they_give_embedded(case: ConformanceCase) -> None:
    """Which is what they expect (tests/conformance). `until` is a heartbeat one microsecond later."""
    plan = fairlead.compile(case.rules)
    for buckets in (1, 2, 8):
        compared(plan, [dict(each) for each in case.events], case.until, buckets, Random(buckets))


@FEWER
@given(plan_cases(), BUCKETS, st.data())
def test_repeats_of_a_sequence_are_dropped_wherever_micro_batches_end(case: Case, buckets: int, data: st.DataObject) -> None:
    sources, sequences = st.sampled_from(("p", "q", None)), st.sampled_from((None, 1, 2, 3, 4, 5, 9))
    events = [each | {"_source": data.draw(sources), "_sequence": data.draw(sequences)} for each in case.events]
    compared(compiled(case.rules), events, case.until, buckets, Random(data.draw(SEEDS)))


@FEWER
@given(plan_cases(), BUCKETS, st.data())
def test_positions_of_a_log_are_the_positions_of_relations(case: Case, buckets: int, data: st.DataObject) -> None:
    plan = compiled(case.rules)
    count = len(case.events)
    positions = sorted(data.draw(st.lists(st.integers(0, 60), min_size=count, max_size=count, unique=True)))
    rows = input_table(plan, reading_of(plan, 1), case.events, [pa.array(positions, pa.int64())])
    random = Random(data.draw(SEEDS))
    query = Streaming(setup_of(plan, buckets, Frontier((), positioned=True), positioned=True), random)
    start = 0
    while start < count:
        size = random.choice((1, 3, count))
        query.batch(rows.slice(start, size))
        if random.random() < 0.5:
            query.batch(rows.slice(start, 1))  # the log is read again: it is late
        start += size
    wanted = [
        Engine(plan).feed(replace(columns, positions=positions, last_position=None))
        for columns in read_events(case.events, plan.catalogue)
    ]
    assert delivered(query.table) == shown(plan, wanted)


def test_many_events_go_over_to_kernels_and_come_back_from_states_between_micro_batches() -> None:
    plan = fairlead.compile(
        """
        TYPE A (k INT, x INT, at TIMESTAMP) TIME at
        TYPE B (k INT, x INT, at TIMESTAMP) TIME at
        SUBSCRIPTION Keyed MATCH A a AND B b WHERE a.x < b.x PER k WITHIN 100 SECONDS EMIT C (k = a.k)
        SUBSCRIPTION Unkeyed MATCH A a THEN B b WHERE a.x = b.x DISPOSAL INFIX
        SUBSCRIPTION Nested MATCH C c[2] WHERE c[1].k = c[2].k
        SUBSCRIPTION Absent MATCH A a WHERE a.x = 1 WITHOUT B b WITHIN 5 SECONDS OF a WHERE b.k = a.k
        """
    )
    random = Random(7)
    names = [random.choice(("A", "A", "B", "B", "B", "Heartbeat" if at % 50 == 0 else "A")) for at in range(12_000)]
    events = [
        {"type": name, "at": at / 10} | ({} if name == "Heartbeat" else {"k": random.randrange(50), "x": random.randrange(20)})
        for at, name in enumerate(names)
    ]
    rows = input_table(plan, reading_of(plan, 1), closed(events), [pa.array(range(len(events) + 1), pa.int64())])
    wanted = embedded(plan, events)
    assert all(counts(plan, wanted).values())
    for sizes in ((4_000,), (700, 3_000, 90)):
        query = Streaming(setup_of(plan, 4, Frontier(("A", "B", HEARTBEAT.name))), random)
        start = 0
        while start < len(rows):
            size = random.choice(sizes)
            query.batch(rows.slice(start, size))
            start += size
        assert delivered(query.table) == wanted


def test_a_task_goes_over_to_kernels_though_no_worker_has_seen_enough_events_for_it() -> None:
    setup = setup_of(ONE, 1, Frontier(("A", "B"), together=True))
    state, whose = None, Sequencing(setup, None).whose(0)
    for start in range(0, 8_000, 2_000):
        target_task._TASKS.clear()  # another worker
        task = resumed(setup, 0, 1, state, whose)
        positions = pa.array(range(start, start + 2_000), pa.int64())
        list(fed(setup, task, {"A": [pa.table({"x": pa.nulls(2_000, pa.int32()), "_position": positions})]}))
        state = kept(setup, 0, task)
        assert (task.engine.lane is not None) == (start >= 4_000)


def late_and_refused(rows: pa.Table, **options: Any) -> tuple[Streaming, list[dict[str, Any]]]:
    setup = setup_of(ONE, 2, Frontier(("A", "B"), together=True), **options)
    reading = replace(setup.job.reading, on_bad="skip")
    query = Streaming(replace(setup, job=replace(setup.job, reading=reading)), Random(1), crashes=False)
    for at in range(len(rows)):
        query.batch(rows.slice(at, 1))
    return query, query.table.to_pylist()


def table(numbers: list[int | None], types: str) -> pa.Table:
    events = [{"type": name, "x": at} for at, name in enumerate(types)]
    return input_table(ONE, reading_of(ONE, 1), events, [pa.array(numbers, pa.int64())])


def test_what_comes_behind_is_told_with_its_attributes() -> None:
    _, found = late_and_refused(table([5, 7, 4, 5, 9], "ABAAB"))
    assert [(row["verdict"], row["members"][0]["type"], row["members"][0]["x"]) for row in found] == [
        ("late", "A", 2),
        ("late", "A", 3),
    ]
    assert {row["reason"] for row in found} == {"late: later events of the order were already released"}


def test_rows_without_an_order_value_are_refused_and_the_rest_goes_on() -> None:
    query, found = late_and_refused(table([5, None, 7], "ABA"))
    assert [(row["verdict"], row["completed_at"], row["reason"]) for row in found] == [
        ("rejected", None, "D019 the row has no value in the order column 'number' B")
    ]
    assert Sequencing(query.setup, query.sequence).orders[0].back.next == 1


@pytest.mark.parametrize("position", [None, -1, 2**42])
def test_positions_that_are_none_are_refused(position: int | None) -> None:
    _, found = late_and_refused(table([5, position], "AB"), positioned=True)
    assert [row["reason"] for row in found] == [f"D023 {position} is no position B"]


def test_a_row_without_an_order_value_stops_a_stream_that_is_to_stop() -> None:
    query = Streaming(setup_of(ONE, 2, Frontier(("A", "B"))), Random(1))
    with pytest.raises(DataError, match="D019 the row has no value in the order column 'number'"):
        query.batch(table([None], "A"))


def test_a_stream_keeps_the_number_of_buckets_that_it_began_with() -> None:
    frontier = Frontier(("A", "B"), together=True)
    began = Sequencing(setup_of(ONE, 4, frontier), None)
    assert Sequencing(setup_of(ONE, 8, frontier), began.dump()).buckets == 4


def test_a_large_table_is_cut_into_blobs_that_come_in_any_order() -> None:
    random = Random(3)
    events = [{"type": random.choice("AB"), "x": random.randrange(5)} for _ in range(300)]
    compared(ONE, events, None, 2, random, blob_bytes_max=100)


def test_the_state_of_another_order_or_version_is_refused_and_what_differs_is_said() -> None:
    frontier = Frontier(("A", "B"), together=True)
    mine, other = setup_of(ONE, 2, frontier), setup_of(ONE, 2, frontier, sourced=True)
    whose = Sequencing(mine, None).whose(0)
    state = kept(mine, 0, resumed(mine, 0, 2, None, whose))
    with pytest.raises(StateError, match="S111 the checkpoint was made with another use of sources"):
        resumed(other, 0, 2, state, whose)
    with pytest.raises(StateError, match="S111"):
        Sequencing(other, Sequencing(mine, None).dump())
    head, rest = head_and_rest(state)
    with pytest.raises(StateError, match="S110 the checkpoint has version 1, this release reads version 6"):
        resumed(mine, 0, 2, with_head(head | {"version": 1}, bytes(rest)), whose)


@settings(max_examples=40, deadline=None)
@given(st.one_of(plan_cases(), nested_cases(14)), BUCKETS, SEEDS)
def test_rules_change_and_what_is_unchanged_goes_on(case: Case, buckets: int, seed: int) -> None:
    """Anywhere in the stream, several times, with rows held back and micro-batches that fail: rules leave and others come. What
    was there all the time finds what it finds undisturbed, in the same order; what comes back begins anew."""
    random, plan = Random(seed), compiled(case.rules)
    names = [each.name for each in plan.subscriptions]
    always = random.sample(names, random.randint(1, len(names)))
    events = closed(case.events, case.until)
    together = random.random() < 0.3
    query: Streaming | None = None
    start, order = 0, list[int]()
    while start < len(events):
        some = alone(plan, sorted({*always, *random.sample(names, random.randint(0, len(names)))}, key=names.index))
        reading = reading_of(some, 1, False)
        rows = input_table(some, reading, events, [pa.array(range(len(events)), pa.int64())])
        types = [reading.types[code] for code in rows.column(CODE).to_pylist()]
        frontier = Frontier(tuple(sorted(set(types))), together=together)
        order = order or (list(range(len(events))) if together else mixed(types, random))
        setup = setup_of(some, buckets, frontier)
        if query is None:
            query = Streaming(setup, random)
        query.setup = setup
        for _ in range(random.randint(1, 3)):
            size = random.choice((1, 2, 5, 20))
            if start < len(events):
                query.batch(rows.take(pa.array(order[start : start + size])))
                start += size
    assert query is not None
    found: list[tuple[int, int, str, str]] = []
    for batch in query.found:
        for row in batch.select(["verdict", "subscription", "relation_id", "completed_at", "turn"]).to_pylist():
            if row["verdict"] == "in order" and row["subscription"] in always:
                found.append((row["completed_at"], row["turn"], row["subscription"], row["relation_id"]))
    expected = [each for each in fairlead.match(plan, case.events, until=case.until) if each.subscription in always]
    assert [each[2:] for each in sorted(found)] == [(each.subscription, each.id) for each in expected]


A_AND_B = "TYPE A (k STRING, {}) TIME at TYPE B (k STRING, at TIMESTAMP) TIME at SUBSCRIPTION {} MATCH A a AND B b PER k"


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ("x DOUBLE, y DOUBLE, at TIMESTAMP", "Y"),
        ("y DOUBLE, x DOUBLE, at TIMESTAMP", "X"),
        ("x DOUBLE, y DOUBLE, at TIMESTAMP, z INT", "X"),
        ("x DOUBLE, at TIMESTAMP", "X"),
        ("x DOUBLE, y INT, at TIMESTAMP", "X"),
    ],
)
def test_a_worker_that_is_used_again_has_the_names_and_types_of_the_new_start(attributes: str, name: str) -> None:
    """Neither is part of what a subscription asks for, so its state goes on; what the worker kept of it is of the old ones."""
    given = [{"type": type, "k": "h", "at": datetime(2026, 1, 1, second=at, tzinfo=UTC)} for at, type in enumerate("AAABBA")]
    query: Streaming | None = None
    for number, rules in enumerate((A_AND_B.format("x DOUBLE, y DOUBLE, at TIMESTAMP", "X"), A_AND_B.format(attributes, name))):
        plan = compiled(rules)
        known = {each.name for each in plan.catalogue["A"].attributes}
        values = {each: value for each, value in (("x", 1.0), ("y", 2), ("z", 3)) if each in known}
        events = [each | values if each["type"] == "A" else each for each in given]
        reading = reading_of(plan, 1, False)
        rows = input_table(plan, reading, events, [pa.array(range(len(events)), pa.int64())])
        setup = setup_of(plan, 2, Frontier(("A", "B"), together=True))
        query = query or Streaming(setup, Random(1), crashes=False)
        query.setup, query.found = setup, []
        query.batch(rows.slice(3 * number, 3))
    assert query is not None
    table = query.table
    assert table.schema == setup.outcome.schema
    assert set(table.column("subscription").to_pylist()) == {name}
    assert table.column("relation_id").to_pylist() == [each.id for each in fairlead.match(plan, events)]
