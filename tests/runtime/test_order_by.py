"""`match(order_by=…)`: the order of the input does not matter, only its content."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations

import pyarrow as pa
import pytest

import fairlead
from fairlead.runtime.embedded import Run
from fairlead.runtime.sorting import AllFresh
from fairlead.transport.events import read_events

RULES = """
TYPE A (k INT, x DOUBLE, at TIMESTAMP) TIME at
TYPE B (k INT, x DOUBLE, at TIMESTAMP) TIME at
SUBSCRIPTION Pairs MATCH A a AND B b WHERE a.x <= b.x PER a.k, b.k
"""


def rows(count: int) -> list[dict[str, object]]:
    chance = random.Random(7)
    return [
        {
            "type": chance.choice("AB"),
            "k": chance.randrange(3),
            "x": chance.randrange(5) / 2,
            "at": f"2026-01-01T00:00:{at // 4:02}Z",
        }
        for at in range(count)
    ]


def test_permuted_events_give_the_same_relations_in_the_same_order() -> None:
    plan = fairlead.compile(RULES)
    given = rows(200)
    wanted = fairlead.match(plan, given, order_by=["at"])
    assert len(wanted) > 20
    for seed in range(5):
        mixed = random.Random(seed).sample(given, len(given))
        found = fairlead.match(plan, mixed, order_by="at")
        assert [each.id for each in found] == [each.id for each in wanted]
        assert found.receipt == wanted.receipt


def test_a_table_is_put_in_order_too() -> None:
    plan = fairlead.compile(RULES)
    given = rows(100)
    table = pa.Table.from_pylist(random.Random(1).sample(given, len(given)))
    assert fairlead.match(plan, table, order_by=["at"]).receipt == fairlead.match(plan, given, order_by=["at"]).receipt


def test_what_a_source_sent_twice_is_dropped_and_takes_a_position_whatever_the_order_of_its_numbers() -> None:
    plan = fairlead.compile(RULES)
    again = {"type": "A", "k": 1, "x": 0.0, "at": "2026-01-01T00:00:01Z", "_source": "p", "_sequence": 3}
    given = [
        {"type": "B", "k": 1, "x": 9.0, "at": "2026-01-01T00:00:03Z", "_source": "p", "_sequence": 2},
        {"type": "A", "k": 2, "x": 1.0, "at": "2026-01-01T00:00:02Z", "_source": "p", "_sequence": 1},
        again,
        again,
    ]
    found = fairlead.match(plan, given, order_by=["at"])
    assert found.duplicates == 1
    assert [each.positions for each in found] == [(0, 3)]


def test_an_event_between_others_changes_no_id_but_those_of_its_relations() -> None:
    chain = "SUBSCRIPTION After MATCH A a THEN B b EMIT D (x = a.x * 1000 + b.x) SUBSCRIPTION Both MATCH D d AND A a"
    plan = fairlead.compile(RULES + chain)
    given = [each | {"x": float(at), "_source": "p", "_sequence": at} for at, each in enumerate(rows(60))]
    whole = fairlead.match(plan, given, order_by="at")
    shapes = Counter(map(shape, whole))
    known = {shape(each): each.id for each in whole if shapes[shape(each)] == 1}
    for left in range(0, 60, 7):
        less = fairlead.match(plan, [each for at, each in enumerate(given) if at != left], order_by="at")
        common = [each for each in less if shape(each) in known]
        assert len(common) > 10
        assert all(each.id == known[shape(each)] for each in common)


def shape(relation: fairlead.Relation) -> tuple[object, ...]:
    """What a relation is, without positions; of a derived member, its value."""
    return relation.subscription, *((each.type, each.sequence, each["x"]) for each in relation.members)


def test_without_a_value_to_order_by_it_is_refused() -> None:
    plan = fairlead.compile(RULES)
    with pytest.raises(fairlead.DataError, match="D020"):
        fairlead.match(plan, rows(3), order_by=["when"])
    with pytest.raises(fairlead.DataError, match="D019"):
        fairlead.match(plan, [{"type": "A", "k": None, "x": 1.0, "at": "2026-01-01T00:00:01Z"}], order_by=["k"])
    with pytest.raises(fairlead.UsageError, match="A211"):
        fairlead.match(plan, rows(3), order_by=[])


@pytest.mark.parametrize("kind", ["INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "BINARY", "DECIMAL(9, 2)", "DATE"])
@pytest.mark.parametrize("order", ["v", "v DESC", "v, at"])
def test_a_heartbeat_has_no_place_in_an_order_that_does_not_begin_with_a_time(kind: str, order: str) -> None:
    plan = fairlead.compile(f"TYPE A (v {kind}, at TIMESTAMP) TIME at ORDER BY {order} SUBSCRIPTION S MATCH A a")
    with pytest.raises(fairlead.DataError, match="D020"):
        fairlead.match(plan, [{"type": "Heartbeat", "at": "2026-01-02T00:00:00Z"}])


@pytest.mark.sampled
@pytest.mark.parametrize("delay", ["", " DELAY 1 SECOND", " DELAY 1 SECOND LATE REVISE WITHIN 1 MINUTE"])
@pytest.mark.parametrize("descending", ["", " DESC"])
@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_both_zeros_are_one_order_key(zeros: tuple[float, float], descending: str, delay: str) -> None:
    text = f"TYPE A (x DOUBLE, n INT, at TIMESTAMP) TIME at ORDER BY at, x{descending}{delay} SUBSCRIPTION R MATCH A a"
    given = [
        {"type": "A", "x": x, "n": n, "at": "2026-01-01T00:00:01Z", "_source": "p", "_sequence": n} for n, x in enumerate(zeros)
    ]
    given.append(given[0] | {"x": zeros[1]})  # a repeat
    last = {"type": "A", "x": 1.0, "n": 9, "at": "2026-01-01T00:00:09Z", "_source": "p", "_sequence": 9}
    plan = fairlead.compile(text)
    for mixed in permutations([*given, last]):
        found = fairlead.match(plan, mixed)
        assert [each.events[0]["n"] for each in found] == [0, 1, 9]
        assert found.duplicates == 1
    if delay:
        run, read = Run(plan, keep=True), read_events([*given, last], plan.catalogue, last_sequences=AllFresh())
        held = [each for columns in read for each in run.feed(columns)]
        assert [each.events[0]["n"] for each in held] == [0, 1]
        assert [each.id for each in held] == [each.id for each in found][:2]


@pytest.mark.parametrize("delay", ["", " DELAY 1 SECOND"])
def test_a_date_is_an_order_key(delay: str) -> None:
    keys = f"at, due DESC{delay}" if delay else "due DESC, at"
    text = f"TYPE A (due DATE, n INT, at TIMESTAMP) TIME at ORDER BY {keys} SUBSCRIPTION S MATCH A a"
    dues = ("2024-02-29", "9999-12-31", "0001-01-01", "1969-12-31")
    given = [{"type": "A", "due": due, "n": n, "at": "2026-01-01T00:00:01Z"} for n, due in enumerate(dues)]
    for mixed in permutations(given):
        assert [each.events[0]["n"] for each in fairlead.match(fairlead.compile(text), mixed)] == [1, 0, 3, 2]
