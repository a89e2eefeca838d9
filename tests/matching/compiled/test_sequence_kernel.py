"""The kernel of a sequence: the steps of its search, what it costs, tables that grow, what it forgets, what has none."""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fairlead.engine import Engine
from fairlead.errors import UnsupportedError
from fairlead.language import compile_text
from fairlead.matching.compiled.codegen.counters import HEAP, STEPS
from fairlead.matching.compiled.codegen.sequences import sequence_matches
from fairlead.matching.compiled.planning.eligibility import refusal_of, slow
from fairlead.matching.compiled.planning.sequences.sequence_steps import RepeatStep, TakingStep, sequence_steps
from fairlead.matching.compiled.planning.sequences.step_offers import offers_after
from fairlead.matching.compiled.running import retention
from fairlead.matching.compiled.running.sequences.sequence_kernel import SequenceKernel
from fairlead.matching.compiled.running.sequences.sequence_pool import SequencePool
from fairlead.model.events.columns import Columns
from fairlead.model.limits import LIMITS
from fairlead.model.plans.plan import Plan
from fairlead.model.plans.sequence import Chain, Choice, Loop, Take
from fairlead.transport.events import read_events
from tests.matching.equality.test_runs import shown
from tests.matching.generators.generated import START

TYPES = "\n".join(
    f"TYPE {name} (k BIGINT, x INT, s STRING, price DECIMAL(10,2), at TIMESTAMP) TIME at" for name in ("A", "B", "C")
)
LATER = 2_000_000_000_000_000
"""A time after all events, in microseconds."""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels' text as Python, with every index checked."""
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    monkeypatch.setenv("FAIRLEAD_KERNELS", "checked")


def plan_of(rule: str) -> Plan:
    return compile_text(f"{TYPES}\nSUBSCRIPTION S {rule}")


def events(count: int, keys: int, names: str = "AB", step: float = 1.0, seed: int = 5) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "type": draw.choice(names),
            "k": draw.randint(1, keys),
            "x": draw.randint(0, 9),
            "s": f"t{n // 3:05d}",
            "price": "1.50",
            "at": START + timedelta(seconds=n * step),
        }
        for n in range(count)
    ]


def batches(plan: Plan, given: list[dict[str, Any]], rows: int) -> list[Columns]:
    return list(read_events(given, plan.catalogue, batch_rows=rows))


def both(rule: str, given: list[dict[str, Any]], rows: int) -> tuple[Engine, list[Any]]:
    """The engine on kernels, after it delivered what event-by-event matching does; and that."""
    plan = plan_of(rule)
    one, kernels = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    expected = [each for columns in batches(plan, given, rows) for each in one.feed(columns)]
    found = [each for columns in batches(plan, given, rows) for each in kernels.feed(columns)]
    expected += one.finish(LATER)
    found += kernels.finish(LATER)
    assert shown(found) == shown(expected)
    assert kernels.dump() == one.dump()
    return kernels, shown(expected)


def kernel_of(engine: Engine) -> SequenceKernel:
    lane = engine.units[0].lane
    assert lane is not None
    kernel = lane.families[0].kernel
    assert isinstance(kernel, SequenceKernel)
    return kernel


def pool_of(engine: Engine) -> SequencePool:
    return kernel_of(engine).pool


def test_a_deadline_moves_to_the_end_of_a_list_and_only_those_out_of_order_stand_in_a_heap() -> None:
    given = events(400, 12, step=0.25)
    sessions, _ = both("MATCH A q+ WITHIN 2 SECONDS OF PREVIOUS PER k", given, 64)
    assert pool_of(sessions).counters[HEAP] == 0
    unlike = "MATCH A a NEXT A q* WITHIN 9 SECONDS OF PREVIOUS NEXT B b+ WITHIN 2 SECONDS OF PREVIOUS PER k"
    kernels, found = both(unlike, given, 64)
    engine, heaped = Engine(kernels.plan, kernels_from=0), []
    for columns in batches(kernels.plan, given, 16):
        engine.feed(columns)
        heaped.append(int(pool_of(engine).counters[HEAP]))
    assert max(heaped) > 0
    assert len(found) > 5


