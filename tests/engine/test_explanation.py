"""A plan explains itself: as text, as JSON and in a notebook."""

from __future__ import annotations

import json

import pytest

import fairlead
from fairlead.errors import UsageError
from fairlead.model.guarantee import Property

RULES = """
TYPE Order (id INT, note STRING, at TIMESTAMP) TIME at
TYPE Shipment (id INT, at TIMESTAMP) TIME at
SUBSCRIPTION Late
MATCH Order o WHERE o.note = '<b>' WITHOUT Shipment s WITHIN 2 HOURS OF o WHERE s.id = o.id PER id EMIT Delay (id = o.id)
SUBSCRIPTION Pair
MATCH Order o[2] WHERE o[2].id > o[1].id MATCHING RECENT DISPOSAL INFIX WITHIN 1 DAY
"""


@pytest.fixture(scope="module")
def plan() -> fairlead.Plan:
    return fairlead.compile(RULES)


def test_it_names_signature_conditions_options_lane_and_all_fourteen_guarantees(plan: fairlead.Plan) -> None:
    text = str(fairlead.explain(plan))
    for line in (
        "signature  [Order[1] o]",
        "without    Shipment s within 7200 s of o where (s.id = o.id)",
        "emits      Delay(id = o.id)",
        "runs on    a compiled kernel",
        "matching   RECENT (MR): instance 2 of a type is older than instance 1",
        "within     86400 s of the key's own clock",
    ):
        assert line in text
    assert all(text.count(f"    {each} ") == 2 for each in Property)


PRICED = """
TYPE A (k INT, price DOUBLE, s STRING) TYPE B (k INT, price DOUBLE)
SUBSCRIPTION P MATCH A a AND B b WHERE a.price < b.price AND a.s = 'x' PER k
SUBSCRIPTION Q MATCH A a AND B b WHERE a.price < b.price AND a.s = 'y' PER k
SUBSCRIPTION R MATCH A a AND B b WHERE a.price < b.price AND a.s IN ('x', 'z') PER k
SUBSCRIPTION T MATCH A a THEN B b
"""


def test_it_says_which_index_serves_which_predicate_and_what_an_arriving_event_costs() -> None:
    text = str(fairlead.explain(fairlead.compile(PRICED), "P"))
    assert (
        """
  cost       n: queued events of a key
    when an A arrives   b: ordered index on b.price for "a.price < b.price"   O(log n)
    when a B arrives    a: ordered index on a.price for "a.price < b.price"   O(log n)
    leaving             O(log n) for each event that leaves
    shared with 2 alike branches of the plan; conditions on a: interval index on a.s
"""
        in text
    )


def test_it_says_who_shares_a_kernel_and_what_the_interval_index_does_not_serve() -> None:
    explanation = fairlead.explain(fairlead.compile(PRICED))
    others = {each["name"]: each["costs"][0] for each in explanation.to_json()["subscriptions"]}
    assert [each["alike"] for each in others.values()] == [2, 2, 2, 0]
    assert others["P"]["conditions"] == [{"member": "a", "interval_index": "a.s"}]
    assert others["R"]["conditions"] == [{"member": "a", "interval_index": None}]
    assert others["P"]["arrivals"][1] == {
        "types": ["B"],
        "bound": "O(log n)",
        "steps": [{"member": "a", "way": "tree", "index": "a.price", "serves": ["a.price < b.price"], "tests": []}],
        "notes": [],
    }
    assert "conditions on a: evaluated for whole columns" in str(fairlead.explain(explanation.plan, "R"))
    assert "alike" not in str(fairlead.explain(explanation.plan, "T"))
    assert "ordered index on a.price" in explanation._repr_html_()


SLOW = """
TYPE A (s STRING, m INT) TYPE B (m INT)
SUBSCRIPTION Fine MATCH A a AND B b
SUBSCRIPTION Parts MATCH A a AND B b WHERE substring(a.s, b.m) = 'x' AND a.m > 1
SUBSCRIPTION More MATCH A a AND B b WHERE substring(a.s, b.m) = 'x' AND a.m > 2
"""


def test_what_no_kernel_can_do_is_warned_of_once_for_alike_subscriptions() -> None:
    plan = fairlead.compile(SLOW)
    (warning,) = [each for each in plan.warnings if each.code == "W013"]
    assert warning.subscription == "Parts"
    assert str(warning).startswith(
        "W013 line 4, column 44: 'Parts' cannot be compiled to machine code (substring of a text and"
    )
    assert "fix: rewrite that condition, or ask for the slow matcher: event_by_event=True" in str(warning)


def test_the_whole_plan_says_why_it_has_no_kernel() -> None:
    text = str(fairlead.explain(fairlead.compile(SLOW)))
    assert "runs on    no kernel: substring of a text and numbers of different events" in text
    assert "runs on    no kernel: because of Parts: substring of a text and numbers of different events" in text
    assert "  cost " not in text
    assert "warning W013" in text


def test_a_counterexample_is_shown_on_demand_only(plan: fairlead.Plan) -> None:
    assert "counterexample" not in str(fairlead.explain(plan))
    one = str(fairlead.explain(plan, "Pair", counterexamples="type FIFO order"))
    assert "counterexample to type FIFO order" in one
    assert "SUBSCRIPTION Late" not in one
    assert str(fairlead.explain(plan, counterexamples=True)).count("counterexample to") > 2


