"""Each checker accuses a trace that violates its property, names the deliveries, and acquits one that does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.guarantee import Property
from fairlead.model.plans.options import Disposal, Matching
from fairlead.testing.counterexamples.runtime_worlds import run_orders
from fairlead.testing.counterexamples.scenarios import Pattern, Scenario, catalogue_of, event_type, plan_of
from fairlead.testing.properties.checkers import CHECKERS, violations
from fairlead.testing.properties.conjunctions import conjunctions_of
from fairlead.testing.properties.trace import Multicast, Process, Trace, TraceDelivery
from fairlead.testing.properties.validity import conjunction_validity, event_validity
from tests.guarantees.worlds import by_engine, terse, trace_from

PAIR = Pattern((("A", 1), ("B", 1)), (), ((0, "<", 1),))
FREE_PAIR = Pattern((("A", 1), ("B", 1)))
ONE_A, ONE_B, ONE_C = (Pattern(((name, 1),)) for name in "ABC")
TRIPLE = PAIR.extended(ONE_C)
TWO_A = Pattern((("A", 2),))


class Told:
    """A trace told step by step: `p1 sends A1`, `p2 gets A1 B2` (for its first conjunction; `p2/1` for its second).
    Events are numbered in the order of their first mention."""

    def __init__(self, *subscriptions: tuple[Pattern, ...]) -> None:
        self.processes = []
        for at, patterns in enumerate(subscriptions, 1):
            world = Scenario("equal", patterns[0], patterns[0], ())
            if len(patterns) == 2:
                world = Scenario("disjunction", patterns[0], patterns[1], ())
            plan = plan_of(world, Matching.FIRST, Disposal.PREFIX_INFIX)
            self.processes.append(Process(f"p{at}", conjunctions_of(plan.subscriptions[0], catalogue_of(("A", "B", "C")))))
        self.events: dict[str, Event] = {}

    def event(self, word: str) -> Event:
        """`A1` is an A with x = 1; `A1'` is another one."""
        made = Event(event_type(word[0]), (int(word[1:].rstrip("'")),), Position(len(self.events)))
        return self.events.setdefault(word, made)

    def __call__(self, story: str) -> Trace:
        multicasts, deliveries = [], []
        for time, line in enumerate(filter(None, map(str.strip, story.splitlines()))):
            who, verb, *words = line.split()
            process, _, number = who.partition("/")
            if verb == "sends":
                multicasts.append(Multicast(process, time, self.event(words[0])))
            else:
                conjunction = next(each for each in self.processes if each.name == process).subscription[int(number or 0)]
                deliveries.append(TraceDelivery(process, time, conjunction.identity, tuple(map(self.event, words))))
        return Trace(tuple(self.processes), tuple(multicasts), tuple(deliveries))


def accused(trace: Trace) -> set[Property]:
    return {each.property for each in violations(trace)}


FAULTLESS = """
    p1 sends A1
    p2 sends B2
    p1 gets A1 B2
    p2 gets A1 B2
    p1 sends A2
    p2 sends B3
    p1 gets A2 B3
    p2 gets A2 B3
