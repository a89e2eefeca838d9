"""Worlds of sequences that random ones rarely hit, each with what it is about."""

from __future__ import annotations

from dataclasses import replace

from fairlead.testing.counterexamples.clause_worlds import Happening
from fairlead.testing.counterexamples.sequence_losses.sequence_pattern import NEXT, THEN, DrawnElement, DrawnSequence, Part
from fairlead.testing.counterexamples.sequence_losses.sequence_worlds import ROUNDS, SequenceWorld

A, B = Part(NEXT, (DrawnElement("A", "a"),)), Part(NEXT, (DrawnElement("B", "b"),))


def _events(words: str) -> tuple[Happening, ...]:
    """`A:x,k,at`; omitted values are 0."""
    found = []
    for word in words.split():
        name, _, given = word.partition(":")
        x, k, at, *_ = (*(int(each) for each in given.split(",") if each), 0, 0, 0)
        found.append(Happening(name, x, k, at))
    return tuple(found)


def _again(pattern: DrawnSequence, words: str, period: int, *clauses: str, shift: int = 0) -> SequenceWorld:
    return SequenceWorld("equal", pattern, _events(words), period, ROUNDS, shift, clauses)


def _next(name: str, alias: str) -> Part:
    return Part(NEXT, (DrawnElement(name, alias),))


def _then(name: str, alias: str) -> Part:
    return Part(THEN, (DrawnElement(name, alias),))


_LATER = Part(THEN, (DrawnElement("C", "c"),))
DIRECTED_SEQUENCES = (
    # a start waits for a row that never comes
    _again(DrawnSequence((A, B, _LATER), ("c.x = a.x",)), "A:1 B A B C", 3),
    _again(DrawnSequence((A, Part(THEN, (DrawnElement("B", "b"),))), ("b.x = a.x",)), "A:1 A B", 2),
    # a row far in the future, from which no time passes
    _again(DrawnSequence((A, B, _LATER)), "A:0,0,999 B:0,0,999 A:0,0,1 B:0,0,1 C:0,0,1", 3, "WITHIN 8 SECONDS", shift=1),
    _again(DrawnSequence((A, _then("B", "b"))), "A:0,0,999 A:0,0,1 B:0,0,1", 2, "WITHIN 8 SECONDS", shift=1),
    # a start that only a larger value could complete; one whose next row would have to be as late
    _again(DrawnSequence((A, _then("A", "a2")), ("a2.x > prev(a2.x)",)), "A:3 A A:1", 2),
    _again(
        DrawnSequence((A, *(Part(THEN, (DrawnElement(name, name.lower(), gap=True),)) for name in "BC"))),
        *("A:0,0,999 A:0,0,1 B:0,0,1 C:0,0,1", 3),
        shift=1,
    ),
    # keys of which no further row comes
    replace(_again(DrawnSequence((Part(NEXT, (DrawnElement("A", "a", "{1,2}", " LONGEST"),)),)), "A", 1, "PER k"), fresh=True),
    # a run that never ends, or begins with every row
    _again(DrawnSequence((Part(NEXT, (DrawnElement("A", "a", "+", " LONGEST"),)),)), "A", 1),
    _again(DrawnSequence((Part(NEXT, (DrawnElement("A", "a", "{2,}", " SHORTEST"),)),)), "A:1 A", 2),
    # a limit, by the rows of one key and of all
    _again(DrawnSequence((A, B)), "A B", 2, "LIMIT 2"),
    _again(DrawnSequence((A, B)), "A:0,0 B:0,0", 2, "PER k", "LIMIT 1 PER KEY"),
    # a later start takes an older row
    SequenceWorld(
        "alone",
        DrawnSequence((A, Part(NEXT, (DrawnElement("A", "a2"),)), Part(THEN, (DrawnElement("B", "b"),))), ("b.x = a.x",)),
        _events("A:1 A:0 A:0 B:0 B:1"),
    ),
    SequenceWorld(
        "alone", DrawnSequence((A, Part(THEN, (DrawnElement("B", "b"),))), ("b.x = a.x",)), _events("A:1 A:0 B:0 B:1")
    ),
    SequenceWorld("alone", DrawnSequence((A, _then("B", "b"), _next("A", "a2"))), _events("A A B A")),
    SequenceWorld("alone", DrawnSequence((A, _then("B", "b"), _then("A", "a2"))), _events("A A B A A")),
    SequenceWorld("alone", DrawnSequence((A, _next("A", "a2"), _then("B", "b"), _next("A", "a3"))), _events("A A A A B A")),
    SequenceWorld(
        "alone",
        DrawnSequence((Part(NEXT, (DrawnElement("A", "a", "{2}"),)),), ("a.x > prev(a.x)",)),
        _events("A:1 A:0 A:2 A:0"),
    ),
    # what stands between the events of a relation leaves with it, or begins none because of the row next to it
    _again(DrawnSequence((A, _then("B", "b"))), "A A B A B", 2),
    _again(DrawnSequence((A, _then("B", "b"))), "A:0,0,1 A:0,0,1 B:0,0,1 A:0,0,1 B:0,0,1", 2, "WITHIN 8 SECONDS", shift=20),
    _again(DrawnSequence((A, B, _then("C", "c"))), "A A B C A B C", 3),
    # STEPWISE has taken an event after which nothing fits
    _again(DrawnSequence((A, _then("B", "b"), _next("C", "c"))), "A B B C", 4),
    # two that continue in other ways have the beginning that is empty at other times
    SequenceWorld(
        "sibling",
        DrawnSequence((Part(NEXT, (DrawnElement("A", "a", "?"),)),)),
        _events("D A D E E"),
        words=(NEXT, NEXT),
    ),
    # keys that complete in opposite orders
    SequenceWorld(
        "sibling",
        DrawnSequence((A,)),
        _events("A:0,0 A:0,1 D:0,1 D:0,0 E:0,0 E:0,1"),
        clauses=("PER k",),
        words=(NEXT, NEXT),
    ),
    # the next relation of the plain pattern begins while the extended one waits
    SequenceWorld(
        "extended",
        DrawnSequence((A, _next("A", "a2"), _then("B", "b"))),
        _events("A A B B D"),
        words=(NEXT, NEXT),
    ),
    SequenceWorld(
        "extended",
        DrawnSequence((A, Part(THEN, (DrawnElement("B", "b"),)))),
        _events("A B A D A B D"),
        words=(THEN, THEN),
    ),
    # alternatives: the first is preferred as long as it can lead to a relation
    SequenceWorld(
        "extended",
        DrawnSequence((Part(NEXT, (DrawnElement("A", "a", "+"), DrawnElement("A", "a2")), "ELSE"),)),
        _events("A A D"),
        words=(NEXT, NEXT),
    ),
)
