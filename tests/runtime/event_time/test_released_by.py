"""Every delivery names the event by which the frontier passed its completion, every revision the end of its round: by
definition, whatever the batches, rounds and restarts, also where one event releases much that was held for long."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

import fairlead
from fairlead.runtime.event_time import EventTimeMatcher
from fairlead.runtime.event_time.matcher import OrderedFindings
from fairlead.runtime.event_time.reviser import SegmentLimits
from tests.marks import sample_size
from tests.runtime.event_time.definition import NEITHER, RULES, TYPES, Record, defined, rules_text
from tests.runtime.event_time.test_definition import ORDERS, SECOND, batches, generated

WHOLE = [each for each in RULES if each.types == "ABC"]
"""Rules that read all types, so that every event of the sequence is one of theirs."""
Named = tuple[int, int, tuple[int, ...]]
"""The event by which it was released, its sign, its members."""


def bursts(random: Random, count: int) -> list[Record]:
    """Events that are held together for long: times go back and forth within the delay, then one event releases many of them,
    while others of its round are late."""
    made = generated(random, count)
    for low in range(0, count - 12, 12):
        for each in made[low : low + 9]:
            if each["type"] != "Heartbeat" and made[low + 8]["at"].year > 1:
                each["at"] = made[low + 8]["at"] + random.choice((0, 0.25, 0.25, 0.5, 0.75)) * SECOND
    first = {each["_sequence"]: each["at"] for each in reversed(made) if "_sequence" in each}
    return [each | {"at": first[each["_sequence"]]} if "_sequence" in each else each for each in made]  # repeats are equal


def named(found: OrderedFindings, name: str) -> list[Named]:
    return [
        (by, each.sign, tuple(event["n"] for event in each.members))
        for by, each in zip(found.by.tolist(), found.relations, strict=True)
        if each.subscription == name
    ]


def expected(deliveries: Sequence[Any], bits: int) -> list[Named]:
    """A revision is at the last position of its round."""
    return [
        (((at >> bits) + 1 << bits) - 1 if revises else at, sign, members)
        for (at, revises, *_), (sign, _, members) in sorted(deliveries, key=lambda each: each[0])
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
def test_the_event_that_released_a_delivery_is_that_of_the_definition(order: str) -> None:
    together = 0
    for case in range(sample_size(30)):
        random, rule = Random(f"{order} {case}"), WHOLE[case % len(WHOLE)]
        plan = fairlead.compile(TYPES + rules_text(ORDERS[order], [rule]))
        bits, limits = random.choice((0, 2, 4, 10)), SegmentLimits(events=random.choice((2, 4, 16)), kept_max=4)
        records = random.choice((generated, bursts))(random, 48)
        arguments: dict[str, Any] = {"rejects": True, "limits": limits}
        matcher, found = EventTimeMatcher(plan, bits, **arguments), list[Named]()
        for columns in batches(plan, records, random, "at"):
            found += named(matcher.step(columns, columns.stored), rule.name)
            if random.random() < 0.2:
                matcher = EventTimeMatcher.load(plan, matcher.dump(), bits, **arguments)
        rounds = [at >> bits for at in range(len(records))]
        wanted = defined(ORDERS[order], [rule], records, rounds, NEITHER).deliveries
        assert found == expected(wanted, bits), (order, rule.name, case)
        together += len(found) - len({by for by, *_ in found})
    assert together > 0