"""


def test_a_faultless_trace_violates_nothing() -> None:
    assert violations(Told((PAIR,), (PAIR,))(FAULTLESS)) == []


def test_there_is_a_checker_for_every_property_in_order() -> None:
    assert list(CHECKERS) == list(Property)


def test_an_event_delivered_twice_is_a_duplication_and_in_the_same_place_also_the_weaker_one() -> None:
    moved = Told((TWO_A,))("p1 sends A1\np1 sends A2\np1 sends A3\np1 gets A1 A2\np1 gets A2 A3")
    assert accused(moved) == {Property.NO_DUPLICATION}
    stayed = Told((TWO_A,))("p1 sends A1\np1 sends A2\np1 sends A3\np1 gets A1 A3\np1 gets A2 A3")
    assert {Property.NO_DUPLICATION, Property.NO_DUPLICATION_IN_PLACE} <= accused(stayed)
    assert "A(3) twice in one place" in str(CHECKERS[Property.NO_DUPLICATION_IN_PLACE](stayed))


def test_two_conjunctions_may_deliver_the_same_event() -> None:
    assert violations(Told((ONE_A, TWO_A))("p1 sends A1\np1 gets A1\np1 sends A2\np1 gets A2\np1/1 gets A1 A2")) == []


def test_a_delivery_of_an_event_that_nobody_multicast_is_a_creation() -> None:
    invented = Told((ONE_A,))("p1 sends A1\np1 gets A2")
    assert Property.NO_CREATION in accused(invented)
    early = Told((ONE_A,))("p1 gets A1\np1 sends A1")
    assert "before A(1) was multicast" in str(CHECKERS[Property.NO_CREATION](early))


@pytest.mark.parametrize(
    ("story", "problem"),
    [
        ("p1 sends A2\np1 sends B1\np1 gets A2 B1", "is not true of it"),
        ("p1 sends A1\np1 sends B2\np1 gets B2 A1", "place 1 takes A"),
        ("p1 sends A1\np1 gets A1", "has 2 members"),
    ],
)
def test_a_relation_that_does_not_satisfy_the_conjunction_is_not_admitted(story: str, problem: str) -> None:
    found = CHECKERS[Property.ADMISSION](Told((PAIR,))(story))
    assert found is not None
    assert problem in found.words


def test_a_relation_of_a_conjunction_that_the_process_does_not_have_is_not_admitted() -> None:
    trace = Told((PAIR,))(FAULTLESS.replace("p2 gets", "p1 gets").replace("p2", "p3"))
    stranger = TraceDelivery("p1", 99, "another conjunction", trace.deliveries[0].events)
    found = CHECKERS[Property.ADMISSION](Trace(trace.processes, trace.multicasts, (*trace.deliveries, stranger)))
    assert found is not None
    assert "does not subscribe" in found.words


def test_two_equal_subscribers_that_disagree_violate_conjunction_agreement() -> None:
    told = Told((PAIR,), (PAIR,))
    trace = told("p3 sends A1\np3 sends B2\np3 sends B3\np1 gets A1 B2\np2 gets A1 B3")
    assert {Property.CONJUNCTION_AGREEMENT, Property.COVERING_AGREEMENT} <= accused(trace)
    silent = told("p3 sends A1\np3 sends B2\np1 gets A1 B2")
    assert "p2, with the same conjunction, does not" in str(CHECKERS[Property.CONJUNCTION_AGREEMENT](silent))


def test_an_extension_must_not_deliver_a_part_that_the_plain_subscriber_never_delivers() -> None:
    told = Told((PAIR,), (TRIPLE,))
    good = "p3 sends A1\np3 sends B2\np1 gets A1 B2\np3 sends C0\np2 gets A1 B2 C0"
    assert violations(told(good)) == []
    bad = told("p3 sends A1\np3 sends B2\np3 sends B3\np1 gets A1 B2\np3 sends C0\np2 gets A1 B3 C0")
    assert "p1 never delivers [A(1), B(3)]" in str(CHECKERS[Property.COVERING_AGREEMENT](bad))


def test_an_extension_may_deliver_less_than_the_plain_subscriber() -> None:
    trace = Told((PAIR,), (TRIPLE,))("p3 sends A1\np3 sends B2\np1 gets A1 B2\np3 sends C0")
    assert violations(trace) == []


def test_a_link_across_the_cut_makes_no_extension() -> None:
    linked = Pattern(TRIPLE.types, (), ((0, "<", 1), (0, "=", 2)))
    trace = Told((PAIR,), (linked,))("p3 sends A1\np3 sends B2\np3 sends C1\np2 gets A1 B2 C1")
    assert Property.COVERING_AGREEMENT not in accused(trace)


def test_two_processes_that_deliver_two_events_of_a_type_in_opposite_orders_violate_type_total_order() -> None:
    told = Told((ONE_A,), (FREE_PAIR,))
    sent = "p3 sends A1\np4 sends A2\np3 sends B5\np3 sends B6\np1 gets A1\np1 gets A2\n"
    assert accused(told(sent + "p2 gets A1 B5\np2 gets A2 B6")) == set()
    swapped = told(sent + "p2 gets A2 B5\np2 gets A1 B6")
    assert Property.TYPE_TOTAL_ORDER in accused(swapped)
    assert len(CHECKERS[Property.TYPE_TOTAL_ORDER](swapped).deliveries) == 4  # type: ignore[union-attr]


def test_two_events_in_one_relation_are_not_out_of_order() -> None:
    """The form with "not later": one process may deliver together what the other delivers in turn."""
    trace = Told((ONE_A,), (TWO_A,))("p3 sends A1\np1 gets A1\np3 sends A2\np1 gets A2\np2 gets A2 A1")
    assert Property.TYPE_TOTAL_ORDER not in accused(trace)


def test_the_parts_of_two_extensions_come_in_the_same_order_or_violate_conjunction_total_order() -> None:
    told = Told((PAIR,), (TRIPLE,))
    sent = "p3 sends A1\np4 sends A2\np3 sends B3\np4 sends B4\np3 sends C0\np3 sends C1\np1 gets A1 B3\np1 gets A2 B4\n"
    assert accused(told(sent + "p2 gets A1 B3 C0\np2 gets A2 B4 C1")) == set()
    assert Property.CONJUNCTION_TOTAL_ORDER in accused(told(sent + "p2 gets A2 B4 C0\np2 gets A1 B3 C1"))


def test_relations_of_two_shared_conjunctions_come_in_the_same_order_or_violate_disjunction_total_order() -> None:
    told = Told((ONE_A, ONE_B), (ONE_A, ONE_B))
    sent = "p3 sends A1\np3 sends B1\np1 gets A1\np1/1 gets B1\n"
    assert accused(told(sent + "p2 gets A1\np2/1 gets B1")) == set()
    assert accused(told(sent + "p2/1 gets B1\np2 gets A1")) == {Property.DISJUNCTION_TOTAL_ORDER}


def test_overtaking_among_one_publishers_events_violates_fifo_and_causal_order() -> None:
    told = Told((FREE_PAIR,))
    swapped = "p1 gets A2 B1\np1 gets A1 B2"
    one = told("p3 sends A1\np3 sends A2\np3 sends B1\np3 sends B2\n" + swapped)
    assert accused(one) == {Property.TYPE_FIFO_ORDER, Property.TYPE_CAUSAL_ORDER}
    two = Told((FREE_PAIR,))("p3 sends A1\np4 sends A2\np3 sends B1\np3 sends B2\n" + swapped)
    assert accused(two) == set()


def test_overtaking_a_cause_violates_local_and_causal_order() -> None:
    told = Told((FREE_PAIR,), (ONE_A,))
    effect = "p3 sends A1\np2 gets A1\np2 sends A2\np2 gets A2\np3 sends B1\np3 sends B2\np1 gets A2 B1\np1 gets A1 B2"
    assert {Property.TYPE_LOCAL_ORDER, Property.TYPE_CAUSAL_ORDER} <= accused(told(effect))
    assert Property.TYPE_FIFO_ORDER not in accused(told(effect))
    unrelated = effect.replace("p2 gets A1\np2 sends A2", "p2 sends A2\np2 gets A1")
    assert Property.TYPE_LOCAL_ORDER not in accused(Told((FREE_PAIR,), (ONE_A,))(unrelated))


def test_conjunction_validity_counts_complete_sets_since_the_last_delivery() -> None:
    rounds = "\n".join(f"p3 sends A1{mark}\np3 sends B2{mark}" for mark in ("", "'", "''", "'''"))
    silent = Told((PAIR,))(rounds)
    found = conjunction_validity(silent)
    assert found is not None
    assert "4 complete sets" in found.words
    assert conjunction_validity(silent, horizon=5) is None
    assert conjunction_validity(Told((PAIR,))(rounds + "\np1 gets A1 B2")) is None


def test_sets_that_do_not_match_promise_nothing() -> None:
    rounds = "\n".join(f"p3 sends A2{mark}\np3 sends B1{mark}" for mark in ("", "'", "''", "'''"))
    assert violations(Told((PAIR,))(rounds)) == []


def test_instances_count_in_the_order_of_the_matching() -> None:
    """Under FIRST a[1] is older than a[2], so falling values are no complete set for a[1].x < a[2].x."""
    rising = Pattern((("A", 2),), (), ((0, "<", 1),))
    falling = "\n".join(f"p3 sends A{x}" for x in range(9, 0, -1))
    assert conjunction_validity(Told((rising,))(falling)) is None
    growing = "\n".join(f"p3 sends A{x}" for x in range(9))
    assert conjunction_validity(Told((rising,))(growing)) is not None


def test_event_validity_accuses_a_free_event_left_behind() -> None:
    told = Told((FREE_PAIR,))
    start = "p3 sends A1\np3 sends A2\np3 sends B0\np1 gets A2 B0\n"
    rounds = "\n".join(f"p3 sends B{x}" for x in range(1, 5))
    found = event_validity(told(start + rounds))
    assert found is not None
    assert "never delivers A(1)" in found.words
    assert event_validity(Told((FREE_PAIR,))(start + rounds + "\np1 gets A1 B1")) is None


def test_event_validity_waits_for_those_that_came_before() -> None:
    queued = "p3 sends A1\np3 sends A2\np3 sends A3\np3 sends A4\n"
    served = "\n".join(f"p3 sends B{x}\np1 gets A{x} B{x}" for x in (1, 2, 3))
    assert event_validity(Told((FREE_PAIR,))(queued + served)) is None


def test_event_validity_promises_nothing_to_an_event_with_conditions_on_others() -> None:
    told = Told((PAIR,))
    rounds = "\n".join(f"p3 sends A0{mark}\np3 sends B5{mark}\np1 gets A0{mark} B5{mark}" for mark in ("", "'", "''", "'''"))
    assert event_validity(told("p3 sends A1\n" + rounds)) is None


def test_without_between_is_part_of_what_a_relation_must_satisfy() -> None:
    text = """TYPE A (x INT)
