"""The verdicts of a plan, with the clause that loses each property."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from fairlead.errors import LanguageError
from fairlead.guarantees import ConjunctionShape, Runtime, counterexample, derive, derive_on, shape_of
from fairlead.guarantees.shape import SIMPLER, free_slots, is_at_most
from fairlead.model.events.values import duration_words
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.options import Matching
from tests.guarantees.worlds import compiled

TYPES = "\n".join(f"TYPE {name} (k INT, x INT, at TIMESTAMP) TIME at" for name in "ABCDN") + "\n"


def verdicts(text: str, name: str = "S") -> dict[Property, Guarantee]:
    return {each.property: each for each in derive(compiled(TYPES + text))[name]}


def lost(text: str, name: str = "S") -> dict[str, str]:
    """The lost properties with the clauses that lose them."""
    return {str(p): g.clause for p, g in verdicts(text, name).items() if g.verdict is Verdict.LOST}


def test_every_subscription_gets_fourteen_verdicts_in_order() -> None:
    found = derive(compiled(TYPES + "SUBSCRIPTION S MATCH A a SUBSCRIPTION R MATCH B b"))
    assert list(found) == ["S", "R"]
    assert [each.property for each in found["S"]] == list(Property)


def test_several_runtimes_at_once_are_each_of_them_alone() -> None:
    """A union, so that they differ; each plan is compiled anew, so that nothing found for one serves another."""
    text = f"{TYPES}EVENT UNION P = A + B TOPIC other (C) "
    text += "SUBSCRIPTION S MATCH P a AND C c OR D d PER k SUBSCRIPTION R MATCH P a AND A b"
    together = derive_on(compiled(text), Runtime)
    assert together == {each: derive(compiled(text), each) for each in Runtime}
    assert together == derive_on(compiled(text), reversed(Runtime))
    assert len({repr(each) for each in together.values()}) == len(Runtime)


PATTERNS = ("A a", "A a[2]", "A a AND B b", "A a THEN B b", "A a[2] AND B b", "A a AND N n", "A a OR A a AND B b")
CONDITIONS = (
    *("", "WHERE a.x = 1", "WHERE a.x = 2", "WHERE a.x = 1 AND a.k = 1", "WHERE a[1].x = 1", "WHERE a[1].x = 1 AND a[2].x = 1"),
    *("WHERE a[1].x = 1 AND a[2].x = 2", "WHERE a[1].x < a[2].x", "WHERE a.x < b.x", "WHERE a.x < b.k", "WHERE b.x = 1"),
    *("WITHOUT D d WITHIN 1 SECOND OF a[1]", "WITHOUT D d WITHIN 2 SECONDS OF a[1] WHERE d.x = a[1].x", "PER k", "PER x"),
    *("WITHOUT D d BETWEEN a AND b", "WITHOUT D e BETWEEN a AND b WHERE e.x = a.x", "WITHIN 1 SECOND", "WITHIN 2 SECONDS"),
)
OPTIONS = ("", "MATCHING RECENT", "MATCHING FIRST CONTIGUOUS DISPOSAL INFIX", "DISPOSAL FIRST PREFIX")


def accepted(text: str) -> bool:
    try:
        compiled(text)
    except LanguageError:
        return False
    return True


def test_subscriptions_that_are_judged_together_get_the_verdicts_that_each_gets_alone() -> None:
    bodies = [f"{pattern} {condition}" for pattern, condition in product(PATTERNS, CONDITIONS)]
    bodies = [each for each in bodies if accepted(f"{TYPES} SUBSCRIPTION S MATCH {each}")]
    rules = [f"SUBSCRIPTION S{at} MATCH {body} {option}" for at, (body, option) in enumerate(product(bodies, OPTIONS))]
    plan = compiled(TYPES + "\n".join(rules))
    assert len(rules) > 200
    together = derive(plan)
    for each in plan.subscriptions:
        assert together[each.name] == derive(replace(plan, subscriptions=(each,)))[each.name], each.text


def test_a_thousand_subscriptions_that_differ_in_constants_are_judged_once() -> None:
    rules = "\n".join(f"SUBSCRIPTION S{at} MATCH A a AND B b WHERE a.x = {at}" for at in range(1_000))
    assert len({id(each) for each in derive(compiled(TYPES + rules)).values()}) == 1


def test_a_subscription_keeps_no_more_than_the_worst_of_many_that_emit_what_it_reads() -> None:
    emitting = [f"SUBSCRIPTION S{at} MATCH A a AND B b {option} EMIT E(x = a.x)" for at, option in enumerate(OPTIONS)]
    found = lost("\n".join(["SUBSCRIPTION S MATCH E e", *emitting]))
    worst = [lost("\n".join(emitting), f"S{at}") for at in range(len(OPTIONS))]
    assert found.keys() == {name for each in worst for name in each}
    assert found["covering agreement"] == "E ← MATCHING RECENT"


def test_a_plain_conjunction_under_the_defaults_keeps_everything() -> None:
    found = verdicts("SUBSCRIPTION S MATCH A a AND B b WHERE a.x > 1")
    assert {each.verdict for each in found.values()} == {Verdict.KEPT}
    assert all(each.source.startswith("none found in ") for each in found.values())


def test_a_condition_between_members_loses_covering_agreement_only() -> None:
    assert lost("SUBSCRIPTION S MATCH A a AND B b WHERE a.x < b.x") == {"covering agreement": "WHERE a.x < b.x"}
    assert lost("SUBSCRIPTION S MATCH A a THEN B b") == {"covering agreement": "THEN"}
    assert lost("SUBSCRIPTION S MATCH A a AND B b WITHOUT N n BETWEEN a AND b") == {
        "covering agreement": "WITHOUT N n BETWEEN a AND b"
    }


def test_unlike_instances_lose_event_validity_under_the_defaults_and_alike_ones_do_not() -> None:
    assert lost("SUBSCRIPTION S MATCH A a[2] WHERE a[2].x = 5") == {"event validity": "MATCH A a[2]"}
    assert lost("SUBSCRIPTION S MATCH A a[2]") == {}
    assert lost("SUBSCRIPTION S MATCH A a[2] WHERE a[1].x = 5 AND a[2].x = 5") == {}


def test_event_validity_is_kept_where_nothing_is_promised() -> None:
    found = verdicts("SUBSCRIPTION S MATCH A a[2] AND B b WHERE a[1].x < a[2].x")[Property.EVENT_VALIDITY]
    assert found.verdict is Verdict.KEPT  # b is free, and FIRST takes the head of its queue
    found = verdicts("SUBSCRIPTION S MATCH A a AND B b WHERE a.x < b.x MATCHING RECENT")[Property.EVENT_VALIDITY]
    assert found.verdict is Verdict.KEPT
    assert "no single event is promised" in found.reason


@pytest.mark.parametrize(
    ("options", "wanted", "clause"),
    [
        ("MATCHING RECENT", "covering agreement", "MATCHING RECENT"),
        ("MATCHING RECENT", "event validity", "MATCHING RECENT"),
        ("MATCHING RECENT DISPOSAL INFIX", "type FIFO order", "MATCHING RECENT"),
        ("DISPOSAL INFIX POSTFIX", "event validity", "DISPOSAL INFIX POSTFIX"),
        ("DISPOSAL INFIX POSTFIX", "covering agreement", "DISPOSAL INFIX POSTFIX"),
    ],
)
def test_the_option_to_blame_is_named(options: str, wanted: str, clause: str) -> None:
    assert lost(f"SUBSCRIPTION S MATCH A a AND B b {options}")[wanted] == clause


def test_first_prefix_duplicates_only_where_a_type_has_several_instances() -> None:
    assert lost("SUBSCRIPTION S MATCH A a AND B b DISPOSAL FIRST PREFIX") == {}
    assert lost("SUBSCRIPTION S MATCH A a[2] AND B b DISPOSAL FIRST PREFIX") == {"no duplication": "DISPOSAL FIRST PREFIX"}
    unlike = lost("SUBSCRIPTION S MATCH A a[2] WHERE a[2].x = 5 DISPOSAL FIRST PREFIX")
    assert unlike["no duplication'"] == "DISPOSAL FIRST PREFIX"


def test_theorems_are_cited_where_the_paper_has_one() -> None:
    found = verdicts("SUBSCRIPTION S MATCH A a AND B b WHERE a.x < b.x DISPOSAL INFIX")[Property.TYPE_FIFO_ORDER]
    assert found.clause == "DISPOSAL INFIX"
    assert found.source == "theorem 6, trace FR-I/type FIFO order"
    assert found.reason.startswith("an event that a relation passed over")


def test_contiguity_costs_nothing_where_every_type_has_one_instance() -> None:
    assert lost("SUBSCRIPTION S MATCH A a AND B b MATCHING FIRST CONTIGUOUS") == {}
    found = lost("SUBSCRIPTION S MATCH A a[2] WHERE a[1].x = a[2].x MATCHING FIRST CONTIGUOUS")
    assert found["conjunction validity"] == "MATCHING FIRST CONTIGUOUS"


def test_per_keeps_orders_within_a_key() -> None:
    found = verdicts("SUBSCRIPTION S MATCH A a AND B b PER k")
    assert [str(p) for p, g in found.items() if g.verdict is Verdict.PER_KEY] == [
        "type total order",
        "conjunction total order",
        "type FIFO order",
        "type local order",
        "type causal order",
    ]
    worse = verdicts("SUBSCRIPTION S MATCH A a AND B b MATCHING RECENT DISPOSAL INFIX PER k")
    assert worse[Property.TYPE_FIFO_ORDER].verdict is Verdict.LOST


def test_a_window_takes_validity_and_covering_away() -> None:
    assert lost("SUBSCRIPTION S MATCH A a AND B b WITHIN 5 MINUTES") == dict.fromkeys(
        ("conjunction validity", "event validity", "covering agreement"), "WITHIN 5 MINUTES"
    )


def test_an_absence_takes_the_orders_away() -> None:
    found = lost("SUBSCRIPTION S MATCH A a WITHOUT N n WITHIN 2 HOURS OF a WHERE n.x = a.x")
    assert set(found.values()) == {"WITHOUT N n WITHIN 2 HOURS OF a"}
    assert "type FIFO order" in found
    assert "conjunction validity" not in found


def test_a_timer_loses_what_an_absence_loses() -> None:
    found = lost("SUBSCRIPTION S MATCH A a AFTER 2 HOURS OF a")
    assert found == dict.fromkeys(
        ("covering agreement", "type total order", "type FIFO order", "type local order", "type causal order"),
        "AFTER 2 HOURS OF a",
    )
    recent = "SUBSCRIPTION S MATCH A a AND B b {} MATCHING RECENT"
    delayed, absent = (lost(recent.format(each)) for each in ("AFTER 2 HOURS OF a", "WITHOUT N n WITHIN 2 HOURS OF a"))
    assert delayed.keys() == absent.keys() >= {"conjunction validity", "event validity"}
    beside = lost("SUBSCRIPTION S MATCH A a AFTER 2 HOURS OF a WITHOUT N n WITHIN 1 HOUR OF a WHERE n.x = a.x")
    assert set(beside.values()) == {"WITHOUT N n WITHIN 1 HOUR OF a"}


@pytest.mark.parametrize("waiting", ["AFTER 1 SECOND OF {}", "WITHOUT N n{} WITHIN 1 SECOND OF {}"])
def test_every_event_gets_its_turn_only_if_one_member_decides(waiting: str) -> None:
    a, b = (waiting.replace("n{}", f"n{name}").format(name) for name in "ab")
    alone, both = (lost(f"SUBSCRIPTION S MATCH A a AND B b {clauses}") for clauses in (a, f"{a} {b}"))
    assert "conjunction validity" not in alone
    assert "conjunction validity" in both


def test_a_limit_loses_covering_agreement_where_an_extension_passes_over_relations() -> None:
    found = [lost(f"SUBSCRIPTION S MATCH A a LIMIT 2 DISPOSAL {each}") for each in ("INFIX POSTFIX", "INFIX")]
    assert ["covering agreement" in each for each in found] == [True, False]


def test_limits_are_told_apart_where_much_is_judged_together() -> None:
    rules = "SUBSCRIPTION S MATCH A a AND B b SUBSCRIPTION R MATCH A a AND B b LIMIT 3"
    assert "conjunction validity" not in lost(rules)
    assert lost(rules, "R")["conjunction validity"] == "LIMIT 3"


def test_a_disjunction_keeps_what_all_its_branches_keep() -> None:
    found = verdicts("SUBSCRIPTION S MATCH A a OR B b AND C c WHERE b.x < c.x")
    assert found[Property.COVERING_AGREEMENT].clause == "WHERE b.x < c.x"
    order = found[Property.DISJUNCTION_TOTAL_ORDER]
    assert order.verdict is Verdict.KEPT
    assert order.reason == ""


def test_losses_pass_down_the_hierarchy() -> None:
    text = "SUBSCRIPTION Top MATCH Found f SUBSCRIPTION S MATCH A a AND B b WHERE a.x < b.x DISPOSAL INFIX EMIT Found(x = a.x)"
    found = verdicts(text, "Top")[Property.TYPE_FIFO_ORDER]
    assert found.verdict is Verdict.LOST
    assert found.clause == "Found ← DISPOSAL INFIX"
    assert "no creation" not in lost(text, "Top")


def test_a_counterexample_is_for_the_cell_and_no_richer_than_the_plan() -> None:
    plan = compiled(TYPES + "SUBSCRIPTION S MATCH A a AND B b WHERE a.x < b.x DISPOSAL INFIX")
    for found in (counterexample(plan, Property.TYPE_FIFO_ORDER), counterexample(plan["S"], Property.TYPE_FIFO_ORDER)):
        assert found is not None
        assert found.cell == "FR-I"
        assert is_at_most(found.shape, shape_of(plan["S"].branches[0]))
        assert "DISPOSAL INFIX" in str(found)
    assert counterexample(plan, Property.NO_CREATION) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("A a", "E"),
        ("A a[3]", "1A"),
        ("A a[2] WHERE a[1].x = 1", "1U"),
        ("A a[2] WHERE a[1].x = a[2].x", "1W"),
        ("A a AND B b WHERE a.x = 1", "NS"),
        ("A a THEN B b", "NSX"),
        ("A a[2] AND B b", "NA"),
        ("A a AND B b AND C c[2] WHERE a.x = b.x", "NAX"),
        ("A a[2] AND B b WHERE a[2].x = 1", "NU"),
        ("A a[2] AND B b WHERE a[2].x = a[1].x", "NW"),
        ("A a[2] AND B b WHERE a[2].x = b.x", "NX"),
    ],
)
def test_the_shape_of_a_pattern(text: str, code: str) -> None:
    assert shape_of(compiled(TYPES + f"SUBSCRIPTION S MATCH {text}")["S"].branches[0]).code == code


def test_shapes_are_ordered_from_the_single_event_up() -> None:
    assert all(is_at_most(ConjunctionShape.EVENT, each) for each in ConjunctionShape)
    order = list(ConjunctionShape)
    assert all(order.index(below) < order.index(each) for each, under in SIMPLER.items() for below in under)


def test_the_free_slot_is_the_oldest_instance() -> None:
    branch = compiled(TYPES + "SUBSCRIPTION S MATCH A a[2] AND B b WHERE a[1].x < b.x")["S"].branches[0]
    assert free_slots(branch, Matching.FIRST) == ()
    assert free_slots(branch, Matching.RECENT) == (1,)


@pytest.mark.parametrize(
    ("size", "words"),
    [(300_000_000, "5 MINUTES"), (1_000_000, "1 SECOND"), (1_500_000, "1500 MILLISECONDS"), (7, "7 MICROSECONDS")],
)
def test_durations_read_as_they_are_written(size: int, words: str) -> None:
    assert duration_words(size) == words
