"""A fast matcher only for the scenarios of the search: integers for events, conditions tested as soon as their slots are
filled. It equals the reference matcher on every generated case (tests/guarantees/test_scenarios.py); on the long scenarios the
reference, which tests whole assignments, is some fifty times slower, and the search runs millions of arrivals.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from fairlead.model.events.event import Event
from fairlead.model.plans.options import Disposal, Matching
from fairlead.testing.counterexamples.scenarios import (
    ADVANCE,
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


DELIVERIES_MAX = 2000
"""Of a conjunction in a scenario. MATCHING ALL delivers more and more where nothing leaves: longer scenarios are not judged."""


class TooManyDeliveries(Exception):
    """The scenario is too long for these options."""


class QuickMatcher:
    """One conjunction on numbered steps."""

    def __init__(
        self, pattern: Pattern, matching: Matching, disposal: Disposal, keeps: bool, steps: Sequence[ScenarioEvent]
    ) -> None:
        self.signature = pattern.signature
        self.named = range(pattern.types[0][1])
        """The slots of the first type, which UPTO and KEEP name."""
        self.kept = self.named if keeps else range(0)
        self.anchored = matching.all or keeps or disposal is Disposal.NONE or disposal.upto
        self.matching, self.disposal, self.steps = matching, disposal, steps
        self.queues: dict[str, list[int]] = {name: [] for name, _ in pattern.types}
        self.unary = [[(SIGNS[sign], value) for at, sign, value in pattern.unary if at == slot] for slot in self._slots()]
        self.tied = [[each for each in pattern.links if max(each[0], each[2]) == slot] for slot in self._slots()]
        self.slots_of = {name: [s for s in self._slots() if self.signature[s] == name] for name in self.queues}
        self.must_hold: int | None = None
        self.delivered = 0

    def _slots(self) -> range:
        return range(len(self.signature))

    def arrive(self, number: int) -> list[Members]:
        name = self.steps[number].type
        if name not in self.queues or not any(self._takes(slot, number) for slot in self.slots_of[name]):
            return []
        self.queues[name].append(number)
        # Before an arrival no relation is ready, so a new one contains the arriving event; FIRST PREFIX may leave some.
        sliding = self.disposal in (Disposal.FIRST_PREFIX, Disposal.ADVANCE)
        self.must_hold = None if sliding and not self.anchored else number
        found = list(islice(self._match(()), DELIVERIES_MAX if self.matching.all else 1))
        self.delivered += len(found)
        if self.delivered >= DELIVERIES_MAX:
            raise TooManyDeliveries
        if found:
            self._dispose(found)
        return found

    def _takes(self, slot: int, number: int) -> bool:
        x = self.steps[number].x
        return all(sign(x, value) for sign, value in self.unary[slot])

    def _match(self, members: Members) -> Iterator[Members]:
        slot = len(members)
        must = self.must_hold
        if must is not None and must not in members and self.slots_of[self.steps[must].type][-1] < slot:
            return  # the slots of the arriving event's type are already filled
        if slot == len(self.signature):
            yield members
            return
        queue = self.queues[self.signature[slot]]
        again = slot > 0 and self.signature[slot - 1] == self.signature[slot]
        if self.matching.recent:
            order = range((queue.index(members[-1]) if again else len(queue)) - 1, -1, -1)
        else:
            order = range(queue.index(members[-1]) + 1 if again else 0, len(queue))
        for at in order[:1] if again and self.matching.contiguous else order:
            number = queue[at]
            if self._takes(slot, number) and self._agrees(slot, (*members, number)):
                yield from self._match((*members, number))

    def _agrees(self, slot: int, members: Members) -> bool:
        for left, sign, right in self.tied[slot]:
            if sign == BEFORE:
                if members[left] >= members[right]:
                    return False
            elif not SIGNS[sign](self.steps[members[left]].x, self.steps[members[right]].x):
                return False
        return True

    def _dispose(self, found: list[Members]) -> None:
        kept = {members[slot] for members in found for slot in self.kept}
        places = [members[slot] for members in found for slot in self.named]
        for name, queue in self.queues.items():
            slots = [slot for slot in self.slots_of[name] if slot not in self.kept]
            matched = sorted({members[slot] for members in found for slot in slots})
            stay = [each for each in queue if each in kept]
            if self.disposal.upto:
                place = min(places) if self.disposal is Disposal.UPTO_FIRST else max(places)
                queue[:] = [each for each in queue if each >= place]
            elif matched:
                self._leave(queue, matched)
            queue[:] = sorted({*queue, *stay})

    def _leave(self, queue: list[int], matched: list[int]) -> None:
        match self.disposal:
            case Disposal.PREFIX_INFIX:
                queue[:] = [each for each in queue if each > matched[-1]]
            case Disposal.INFIX:
                queue[:] = [each for each in queue if each not in matched]
            case Disposal.INFIX_POSTFIX:
                queue[:] = [each for each in queue if each < matched[0]]
            case Disposal.FIRST_PREFIX:
                queue[:] = [each for each in queue if each > matched[0]]
            case Disposal.ADVANCE:
                queue[:] = [each for each in queue if each > matched[:ADVANCE][-1]]


def run(
    scenario: Scenario,
    matching: Matching,
    disposal: Disposal,
    keeps: bool = False,
    events: Sequence[Event] | None = None,
) -> Trace:
    """Both subscribers over the same order; a delivery follows the event that completed it."""
    steps, events = scenario.unrolled, events_of(scenario) if events is None else events
    names = type_names(scenario)
    found: dict[Pattern, list[list[Members]]] = {}
    for pattern in (pattern for patterns in scenario.processes for pattern in patterns):
        if pattern not in found:  # equal conjunctions deliver equally: deterministic, over the same order
            matcher = QuickMatcher(pattern, matching, disposal, keeps, steps)
            found[pattern] = [matcher.arrive(number) for number in range(len(steps))]
    processes = [
        Process(f"p{at}", _conjunctions(patterns, matching, disposal, keeps, names))
        for at, patterns in enumerate(scenario.processes, 1)
    ]
    time, multicasts, deliveries = 0, [], []
    for number, step in enumerate(steps):
        multicasts.append(Multicast(step.publisher, time, events[number]))
        time += 1
        for process, patterns in zip(processes, scenario.processes, strict=True):
            for conjunction, pattern in zip(process.subscription, patterns, strict=True):
                for members in found[pattern][number]:
                    relation = tuple(events[each] for each in members)
                    deliveries.append(TraceDelivery(process.name, time, conjunction.identity, relation))
                    time += 1
    known = {process.name for process in processes}
    processes += [Process(name) for name in dict.fromkeys(step.publisher for step in steps) if name not in known]
    return Trace(tuple(processes), tuple(multicasts), tuple(deliveries))


@lru_cache(maxsize=65536)
def _conjunctions(
    patterns: tuple[Pattern, ...], matching: Matching, disposal: Disposal, keeps: bool, names: tuple[str, ...]
) -> tuple[TracedConjunction, ...]:
    """Cached, since a conjunction computes its identity and prefixes once."""
    scenario = Scenario("equal", patterns[0], patterns[0], ())
    if len(patterns) > 1:
        scenario = Scenario("disjunction", patterns[0], patterns[1], ())
    subscription = plan_of(scenario, matching, disposal, keeps).subscriptions[0]
    return conjunctions_of(subscription, catalogue_of(names))
