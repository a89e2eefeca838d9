"""Worlds with a clause that random ones rarely hit, each with what it is about.

Events that are far too late; keys that complete in opposite orders for two subscribers; one that waits for its deadline while
the other has not begun to; the same unlucky choice in every round, by the order of the queue, by a condition, or because two
members decide on the cancellation; a queue from which events leave before their partners come, or find others; a table in
which events are replaced, or whose events pass the conditions at some times only.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.testing.counterexamples.clause_worlds import AddedClause, ClauseWorld, Happening
from fairlead.testing.counterexamples.scenarios import Pattern, Scenario

LINKED = Pattern((("A", 1), ("B", 1)), (), ((0, "<", 1),))
PAIR, LAST = Pattern((("A", 1), ("B", 1))), Pattern((("E", 1),))
SIBLINGS, PARTED = (Scenario("sibling", PAIR, LAST, (), cut=cut) for cut in (1, 2))
EQUAL = Pattern((("A", 1), ("B", 1)), (), ((0, "=", 1),))
TWO, ONE, FURTHER = Pattern((("A", 2),)), Pattern((("A", 1),)), Pattern((("D", 1),))
UNLIKE = tuple(Pattern((("A", 2),), ((slot, "=", 3),)) for slot in (0, 1))
TWO_AND_TWO = Pattern((("A", 2), ("B", 2)))
IN_TURN = Pattern((("A", 3),), ((0, "=", 1), (1, "=", 2), (2, "=", 3)))
PASSING, THREE = Pattern((("A", 1), ("B", 1)), ((0, "=", 0),)), Pattern((("A", 1), ("B", 1), ("C", 1)))
TIED_TABLES = Pattern((("A", 1), ("B", 1), ("C", 1)), (), ((0, "=", 1),))


def _same(pattern: Pattern) -> Scenario:
    return Scenario("equal", pattern, pattern, ())


def _happening(words: str) -> tuple[Happening, ...]:
    """`A:x,k,at`; omitted values are 0."""
    found = []
    for word in words.split():
        name, _, given = word.partition(":")
        x, k, at, *_ = (*map(int, filter(None, given.split(","))), 0, 0, 0)
        found.append(Happening(name, x, k, at))
    return tuple(found)


def _kept_of(clause: AddedClause, base: Scenario, words: str, types: str, period: int = 0, shift: int = 0) -> ClauseWorld:
    """With RETAIN of these types."""
    return ClauseWorld(clause, base, _happening(words), period, 8 if period else 1, shift, bounded=tuple(types))


def _again(pattern: Pattern, words: str, rise: int = 0, anchors: tuple[int, ...] = (0,)) -> ClauseWorld:
    """The same absence in eight rounds, ten seconds apart."""
    happenings = _happening(words)
    return ClauseWorld(AddedClause.ABSENCE, _same(pattern), happenings, len(happenings), 8, 10, rise, anchors, where=True)


def _waiting(pattern: Pattern, words: str, rise: int = 0, anchors: tuple[int, ...] = (0,), once: int = 0) -> ClauseWorld:
    """AFTER in eight rounds at the same time; the first `once` events occur only once."""
    happenings = _happening(words)
    period = len(happenings) - once
    return ClauseWorld(AddedClause.TIMER, _same(pattern), happenings, period, 8, 0, rise, anchors)


def _read(base: Scenario, words: str, types: str, period: int = 0) -> ClauseWorld:
    """With tables of these types."""
    return ClauseWorld(AddedClause.TABLE, base, _happening(words), period, 8 if period else 1, tables=tuple(types))


BY_NUMBER = (AddedClause.RETAIN_EVENTS, AddedClause.RETAIN_EVENTS_BATCH)
BY_TIME = (AddedClause.RETAIN_TIME, AddedClause.RETAIN_TIME_BATCH)
DIRECTED_CLAUSES = (
    ClauseWorld(AddedClause.WITHIN, _same(ONE), _happening("A:0,0,20 A:0,0,0 A:0,0,21"), period=1, rounds=8, shift=1),
    ClauseWorld(AddedClause.WITHIN, Scenario("extended", PAIR, FURTHER, ()), _happening("A:0,0,0 B:0,0,5 D:0,0,6 A:0,0,6")),
    ClauseWorld(AddedClause.WITHIN, Scenario("extended", TWO, FURTHER, ()), _happening("A:0,0,5 A:0,0,2 A:0,0,6 D:0,0,8")),
    *(_kept_of(each, _same(ONE), "A:0,0,20 A:0,0,0 A:0,0,21", "A", 1, 1) for each in BY_TIME),
    *(_kept_of(each, _same(ONE), "A:0,0,999 A:0,0,1", "A", 1, 1) for each in BY_TIME),
    *(_kept_of(each, _same(EQUAL), "A:1 A:2 B:1 B:3", "AB", 4) for each in BY_NUMBER),
    *(_kept_of(each, _same(PAIR), "A:1,0,1 A:2,0,1 B:1,0,1", "A", 2) for each in BY_NUMBER),
    *(_kept_of(each, Scenario("extended", TWO, FURTHER, ()), "A A A A D", "A") for each in BY_NUMBER),
    *(_kept_of(each, _same(IN_TURN), "A:1 A:2 A:2 A:2 A:3 A:2 A:2 A:2", "A", 8) for each in BY_NUMBER),
    _kept_of(AddedClause.RETAIN_EVENTS_BATCH, _same(TWO_AND_TWO), "A B A A B B", "AB", 4),
    replace(_kept_of(AddedClause.RETAIN_EVENTS_BATCH, Scenario("extended", TWO, FURTHER, ()), "A A A A A D", "A"), where=True),
    *(
        _kept_of(AddedClause.RETAIN_EVENTS_BATCH, Scenario("extended", each, FURTHER, ()), "A:0 A:3 A:0 A:3 D", "A")
        for each in UNLIKE
    ),
    *(_kept_of(each, Scenario("extended", TWO, FURTHER, ()), "A:0,0,10 A:0,0,6 A:0,0,10 D:0,0,12", "A") for each in BY_TIME),
    *(_kept_of(each, Scenario("extended", PAIR, FURTHER, ()), "A:0,0,1 B:0,0,1 A:0,0,11 D:0,0,11", "A") for each in BY_TIME),
    replace(_kept_of(AddedClause.RETAIN_EVENTS, PARTED, "B A B E B E", "B"), where=True),
    _kept_of(AddedClause.RETAIN_TIME, PARTED, "B A:0,0,5 B:0,0,5 E:0,0,5 B:0,0,6 E:0,0,6", "B"),
    _read(_same(PAIR), "A:0,0 A:0,1 B B B", "A"),
    _read(_same(EQUAL), "A:1,0 A:2,1 B:2,0 B:1,0", "A"),
    _read(_same(EQUAL), "A:1,0 A:2,0 B:1,0", "A", period=3),
    _read(_same(PASSING), "A:0,0 A:1,0 B", "A", period=3),
    _read(_same(PASSING), "A:0,0 A:0,1 B A:1,1 B", "A"),
    _read(Scenario("sibling", PASSING, LAST, (), cut=1), "A:0,0 E A:0,1 B E A:1,1 B", "A"),
    _read(_same(THREE), "A C B A C", "B"),
    _read(Scenario("sibling", THREE, LAST, (), cut=2), "A E B C A C E", "B"),
    _read(Scenario("sibling", TIED_TABLES, LAST, (), cut=2), "A:0,0 A:1,1 B:1,0 C B:0,1 C E A:2,0 E", "AB"),
    ClauseWorld(AddedClause.BUCKET, SIBLINGS, _happening("A:0,0,1 A:0,0,11 B:0,0,11 B:0,0,1 E:0,0,1 E:0,0,11")),
    ClauseWorld(AddedClause.OVERLAP, _same(EQUAL), _happening("B:1 B:2 A:1 A:2"), overlap=("A", "B")),
    ClauseWorld(
        AddedClause.PER,
        SIBLINGS,
        _happening("A:0,0 A:0,1 B:0,1 B:0,0 E:0,0 E:0,1"),
    ),
    ClauseWorld(
        AddedClause.LIMIT_OVER_KEYS,
        Scenario("extended", ONE, FURTHER, ()),
        _happening("A:0,0 A:0,0 A:0,1 D:0,1"),
    ),
    ClauseWorld(
        AddedClause.ABSENCE,
        SIBLINGS,
        _happening("A:0,0,10 B:0,0,10 E:0,0,10 A:0,0,5 B:0,0,10 N:0,0,20 E:0,0,20"),
    ),
    _again(LINKED, "A:1,1,10 A:9,2,10 A:1,1,10 B:5,0,10 B:10,0,10 N:0,1,10"),
    _again(EQUAL, "A:0,1,10 A:0,2,10 B:0,0,10 N:0,1,10", rise=1),
    _again(PAIR, "A:0,1,10 B:0,2,10 A:0,2,10 B:0,1,10 N:0,1,10", anchors=(0, 1)),
    _again(TWO, "A:0,1,10 A:0,2,10 N:0,1,10", anchors=(0, 1)),
    ClauseWorld(AddedClause.TIMER, _same(ONE), _happening("A:0,0,10 A:0,0,5 Heartbeat:0,0,20")),
    ClauseWorld(AddedClause.TIMER, Scenario("extended", ONE, FURTHER, ()), _happening("A D D:0,0,9")),
    ClauseWorld(AddedClause.TIMER, SIBLINGS, _happening("A:0,0,10 B E A:0,0,5 B E:0,0,20 A:0,0,20")),
    _waiting(ONE, "A:0,0,10 A", once=1),
    _waiting(PAIR, "A:0,0,10 B:0,0,7 A B", once=2),
    _waiting(PAIR, "A A:0,0,10 B"),
    _waiting(PAIR, "A:0,0,10 A B"),
    _waiting(PAIR, "A:0,0,10 B A B:0,0,10", anchors=(0, 1)),
    _waiting(EQUAL, "A:0,0,10 A B", rise=1),
    _waiting(LINKED, "A:1,0,10 A:9 A:1,0,10 B:5 B:10"),
    _waiting(TWO, "A A:0,0,10", anchors=(0, 1)),
    _waiting(TWO, "A:0,0,10 A"),
    _waiting(TWO, "A A:0,0,10"),
)
