"""States of a run with an order by value, resumed with other rules, another order, or other attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import pytest

import fairlead
from fairlead.errors import StateError
from fairlead.model.events.columns import Columns
from fairlead.model.events.verdict import EventVerdict
from fairlead.order.holdback import head_and_rest, with_head
from fairlead.runtime.embedded import Run
from fairlead.runtime.event_time import EventTimeMatcher, EventVerdicts
from fairlead.runtime.run_state import decode_run
from tests.marks import sample_size
from tests.runtime.event_time.sequences import PLANS, TYPES, Record, at, batch_ids, compiled, cuts, sequence

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


@pytest.mark.sampled
@pytest.mark.parametrize(("before", "after"), list(permutations(ORDERS, 2)))
def test_rules_in_another_order_begin_with_the_next_event(before: str, after: str) -> None:
    records = sequence(Random(f"{before} {after}"), 40)
    run = resumed(TYPES + after + PLANS["keys"], kept_by(TYPES + before + PLANS["keys"], records[:20]))
    assert run.change.started == ("S",)
    found = fed(run, records[20:]) + [(each.sign, each.id) for each in run.finish()]
    if after:  # ids of events in an order by value do not depend on what was before
        fresh = Run(compiled(TYPES + after + PLANS["keys"]), event_by_event=True)
        assert found == fed(fresh, records[20:]) + [(each.sign, each.id) for each in fresh.finish()]


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS[1:])
@pytest.mark.parametrize("seed", range(4))
def test_attributes_that_nobody_reads_come_and_go(order: str, seed: int) -> None:
    random = Random(f"{order} {seed}")
    records = [each for each in sequence(random, 60, sourced=0.5) if each["type"] != "Heartbeat"]
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
    records: list[Record] = [{"type": "A", "k": 0, "x": 0, "at": at(10)}, {"type": "A", "k": 0, "x": 0, "at": at(16)}]
    records.append({"type": "B", "k": 0, "x": 0, "at": at(12)})  # late: the frontier is at 13
    state, told = kept_by(text, records), list[EventVerdict]()
    more: list[Record] = [{"type": "A", "k": 0, "x": 0, "at": at(30)}]
    same = resumed(text, state, late=lambda each: told.extend(each.verdicts))
    assert len(fed(same, more) + [(each.sign, each.id) for each in same.finish()]) == 1
    assert told == []
    other = resumed(text + " SUBSCRIPTION Y MATCH C c[9]", state, late=lambda each: told.extend(each.verdicts))
    assert len(fed(other, more) + [(each.sign, each.id) for each in other.finish()]) == 1  # it has a frontier of its own
    assert told == []
    changed = resumed(text + " SUBSCRIPTION Z MATCH B b THEN A a[9]", state, late=lambda each: told.extend(each.verdicts))
    assert fed(changed, more) + [(each.sign, each.id) for each in changed.finish()] == []
    assert told == [EventVerdict.LATE]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
def test_what_was_found_before_a_change_of_rules_is_not_revised_however_often_the_state_is_saved(seed: int) -> None:
    random, order = Random(seed), ORDERS[5 + seed % 2]
    text = TYPES + order + PLANS["pairs"]
    records = sequence(random, 60, late=0.6)
    cut = random.randrange(20, 40)
    state = kept_by(text, records[:cut])
    told: list[tuple[Deliveries, list[EventVerdict]]] = []
    for saves in (0, 1, 4):
        verdicts: list[EventVerdict] = []
        found: Deliveries = []
        low, mine = cut, state
        for high in [*sorted(random.sample(range(cut + 1, 60), saves)), 60]:
            run = Run(
                compiled(text + " SUBSCRIPTION Z MATCH A a[9] AND B b[9]"),
                event_by_event=True,
                keep=True,
                resumed=decode_run(mine),
                late=lambda each, mine=verdicts: mine.extend(each.verdicts),  # type: ignore[misc]
            )
            found += fed(run, records[low:high])
            low, mine = high, run.kept().encode()
        told.append((found + [(each.sign, each.id) for each in run.finish()], verdicts))
    assert told[0][1].count(EventVerdict.LATE) > 1
    assert told[1:] == told[:1] * 2


ONE, TWO = "SUBSCRIPTION S MATCH A a THEN B b PER k ", "SUBSCRIPTION T MATCH B b THEN A a PER k "
CHANGES = {
    "nothing": (ONE, ONE, False),
    "other types": (ONE, ONE + "SUBSCRIPTION C MATCH C c ", False),
    "the same types": (ONE, ONE + TWO, True),
    "dropped": (ONE + TWO, ONE, True),
    "replaced": (ONE, TWO, True),
}
"""The rules before and after, and whether those that read A and B are others then."""


@pytest.mark.sampled
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(8))
def test_late_events_after_a_change_revise_what_was_released_after_it_and_nothing_before(change: str, seed: int) -> None:
    """An event that is late by the frontier at the change is late, if subscriptions of its types have changed; and so is one of
    the round that was open. All other late events revise. A subscription that begins has what was not released before."""
    (before, after, changed), random = CHANGES[change], Random(f"{change} {seed}")
    order, delay = f"{TYPES} ORDER BY at DELAY 2 SECONDS LATE REVISE WITHIN 1 HOUR ", 2
    seconds = [max(0, number - random.choice((0, 0, 0, 1, 4, 9, 15))) for number in range(60)]
    records: list[Record] = [
        {"type": random.choice("AB"), "k": random.randrange(2), "x": 0, "at": at(second), "_source": "p", "_sequence": number}
        for number, second in enumerate(seconds)
    ]
    cut = random.randrange(20, 40)
    ends = [max(seconds[:number], default=delay) - delay for number in range(61)]
    floor = ends[cut] if changed else 0
    late = [number for number in range(60) if seconds[number] < (ends[number] if number < cut else floor)] if changed else []
    told: list[EventVerdicts] = []
    first = Run(compiled(order + before), event_by_event=True, keep=True)
    found = fed_names(first, records[:cut])
    second = Run(compiled(order + after), event_by_event=True, resumed=decode_run(first.kept().encode()), late=told.append)
    found += fed_names(second, records[cut:]) + [(each.subscription, each.sign, each.id) for each in second.finish()]
    assert sum(map(len, told)) == len(late)
    assert (late != []) == changed
    assert {verdict for each in told for verdict in each.verdicts} <= {EventVerdict.LATE}
    accepted = [each for number, each in enumerate(records) if number not in late]
    for name, text in (("S", ONE), ("T", TWO)):
        if text in after:
            mine = accepted if text in before else [each for each in accepted if each["at"] >= at(floor)]
            held = Counter[str]()
            for each, sign, relation in found:
                held[relation] += sign if each == name else 0
            assert sorted(held.elements()) == sorted(batch_ids(compiled(order + text), mine)), name
            assert min(held.values()) >= 0


@pytest.mark.parametrize("order", [ORDERS[1], ORDERS[5]])
def test_a_subscription_above_another_begins_with_the_next_event_though_that_one_has_a_state(
    order: str,
) -> None:
    """It has a copy of what it reads from, in a frontier group of its own: the state of the other copy is not taken over."""
    below = f"{TYPES}{order}SUBSCRIPTION S MATCH A a THEN B b EMIT Pair (k = a.k) "
    above = below + "SUBSCRIPTION T MATCH Pair p AND C c"
    before: list[Record] = [{"type": "A", "k": 0, "x": 0, "at": at(10)}, {"type": "A", "k": 1, "x": 0, "at": at(20)}]
    after: list[Record] = [{"type": name, "k": 2, "x": 0, "at": at(30 + step)} for step, name in enumerate("BCAB")]
    run = resumed(above, kept_by(below, before))
    assert (run.change.resumed, run.change.started) == (("S",), ("T",))
    found = fed_names(run, after) + [(each.subscription, each.sign, each.id) for each in run.finish()]
    fresh = Run(compiled(above), event_by_event=True)
    alone = fed_names(fresh, after) + [(each.subscription, each.sign, each.id) for each in fresh.finish()]
    assert [each for each in found if each[0] == "T"] == [each for each in alone if each[0] == "T"] != []
    assert len([each for each in found if each[0] == "S"]) > len([each for each in alone if each[0] == "S"])


@pytest.mark.parametrize("more", [False, True], ids=["ended", "continued"])
def test_late_events_of_a_round_that_is_forgotten_are_reported_once_and_before_those_that_arrive(more: bool) -> None:
    """Each event with its own verdict: the types of the events differ, and so do the verdicts."""
    order = f"{TYPES} ORDER BY at DELAY 2 SECONDS LATE REVISE WITHIN 1 HOUR "
    before: list[Record] = [
        {"type": name, "k": 0, "x": number, "at": at(second), "_source": "p", "_sequence": number}
        for number, (name, second) in enumerate((("A", 10), ("A", 20), ("B", 12)))
    ]
    after: list[Record] = [
        {"type": name, "k": 0, "x": number, "at": at(second), "_source": "p", "_sequence": number}
        for name, second, number in (("B", 50, 3), ("A", 30, 4), ("A", 30, 4), ("B", 11, 5))
    ]
    told: list[EventVerdicts] = []
    run = resumed(order + ONE + TWO, kept_by(order + ONE, before), told.append)
    for step in range(2 * more):
        fed(run, after if step == 0 else [{"type": "A", "k": 0, "x": 9, "at": at(60)}])
    run.finish()
    found = [
        (event.type, event.row[event.schema.index["x"]], verdict)
        for each in told
        for event, verdict in zip(each.columns.events(run.plan.catalogue), each.verdicts, strict=True)
    ]
    late, repeated = EventVerdict.LATE, EventVerdict.REPEATED
    assert found == [("B", 2, late), *([("A", 4, repeated), ("B", 5, late)] if more else [])]


def fed_names(run: Run, records: list[Record]) -> list[tuple[str, int, str]]:
    found = []
    for columns in cuts(run.plan, records, None):
        moved = columns if not run.position else _moved(columns, run.position)
        found += [(each.subscription, each.sign, each.id) for each in run.feed(moved)]
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("order", [ORDERS[2], ORDERS[5], ORDERS[6]])
def test_damaged_bytes_are_refused_or_harmless(order: str) -> None:
    """Whatever byte is changed: no crash, and no error without a code."""
    plan, random = compiled(TYPES + order + PLANS["chain"]), Random(order)
    matcher = EventTimeMatcher(plan, 2, kernels_from=None)
    records = sequence(random, 60)
    for columns in cuts(plan, records[:40], None):
        matcher.step(columns)
    state, codes = matcher.dump(), set[str]()
    for _ in range(sample_size(300)):
        damaged = bytearray(state)
        damaged[random.randrange(len(state))] ^= 1 << random.randrange(8)
        try:
            loaded = EventTimeMatcher.load(plan, bytes(damaged), 2, kernels_from=None)
            for columns in cuts(plan, records[40:], None):
                loaded.step(_moved(columns, loaded.buffer.last + 1))
            loaded.finish()
        except fairlead.FairleadError as error:
            codes.add(error.code)
    assert codes & {"S119", "S003"}


def test_a_number_of_a_state_that_is_too_large_is_refused() -> None:
    """Every number in the heads of the held events and of the past, one at a time."""
    plan, records = compiled(TYPES + ORDERS[6] + PLANS["chain"]), sequence(Random(3), 60)
    matcher = EventTimeMatcher(plan, 2, kernels_from=None)
    for columns in cuts(plan, records, None):
        matcher.step(columns)
    assert matcher.reviser is not None
    for part, least in ((matcher.buffer, 4), (matcher.reviser, 6)):
        head, rest = head_and_rest(part.dump())
        damaged = [with_head(each, bytes(rest)) for each in with_large_numbers(head)]
        assert len(damaged) >= least
        for each in damaged:
            with pytest.raises(StateError, match=r"S110|S119"):
                part.load(each)


def with_large_numbers(head: Any) -> Iterator[Any]:
    """The head with each of its numbers in turn too large for 64 bits; not those of bytes, which only say where parts end."""
    if isinstance(head, int) and not isinstance(head, bool):
        yield 10**30
    elif isinstance(head, dict | list):
        for name, value in head.items() if isinstance(head, dict) else enumerate(head):
            for each in with_large_numbers(value) if name not in ("bytes", "held") else ():
                made = copy(head)
                made[name] = each
                yield made