TYPE B (x INT)
TYPE N (x INT)
SUBSCRIPTION p1
MATCH A a AND B b
WITHOUT N n BETWEEN a AND b WHERE n.x = a.x
"""
    spoilt = trace_from(text, terse("A:1 N:1 B:0 " * 4, "x"))
    assert violations(spoilt) == []
    events = tuple(spoilt.multicasts[at].event for at in (0, 2))
    delivery = TraceDelivery("p1", 99, spoilt.streams[0].conjunction.identity, events)
    found = CHECKERS[Property.ADMISSION](Trace(spoilt.processes, spoilt.multicasts, (delivery,)))
    assert found is not None
    assert "WITHOUT" in found.words


def test_a_trace_reads_as_one_line_a_step() -> None:
    trace = Told((PAIR,))("p3 sends A1\np3 sends B2\np1 gets A1 B2")
    assert trace.lines() == ["p3 multicasts A(1)", "p3 multicasts B(2)", "p1 delivers [A(1), B(2)]"]


def test_thousands_of_steps_are_checked_without_quadratic_cost() -> None:
    records = terse(" ".join(f"A:{x % 7} B:{x % 5 + 3}" for x in range(1500)), "x")
    subscriptions = [f"SUBSCRIPTION p{n}\nMATCH A a AND B b\nWHERE a.x < b.x" for n in (1, 2)]
    text = "\n".join(["TYPE A (x INT)", "TYPE B (x INT)", *subscriptions])
    trace = trace_from(text, records, run=by_engine)
    assert len(trace.deliveries) > 2000
    assert violations(trace) == []


SWAPPED = ("TYPE Q (x INT) TYPE A EXTENDS Q (y INT)", "TYPE Q (x INT) TYPE A (x INT) EVENT UNION U = Q + A")
"""A supertype and a union, each of which makes one type of A and Q."""


@pytest.mark.parametrize(("types", "named"), [(SWAPPED[0], "Q"), (SWAPPED[1], "U")])
@pytest.mark.parametrize("wanted", [Property.TYPE_FIFO_ORDER, Property.TYPE_LOCAL_ORDER, Property.TYPE_TOTAL_ORDER])
def test_events_of_one_named_type_that_change_places_are_seen(types: str, named: str, wanted: Property) -> None:
    """p1 reads an A before the Q that was sent first; p2, which sent the A after it had delivered the Q, does not."""
    rules = "\n".join([types, *(f"SUBSCRIPTION p{at} MATCH {named} q" for at in (1, 2))])
    events = [{"type": "Q", "x": 0, "by": "p2"}, {"type": "A", "x": 1, "y": 0, "by": "p2"}]
    accusing = CHECKERS[wanted](run_orders(rules, events, {"p1": (1, 0), "p2": (0, 1)}))
    assert accusing is not None
    assert accusing.words.endswith(
        ("delivers A(1, 0) first", "delivers A(1) first", "before Q(0)", "before A(1, 0)", "before A(1)")
    )
    assert CHECKERS[wanted](run_orders(rules, events, {"p1": (0, 1), "p2": (0, 1)})) is None


def test_events_of_two_types_that_nobody_names_as_one_may_change_places() -> None:
    rules = f"{SWAPPED[1]} SUBSCRIPTION p1 MATCH A a OR Q q SUBSCRIPTION p2 MATCH U u"
    events = [{"type": "Q", "x": 0, "by": "p3"}, {"type": "A", "x": 1, "by": "p3"}]
    assert CHECKERS[Property.TYPE_FIFO_ORDER](run_orders(rules, events, {"p1": (1, 0), "p2": (0, 1)})) is None
    assert CHECKERS[Property.TYPE_TOTAL_ORDER](run_orders(rules, events, {"p1": (1, 0), "p2": (0, 1)})) is None


def test_an_absence_is_decided_by_events_that_its_subscription_reads() -> None:
    """Other events tell it no time: after them, what it waits for is no complete set that it should have delivered."""
    types = "".join(f"TYPE {name} (at TIMESTAMP) TIME at\n" for name in "ANC")
    text = f"{types}SUBSCRIPTION p1 MATCH A a WITHOUT N n WITHIN 2 SECONDS OF a"
    trace = trace_from(text, terse("A:8 A:8 A:9 A:10 C:14", "at"))
    assert trace.deliveries == ()
    assert CHECKERS[Property.CONJUNCTION_VALIDITY](trace) is None
    assert CHECKERS[Property.CONJUNCTION_VALIDITY](replace(trace_from(text, terse("A:8 A:8 A:9 N:14", "at")), deliveries=()))