def test_a_run_of_one_element_is_one_step() -> None:
    steps = sequence_steps(Chain((Take(0), Loop(Take(1), 1, None)), (True,))).steps
    assert [type(each).__name__ for each in steps] == ["TakingStep", "TakingStep", "RepeatStep", "MatchStep"]
    assert isinstance(steps[1], TakingStep)
    assert isinstance(steps[2], RepeatStep)
    assert steps[1].skipping
    assert steps[2].following == 3


def test_a_search_can_begin_with_whatever_can_come_first() -> None:
    optional = Chain((Loop(Take(0), 0, 1), Choice((Take(1), Take(2))), Take(3)), (False, False))
    assert sequence_steps(optional).first_slots == {0, 1, 2}


def test_offers_of_a_stepwise_run_are_another_row_and_what_follows() -> None:
    steps = sequence_steps(Chain((Loop(Take(0), 2, None), Take(1)), (False,)))
    at_start, after_run = offers_after(steps, None), offers_after(steps, 1)
    assert [each.take for each in at_start] == [Take(0)]
    assert [(each.take, each.loose) for each in after_run] == [(Take(0), True), (Take(1), False)]
    assert [count for _, _, count in after_run[1].least] == [2]


def test_offers_after_a_single_row_skip_nothing() -> None:
    steps = sequence_steps(Chain((Take(0), Loop(Take(1), 0, None)), (False,)))
    assert [(each.take, each.loose) for each in offers_after(steps, 0)] == [(Take(1), False), (None, False)]
    assert [(each.take, each.loose) for each in offers_after(steps, 1)] == [(Take(1), True), (None, False)]


@pytest.mark.parametrize(
    "rule",
    [
        "MATCH A a+ WITHIN 2 SECONDS OF PREVIOUS PER k",
        "MATCH A d{3,} NEXT A u{2,} WHERE d.x < prev(d.x) AND u.x >= prev(u.x) PER k",
        "MATCH A a THEN B b* WHERE sum(b.x) < 100000 PER k WITHIN 1 HOUR",
    ],
)
def test_a_row_costs_the_same_however_long_runs_are(rule: str) -> None:
    plan = plan_of(rule)
    steps = []
    for length in (200, 2000):
        given = [
            each | {"type": "A" if n == 0 or "B b" not in rule else "B", "x": -n} for n, each in enumerate(events(length, 1))
        ]
        engine = Engine(plan, kernels_from=0)
        (columns,) = batches(plan, given, length)
        engine.feed(columns)
        steps.append((1 << 22) - int(pool_of(engine).counters[STEPS]))
    assert steps[1] < 11 * steps[0]


@pytest.mark.parametrize(
    "rule",
    [
        "MATCH A d{4,} NEXT A u{3,} SHORTEST WHERE d.x < prev(d.x) AND u.x > prev(u.x) PER k WITHIN 1 DAY",
        "MATCH A d{4,} NEXT A u{3,} SHORTEST WHERE d.x < prev(d.x) AND u.x > last(d.x) + 5 PER k",
        "MATCH A q{1500,} NEXT A r WHERE q.x % 999 != 0 AND r.x > 0",
        "MATCH A q{3000,} SHORTEST WHERE q.x > -999",
        "MATCH A a NEXT A b+ NEXT A c+ SHORTEST NEXT A d WHERE b.x < prev(b.x) AND c.x % 999 != 0 AND d.x > 0 PER k",
    ],
)
def test_starts_that_fail_late_do_not_search_their_rows_again(rule: str) -> None:
    given = [each | {"type": "A" if n < 1999 else "B", "x": -n} for n, each in enumerate(events(2000, 1))]
    engine, found = both(rule, given, 2000)
    assert not found
    assert (1 << 22) - int(pool_of(engine).counters[STEPS]) < 10 * 2000


def test_choice_points_find_room_in_the_middle_of_a_batch() -> None:
    engine, found = both("MATCH (A a)+ THEN B b WHERE b.x >= 5 PER k", events(900, 2, "A" * 90 + "B"), 300)
    assert len(pool_of(engine).frames) > 64
    assert found


