"""Blocks of matches and relations found event by event are delivered in one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.language import compile_text
from fairlead.matching.outcome import Match
from fairlead.matching.relations import Block, Relations
from fairlead.matching.store import Store
from fairlead.model.identity import position_word, relation_id
from fairlead.model.position import Position
from fairlead.model.relation import Relation
from fairlead.transport.events import read_events

PLAN = compile_text("TYPE A (x INT) " + " ".join(f"SUBSCRIPTION S{n} MATCH A a OR A b[2]" for n in range(3)))
NUMBERS = {each.name: at for at, each in enumerate(PLAN.subscriptions)}
(COLUMNS,) = read_events([{"type": "A", "x": at} for at in range(10)], PLAN.catalogue)
EVENTS = list(COLUMNS.events(PLAN.catalogue))
BEFORE = Position(7, -1_000_000)


def block(number: int, branch: int, at: list[Position], members: list[list[int]], deadlines: list[int] | None = None) -> Block:
    refs = np.array([[position_word(Position(each)) for each in row] for row in members], dtype=np.int64)
    words = np.array([position_word(each) for each in at], dtype=np.int64)
    due = None if deadlines is None else np.array(deadlines, dtype=np.int64)
    return Block(PLAN.subscriptions[number], number, branch, words, refs, 1 if due is None else 0, due)


def other(number: int, branch: int, at: Position, members: list[int]) -> Relation:
    identity = relation_id(PLAN.subscriptions[number].digest, branch, [Position(each) for each in members])
    return Relation(f"S{number}", branch, identity, tuple(EVENTS[each] for each in members), at)


def delivered(
    blocks: list[Block], others: Sequence[Relation] = (), due: Sequence[int | None] | None = None
) -> list[tuple[str, int, tuple[Any, ...], str]]:
    store = Store()
    store.add(COLUMNS)

    def build(name: str, match: Match, at: Position, identity: str) -> Relation:
        return Relation(name, match.branch, identity, match.members, at)

    relations = Relations(blocks, store.view(), others, NUMBERS, PLAN.catalogue, build, due)
    assert [each.id for each in relations] == relations.ids()
    for each in relations:
        positions = [member.position for member in each.members]
        assert each.id == relation_id(PLAN[each.subscription].digest, each.branch, positions)
    return [(each.subscription, each.branch, each.positions, str(each.completed_at)) for each in relations]


def test_one_block_is_as_it_stands() -> None:
    assert delivered([block(1, 0, [Position(3), Position(5)], [[3], [5]])]) == [("S1", 0, (3,), "3"), ("S1", 0, (5,), "5")]


def test_at_one_place_subscriptions_and_their_branches_follow_the_text() -> None:
    five = [Position(5)]
    found = delivered([block(2, 0, five, [[5]]), block(0, 1, five, [[4, 5]]), block(0, 0, [Position(4), *five], [[4], [5]])])
    assert found == [("S0", 0, (4,), "4"), ("S0", 0, (5,), "5"), ("S0", 1, (4, 5), "5"), ("S2", 0, (5,), "5")]


def test_what_was_found_event_by_event_stands_among_the_blocks() -> None:
    others = [
        other(1, 0, BEFORE, [1]),
        other(0, 0, BEFORE, [2]),
        other(1, 0, Position(7), [7]),
        other(1, 1, Position(7), [6, 7]),
        other(0, 0, Position(7, 1), [3]),
    ]
    found = delivered([block(0, 0, [Position(7), Position(8)], [[7], [8]]), block(2, 0, [Position(7)], [[7]])], others)
    assert [(name, at) for name, _, _, at in found] == [
        ("S1", "7-1"),
        ("S0", "7-1"),
        ("S0", "7"),
        ("S1", "7"),
        ("S1", "7"),
        ("S2", "7"),
        ("S0", "7+1"),
        ("S0", "8"),
    ]


def test_absences_are_decided_by_deadline_then_subscription_then_members_then_branch() -> None:
    blocks = [
        block(0, 0, [BEFORE] * 3, [[2], [3], [6]], [20, 20, 30]),
        block(0, 1, [BEFORE] * 2, [[2, 4], [2, 3]], [20, 20]),
        block(1, 0, [BEFORE], [[1]], [10]),
        block(1, 1, [Position(7)], [[6, 7]]),
    ]
    found = delivered(blocks, [other(2, 0, BEFORE, [5]), other(2, 0, Position(7), [7])], [20, None])
    assert [(name, members) for name, _, members, _ in found] == [
        ("S1", (1,)),
        ("S0", (2,)),
        ("S0", (2, 3)),
        ("S0", (2, 4)),
        ("S0", (3,)),
        ("S2", (5,)),
        ("S0", (6,)),
        ("S1", (6, 7)),
        ("S2", (7,)),
    ]