def test_what_a_clause_loses_has_a_trace_too() -> None:
    keyed = fairlead.compile("TYPE A (k INT) TYPE B (k INT) SUBSCRIPTION S MATCH A a AND B b PER k")
    text = str(fairlead.explain(keyed, counterexamples="type total order"))
    assert (
        "counterexample to type total order\n    A stored case of PER with MATCHING FIRST, DISPOSAL PREFIX INFIX for several"
        in text
    )
    assert "Its types, conditions and values are its own, not those of S." in text
    assert "\n    TYPE A (k INT, x INT)" in text
    assert "PER k" in text
    assert "type total order is violated: p1 delivers" in text


def test_a_counterexample_says_what_it_is_a_case_of_and_that_there_is_none() -> None:
    types = "TYPE A (x INT) TYPE B (x INT) SUBSCRIPTION S MATCH "
    further = fairlead.compile(types + "A a AND B b MATCHING ALL DISPOSAL ADVANCE 2")
    other = str(fairlead.explain(further, counterexamples=True))
    assert "Its options, types, conditions and values are its own, not those of S." in other
    sequence = fairlead.compile(types + "A a NEXT B b DISPOSAL FIRST PREFIX")
    run = str(fairlead.explain(sequence, counterexamples="no duplication"))
    assert "A stored case of a sequence of NEXT with MATCHING FIRST, DISPOSAL FIRST PREFIX." in run
    having = fairlead.compile(types + "A a+ AND B b HAVING count(a) >= 2 MATCHING RECENT")
    texts = fairlead.explain(having, counterexamples=True).counterexamples.values()
    assert not any("None" in each for each in texts)
    assert any(each.startswith("There is no stored case: not shown to be kept") for each in texts)


def test_guarantees_are_those_of_the_runtime_that_is_asked_for() -> None:
    plan = fairlead.compile("TYPE A (x INT) TYPE B (x INT) EVENT UNION W = A + B SUBSCRIPTION S MATCH W w")
    assert "type FIFO order          kept" in str(fairlead.explain(plan))
    assert "spark also loses type FIFO order" in str(fairlead.explain(plan))
    spark = fairlead.explain(plan, counterexamples="type FIFO order", runtime="spark")
    assert "guarantees (spark)" in str(spark)
    assert "type FIFO order          lost          MATCH W: rows of A, B that are equal in all order columns" in str(spark)
    (found,) = spark.to_json()["subscriptions"]
    assert found["runtime"] == "spark"
    assert [each["verdict"] for each in found["source_order"]] == ["kept", "lost", "kept"]
    assert found["lost_elsewhere"] == {"embedded": [], "live": []}
    with pytest.raises(fairlead.UsageError, match="A009"):
        fairlead.explain(plan, runtime="flink")


def test_wrong_names_are_refused_with_the_right_ones(plan: fairlead.Plan) -> None:
    with pytest.raises(UsageError, match=r"A001.*(\n.*)*Late, Pair"):
        fairlead.explain(plan, "Lat")
    with pytest.raises(UsageError, match="A002"):
        fairlead.explain(plan, counterexamples="fairness")


def test_the_json_form_is_json(plan: fairlead.Plan) -> None:
    content = json.loads(json.dumps(fairlead.explain(plan).to_json()))
    assert [each["name"] for each in content["subscriptions"]] == ["Late", "Pair"]
    assert all(len(each["guarantees"]) == 14 for each in content["subscriptions"])


def test_notebooks_get_escaped_tables_for_plans_guarantees_results_and_receipts(plan: fairlead.Plan) -> None:
    result = fairlead.match(plan, [{"type": "Order", "id": n, "note": "<b>", "at": n} for n in range(30)], until="2026-01-01")
    for shown in (plan, fairlead.explain(plan), result, result.receipt):
        html = shown._repr_html_()
        assert "<b>" not in html
        assert html.startswith("<")
    assert "… and" in result._repr_html_()
    assert "guarantees kept" in plan._repr_html_()


def test_late_revise_says_what_it_keeps_and_what_a_late_event_costs() -> None:
    text = "TYPE A (x INT, at TIMESTAMP) TIME at ORDER BY at DELAY 2 SECONDS %s SUBSCRIPTION S MATCH A a[2]"
    shown = fairlead.explain(fairlead.compile(text % "LATE REVISE WITHIN 90 MINUTES"))
    assert "  late       ORDER BY at DELAY 2 SECONDS LATE REVISE WITHIN 90 MINUTES\n" in str(shown)
    assert "every event of the last 90 MINUTES before the frontier" in str(shown)
    assert "up to 16 states of the matcher, 16,384 events apart or more" in str(shown)
    assert shown.to_json()["subscriptions"][0]["late"]["kept_us"] == 5_400_000_000
    assert "late " not in str(fairlead.explain(fairlead.compile(text % "LATE TAG"))).split("guarantees")[0]
    assert "late" not in fairlead.explain(fairlead.compile(text % "")).to_json()["subscriptions"][0]
