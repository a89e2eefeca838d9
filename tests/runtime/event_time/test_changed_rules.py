"""States of a run with an order by value, resumed with other rules, another order, or other attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from random import Random

import pytest

import fairlead
from fairlead.model.events.columns import Columns
from fairlead.model.events.verdict import EventVerdict
from fairlead.runtime.embedded import Run
from fairlead.runtime.event_time import EventTimeMatcher, EventVerdicts
from fairlead.runtime.run_state import decode_run
from tests.runtime.event_time.sequences import PLANS, TYPES, Record, at, compiled, cuts, sequence

ORDERS = (
    "",
    "ORDER BY at DELAY 3 SECONDS ",
    "ORDER BY at, x DELAY 3 SECONDS ",
    "ORDER BY at, k DELAY 3 SECONDS ",
    "ORDER BY at, k DESC DELAY 3 SECONDS PER SOURCE IDLE 5 SECONDS ",
    "ORDER BY at DELAY 3 SECONDS LATE REVISE WITHIN 5 SECONDS ",
    "ORDER BY at, x DELAY 1 SECOND AHEAD 5 SECONDS LATE REVISE WITHIN 9 SECONDS ",
)
Deliveries = list[tuple[int, str]]


def fed(run: Run, records: list[Record]) -> Deliveries:
    found = []
    if "z" in run.plan.catalogue["A"].index:
        records = [each | {"z": None} for each in records]
    for columns in cuts(run.plan, records, None):
        moved = columns if not run.position else _moved(columns, run.position)
        found += [(each.sign, each.id) for each in run.feed(moved)]
    return found


def _moved(columns: Columns, by: int) -> Columns:
    """At positions after those that a run has seen."""
    return replace(columns, positions=range(by, by + len(columns)), last_position=by + len(columns) - 1)


def kept_by(text: str, records: list[Record]) -> bytes:
    run = Run(compiled(text), event_by_event=True, keep=True)
    fed(run, records)
    state = run.kept().encode()
    return state if isinstance(state, bytes) else state.encode()


def resumed(text: str, state: bytes, late: Callable[[EventVerdicts], None] | None = None) -> Run:
    return Run(compiled(text), event_by_event=True, resumed=decode_run(state), late=late)


@pytest.mark.parametrize(("before", "after"), list(permutations(ORDERS, 2)))
def test_rules_in_another_order_begin_with_the_next_event(before: str, after: str) -> None:
    records = sequence(Random(f"{before} {after}"), 40)
    run = resumed(TYPES + after + PLANS["keys"], kept_by(TYPES + before + PLANS["keys"], records[:20]))
    assert run.change.started == ("S",)
    found = fed(run, records[20:]) + [(each.sign, each.id) for each in run.finish()]
    if after:  # ids of events in an order by value do not depend on what was before
        fresh = Run(compiled(TYPES + after + PLANS["keys"]), event_by_event=True)
        assert found == fed(fresh, records[20:]) + [(each.sign, each.id) for each in fresh.finish()]


@pytest.mark.parametrize("order", ORDERS[1:])
@pytest.mark.parametrize("seed", range(4))
def test_attributes_that_nobody_reads_come_and_go(order: str, seed: int) -> None:
    random = Random(f"{order} {seed}")
    records = [each for each in sequence(random, 60, sourced=1) if each["type"] != "Heartbeat"]
    texts = [types + order + PLANS["pairs"] for types in (TYPES, TYPES.replace("at TIMESTAMP)", "at TIMESTAMP, z STRING)"))]
    whole = Run(compiled(texts[0]), event_by_event=True)
    wanted = fed(whole, records) + [(each.sign, each.id) for each in whole.finish()]
    for before, after in (texts, texts[::-1]):
        run = Run(compiled(before), event_by_event=True, keep=True)
        cut = random.randrange(5, 50)
        found = fed(run, records[:cut])
        other = resumed(after, run.kept().encode())
        assert other.change.resumed == ("S",)
        found += fed(other, records[cut:]) + [(each.sign, each.id) for each in other.finish()]
        assert found == wanted


def test_late_events_of_a_round_that_was_open_are_late_if_the_rules_change() -> None:
    text = TYPES + ORDERS[5] + PLANS["pairs"]
    records: list[Record] = [{"type": "A", "k": 0, "x": 0, "at": at(10)}, {"type": "C", "k": 0, "x": 0, "at": at(16)}]
    records.append({"type": "B", "k": 0, "x": 0, "at": at(12)})  # late: the frontier is at 13
    state, told = kept_by(text, records), list[EventVerdict]()
    more: list[Record] = [{"type": "C", "k": 0, "x": 0, "at": at(30)}]
    same = resumed(text, state, late=lambda each: told.extend(each.verdicts))
    assert len(fed(same, more) + [(each.sign, each.id) for each in same.finish()]) == 1
    assert told == []
    changed = resumed(text + " SUBSCRIPTION Z MATCH C c[9]", state, late=lambda each: told.extend(each.verdicts))
    assert fed(changed, more) + [(each.sign, each.id) for each in changed.finish()] == []
    assert told == [EventVerdict.LATE]


@pytest.mark.parametrize("order", [ORDERS[2], ORDERS[5], ORDERS[6]])
def test_damaged_bytes_are_refused_or_harmless(order: str) -> None:
    """Whatever byte is changed: no crash, and no error without a code."""
    plan, random = compiled(TYPES + order + PLANS["chain"]), Random(order)
    matcher = EventTimeMatcher(plan, 2, kernels_from=None)
    records = sequence(random, 60)
    for columns in cuts(plan, records[:40], None):
        matcher.step(columns)
    state, codes = matcher.dump(), set[str]()
    for _ in range(300):
        damaged = bytearray(state)
        damaged[random.randrange(len(state))] ^= 1 << random.randrange(8)
        try:
            loaded = EventTimeMatcher.load(plan, bytes(damaged), 2, kernels_from=None)
            for columns in cuts(plan, records[40:], None):
                loaded.step(_moved(columns, loaded.position))
            loaded.finish()
        except fairlead.FairleadError as error:
            codes.add(error.code)
    assert codes & {"S119", "S003"}
