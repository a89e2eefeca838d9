"""Whole plans on kernels deliver what they deliver event by event: families, hierarchies, absences, overlapping types.

Here the generated source runs as plain Python (compiling takes a second for each); test_kernel_compiled.py runs machine code.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.matching.results.delivery_order import LAZY
from fairlead.matching.results.relation_batches import relation_table
from fairlead.matching.results.result_table import table_of_objects
from fairlead.matching.thresholds import THRESHOLDS, Thresholds
from fairlead.model.events.values import microseconds
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import to_hex
from fairlead.model.relations.layout import layout_of
from fairlead.transport.events import read_events
from tests.matching.compiled.test_kernel import trees
from tests.matching.equality.test_lanes import interpreted, shown
from tests.matching.generators.generated import START, Case
from tests.matching.generators.plans import INPUT, plan_cases

__all__ = ["interpreted", "trees"]


def compiled(rules: str) -> Plan:
    """What compiles at all: a generated condition may compare a value with itself."""
    try:
        return compile_text(rules)
    except LanguageError:
        assume(False)
        raise


def rows_of(table: Any) -> list[str]:
    """NaN equals itself as text."""
    return [repr(row) for row in table.to_pylist()]


def compared(case: Case, plan: Plan, rows: int, change: int, thresholds: Thresholds = THRESHOLDS) -> Counter[str]:
    plain, fast = Engine(plan, kernels_from=None), Engine(plan, kernels_from=change, thresholds=thresholds)
    layout, seen = layout_of(plan), Counter[str]()
    batches = []
    for columns in read_events(case.events, plan.catalogue, batch_rows=rows):
        batches.append((plain.feed(columns), fast.feed(columns)))
        assert fast.dump() == plain.dump()
        assert fast.waiting() == plain.waiting()
    until = None if case.until is None else microseconds(case.until)
    batches.append((plain.finish(until), fast.finish(until)))
    assert fast.dump() == plain.dump()
    for expected, found in batches:
        assert shown(list(found)) == shown(list(expected))
        assert rows_of(relation_table([found], layout)) == rows_of(table_of_objects(layout, list(expected)))
        seen["relations"] += len(expected)
        if isinstance(found, LAZY):
            assert to_hex(found.id_words()) == [each.id for each in expected]
            assert found.counts() == Counter(each.subscription for each in expected)
            seen["on kernels"] += len(found)
    if fast.lane is not None:
        seen["families"] += sum(len(family.members) > 1 for family in fast.lane.families)
        seen["levels"] += fast.lane.levels.needed
    return seen


@pytest.mark.slow
@pytest.mark.usefixtures("trees")
def test_a_plan_on_kernels_delivers_what_it_delivers_event_by_event() -> None:
    total: Counter[str] = Counter()

    @settings(
        max_examples=max(60, settings.default.max_examples * 3 // 5),
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(plan_cases(), st.integers(1, 7), st.integers(0, 12))
    def holds(case: Case, rows: int, change: int) -> None:
        seen = compared(case, compiled(case.rules), rows, change)
        for each, count in seen.items():
            event(f"{each}: {min(count, 5)}")
        total.update(seen)

    holds()
    assert min(total[each] for each in ("on kernels", "families", "levels")) > 10, total


def agreed(rules: str, events: str, until: int | None = None) -> Counter[str]:
    """Events as words: type, seconds, and what else is given, `A1` or `B7s=a`."""
    made = []
    for word in events.split():
        found = re.fullmatch(r"(Heartbeat|[A-D])(\d+)(?:s=(\w))?", word)
        assert found is not None
        at = START + timedelta(seconds=int(found[2]))
        given = {} if found[1] == "Heartbeat" else {"k": 0, "j": 0, "x": 1, "y": 1.0, "s": found[3]}
        made.append({"type": found[1], "at": at} | given | ({"z": 1} if found[1] == "D" else {}))
    case = Case(INPUT + rules, made, None if until is None else START + timedelta(seconds=until))
    total: Counter[str] = Counter()
    for rows in (1, 2, len(made)):
        total.update(compared(case, compile_text(case.rules), rows, 0))
    return total


def test_no_text_equals_two_texts() -> None:
    """Numbers of texts are not in the order of texts: 'b' and 'a' between them were taken for an interval."""
    rules = "SUBSCRIPTION S MATCH A a WHERE a.s = 'a' AND a.s = 'b' SUBSCRIPTION T MATCH A a WHERE a.s = 'a'"
    assert agreed(rules, "A1s=b A2s=a A3s=c A4s=b")["on kernels"] == 3


def test_an_absence_that_was_due_earlier_is_decided_before_one_whose_event_tells_its_subscription_the_time() -> None:
    rules = """
    SUBSCRIPTION S MATCH B b WITHOUT A n WITHIN 3 SECONDS OF b EMIT E (x = b.x)
    SUBSCRIPTION T MATCH A a WITHOUT E n WITHIN 1 SECONDS OF a
    """
    assert agreed(rules, "B1 A5 B4 A9")["on kernels"] == 9
    assert agreed(rules, "B1 A5 B4 A5 B5", until=20)["on kernels"] > 9


def test_what_was_due_before_a_decision_is_not_cancelled_by_the_event_that_it_derives() -> None:
    """The derived event is older than the deadline that it comes from."""
    rules = """
    SUBSCRIPTION S MATCH B b WITHOUT A n WITHIN 4 SECONDS OF b EMIT E (x = b.x, at = b.at) TIME at
    SUBSCRIPTION T MATCH A a WITHOUT E n WITHIN 1 SECONDS OF a
    """
    assert agreed(rules, "A1 B1 A9")["on kernels"] == 6
    assert agreed(rules, "A1 B1 Heartbeat9 A9", until=30)["on kernels"] == 9


def test_what_a_decision_leads_to_follows_it_though_it_was_due_before() -> None:
    rules = """
    SUBSCRIPTION S MATCH B b WITHOUT C n WITHIN 4 SECONDS OF b EMIT E (x = b.x, at = b.at) TIME at
    SUBSCRIPTION T MATCH E e WITHOUT A n WITHIN 1 SECONDS OF e EMIT F (x = e.x, at = e.at) TIME at
    SUBSCRIPTION V MATCH F f WITHOUT B n WITHIN 1 SECONDS OF f
    """
    agreed(rules, "B1 B2 A9 B12", until=30)
    agreed(rules, "B1 B2 C9 B9 A20", until=30)
    agreed(rules, "B1 B3", until=30)


def test_branches_of_one_subscription_share_the_order_of_what_was_due_at_one_time() -> None:
    rules = "SUBSCRIPTION S MATCH A a OR B b WITHOUT C p WITHIN 2 SECONDS OF a WITHOUT C q WITHIN 2 SECONDS OF b"
    assert agreed(rules, "B1 A1 B1 A1 A1 B1 B1 Heartbeat3 A9")["on kernels"] == 21


def test_alike_branches_at_different_levels_do_not_share_a_kernel() -> None:
    rules = """
    SUBSCRIPTION Top MATCH A a[2] OR F f WITHIN 9 SECONDS
    SUBSCRIPTION Middle MATCH E e WITHIN 9 SECONDS EMIT F (x = e.x)
    SUBSCRIPTION Bottom MATCH A a[2] WITHIN 9 SECONDS EMIT E (x = a[1].x)
    """
    assert agreed(rules, "A1 A2 B3 A3 A4 A5")["on kernels"] == 24


def test_an_event_that_is_queued_twice_does_not_stand_before_itself() -> None:
    rules = "SUBSCRIPTION S MATCH B b THEN U u PER b.k = u.j"
    agreed(rules, "B1 B2 C3 B4 B5 C6")
