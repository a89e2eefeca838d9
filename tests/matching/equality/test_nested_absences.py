"""Absences on several levels of a hierarchy: on kernels they are decided in the order in which they are event by event."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fairlead.language import compile_text
from fairlead.matching.unit import UnitEngine
from fairlead.model.plans.partition import alone
from fairlead.testing.conformance import Case as Conforming
from fairlead.testing.reference import ReferenceSubscription
from fairlead.transport.events import read_events
from tests.conformance.cases import CASES
from tests.matching.equality.test_lanes import interpreted
from tests.matching.equality.test_plans import agreed, compared, compiled
from tests.matching.generators.generated import START, Case
from tests.matching.generators.nested import INPUT, nested_cases

__all__ = ["interpreted"]

CHAINS = [case for case in CASES if case.file == "15-chains.yaml"]
OUTER = "SUBSCRIPTION S MATCH B b WITHOUT C n WITHIN 4 SECONDS OF b EMIT E (x = b.x, at = b.at) TIME at"
"""Decided four seconds after the time that its events have."""


@pytest.mark.slow
@given(nested_cases(), st.integers(1, 4))
def test_a_hierarchy_of_absences_on_kernels_delivers_what_it_delivers_event_by_event(case: Case, rows: int) -> None:
    plan, seen = compiled(case.rules), Counter[str]()
    for each in (rows, len(case.events)):
        seen.update(compared(case, plan, each, 0))
    event(f"on kernels: {min(seen['on kernels'], 10)}")


@given(nested_cases())
def test_no_absence_upstream_of_a_reader_is_still_due_when_its_event_has_been(case: Case) -> None:
    """Read off the rules, one by one: whoever reads an event finds all that was due before it, of everybody upstream."""
    plan = compiled(case.rules)
    for reader in plan.subscriptions:
        own = alone(plan, [reader.name])
        for engine in (UnitEngine(own, matcher=ReferenceSubscription), UnitEngine(own, kernels_from=None)):
            for columns in read_events(case.events, plan.catalogue):
                for logged in columns.events(plan.catalogue):
                    engine.arrive(logged)
                    if logged.time is not None and logged.type in reader.reads(plan.catalogue):
                        due = [each.matcher.next_due() for each in engine.running]
                        event(f"waiting: {sum(each is not None for each in due)}")
                        assert all(each is None or each[0] >= logged.time for each in due)


@pytest.mark.sampled
@pytest.mark.parametrize("case", CHAINS, ids=str)
def test_the_chains_of_the_conformance_suite_are_the_same_on_kernels(case: Conforming) -> None:
    for rows in (1, 2, len(case.events)):
        compared(Case(case.rules, list(map(dict, case.events)), case.until), compile_text(case.rules), rows, 0)


@pytest.mark.sampled
@pytest.mark.parametrize("inner", [1, 2, 3])
@pytest.mark.parametrize("middle", [1, 2, 3])
def test_what_two_decisions_led_to_follows_both_though_it_was_due_before_either(middle: int, inner: int) -> None:
    """The heartbeat opens one round: S is decided, then T because of S, then V because of T, with deadlines that fall."""
    rules = f"""{OUTER}
    SUBSCRIPTION T MATCH E e WITHOUT A n WITHIN {middle} SECONDS OF e EMIT F (x = e.x, at = e.at) TIME at
    SUBSCRIPTION V MATCH F f WITHOUT A n WITHIN {inner} SECONDS OF f
    """
    assert agreed(rules, "B1 Heartbeat9 A20")["on kernels"] == 9
    agreed(rules, "B1 B1 B2 Heartbeat4 B5 Heartbeat9 A20", until=30)
    agreed(rules, "B1 B3", until=30)


@pytest.mark.parametrize("outer", ["B", "E"])
def test_who_reads_the_outer_and_the_innermost_events_but_not_those_between(outer: str) -> None:
    rules = f"""{OUTER}
    SUBSCRIPTION T MATCH E e WITHOUT A n WITHIN 3 SECONDS OF e EMIT F (x = e.x, at = e.at) TIME at
    SUBSCRIPTION U MATCH F f WITHOUT A n WITHIN 2 SECONDS OF f EMIT G (x = f.x, at = f.at) TIME at
    SUBSCRIPTION V MATCH {outer} o OR G g WITHOUT F n WITHIN 1 SECONDS OF o WITHOUT {outer} m WITHIN 1 SECONDS OF g
    """
    agreed(rules, "B1 Heartbeat9 A20")
    agreed(rules, "B1 B2 A3 B4 A9 B9 B15 Heartbeat15 A30", until=60)


def test_what_began_to_wait_because_of_a_decision_can_be_cancelled_by_what_else_it_leads_to() -> None:
    """V waits from E on, until 2; the round in which S was decided, at 5, goes on only after F."""
    rules = f"""{OUTER}
    SUBSCRIPTION T MATCH E e EMIT F (x = e.x, at = e.at) TIME at
    SUBSCRIPTION V MATCH E e WITHOUT F n WITHIN 1 SECONDS OF e
    """
    assert agreed(rules, "B1 Heartbeat9 Heartbeat20")["on kernels"] == 6


def test_an_event_that_goes_two_ways_tells_of_a_decision_once() -> None:
    """E is kept by one key and noted by another; what it completes waits for what follows it."""
    rules = """
    TYPE E (k INT, j INT, at TIMESTAMP) TIME at
    TYPE F (k INT, j INT, at TIMESTAMP) TIME at
    EVENT UNION W = E + F
    SUBSCRIPTION S MATCH B b WITHOUT C n WITHIN 4 SECONDS OF b EMIT E (k = b.k, j = b.j, at = b.at) TIME at
    SUBSCRIPTION T MATCH E e EMIT F (k = e.k, j = e.j, at = e.at) TIME at
    SUBSCRIPTION V MATCH E e PER e.k = n.j WITHOUT W n WITHIN 1 SECONDS OF e
    """
    assert agreed(rules, "B1 Heartbeat9 Heartbeat20")["on kernels"] == 6


def test_an_event_without_a_time_tells_of_the_decision_that_it_comes_from() -> None:
    """A was due before S was decided. F, which has no time, is the first that V sees of that decision; G came too late."""
    rules = """
    SUBSCRIPTION S MATCH B b WITHOUT B n WITHIN 4 SECONDS OF b EMIT E (x = b.x, at = b.at) TIME at
    SUBSCRIPTION T MATCH E e AND N n EMIT F (x = e.x)
    SUBSCRIPTION U MATCH E e EMIT G (x = e.x, at = e.at) TIME at
    SUBSCRIPTION V MATCH F f OR A a WITHOUT G n WITHIN 1 SECONDS OF a
    """
    assert times_agree(rules, "N1 A1 B1 Heartbeat9")["on kernels"] == 3 * 5


def times_agree(rules: str, words: str) -> Counter[str]:
    """Types of nested.py. `N-` has no time in its attribute either."""
    made: list[dict[str, Any]] = []
    for word in words.split():
        name = word.rstrip("0123456789-")
        at = None if word.endswith("-") else START + timedelta(seconds=int(word[len(name) :]))
        made.append({"type": name, "t" if name == "N" else "at": at} | ({} if name == "Heartbeat" else {"x": 1}))
    case, total = Case(INPUT + rules, made), Counter[str]()
    for rows in (1, 2, len(made)):
        total.update(compared(case, compiled(case.rules), rows, 0))
    return total


@pytest.mark.parametrize(
    "emitting",
    [
        "SUBSCRIPTION S MATCH A a AND N n EMIT E (x = a.x)",
        "EVENT UNION U = A + N SUBSCRIPTION S MATCH U u EMIT E (x = u.x)",
        "SUBSCRIPTION S MATCH A a EMIT E (x = a.x) SUBSCRIPTION T MATCH N n EMIT E (x = n.x)",
        "SUBSCRIPTION S MATCH A a AND N n WITHOUT A m WITHIN 1 SECONDS OF a EMIT E (x = a.x)",
    ],
)
def test_events_of_a_type_have_no_time_unless_all_their_members_always_have_one(emitting: str) -> None:
    """B waits until 2; nothing before the heartbeat tells V that this has passed."""
    rules = f"{emitting} SUBSCRIPTION V MATCH B b OR E e WITHOUT B n WITHIN 1 SECONDS OF b"
    assert times_agree(rules, "B1 A7 N7 A9 N9 Heartbeat9")["on kernels"] > 0


@pytest.mark.parametrize(
    "reading",
    [
        "MATCH B b OR E e WITHOUT B n WITHIN 1 SECONDS OF b",
        "MATCH B b AND E e WITHIN 3 SECONDS",
        "MATCH B b WITHOUT E n WITHIN 3 SECONDS OF b",
        "MATCH E e WITHOUT B n WITHIN 3 SECONDS OF e",
        "MATCH E e AND B b WHERE time(e) < time(b)",
    ],
)
@pytest.mark.sampled
@pytest.mark.parametrize("events", ["B1 N7 N- N7 B8 N- Heartbeat20", "N- B1 N- N- Heartbeat20"])
def test_a_time_that_is_null_and_of_no_member_is_that_of_1970(reading: str, events: str) -> None:
    rules = f"SUBSCRIPTION S MATCH N n EMIT E (x = n.x, at = n.t) TIME at SUBSCRIPTION V {reading}"
    assert times_agree(rules, events)["on kernels"] > 0
