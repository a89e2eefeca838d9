"""A plan that cannot be compiled to machine code is refused when it is to run, never interpreted in silence."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.errors import Place, UnsupportedError
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events

TYPES = "TYPE A (s STRING, m INT, f BOOLEAN, w DECIMAL(38,38)) TYPE B (m INT, f BOOLEAN, w DECIMAL(38,38))\n"
CUT = (
    TYPES
    + """SUBSCRIPTION Fine MATCH A a AND B b
SUBSCRIPTION Parts MATCH A a AND B b
WHERE a.m > 0 AND  -- a comment
   substring(a.s,
     b.m) = 'x'
"""
)
EVENTS = [{"type": "A", "s": "ax", "m": 1, "f": None, "w": None}, {"type": "B", "m": 2, "f": None, "w": None}]


def test_compiling_warns_and_running_refuses_with_the_place_of_the_condition() -> None:
    plan = fairlead.compile(CUT)
    assert [(each.code, each.place) for each in plan.warnings if each.code == "W013"] == [("W013", Place(5, 4, 14))]
    with pytest.raises(UnsupportedError) as caught:
        fairlead.match(plan, EVENTS)
    error = caught.value
    assert (error.code, error.place, error.excerpt) == ("U001", Place(5, 4, 14), "   substring(a.s,")
    assert "'Parts' cannot be compiled to machine code (substring of a text and numbers of different events)" in error.problem
    assert error.fix is not None
    assert "event_by_event=True" in error.fix


def test_every_way_to_run_refuses_and_every_explicit_way_runs() -> None:
    plan = fairlead.compile(CUT)
    asked = Engine(plan, kernels_from=None)
    for columns in read_events(EVENTS, plan.catalogue):
        assert len(asked.feed(columns)) == 2
        assert len(ReferenceMatcher(plan).run(columns.events(plan.catalogue))) == 2
    for run in (Engine, fairlead.Run, lambda plan: Engine.load(plan, asked.dump())):
        with pytest.raises(UnsupportedError, match="U001"):
            run(plan)
    assert Engine.load(plan, asked.dump(), kernels_from=None).dump() == asked.dump()
    assert len(fairlead.match(plan, EVENTS, event_by_event=True)) == 2
    assert fairlead.Run(plan, event_by_event=True).engines[0].units[0].kernels_from is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("A a[2] AND B b WHERE a[1].w * a[2].w * b.w > 1", "a DECIMAL that can have more than 114 digits across events"),
        ("A a AND B b WHERE lower(substring(a.s, b.m)) LIKE 'x%'", "like of a text and numbers of different events"),
        ("A a AND B b[2] WITHOUT A n BETWEEN a AND b[2] WHERE substring(n.s, a.m) = 'x'", "substring of a text and numbers"),
        (
            "A a AND B b WHERE (((((((a.m = b.m) = (a.m < b.m)) = a.f) = b.f) = a.f) = b.f) = a.f) = b.f",
            "source becomes too long",
        ),
        ("A a[63]", "too many slots and value columns for the bits of an event"),
    ],
)
def test_what_is_left_is_refused(pattern: str, reason: str) -> None:
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH {pattern}")
    with pytest.raises(UnsupportedError) as caught:
        Engine(plan)
    assert reason in caught.value.problem
    assert isinstance(caught.value.place, Place)


def test_a_plan_keeps_what_was_found_out_about_its_own_subscriptions_only() -> None:
    from dataclasses import replace

    plan = fairlead.compile(CUT)
    fine = replace(plan, subscriptions=plan.subscriptions[:1])
    Engine(fine)
    with pytest.raises(UnsupportedError):
        Engine(plan)
    Engine(fine)
