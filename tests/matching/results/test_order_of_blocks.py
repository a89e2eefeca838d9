"""Blocks of matches are delivered in one order: by place of completion, or by the ranks that hierarchies give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlead.language import compile_text
from fairlead.matching.outcome import Match
from fairlead.matching.results.event_store import Store
from fairlead.matching.results.member_words import MemberWords
from fairlead.matching.results.relations import MatchBlock, Relations, joined
from fairlead.model.events.position import Position
from fairlead.model.relations.identity import position_word, relation_id
from fairlead.model.relations.relation import Relation
from fairlead.transport.events import read_events

PLAN = compile_text("TYPE A (x INT) " + " ".join(f"SUBSCRIPTION S{n} MATCH A a OR A b[2]" for n in range(3)))
(COLUMNS,) = read_events([{"type": "A", "x": at} for at in range(10)], PLAN.catalogue)
BEFORE = Position(7, -1_000_000)


def block(number: int, branch: int, at: list[Position], members: list[list[int]], ranks: list[int] | None = None) -> MatchBlock:
    refs = np.array([[position_word(Position(each)) for each in row] for row in members], dtype=np.int64)
    words = np.array([position_word(each) for each in at], dtype=np.int64)
    ranked = None if ranks is None else np.array(ranks, dtype=np.int64)
    phase = 0 if BEFORE in at else 1
    return MatchBlock(PLAN.subscriptions[number], number, branch, words, MemberWords(refs), phase, ranks=ranked)


def relations_of(blocks: list[MatchBlock]) -> Relations:
    store = Store()
    store.add(COLUMNS)

    def build(name: str, match: Match, at: Position, identity: str) -> Relation:
        return Relation(name, match.branch, identity, match.members, at)

    return Relations(blocks, store.view(), PLAN.catalogue, build)


def delivered(relations: Relations) -> list[tuple[str, int, tuple[Any, ...], str]]:
    assert [each.id for each in relations] == relations.ids()
    for each in relations:
        assert each.id == relation_id(PLAN[each.subscription].digest, each.branch, [member.words for member in each.members])
    return [(each.subscription, each.branch, each.positions, str(each.completed_at)) for each in relations]


def test_one_block_is_as_it_stands() -> None:
    found = delivered(relations_of([block(1, 0, [Position(3), Position(5)], [[3], [5]])]))
    assert found == [("S1", 0, (3,), "3"), ("S1", 0, (5,), "5")]


def test_at_one_place_subscriptions_and_their_branches_follow_the_text() -> None:
    five = [Position(5)]
    blocks = [block(2, 0, five, [[5]]), block(0, 1, five, [[4, 5]]), block(0, 0, [Position(4), *five], [[4], [5]])]
    found = delivered(relations_of(blocks))
    assert found == [("S0", 0, (4,), "4"), ("S0", 0, (5,), "5"), ("S0", 1, (4, 5), "5"), ("S2", 0, (5,), "5")]


RANKED = [
    block(0, 0, [Position(7), Position(8)], [[7], [8]], [2, 5]),
    block(1, 0, [BEFORE], [[1]], [0]),
    block(2, 0, [BEFORE], [[3]], [1]),
    block(2, 1, [Position(7), Position(7, 1)], [[6, 7], [3, 4]], [3, 4]),
]


def test_ranks_say_more_than_places() -> None:
    found = delivered(relations_of(RANKED))
    assert [(name, at) for name, _, _, at in found] == [
        ("S1", "7-1"),
        ("S2", "7-1"),
        ("S0", "7"),
        ("S2", "7"),
        ("S2", "7+1"),
        ("S0", "8"),
    ]


def test_relations_of_consecutive_batches_stay_in_their_order() -> None:
    one, two = (
        relations_of(RANKED),
        relations_of([block(0, 0, [Position(9)], [[9]], [1]), block(2, 0, [Position(9)], [[9]], [0])]),
    )
    assert delivered(joined([one, two])) == [*delivered(one), *delivered(two)]
    assert [name for name, *_ in delivered(two)] == ["S2", "S0"]


def test_those_of_one_subscription_keep_their_order() -> None:
    found = delivered(relations_of(RANKED).only("S2"))
    assert [(members, at) for _, _, members, at in found] == [((3,), "7-1"), ((6, 7), "7"), ((3, 4), "7+1")]
