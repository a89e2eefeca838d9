"""Order is data: derived events and absences stand at definite places, whatever the batches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.engine import Engine
from fairlead.errors import UsageError
from fairlead.language import compile_text
from fairlead.model.events.columns import Columns
from fairlead.model.events.position import Position, parse_position
from fairlead.transport.events import read_events
from tests.matching.generators.generated import Case, cases

CHAIN = """
TYPE A (x INT, at TIMESTAMP) TIME at
SUBSCRIPTION S1 MATCH A a WHERE a.x > 0 EMIT P (x = a.x)
SUBSCRIPTION S2 MATCH A a WHERE a.x > 1 EMIT Q (x = a.x)
SUBSCRIPTION S3 MATCH P p EMIT R (x = p.x)
SUBSCRIPTION S4 MATCH Q q AND R r
"""


def run(text: str, events: list[dict[str, Any]]) -> list[tuple[str, tuple[int | str, ...], str]]:
    return [(r.subscription, r.positions, str(r.completed_at)) for r in fairlead.match(fairlead.compile(text), events)]


def test_derived_events_stand_depth_first_directly_after_the_event_that_completed_them() -> None:
    assert run(CHAIN, [{"type": "A", "x": 2, "at": 1}]) == [
        ("S1", (0,), "0"),
        ("S2", (0,), "0"),
        ("S3", ("0+1",), "0+1"),  # P at 0+1, what it derives (R) at 0+2, its sibling Q at 0+3
        ("S4", ("0+3", "0+2"), "0+3"),
    ]


def test_what_an_absence_derives_stands_before_the_event_that_passed_the_deadline() -> None:
    text = """
    TYPE A (x INT, at TIMESTAMP) TIME at
    TYPE B (x INT, at TIMESTAMP) TIME at
    SUBSCRIPTION Lonely MATCH A a WITHOUT B b WITHIN 10 SECONDS OF a WHERE b.x = a.x EMIT Alone (x = a.x)
    SUBSCRIPTION Both MATCH Alone l THEN A a
    """
    events = [{"type": "A", "x": 1, "at": 0}, {"type": "A", "x": 2, "at": 1}, {"type": "A", "x": 3, "at": 30}]
    assert run(text, events) == [
        ("Lonely", (0,), "2-1"),
        ("Lonely", (1,), "2-1"),  # alone, what it derives is read by nobody and takes no place
        ("Both", (2, "2-1"), "2"),
    ]


@pytest.mark.slow
def test_a_subscription_stands_deeper_than_all_that_it_reads_however_long_the_chain() -> None:
    links = "\n".join(f"SUBSCRIPTION S{n} MATCH T{n + 1} t EMIT T{n} (a = t.a)" for n in range(1_100))
    engine = Engine(fairlead.compile(f"TYPE T1100 (a INT)\n{links}\nSUBSCRIPTION Both MATCH T1100 a AND T7 b"))
    assert [each.depth for each in engine.running] == [*range(1_099, -1, -1), 1_093]


@pytest.mark.parametrize("shown", [7, "7+1", "7-1", "7-12", "0+3"])
def test_a_position_reads_back_as_it_prints(shown: int | str) -> None:
    assert parse_position(shown).shown == shown


def test_places_beside_an_event_sort_before_and_after_it() -> None:
    assert parse_position("7-1") < parse_position("7-2") < Position(7) < parse_position("7+1") < Position(8)


def test_positions_that_do_not_rise_are_refused_and_nothing_is_lost() -> None:
    plan = compile_text("TYPE A (x INT) SUBSCRIPTION S MATCH A")
    (columns,) = read_events([{"type": "A", "x": 1}], plan.catalogue)
    engine = Engine(plan)
    engine.feed(columns)
    before = engine.dump()
    for again in (lambda: engine.feed(columns), lambda: engine.arrive(next(iter(columns.events(plan.catalogue))))):
        with pytest.raises(UsageError, match=r"A011 .*: positions must increase from event to event, and the last one was 0"):
            again()
    assert engine.dump() == before


def test_a_batch_of_nothing_takes_no_position() -> None:
    plan = compile_text("TYPE A (x INT) SUBSCRIPTION S MATCH A")
    (columns,) = read_events([{"type": "A", "x": 1}], plan.catalogue)
    for engine in (Engine(plan), Engine(plan, kernels_from=-1)):
        engine.feed(Columns((), [], [], {}))
        assert [relation.positions for relation in engine.feed(columns)] == [(0,)]


@given(cases(), st.integers(1, 5))
def test_batch_boundaries_change_nothing(case: Case, rows: int) -> None:
    plan = compile_text(case.rules)
    whole, split = Engine(plan), Engine(plan)
    expected = [r.id for columns in read_events(case.events, plan.catalogue) for r in whole.feed(columns)]
    found = [r.id for columns in read_events(case.events, plan.catalogue, batch_rows=rows) for r in split.feed(columns)]
    assert found == expected
    assert split.dump() == whole.dump()


@given(cases())
def test_a_prefix_of_the_input_gives_a_prefix_of_the_relations(case: Case) -> None:
    plan = compile_text(case.rules)
    half = len(case.events) // 2
    whole = [r.id for columns in read_events(case.events, plan.catalogue) for r in Engine(plan).feed(columns)]
    part = [r.id for columns in read_events(case.events[:half], plan.catalogue) for r in Engine(plan).feed(columns)]
    assert whole[: len(part)] == part


@given(cases())
def test_names_and_aliases_are_not_part_of_the_identity(case: Case) -> None:
    renamed = case.rules.replace("SUBSCRIPTION S\n", "SUBSCRIPTION Other\n")
    first, second = compile_text(case.rules), compile_text(renamed)
    assert first["S"].digest == second["Other"].digest


@given(st.permutations("ABCDEF"), st.lists(st.sets(st.integers(0, 4), max_size=3), min_size=6, max_size=6), st.randoms())
def test_emitters_come_before_their_readers_whatever_types_and_texts_are_called(
    names: list[str], read: list[set[int]], random: Any
) -> None:
    """`T<at>` reads some of those before it; which is first in the text, and in the order of names, is another matter."""
    rules = []
    for at, name in enumerate(names):
        inputs = [f"T{names[each]} a{each}" for each in sorted(read[at]) if each < at] or ["Input a"]
        alias = inputs[0].split()[1]
        rules.append(f"SUBSCRIPTION S{name} MATCH {' AND '.join(inputs)} EMIT T{name} (x = {alias}.x)")
    random.shuffle(rules)
    plan = compile_text("TYPE Input (x INT)\n" + "\n".join(rules))
    order = [each.name for each in plan.emitters_first]
    assert sorted(order) == sorted(each.name for each in plan.subscriptions)
    for each in plan.subscriptions:
        for name in plan.derived_types(each):
            assert all(order.index(one.name) < order.index(each.name) for one in plan.emitters[name])
    Engine(plan)
