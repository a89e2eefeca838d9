"""Every delivery names the event by which the frontier passed its completion, every revision the end of its round: by
definition, whatever the batches, rounds and restarts, also where one event releases much that was held for long, or a batch
releases what many batches before it have brought in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from random import Random
from typing import Any

import pytest

import fairlead
from fairlead.runtime.event_time import EventTimeMatcher
from fairlead.runtime.event_time.matcher import OrderedFindings
from fairlead.runtime.event_time.reviser import SegmentLimits
from fairlead.runtime.sorting import AllFresh
from fairlead.transport.events import read_events
from tests.marks import sample_size
from tests.runtime.event_time.definition import NEITHER, RULES, TYPES, Record, defined, rules_text
from tests.runtime.event_time.test_definition import ORDERS, SECOND, START, batches, generated, stored_at

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


HOLDING = (
    "",
    "PER SOURCE IDLE 1 SECOND ",
    "LATE REVISE WITHIN 9 SECONDS ",
    "PER SOURCE IDLE 2 SECONDS LATE REVISE WITHIN 1 SECOND ",
)
"""After ORDER BY at DELAY 4 SECONDS. No event is late."""


def held_together(random: Random) -> Iterator[list[Record]]:
    """Batches that bring in events of any order, each shorter than the one before, so that every one is held on its own; then
    one whose events pass them a few at a time, often exactly to the time of one of them; and again."""
    number, now = 0, START + 10 * SECOND
    for _ in range(3):
        for size in sorted(random.sample(range(1, 12), 4), reverse=True):
            times = [now + random.randrange(16) * SECOND / 4 for _ in range(size)]
            yield [event(random, number + at, time) for at, time in enumerate(times)]
            number += size
        now += 4 * SECOND
        times = sorted(now + random.randrange(18) * SECOND / 4 for _ in range(6))
        yield [event(random, number + at, time) for at, time in enumerate(times)]
        number, now = number + 6, now + 4 * SECOND


def event(random: Random, number: int, time: datetime) -> Record:
    if random.random() < 0.1:
        return {"type": "Heartbeat", "at": time, "_source": random.choice("pq")}
    made = {"type": random.choice("AB"), "k": 0, "x": 0.0, "n": number, "at": time}
    return made | {"_source": random.choice("pq"), "_sequence": number}


@pytest.mark.sampled
@pytest.mark.parametrize("holding", HOLDING)
def test_events_that_were_held_in_many_batches_name_the_event_that_released_them(holding: str) -> None:
    """Every event is a relation, so the frontier alone says by which event it is released."""
    text = f"ORDER BY at DELAY 4 SECONDS {holding}SUBSCRIPTION Each MATCH A a OR B b\n"
    plan, several = fairlead.compile(TYPES + text), 0
    for case in range(sample_size(24)):
        random = Random(f"{holding} {case}")
        parts = list(held_together(random))
        (whole,) = read_events([each for part in parts for each in part], plan.catalogue, last_sequences=AllFresh())
        matcher, found, low = EventTimeMatcher(plan, 10), list[Named](), 0
        for part in parts:
            columns = stored_at(whole.part(low, low + len(part)), [0] * len(part))
            found += named(matcher.step(columns, columns.stored), "Each")
            low += len(part)
        wanted = released(matcher, [each for part in parts for each in part])
        assert sorted(found) == sorted(wanted), case
        assert [by for by, *_ in found] == sorted(by for by, *_ in found)
        several += len({by for by, *_ in found}) > 3
    assert several > sample_size(24) / 2


def released(matcher: EventTimeMatcher, records: Sequence[Record]) -> list[Named]:
    """By definition: an event is released by the first one after which the frontier is later than it."""
    order = matcher.buffer.order
    ends, frontier, found = dict[str, float](), float("-inf"), list[Named]()
    held = dict[int, float]()
    for at, each in enumerate(records):
        time = (each["at"] - START) / SECOND * 1_000_000
        if "n" in each:
            assert time >= frontier, "no event is late"
            held[each["n"]] = time
        source = "all" if order.idle_us is None else each["_source"]
        bound = time - (order.delay_us or 0) + (each["type"] == "Heartbeat")
        ends[source] = max(bound, ends.get(source, bound))
        most = max(ends.values())
        frontier = max(frontier, most if order.idle_us is None else max(min(ends.values()), most - order.idle_us))
        for n in [n for n, time in held.items() if time < frontier]:
            found.append((at, 1, (n,)))
            del held[n]
    return found