def test_relations_find_room_in_the_middle_of_a_row() -> None:
    """When a session ends, FIRST PREFIX delivers all that remains of it, from each of its events on: 150 times 75 members."""
    given = [*events(150, 1, "A", 0.1), *events(1, 1, "A", seed=9)]
    given[-1]["at"] += timedelta(hours=1)
    engine, found = both("MATCH A a+ WITHIN 2 SECONDS OF PREVIOUS DISPOSAL FIRST PREFIX", given, 40)
    assert len(found) == 151
    assert pool_of(engine).queued_count() == 0


@pytest.mark.parametrize(
    "rule",
    [
        "MATCH A a NEXT B b+ WHERE b.s >= a.s AND b.s != prev(b.s)",
        "MATCH A a+ NEXT B b WHERE min(a.s) < b.s AND first(a.s) < b.s",
    ],
)
def test_texts_are_forgotten_in_the_middle_of_runs(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "FEW", 8)
    engine, _ = both(rule, events(300, 1), 20)
    assert len(kernel_of(engine).texts) < 60


@pytest.mark.parametrize("within", ["", "WITHIN 20 SECONDS"])
def test_keys_are_forgotten_and_deadlines_of_the_others_stay(within: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "FEW", 8)
    given = [each | {"k": n // 5 * 10**12} for n, each in enumerate(events(300, 1, "AAB"))]
    engine, found = both(f"MATCH A a+ WITHIN 9 SECONDS OF PREVIOUS PER k {within}", given, 20)
    assert len(found) >= 60
    assert kernel_of(engine).keys.known() < 40


def test_late_rows_of_a_key_are_searched_again() -> None:
    """Another key has told a time that closed a path; a row that comes late by it still fits."""
    given = events(200, 3, "AAB", 0.4)
    for n, each in enumerate(given):
        each["at"] -= timedelta(seconds=1.5 * (n % 7 == 3))
    both("MATCH (A a+ WITHIN 1 SECOND OF PREVIOUS ELSE B b) NEXT A c* WITHIN 2 SECONDS OF PREVIOUS PER k", given, 17)


def test_an_event_decides_so_many_relations_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_matches, "LIMITS", replace(LIMITS, relations_per_event_max=20))
    plan = plan_of("MATCH A a+ WITHIN 3 SECONDS OF PREVIOUS DISPOSAL FIRST PREFIX")
    for length, is_refused in ((20, False), (21, True)):
        given = events(length + 1, 1, "A", 0.1)
        given[-1]["at"] += timedelta(hours=1)
        engine = Engine(plan, kernels_from=0)
        with pytest.raises(UnsupportedError, match="U006") if is_refused else nullcontext():
            assert len(engine.feed(batches(plan, given, 100)[0])) == 20


@pytest.mark.parametrize("order", ["", "ORDER BY at"])
def test_buckets_of_time_are_keys_of_sequences(order: str) -> None:
    plan = compile_text(f"{TYPES}\n{order}\nSUBSCRIPTION S MATCH A a+ NEXT B b PER k, bucket(at, 7 SECONDS)")
    assert dict(plan.subscriptions[0].branches[0].keys).keys() == {"A", "B"}
    assert all(len(key) == 2 for _, key in plan.subscriptions[0].branches[0].keys)
    assert refusal_of(plan, plan.subscriptions[0]) is None


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("MATCH A a+ NEXT B b WHERE sum(a.price) > 1", "an aggregate of DECIMALs of a run"),
        ("MATCH A a+ NEXT B b HAVING first(a.s) = 'x'", "a text beside a run in HAVING"),
        ("MATCH A a+ NEXT B b WHERE b.x < length(max(a.s))", "a function of a text of a run"),
        ("MATCH (A a*)+ NEXT B b MATCHING FIRST STEPWISE", "STEPWISE with groups that can be empty"),
    ],
)
def test_what_no_kernel_can_do_goes_event_by_event(rule: str, reason: str) -> None:
    plan = plan_of(rule)
    refusal = refusal_of(plan, plan.subscriptions[0])
    assert refusal is not None
    assert refusal.reason == reason
    assert [each.code for each in slow(plan)] == ["W025"]
    assert Engine(plan, kernels_from=0).units[0].lane is None
