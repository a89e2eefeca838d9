"""A fast matcher only for the scenarios of the search: integers for events, conditions tested as soon as their slots are
filled. It equals the reference matcher on every generated case (tests/guarantees/test_scenarios.py); on the long scenarios the
reference, which tests whole assignments, is some fifty times slower, and the search runs millions of arrivals.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache

from fairlead.model.events.event import Event
from fairlead.model.plans.options import Disposal, Matching
from fairlead.testing.counterexamples.scenarios import (
    BEFORE,
    Pattern,
    Scenario,
    ScenarioEvent,
    catalogue_of,
    events_of,
    plan_of,
    type_names,
)
from fairlead.testing.properties.conjunctions import TracedConjunction, conjunctions_of
from fairlead.testing.properties.trace import Multicast, Process, Trace, TraceDelivery

SIGNS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
Members = tuple[int, ...]


class QuickMatcher:
    """One conjunction on numbered steps."""

    def __init__(self, pattern: Pattern, matching: Matching, disposal: Disposal, steps: Sequence[ScenarioEvent]) -> None:
        self.signature = pattern.signature
        self.matching, self.disposal, self.steps = matching, disposal, steps
        self.queues: dict[str, list[int]] = {name: [] for name, _ in pattern.types}
        self.unary = [[(SIGNS[sign], value) for at, sign, value in pattern.unary if at == slot] for slot in self._slots()]
        self.tied = [[each for each in pattern.links if max(each[0], each[2]) == slot] for slot in self._slots()]
        self.slots_of = {name: [s for s in self._slots() if self.signature[s] == name] for name in self.queues}
        self.must_hold: int | None = None

    def _slots(self) -> range:
        return range(len(self.signature))

    def arrive(self, number: int) -> Members | None:
        name = self.steps[number].type
        if name not in self.queues or not any(self._takes(slot, number) for slot in self.slots_of[name]):
            return None
        self.queues[name].append(number)
        # Before an arrival no relation is ready, so a new one contains the arriving event; FIRST PREFIX may leave some.
        self.must_hold = None if self.disposal is Disposal.FIRST_PREFIX else number
        found = self._match(())
        if found is not None:
            self._dispose(found)
        return found

    def _takes(self, slot: int, number: int) -> bool:
        x = self.steps[number].x
        return all(sign(x, value) for sign, value in self.unary[slot])

    def _match(self, members: Members) -> Members | None:
        slot = len(members)
        must = self.must_hold
        if must is not None and must not in members and self.slots_of[self.steps[must].type][-1] < slot:
            return None  # the slots of the arriving event's type are already filled
        if slot == len(self.signature):
            return members
        queue = self.queues[self.signature[slot]]
        again = slot > 0 and self.signature[slot - 1] == self.signature[slot]
        if self.matching.recent:
            order = range((queue.index(members[-1]) if again else len(queue)) - 1, -1, -1)
        else:
            order = range(queue.index(members[-1]) + 1 if again else 0, len(queue))
        for at in order[:1] if again and self.matching.contiguous else order:
            number = queue[at]
            if self._takes(slot, number) and self._agrees(slot, (*members, number)):
                found = self._match((*members, number))
                if found is not None:
                    return found
        return None

    def _agrees(self, slot: int, members: Members) -> bool:
        for left, sign, right in self.tied[slot]:
            if sign == BEFORE:
                if members[left] >= members[right]:
                    return False
            elif not SIGNS[sign](self.steps[members[left]].x, self.steps[members[right]].x):
                return False
        return True

    def _dispose(self, members: Members) -> None:
        for name, queue in self.queues.items():
            matched = sorted(members[slot] for slot in self.slots_of[name])
            match self.disposal:
                case Disposal.PREFIX_INFIX:
                    queue[:] = [each for each in queue if each > matched[-1]]
                case Disposal.INFIX:
                    queue[:] = [each for each in queue if each not in matched]
                case Disposal.INFIX_POSTFIX:
                    queue[:] = [each for each in queue if each < matched[0]]
                case Disposal.FIRST_PREFIX:
                    queue[:] = [each for each in queue if each > matched[0]]


def run(scenario: Scenario, matching: Matching, disposal: Disposal, events: Sequence[Event] | None = None) -> Trace:
    """Both subscribers over the same order; a delivery follows the event that completed it."""
    steps, events = scenario.unrolled, events_of(scenario) if events is None else events
    names = type_names(scenario)
    found: dict[Pattern, list[Members | None]] = {}
    for pattern in (pattern for patterns in scenario.processes for pattern in patterns):
        if pattern not in found:  # equal conjunctions deliver equally: deterministic, over the same order
            matcher = QuickMatcher(pattern, matching, disposal, steps)
            found[pattern] = [matcher.arrive(number) for number in range(len(steps))]
    processes = [
        Process(f"p{at}", _conjunctions(patterns, matching, disposal, names))
        for at, patterns in enumerate(scenario.processes, 1)
    ]
    time, multicasts, deliveries = 0, [], []
    for number, step in enumerate(steps):
        multicasts.append(Multicast(step.publisher, time, events[number]))
        time += 1
        for process, patterns in zip(processes, scenario.processes, strict=True):
            for conjunction, pattern in zip(process.subscription, patterns, strict=True):
                members = found[pattern][number]
                if members is not None:
                    relation = tuple(events[each] for each in members)
                    deliveries.append(TraceDelivery(process.name, time, conjunction.identity, relation))
                    time += 1
    known = {process.name for process in processes}
    processes += [Process(name) for name in dict.fromkeys(step.publisher for step in steps) if name not in known]
    return Trace(tuple(processes), tuple(multicasts), tuple(deliveries))


@lru_cache(maxsize=65536)
def _conjunctions(
    patterns: tuple[Pattern, ...], matching: Matching, disposal: Disposal, names: tuple[str, ...]
) -> tuple[TracedConjunction, ...]:
    """Cached, since a conjunction computes its identity and prefixes once."""
    scenario = Scenario("equal", patterns[0], patterns[0], ())
    if len(patterns) > 1:
        scenario = Scenario("disjunction", patterns[0], patterns[1], ())
    subscription = plan_of(scenario, matching, disposal).subscriptions[0]
    return conjunctions_of(subscription, catalogue_of(names))
