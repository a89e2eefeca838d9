"""The columns of the result tell the one order of delivery over all subscriptions, whichever tasks these run in.

One plan with all forms of tasks, in many orders of its text: names and forms of what an event completes stand in any order to
one another. Random plans are in test_shuffle.py and test_stream_steps.py, real sessions in test_agreement.py,
test_stream_job.py and test_conformance.py."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import fairlead
from fairlead.model.plans.plan import Plan
from fairlead.runtime.embedded import until_microseconds
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spread.targets import groups_of
from tests.runtime.spark.job.in_process import counts, delivered, embedded, input_table, job_of, reading_of, run
from tests.runtime.spark.stream.rounds import closed, streamed

TYPES = """
TYPE A (j INT, k INT, at TIMESTAMP) TIME at
TYPE B (j INT, k INT, at TIMESTAMP) TIME at
TYPE S EXTENDS A ()
"""
RULES = (
    "SUBSCRIPTION Keyed MATCH A a THEN B b PER k",
    "SUBSCRIPTION Alike MATCH A a THEN B b PER j",
    "SUBSCRIPTION Either MATCH (A a AND B b) OR (A a[2] AND B b) OR (B b) PER k",
    "SUBSCRIPTION Two_keys MATCH A a AND S s PER a.j = s.k",
    "SUBSCRIPTION Unkeyed MATCH A a AND B b",
    "SUBSCRIPTION One_type MATCH B b",
    "SUBSCRIPTION Emits MATCH A a EMIT D (k = a.k, at = a.at) TIME at",
    "SUBSCRIPTION Also_emits MATCH A a THEN B b PER k EMIT D (k = b.k, at = b.at) TIME at",
    "SUBSCRIPTION Reads MATCH D d THEN B b WITHIN 5 SECONDS",
    "SUBSCRIPTION Reads_alone MATCH D d",
    "SUBSCRIPTION Quiet MATCH A a WITHOUT B b WITHIN 1 SECOND OF a WHERE b.k = a.k EMIT Q (k = a.k)",
    "SUBSCRIPTION Calm MATCH A a WITHOUT B b WITHIN 1 SECOND OF a WHERE b.j = a.j",
    "SUBSCRIPTION After_quiet MATCH Q q EMIT R (k = q.k)",
    "SUBSCRIPTION After_that MATCH R r OR Q q",
    "SUBSCRIPTION Quiet_below MATCH D d WITHOUT B b WITHIN 1 SECOND OF d",
)
UNTIL = "1970-01-01T00:10:00Z"


def given(random: Random) -> tuple[Plan, list[dict[str, object]]]:
    plan = fairlead.compile(TYPES + "\n".join(random.sample(RULES, len(RULES))))
    events: list[dict[str, object]] = []
    for at in range(120):
        name = "Heartbeat" if at % 20 == 19 else random.choice("AABBS")
        keys = {} if name == "Heartbeat" else {"j": random.randrange(3), "k": random.randrange(3)}
        events.append({"type": name, "at": at // 4, **keys})
    return plan, events


@pytest.mark.parametrize("seed", range(6))
def test_the_columns_tell_the_order_of_the_embedded_runtime(seed: int) -> None:
    random = Random(seed)
    plan, events = given(random)
    wanted = embedded(plan, events, UNTIL)
    assert all(counts(plan, wanted).values()), counts(plan, wanted)
    for buckets in (1, 4):
        reading = reading_of(plan, 1)
        rows = input_table(plan, reading, events, [pa.array(range(len(events)), pa.int64())])
        cuts = sorted(random.sample(range(len(events)), 2))
        job = job_of(plan, reading, buckets, cuts, until_microseconds(UNTIL))
        assert delivered(run(job, ResultRows(plan, certain=True), rows, random)) == wanted
        assert delivered(streamed(plan, closed(events), buckets, random)) == embedded(plan, events)


def test_the_turns_of_an_event() -> None:
    """Before it counted back, at it by the text (Y has up to two, X and W one each), after it counted on."""
    rules = """
    SUBSCRIPTION Z MATCH B b
    SUBSCRIPTION Y MATCH (A a AND B b) OR B b PER k EMIT D (k = b.k)
    SUBSCRIPTION X MATCH D d
    SUBSCRIPTION W MATCH A a WITHOUT B b WITHIN 1 SECOND OF a
    """
    plan = fairlead.compile(TYPES + rules)
    events = [{"type": name, "at": at, "j": 1, "k": 1} for name, at in (("A", 0), ("A", 0), ("B", 9), ("B", 9))]
    columns = (
        ResultRows(plan).relations(fairlead.match(plan, events).relations).select(["subscription", "completed_at", "turn"])
    )
    found = [tuple(row.values()) for row in columns.to_pylist()]
    before = [("W", 2, -2), ("W", 2, -1)]
    beside = [[("Z", at, 0), ("Y", at, 1), ("Y", at, 2), ("X", at, 5), ("X", at, 6)] for at in (2, 3)]
    assert found == [*before, *beside[0], *beside[1]]


def test_what_stands_beside_an_event_is_of_one_task() -> None:
    """Which turns rely on: no other task counts there."""
    for seed in range(3):
        plan, events = given(Random(seed))
        forms = {name: group.form for group in groups_of(plan) for name in group.names}
        assert set(forms.values()) == {"keyed", "ordered", "nested"}
        found = fairlead.match(plan, events, until=UNTIL).relations
        assert {forms[each.subscription] for each in found if each.completed_at.minor} == {"nested"}
        assert sum(group.form == "nested" for group in groups_of(plan)) == 1


def test_the_verdicts_of_a_revision_are_retracted_and_added_and_its_rows_have_its_number() -> None:
    rules = "TYPE A (x INT, at TIMESTAMP) TIME at {} SUBSCRIPTION S MATCH A a"
    plan = fairlead.compile(rules.format("ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 1 MINUTE"))
    first, second = fairlead.match(plan, [{"type": "A", "x": 1, "at": 1}, {"type": "A", "x": 2, "at": 2}])
    rows = ResultRows(plan).revised([second.taken_back()], [first], 7)
    assert rows.select(["verdict", "relation_id", "revision", "turn"]).to_pylist() == [
        {"verdict": "retracted", "relation_id": second.id, "revision": 7, "turn": 0},
        {"verdict": "added", "relation_id": first.id, "revision": 7, "turn": 1},
    ]
    delivered = ResultRows(plan).relations([first, second])
    assert delivered.column("verdict").to_pylist() == ["in order"] * 2
    assert delivered.column("revision").to_pylist() == [None] * 2
    assert "revision" not in ResultRows(fairlead.compile(rules.format("ORDER BY at"))).schema.names
