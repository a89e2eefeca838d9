"""The scenarios of theorems 1 to 10 (dissertation, section 4.3.4), and a few of our own, as seeds of the search.

Types T1, T2, T3 are A, B, C; the values keep the inequalities of the proofs. Not every proof shows what its theorem says: see
docs/guarantees.md and `THEOREMS`, which a test compares with the checkers.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.model.guarantee import Property
from fairlead.testing.counterexamples.random_scenarios import ROUNDS
from fairlead.testing.counterexamples.scenarios import Pattern, Scenario, ScenarioEvent

A_LESS_B = Pattern((("A", 1), ("B", 1)), (), ((0, "<", 1),))
A_AND_B = Pattern((("A", 1), ("B", 1)))
ONE_A = Pattern((("A", 1),))
A_AND_EQUAL_B_C = Pattern((("A", 1), ("B", 1), ("C", 1)), (), ((1, "=", 2),))
RISING_AND_B = Pattern((("A", 2), ("B", 1)), (), ((0, "<", 1),))
ONE_C = Pattern((("C", 1),))


@dataclass(frozen=True)
class Theorem:
    """The violation that the proof's scenario is said to show, in which cells, and whether the checkers agree."""

    number: int
    scenario: Scenario
    cells: tuple[str, ...]
    properties: tuple[Property, ...]
    shown: bool = True
    remark: str = ""


def steps(text: str, by: str = "p3") -> tuple[ScenarioEvent, ...]:
    """`A1 B2` as two events of publisher `by`."""
    return tuple(ScenarioEvent(word[0], int(word[1:]), by) for word in text.split())


def again(pattern: Pattern, once: str, period: str) -> Scenario:
    """Two equal subscribers; a start, then a period that is repeated."""
    return Scenario("equal", pattern, pattern, steps(f"{once} {period}"), period=len(period.split()), rounds=ROUNDS)


BURIED = again(Pattern((("A", 1), ("B", 1), ("C", 1)), ((0, "=", 1),), ((1, "<", 2),)), "A1", "A1 B0 C1")
LATE_PARTNER = Scenario("extended", A_LESS_B, Pattern((("C", 1),), ((0, "<", 3),)), steps("A1 B2 B3 C0"))
NEWER_FIRST = Scenario("observer", A_AND_B, ONE_A, steps("A0 A1 B0 B0"))
ALTERNATING = again(Pattern((("A", 2),), ((0, "=", 1), (1, "=", 1))), "", "A1 A2")
ALTERNATING_LINKED = again(Pattern((("A", 2),), (), ((0, "=", 1),)), "", "A1 A2")
LEFT_IN_QUEUE = Scenario("observer", A_LESS_B, Pattern((("A", 1), ("C", 1)), (), ((0, ">", 1),)), steps("A3 C0 A1 C0 B2 B4"))
SECOND_DROPPED = again(Pattern((("A", 1), ("B", 1)), ((0, "<", 3), (1, "<", 1))), "A2 A1", "B0")
PAIR_DROPPED = Scenario("extended", A_LESS_B, Pattern((("C", 1),), ((0, "<", 3),)), steps("A0 B1 A1 B2 C0"))
SLIDING = Scenario("equal", Pattern((("A", 2),), (), ((0, "<", 1),)), ONE_A, steps("A0 A1 A2"))
SLIDING_EQUAL = Scenario("observer", Pattern((("A", 2),), (), ((0, "=", 1),)), ONE_A, steps("A0 A1 A0 A1"))

_RECENT = tuple(f"{m}-{d}" for m in ("MR", "MRC") for d in ("I", "PI", "IP", "FP"))
_RECENT_KEEPING = tuple(f"{m}-{d}" for m in ("MR", "MRC") for d in ("I", "IP"))
_CONTIGUOUS = tuple(f"{m}-{d}" for m in ("FRC", "MRC") for d in ("I", "PI", "IP", "FP"))
_ORDERS = (Property.TYPE_FIFO_ORDER, Property.TYPE_CAUSAL_ORDER)

THEOREMS: tuple[Theorem, ...] = (
    Theorem(1, BURIED, _RECENT, (Property.EVENT_VALIDITY,)),
    Theorem(2, LATE_PARTNER, _RECENT, (Property.COVERING_AGREEMENT,)),
    Theorem(3, NEWER_FIRST, _RECENT_KEEPING, (Property.TYPE_FIFO_ORDER,)),
    Theorem(4, NEWER_FIRST, _RECENT_KEEPING, (Property.TYPE_CAUSAL_ORDER,)),
    Theorem(
        5,
        ALTERNATING,
        _CONTIGUOUS,
        (Property.EVENT_VALIDITY, Property.CONJUNCTION_VALIDITY),
        shown=False,
        remark="an event that no instance takes does not enter the queue, so the alternating events become neighbours",
    ),
    Theorem(6, LEFT_IN_QUEUE, ("FR-I", "MR-I", "FRC-I", "MRC-I"), (Property.TYPE_TOTAL_ORDER, *_ORDERS)),
    Theorem(7, SECOND_DROPPED, ("FR-IP", "FRC-IP"), (Property.EVENT_VALIDITY,)),
    Theorem(
        8,
        PAIR_DROPPED,
        ("FR-IP", "FRC-IP"),
        (Property.COVERING_AGREEMENT,),
        shown=False,
        remark="the extended subscriber delivers less than the other, which the property allows; it must not deliver more",
    ),
    Theorem(9, SLIDING, ("FR-FP", "FRC-FP"), (Property.NO_DUPLICATION,)),
    Theorem(10, SLIDING_EQUAL, ("FR-FP",), _ORDERS),
)

OWN: tuple[Scenario, ...] = (
    ALTERNATING_LINKED,
    again(Pattern((("A", 2),), ((1, "=", 3),)), "A3 A1", "A3"),
    again(Pattern((("A", 3),), ((0, "=", 1), (1, "=", 2), (2, "=", 3))), "", "A1 A3 A2"),
    again(Pattern((("A", 3),), ((0, "=", 1), (1, "=", 2), (2, "=", 3))), "", "A1 A2 A3"),
    Scenario("extended", A_AND_B, ONE_C, steps("A0 B0 A1 C0 B1 A2 C0")),
    Scenario("extended", A_LESS_B, ONE_C, steps("A2 B1 A0 B3 C0")),
    Scenario("extended", A_AND_EQUAL_B_C, Pattern((("D", 1),)), steps("A0 B1 B2 C2 C1 D0")),
    Scenario("sibling", A_LESS_B, ONE_C, steps("A2 A0 B1 B3 C0 C0"), cut=2),
    Scenario("sibling", RISING_AND_B, ONE_C, steps("A2 A0 A1 B0 A3 B0 C0 C0"), cut=1),
    Scenario("sibling", A_AND_B, ONE_C, steps("A0 A1 B0 C0 B0 C0"), cut=1),
    Scenario("equal", Pattern((("A", 2),), ((1, "=", 3),)), ONE_A, steps("A1 A2 A3 A0")),
)

DIRECTED: tuple[Scenario, ...] = tuple(dict.fromkeys((*(each.scenario for each in THEOREMS), *OWN)))
