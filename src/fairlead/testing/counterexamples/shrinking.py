"""From a scenario that violates a property to a small one that still does: shrink by single steps while any works.

Takes: a scenario and a test. Gives: a scenario none of whose simplifications passes the test. Never: returns one that fails it.
The order of the attempts is fixed, so the result is a function of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fairlead.guarantees.shape import shape_of
from fairlead.testing.counterexamples.random_scenarios import sibling_fits
from fairlead.testing.counterexamples.scenarios import Pattern, Scenario, ScenarioEvent, branch_of, type_names


def size(scenario: Scenario) -> tuple[int, ...]:
    """What "smaller" means: fewer events, then less asked, then smaller values, then fewer publishers."""
    patterns = [pattern for process in scenario.processes for pattern in process]
    asked = sum(len(each.signature) + len(each.unary) + 2 * len(each.links) for each in patterns)
    values = sum(step.x for step in scenario.steps) + sum(value for each in patterns for _, _, value in each.unary)
    return (len(scenario.unrolled), asked, values, len({step.publisher for step in scenario.steps}))


def shrink(scenario: Scenario, violates: Callable[[Scenario], bool]) -> Scenario:
    found = True
    while found:
        found = False
        for smaller in _simpler(scenario):
            if size(smaller) < size(scenario) and is_sound(smaller) and violates(smaller):
                scenario, found = smaller, True
                break
    renamed = _renamed(scenario)
    return renamed if violates(renamed) else scenario


def is_sound(scenario: Scenario) -> bool:
    """Whether the scenario still is of its kind: see random_scenarios.JUDGED for why each kind has its conditions."""
    pattern = scenario.pattern
    if not pattern.types or not scenario.steps or scenario.period > len(scenario.steps):
        return False
    match scenario.kind:
        case "observer":
            return shape_of(branch_of(scenario.extra)).code == "E" and scenario.extra.types[0][0] in pattern.signature
        case "sibling":
            splits = 1 <= scenario.cut <= len(pattern.types) and pattern.splits(scenario.cut)
            return splits and sibling_fits(scenario, shape_of(branch_of(pattern)))
    return True


def _simpler(scenario: Scenario) -> Iterator[Scenario]:
    steps = scenario.steps
    for at in range(len(steps)):
        inside = at >= len(steps) - scenario.period and scenario.period > 0
        if inside and scenario.period == 1:
            continue
        yield replace(scenario, steps=steps[:at] + steps[at + 1 :], period=scenario.period - inside)
    if scenario.period and scenario.rounds > 1:
        yield replace(scenario, rounds=scenario.rounds - 1)
    for pattern in _simpler_patterns(scenario.pattern):
        names = {name for name, _ in (*pattern.types, *scenario.extra.types)}
        if scenario.period == 0 or all(step.type in names for step in steps):
            cut = min(scenario.cut, len(pattern.types))
            yield replace(scenario, pattern=pattern, cut=cut, steps=tuple(step for step in steps if step.type in names))
    if scenario.kind == "equal":
        yield replace(scenario, kind="alone")
    if scenario.kind not in ("alone", "equal"):
        yield from (replace(scenario, extra=extra) for extra in _simpler_patterns(scenario.extra))
    for at, step in enumerate(steps):
        for other in (*(ScenarioEvent(step.type, x, step.publisher) for x in range(step.x)), ScenarioEvent(step.type, step.x)):
            yield replace(scenario, steps=(*steps[:at], other, *steps[at + 1 :]))
    yield replace(scenario, steps=tuple(ScenarioEvent(step.type, step.x) for step in steps))


def _simpler_patterns(pattern: Pattern) -> Iterator[Pattern]:
    for slot in range(len(pattern.signature)):
        if len(pattern.signature) > 1:
            yield pattern.without_instance(slot)
    for at in range(len(pattern.links)):
        yield replace(pattern, links=pattern.links[:at] + pattern.links[at + 1 :])
    for at, (slot, sign, value) in enumerate(pattern.unary):
        yield replace(pattern, unary=pattern.unary[:at] + pattern.unary[at + 1 :])
        for lower in range(value):
            yield replace(pattern, unary=(*pattern.unary[:at], (slot, sign, lower), *pattern.unary[at + 1 :]))


def _renamed(scenario: Scenario) -> Scenario:
    """The same with its types called A, B, C, …, in the same order."""
    names = dict(zip(type_names(scenario), "ABCDEFGH", strict=False))

    def called(pattern: Pattern) -> Pattern:
        return replace(pattern, types=tuple((names.get(name, name), count) for name, count in pattern.types))

    steps = tuple(replace(step, type=names[step.type]) for step in scenario.steps)
    return replace(scenario, pattern=called(scenario.pattern), extra=called(scenario.extra), steps=steps)
