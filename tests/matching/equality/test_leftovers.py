"""The cases in which a relation is ready before the next event arrives, so that the newest event need not be part of it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events

TYPES = "TYPE A (x INT, at TIMESTAMP) TIME at TYPE B (x INT, at TIMESTAMP) TIME at "


def positions(rule: str, stream: list[tuple[str, int, int]]) -> list[tuple[Any, ...]]:
    plan = compile_text(TYPES + rule)
    records = [{"type": name, "x": x, "at": at} for name, x, at in stream]
    events = [event for columns in read_events(records, plan.catalogue) for event in columns.events(plan.catalogue)]
    engine = Engine(plan)
    found = [relation.positions for event in events for relation in engine.arrive(event)]
    assert found == [relation.positions for relation in ReferenceMatcher(plan).run(events)]
    return found


def test_after_first_prefix_a_complete_relation_can_be_left_which_the_next_arrival_finds() -> None:
    rule = "SUBSCRIPTION S MATCH A a[2] WHERE a[1].x < a[2].x DISPOSAL FIRST PREFIX"
    # The 5 completes (3, 5) and would complete (2, 5), but an arrival completes one relation at most: the 1 finds it.
    assert positions(rule, [("A", 3, 0), ("A", 2, 0), ("A", 5, 0), ("A", 1, 0)]) == [(0, 2), (1, 2)]


@pytest.mark.parametrize("matching", ["FIRST CONTIGUOUS", "RECENT CONTIGUOUS"])
def test_an_event_disposed_from_the_middle_makes_neighbours_of_its_neighbours(matching: str) -> None:
    older, newer = ("a[1]", "a[2]") if matching.startswith("FIRST") else ("a[2]", "a[1]")
    rule = f"""SUBSCRIPTION S MATCH A a[2] AND B b WHERE {older}.x = b.x AND {newer}.x = {older}.x + 3
               MATCHING {matching} DISPOSAL INFIX"""
    # A: 1 5 8 4; the B of 1 waits for (1, 4), which become neighbours only when (5, 8) leave with the B of 5.
    stream = [("A", 1, 0), ("A", 5, 0), ("A", 8, 0), ("A", 4, 0), ("B", 1, 0), ("B", 5, 0), ("A", 0, 0)]
    members = [(1, 2, 5), (0, 3, 4)] if matching.startswith("FIRST") else [(2, 1, 5), (3, 0, 4)]
    assert positions(rule, stream) == members


def test_an_event_that_expires_from_the_middle_makes_neighbours_of_its_neighbours() -> None:
    rule = "SUBSCRIPTION S MATCH A a[2] AND B b WHERE a[2].x = a[1].x + 1 MATCHING FIRST CONTIGUOUS WITHIN 10 SECONDS"
    # The second A is the oldest in time: it expires first, and the next arrival finds the relation of the others.
    stream = [("A", 1, 5), ("A", 9, 0), ("A", 2, 6), ("B", 0, 7), ("B", 0, 12)]
    assert positions(rule, stream) == [(0, 2, 3)]
