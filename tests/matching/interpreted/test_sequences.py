"""The search for sequences: what a long run costs, and what one event can decide."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.errors import UnsupportedError
from fairlead.matching.interpreted.sequence_conjunction import SequenceConjunction
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
