"""Small worlds for the search: conjunctions over types A, B, C, … with one attribute x, two subscribers, one order of events.

    Pattern     a conjunction: types with counts, conditions on one member, links between two
    Scenario    a pattern whose shape is checked, the other subscriptions, and the events in order

Takes: parts. Gives: the same world three ways: rule text in Fairlead's language, a Plan, and a Trace after a run.
Never: draws at random (random_scenarios.py does).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from fairlead.guarantees.table import rules_text as table_text
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import Attribute, Catalogue, DataType, EventType, Kind
from fairlead.model.expressions.expression import Compare, Condition, Expression, Field, Literal, PositionOf, Predicate
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.pattern import Element, Quantifier, Slot
from fairlead.model.plans.plan import Branch, Plan, Subscription

ADVANCE = 2
"""The n of DISPOSAL ADVANCE n."""
BEFORE = "before"
"""The link `position(l) < position(r)`; every other link compares the values of x."""

Unary = tuple[int, str, int]
"""(slot, sign, value): `slot.x sign value`"""
Link = tuple[int, str, int]
"""(slot, sign, slot)"""


@dataclass(frozen=True, order=True)
class Pattern:
    types: tuple[tuple[str, int], ...]
    """Types by name, each with its number of instances."""
    unary: tuple[Unary, ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def signature(self) -> tuple[str, ...]:
        return tuple(name for name, count in self.types for _ in range(count))

    def extended(self, other: Pattern) -> Pattern:
        """This pattern and, to its right, another one over later types."""
        shift = len(self.signature)
        unary = tuple((slot + shift, sign, value) for slot, sign, value in other.unary)
        links = tuple((left + shift, sign, right + shift) for left, sign, right in other.links)
        return Pattern(self.types + other.types, self.unary + unary, self.links + links)

    def prefix(self, types: int) -> Pattern:
        """The first types, with the conditions on them alone."""
        kept = Pattern(self.types[:types])
        size = len(kept.signature)
        unary = tuple(each for each in self.unary if each[0] < size)
        return replace(kept, unary=unary, links=tuple(each for each in self.links if max(each[0], each[2]) < size))

    def splits(self, types: int) -> bool:
        """Whether nothing links the first types to the others."""
        size = len(self.prefix(types).signature)
        return all((left < size) == (right < size) for left, _, right in self.links)

    def without_instance(self, slot: int) -> Pattern:
        """The pattern with one instance less, without everything that named it."""
        gone = self.signature[slot]
        types = tuple((name, count - (name == gone)) for name, count in self.types)
        unary = tuple((s - (s > slot), sign, value) for s, sign, value in self.unary if s != slot)
        links = tuple((a - (a > slot), sign, b - (b > slot)) for a, sign, b in self.links if slot not in (a, b))
        return Pattern(tuple(each for each in types if each[1]), unary, links)


@dataclass(frozen=True, order=True)
class ScenarioEvent:
    type: str
    x: int
    publisher: str = "p3"

    def __str__(self) -> str:
        return f"{self.type}({self.x})"


@dataclass(frozen=True)
class Scenario:
    """`processes`: the subscriptions of p1 (and p2). The last `period` steps occur `rounds` times in all."""

    kind: str
    pattern: Pattern
    extra: Pattern
    steps: tuple[ScenarioEvent, ...]
    cut: int = 0
    period: int = 0
    rounds: int = 1

    @property
    def processes(self) -> tuple[tuple[Pattern, ...], ...]:
        match self.kind:
            case "alone":
                return ((self.pattern,),)
            case "equal":
                return (self.pattern,), (self.pattern,)
            case "observer":
                return (self.pattern,), (self.extra,)
            case "extended":
                return (self.pattern,), (self.pattern.extended(self.extra),)
            case "sibling":
                return (self.pattern,), (self.pattern.prefix(self.cut).extended(self.extra),)
            case "disjunction":
                return (self.pattern, self.extra), (self.pattern, self.extra)
        raise ValueError(f"unknown kind of scenario {self.kind!r}")

    @property
    def unrolled(self) -> tuple[ScenarioEvent, ...]:
        if not self.period:
            return self.steps
        return self.steps[: -self.period] + self.steps[-self.period :] * self.rounds


@lru_cache(maxsize=64)
def event_type(name: str) -> EventType:
    return EventType(name, (Attribute("x", DataType(Kind.INT)),))


@lru_cache(maxsize=1024)
def catalogue_of(names: tuple[str, ...]) -> Catalogue:
    return Catalogue(tuple(event_type(name) for name in names))


def type_names(scenario: Scenario) -> tuple[str, ...]:
    names = {name for process in scenario.processes for pattern in process for name, _ in pattern.types}
    return tuple(sorted(names | {step.type for step in scenario.steps}))


def events_of(scenario: Scenario) -> list[Event]:
    return [
        Event(event_type(step.type), (step.x,), Position(at), source=step.publisher)
        for at, step in enumerate(scenario.unrolled)
    ]


@lru_cache(maxsize=65536)
def branch_of(pattern: Pattern, number: int = 0) -> Branch:
    """The branch that the language makes of the pattern as branch `number` of a subscription."""
    aliases = {name: alias(name, number) for name, _ in pattern.types}
    slots = tuple(
        Slot(name, instance, aliases[name], instance) for name, count in pattern.types for instance in range(1, count + 1)
    )
    elements = tuple(Element(aliases[name], name, Quantifier(count, count)) for name, count in pattern.types)
    predicates = [_predicate((slot,), _x(slot), sign, Literal(value, Kind.INT)) for slot, sign, value in pattern.unary]
    for left, sign, right in pattern.links:
        slots_read = tuple(sorted((left, right)))
        if sign == BEFORE:
            predicates.append(_predicate(slots_read, PositionOf(left), "<", PositionOf(right)))
        else:
            predicates.append(_predicate(slots_read, _x(left), sign, _x(right)))
    return Branch(elements, slots, tuple(predicates))


def _predicate(slots: tuple[int, ...], left: Expression, sign: str, right: Expression) -> Predicate:
    return Predicate(Condition(((Compare(sign, left, right),),)), slots)


def _x(slot: int) -> Field:
    return Field(slot, "x", Kind.INT)


def plan_of(scenario: Scenario, matching: Matching, disposal: Disposal, keeps: bool = False) -> Plan:
    """The plan of both subscribers, built without the language, for speed."""

    def branch(pattern: Pattern, number: int) -> Branch:
        named = tuple(range(pattern.types[0][1]))
        found = branch_of(pattern, number)
        return replace(found, kept=named if keeps else (), upto=named if disposal.upto else ())

    subscriptions = tuple(
        Subscription(
            f"p{at}",
            tuple(branch(pattern, number) for number, pattern in enumerate(patterns)),
            matching=matching,
            disposal=disposal,
            advance=ADVANCE if disposal is Disposal.ADVANCE else 0,
        )
        for at, patterns in enumerate(scenario.processes, 1)
    )
    return Plan(catalogue_of(type_names(scenario)), subscriptions)


def alias(name: str, number: int) -> str:
    return name.lower() if number == 0 else f"{name.lower()}{number + 1}"


def subscription_texts(scenario: Scenario) -> list[str]:
    """MATCH and WHERE of p1 and p2, without the options."""
    return [_match_text(patterns) for patterns in scenario.processes]


def rules_text(types: tuple[str, ...], texts: list[str], matching: Matching, disposal: Disposal, keeps: bool = False) -> str:
    """The whole rule text of two subscribers p1, p2, …"""
    return table_text([f"TYPE {name} (x INT)" for name in types], texts, matching, disposal, keeps)


def _match_text(patterns: tuple[Pattern, ...]) -> str:
    elements, conditions = [], []
    for number, pattern in enumerate(patterns):
        counts = dict(pattern.types)
        named = [f"{name} {alias(name, number)}" + (f"[{counts[name]}]" if counts[name] > 1 else "") for name in counts]
        elements.append(" AND ".join(named))
        names = slot_names(pattern, number)
        conditions += [f"{names[slot]}.x {sign} {value}" for slot, sign, value in pattern.unary]
        for left, sign, right in pattern.links:
            if sign == BEFORE:
                conditions.append(f"position({names[left]}) < position({names[right]})")
            else:
                conditions.append(f"{names[left]}.x {sign} {names[right]}.x")
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    return f"MATCH {' OR '.join(elements)}{where}"


def slot_names(pattern: Pattern, number: int) -> list[str]:
    names = []
    for name, count in pattern.types:
        called = alias(name, number)
        names += [called] if count == 1 else [f"{called}[{at}]" for at in range(1, count + 1)]
    return names
