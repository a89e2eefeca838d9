"""Of equal deadlines, decided at one place, those of the subscription that stands first in the text are delivered first:
however deep each stands in a hierarchy, whatever runs beside it, on both lanes."""

from __future__ import annotations

from itertools import permutations

import pytest

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events

TYPES = "TYPE A (at TIMESTAMP) TIME at TYPE B (at TIMESTAMP) TIME at TYPE C (at TIMESTAMP) TIME at"
EMITTERS = "SUBSCRIPTION First MATCH A a EMIT D (at = a.at) TIME at SUBSCRIPTION Second MATCH D d EMIT E (at = d.at) TIME at"
WAITING = {
    "Z": "MATCH A x WITHOUT B b WITHIN 1 SECOND OF x",
    "Y": "MATCH D x WITHOUT B b WITHIN 1 SECOND OF x",
    "X": "MATCH E x WITHOUT B b WITHIN 1 SECOND OF x",
}
"""By depth."""
COMPANIONS = {
    "none": "",
    "another reader": "SUBSCRIPTION Reader MATCH D d[2]",
    "others that derive several": """
        SUBSCRIPTION P MATCH C c EMIT F (x = 1) SUBSCRIPTION Q MATCH C c EMIT F (x = 2) SUBSCRIPTION R MATCH F f""",
}
EVENTS = [
    {"type": "A", "at": 1},
    {"type": "A", "at": 1},
    {"type": "C", "at": 1},
    {"type": "Heartbeat", "at": 3},
    {"type": "A", "at": 3},
]


@pytest.mark.sampled
@pytest.mark.parametrize("companion", COMPANIONS)
@pytest.mark.parametrize("order", list(permutations(WAITING)), ids="".join)
@pytest.mark.parametrize("emitters_first", [True, False])
def test_equal_deadlines_are_delivered_in_the_order_of_the_text(
    order: tuple[str, ...], emitters_first: bool, companion: str
) -> None:
    waiting = " ".join(f"SUBSCRIPTION {name} {WAITING[name]}" for name in order)
    rules = [EMITTERS, waiting] if emitters_first else [waiting, EMITTERS]
    plan = compile_text(" ".join((TYPES, *rules, COMPANIONS[companion])))
    columns = list(read_events(EVENTS, plan.catalogue))
    expected = ReferenceMatcher(plan).run(event for each in columns for event in each.events(plan.catalogue))
    assert [each.subscription for each in expected if each.subscription in WAITING] == [name for name in order for _ in "AA"]
    for kernels_from in (None, 0):
        engine = Engine(plan, kernels_from=kernels_from)
        found = [relation for each in columns for relation in engine.feed(each)]
        assert [(each.subscription, each.id) for each in found] == [(each.subscription, each.id) for each in expected]
