"""The steps of a Spark job, run here in every way that Spark might run them, give what the embedded runtime gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fairlead
from fairlead.engine import Engine
from fairlead.errors import DataError, LanguageError
from fairlead.model.plans.plan import Plan
from fairlead.runtime.embedded import until_microseconds
from fairlead.runtime.spark.job.batch_job import _together
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.testing.conformance import Case as ConformanceCase
from fairlead.transport.admission.sequences import LastSequences
from fairlead.transport.events import read_events
from tests.conformance.cases import CASES
from tests.matching.generators.generated import Case, cases
from tests.matching.generators.plans import plan_cases
from tests.order.slow import row_key
from tests.runtime.spark.job.in_process import delivered, embedded, input_table, job_of, reading_of, run, shown

BUCKETS = st.sampled_from((1, 2, 4, 8))
FITTING = [case for case in CASES if case.error is None]
"""What no table can hold, or what does not compile, is an error of test_conformance.py or of the language."""
FEWER = settings(max_examples=max(30, settings.default.max_examples // 3))
"""For what does not depend on the plan: plans of every kind are in test_generated_plans_give_what_they_give_embedded."""


def compiled(rules: str) -> Plan:
    try:
        return fairlead.compile(rules)
    except LanguageError:
        assume(False)
        raise


def compared(plan: Plan, events: list[dict[str, Any]], until: Any, buckets: int, cuts: list[int], seed: int) -> None:
    """Ordered by their index, whatever the partitions, batches, slices, buckets and tasks are."""
    sourced = any("_sequence" in each or "_source" in each for each in events)
    reading = reading_of(plan, 1, sourced)
    rows = input_table(plan, reading, events, [pa.array(range(len(events)), pa.int64())])
    random = Random(seed)
    job = job_of(plan, reading, buckets, cuts, until_microseconds(until), together=random.choice((1, buckets)))
    found = run(job, ResultRows(plan, certain=not sourced), rows, random)
    assert not list(unexpected_nulls(found))
    assert delivered(found) == embedded(plan, events, until)
    again = [row["completed_at"] for row in found.to_pylist() if row["verdict"] == "repeated"]
    assert sorted(again) == repeats(events)


def unexpected_nulls(table: pa.Table) -> Iterator[str]:
    """Columns that have a null where their field says that there is none."""
    members = table.column("members").combine_chunks()
    fields = [(field, table.column(field.name)) for field in table.schema]
    fields += [(field, members.flatten().field(field.name)) for field in members.type.value_type]
    for field, column in (*fields, (members.type.value_field, members.flatten())):
        if column.null_count and not field.nullable:
            yield field.name


def repeats(events: list[dict[str, Any]]) -> list[int]:
    """The positions of records that are dropped."""
    fresh = LastSequences().fresh([each.get("_source") for each in events], [each.get("_sequence") for each in events])
    return [] if fresh is None else [at for at, kept in enumerate(fresh) if not kept]


@given(st.one_of(plan_cases(), cases()), BUCKETS, st.lists(st.integers(0, 20), max_size=3, unique=True), st.integers(0, 2**32))
def test_generated_plans_give_what_they_give_embedded(case: Case, buckets: int, cuts: list[int], seed: int) -> None:
    compared(compiled(case.rules), case.events, case.until, buckets, sorted(cuts), seed)


@pytest.mark.parametrize("case", FITTING, ids=str)
def test_conformance_cases_give_what_they_give_embedded(case: ConformanceCase) -> None:
    plan = fairlead.compile(case.rules)
    events = [dict(each) for each in case.events]
    for buckets, cuts, seed in ((1, [], 1), (2, [2], 2), (8, [1, 3, 4], 3)):
        compared(plan, events, case.until, buckets, cuts, seed)


@FEWER
@given(plan_cases(), BUCKETS, st.lists(st.integers(0, 20), max_size=3, unique=True), st.data())
def test_repeats_of_a_sequence_are_dropped_wherever_slices_end(
    case: Case, buckets: int, cuts: list[int], data: st.DataObject
) -> None:
    sources, sequences = st.sampled_from(("p", "q", None)), st.sampled_from((None, 1, 2, 3, 4, 5, 9))
    events = [each | {"_source": data.draw(sources), "_sequence": data.draw(sequences)} for each in case.events]
    compared(compiled(case.rules), events, case.until, buckets, sorted(cuts), data.draw(st.integers(0, 2**32)))


@FEWER
@given(plan_cases(), BUCKETS, st.lists(st.integers(0, 60), max_size=3, unique=True), st.data())
def test_positions_of_a_log_are_the_positions_of_relations(
    case: Case, buckets: int, cuts: list[int], data: st.DataObject
) -> None:
    plan = compiled(case.rules)
    count = len(case.events)
    positions = sorted(data.draw(st.lists(st.integers(0, 60), min_size=count, max_size=count, unique=True)))
    reading = reading_of(plan, 1)
    rows = input_table(plan, reading, case.events, [pa.array(positions, pa.int64())])
    until = until_microseconds(case.until)
    job = job_of(plan, reading, buckets, sorted(cuts), until, positioned=True)
    found = run(job, ResultRows(plan), rows, Random(data.draw(st.integers(0, 2**32))))
    engine, wanted = Engine(plan), []
    for columns in read_events(case.events, plan.catalogue):
        wanted.append(engine.feed(replace(columns, positions=positions, last_position=None)))
    wanted.append(engine.finish(until))
    assert delivered(found) == shown(plan, wanted)


@pytest.mark.parametrize(
    ("positions", "code"), [([0, 0], "D034"), ([3, 3], "D034"), ([-1, 0], "D023"), ([0, 2**42 - 1], "D023")]
)
def test_positions_that_number_no_rows_are_refused(positions: list[int], code: str) -> None:
    plan = fairlead.compile("TYPE A (x INT)\nSUBSCRIPTION S MATCH A a")
    reading = reading_of(plan, 1)
    rows = input_table(plan, reading, [{"type": "A", "x": 1}, {"type": "A", "x": 2}], [pa.array(positions, pa.int64())])
    with pytest.raises(DataError) as error:
        run(job_of(plan, reading, 1, positioned=True), ResultRows(plan), rows, Random(1))
    assert error.value.code == code


KEYED = fairlead.compile("TYPE A (x INT, y DOUBLE) TYPE B (x INT, y DOUBLE) SUBSCRIPTION S MATCH A a THEN B b PER x")


@pytest.mark.parametrize("keys", [("x",), ("y",), ("x", "y"), ("y", "x")], ids="-".join)
@pytest.mark.parametrize("cuts", [[], [1, 2]], ids=["one slice", "slices"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_without_an_order_value_are_rejected_and_the_rest_is_matched(
    keys: tuple[str, ...], cuts: list[int], seed: int
) -> None:
    """Null in any order column, NaN in one of doubles; embedded, only the others are given."""
    random = Random(f"{keys} {seed}")
    events = [{"type": random.choice("AB"), "x": random.randrange(4), "y": random.randrange(4) / 2} for _ in range(40)]
    values = {name: [each[name] for each in events] for name in keys}
    for at in random.sample(range(40), 12):
        name = random.choice(keys)
        values[name][at] = float("nan") if name == "y" and random.random() < 0.5 else None
    known = [all(column[at] == column[at] and column[at] is not None for column in values.values()) for at in range(40)]
    reading = replace(reading_of(KEYED, len(keys)), on_bad="skip", order_by=keys)
    kinds = {"x": pa.int64(), "y": pa.float64()}
    rows = input_table(KEYED, reading, events, [pa.array(values[name], kinds[name]) for name in keys])
    found = run(job_of(KEYED, reading, 2, cuts if keys[0] == "x" else ()), ResultRows(KEYED), rows, random)
    others = in_their_order(KEYED, [each for each, fine in zip(events, known, strict=True) if fine], list(keys))
    assert delivered(found) == embedded(KEYED, others) != []
    told = [(row["completed_at"], row["reason"]) for row in found.to_pylist() if row["verdict"] == "rejected"]
    bad = [at for at, fine in enumerate(known) if not fine]
    firsts = [next(name for name in keys if values[name][at] is None or values[name][at] != values[name][at]) for at in bad]
    wanted = [f"D019 the row has no value in the order column '{name}' " for name in firsts]
    assert sorted(told) == sorted(
        ((None, said + str(events[at]["type"])) for said, at in zip(wanted, bad, strict=True)), key=lambda each: each[1]
    )
    with pytest.raises(DataError, match="D019 the row has no value"):
        run(job_of(KEYED, replace(reading, on_bad="stop"), 2), ResultRows(KEYED), rows, random)


@pytest.mark.parametrize("positions", [[None, 4, 7], [4, -1, 7], [2**42 - 1, 4, 7], [None, None, -3]])
def test_rows_without_a_position_are_rejected_and_the_others_keep_theirs(positions: list[int | None]) -> None:
    plan = fairlead.compile("TYPE A (x INT)\nSUBSCRIPTION S MATCH A a")
    reading = replace(reading_of(plan, 1), on_bad="skip")
    rows = input_table(plan, reading, [{"type": "A", "x": 1}] * 3, [pa.array(positions, pa.int64())])
    found = run(job_of(plan, reading, 1, positioned=True), ResultRows(plan), rows, Random(1)).to_pylist()
    bad = [each for each in positions if each not in (4, 7)]
    assert sorted(row["completed_at"] for row in found if row["verdict"] == "in order") == [4, 7][: 3 - len(bad)]
    assert sorted(row["reason"] for row in found if row["verdict"] == "rejected") == sorted(
        f"D023 {each} is no position A" for each in bad
    )


def in_their_order(plan: Plan, events: list[dict[str, Any]], columns: list[str]) -> list[dict[str, Any]]:
    def key(event: dict[str, Any]) -> Any:
        content = [event[each.name] for each in plan.catalogue[event["type"]].attributes]
        return row_key(event["type"], [event[each] for each in columns], (), content)

    return sorted(events, key=key)


@FEWER
@given(plan_cases(), BUCKETS, st.lists(st.integers(0, 20), max_size=3, unique=True), st.integers(0, 2**32))
def test_rows_without_an_index_are_ordered_by_time_type_and_content(
    case: Case, buckets: int, cuts: list[int], seed: int
) -> None:
    plan = compiled(case.rules)
    events = in_their_order(plan, case.events, ["at"])
    reading = reading_of(plan, 1)
    times = pa.array([each["at"] for each in events], pa.timestamp("us", tz="UTC")).cast(pa.int64())
    rows = input_table(plan, reading, events, [times])
    start = until_microseconds("2026-01-01T00:00:00Z")
    assert start is not None
    job = job_of(plan, reading, buckets, [start + 1_000_000 * each for each in sorted(cuts)], until_microseconds(case.until))
    found = run(job, ResultRows(plan), rows, Random(seed))
    assert delivered(found) == embedded(plan, events, case.until)


@pytest.mark.parametrize(
    ("rows", "tasks", "together"), [(0, 2, 1), (3_999_999, 2, 1), (20_000_000, 2, 10), (10**9, 2, 30), (10**9, 100, 1)]
)
def test_a_task_has_more_buckets_the_more_rows_there_are_and_never_mere_crumbs(rows: int, tasks: int, together: int) -> None:
    assert _together(rows, tasks) == together


def test_buckets_that_stand_together_are_of_one_task() -> None:
    plan = fairlead.compile("TYPE A (k INT, x INT) SUBSCRIPTION P MATCH A a[2] PER k SUBSCRIPTION Q MATCH A a[2]")
    job = job_of(plan, reading_of(plan, 1, False), 6, together=3)
    tasks: dict[int, list[bool]] = {}
    for target in range(job.targets):
        tasks.setdefault(job.task_of(target), []).append(job.group_of(target).is_keyed)
    assert sorted(tasks) == list(range(job.tasks))
    assert sorted(tasks.values()) == [[False], [True] * 3, [True] * 3]
