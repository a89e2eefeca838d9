"""The search for sequences: what a long run costs, and what one event can decide."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.errors import UnsupportedError
from fairlead.matching.interpreted.sequence_conjunction import OpenSequences, SequenceConjunction
from fairlead.matching.interpreted.sequence_search import SequenceSearch
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position

TYPES = "TYPE A (k INT, x INT)\nTYPE B (k INT, x INT)\n"


def rows(plan: fairlead.Plan, names: str) -> list[Event]:
    return [Event(plan.catalogue[name], (1, at), Position(at), None) for at, name in enumerate(names)]


def test_one_event_decides_a_limited_number_of_relations():
    plan = fairlead.compile(
        f"{TYPES}SUBSCRIPTION S MATCH (A a NEXT A b THEN B c WHERE c.x < 0) ELSE A d".replace(" WHERE c.x < 0", "")
    )
    branch = plan["S"].branches[0]
    conjunction = SequenceConjunction(plan["S"], branch, plan.catalogue, most=2)
    instance = conjunction.create()
    for event in rows(plan, "AAAA"):
        assert conjunction.arrive(instance, event, (0,), None) == []
    with pytest.raises(UnsupportedError) as refused:
        conjunction.decide(instance, 1 << 62)
    assert refused.value.code == "U006"


def test_a_row_is_tried_once_while_a_run_grows(monkeypatch):
    asked = []
    fits = SequenceSearch._fits
    monkeypatch.setattr(SequenceSearch, "_fits", lambda self, take, place: asked.append(place) or fits(self, take, place))
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH A a+ NEXT B b WHERE a.x > prev(a.x)")
    engine = Engine(plan)
    found = [each for event in rows(plan, "A" * 500 + "B") for each in engine.arrive(event)]
    assert [each.runs for each in found] == [(500, 1)]
    assert len(asked) == 502  # the B is no further A, and then it is the B


LATE = (
    "A d{4,} NEXT A u{3,} SHORTEST WHERE d.x > prev(d.x) AND u.x < prev(u.x)",
    "A d{4,} NEXT A u{3,} SHORTEST WHERE d.x > prev(d.x) AND u.x < last(d.x) - 5000",
    "A q{1000,} WHERE q.x > prev(q.x)",
    "A q{1000,} SHORTEST WHERE q.x > prev(q.x)",
    "A a NEXT A b+ NEXT A c WHERE b.x > prev(b.x) AND c.x < 0",
    "A a+ NEXT A b+ SHORTEST NEXT A c WHERE a.x > prev(a.x) AND b.x > prev(b.x) AND c.x < 0",
)
"""What fails at the end of a long run of rising values, from each of its events on."""


@pytest.mark.parametrize("pattern", LATE)
def test_starts_that_fail_late_do_not_search_their_rows_again(monkeypatch, pattern):
    asked = []
    fits = SequenceSearch._fits
    monkeypatch.setattr(SequenceSearch, "_fits", lambda self, take, place: asked.append(place) or fits(self, take, place))
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH {pattern}")
    engine = Engine(plan)
    for event in rows(plan, "A" * 300 + "B"):
        assert engine.arrive(event) == []
    assert len(asked) < 6 * 300


def test_limits_that_move_with_every_row_are_not_kept():
    opens = OpenSequences()
    for key in (0, 1):
        for limit in range(5000) if key else (-1,):  # the limit of the first key stays the earliest
            opens.put(0, key, Position(key), limit)
    assert len(opens.heap) < 100
    assert opens.first() == ((-1, (Position(0),), 0), 0)


NESTED = "(A a+ NEXT A b*)+ NEXT B c WHERE c.x < 0"
"""Of thirty events of A there are millions of ways to part them."""


def test_the_search_of_one_event_can_be_interrupted():
    def check():
        raise KeyboardInterrupt

    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH {NESTED}")
    engine = Engine(plan, kernels_from=None, check=check)
    *first, last = rows(plan, "A" * 30 + "B")
    for event in first:
        engine.arrive(event)
    with pytest.raises(KeyboardInterrupt):
        engine.arrive(last)


def test_a_long_search_moves_to_kernels_in_the_middle_of_an_event(monkeypatch):
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH {NESTED}")
    engine, alone = Engine(plan, kernels_from=30), Engine(plan, kernels_from=None)
    *first, last = rows(plan, "A" * 7 + "B")
    for event in first:
        assert [*engine.arrive(event)] == alone.arrive(event) == []
    assert engine.units[0].lane is None
    assert [*engine.arrive(last)] == alone.arrive(last)
    assert engine.units[0].lane is not None
    assert engine.dump() == alone.dump()
