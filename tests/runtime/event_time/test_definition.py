"""Deliveries of several subscriptions over one sequence, in their one order, and the verdicts on events, are those of the
definition, whatever the batches, rounds and restarts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.model.events.columns import Columns
from fairlead.model.events.values import microseconds
from fairlead.model.plans.plan import Plan
from fairlead.runtime.event_time.frontier_groups import (
    JointFindings,
    SequenceMatcher,
    resumed_sequence,
    sequence_matcher,
)
from fairlead.runtime.event_time.reviser import SegmentLimits
from fairlead.runtime.sorting import AllFresh
from fairlead.transport.events import read_events
from tests.marks import sample_size
from tests.runtime.event_time.definition import (
    EARLIEST,
    FILE,
    NOTHING,
    RULES,
    TYPES,
    DefinedOrder,
    DefinedRule,
    DefinedSequence,
    Delivery,
    Record,
    defined,
    rules_text,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ORDERS = {
    "tagged": DefinedOrder(delay=SECOND),
    "tagged by source": DefinedOrder((("x", True),), SECOND, idle=3 * SECOND),
    "revised": DefinedOrder(delay=SECOND, revise=6 * SECOND),
    "revised at once": DefinedOrder((("k", False),), NOTHING, ahead=3 * SECOND, revise=100 * SECOND),
    "revised by source": DefinedOrder(
        (("k", True), ("x", False)), SECOND, idle=2 * SECOND, ahead=4 * SECOND, revise=4 * SECOND
    ),
}


def generated(random: Random, count: int) -> list[Record]:
    """Times that rise with steps back, ties, heartbeats, events that are ahead, or without a place, and repeats."""
    made: list[Record] = []
    now = 10.0
    for number in range(count):
        now += random.choice((0, 0, 0.5, 0.5, 1))
        stored = START + (now + random.choice((0, 0, 0, 20)) + random.random()) * SECOND
        if random.random() < 0.08:
            at = START + (now - random.choice((0.05, 1.05, 20.05, -8.05))) * SECOND
            if random.random() < 0.2:
                at = EARLIEST
            made.append({"type": "Heartbeat", "at": at, "_source": random.choice("pqr"), "_stored": stored})
            continue
        behind = random.choice((0, 0, 0, 0, 0.5, 1, 1.5, 2, 3, 5, 9, -8))
        event: Record = {
            "type": random.choice("AABBC"),
            "k": random.randrange(2),
            "x": random.choice((0.0, 0.5, 1.0)),
            "n": number,
        }
        if random.random() < 0.05:
            event["x"] = random.choice((None, float("nan")))
        at = START + (now - behind) * SECOND
        made.append(event | {"at": at, "_source": random.choice("pq"), "_sequence": number, "_stored": stored})
        if random.random() < 0.06 and len(made) > 3:
            again = random.choice(made[-8:])
            if again["type"] != "Heartbeat":
                made.append(again | {"_stored": stored})
    return made


class Told:
    """What a matcher says of a sequence. `limits`: segments of a few events, so that short sequences have many."""

    def __init__(self, plan: Plan, bits: int) -> None:
        self.plan = plan
        self.arguments: dict[str, Any] = {"round_bits": bits, "rejects": True, "limits": SegmentLimits(events=4, kept_max=4)}
        self.matcher: SequenceMatcher = sequence_matcher(plan, **self.arguments)
        self.deliveries: list[Delivery] = []
        self.verdicts: list[tuple[int, str, str]] = []
        self.duplicates = 0

    def take(self, found: JointFindings) -> None:
        for each in found.relations:
            self.deliveries.append((each.sign, each.subscription, tuple(event["n"] for event in each.members)))
        for told in found.verdicts:
            names = told.subscriptions or self.matcher.groups[0].names
            for position, verdict in zip(told.columns.position_array.tolist(), told.verdicts, strict=True):
                self.verdicts += [(position, verdict.value, name) for name in names]
        self.duplicates += found.duplicates

    def reload(self) -> None:
        first, held = self.matcher.engines[0].dump(), self.matcher.held()

        def load(plan: Plan, state: bytes | None) -> Engine:
            return Engine(plan) if state is None else Engine.load(plan, state)

        self.matcher = resumed_sequence(self.plan, first, held, load, **self.arguments)
        assert (self.matcher.engines[0].dump(), self.matcher.held()) == (first, held)


def chosen(random: Random) -> list[DefinedRule]:
    """Some rules, with those whose events they read."""
    found = random.sample(RULES, random.choice((1, 2, 4, 5)))
    names = {each.name for each in found}
    return [each for each in RULES if (each.name == "Both" and "Above" in names - {"Both"}) or each in found]


def read_as(clock: str, text: str) -> str:
    """The rules over types whose time has this name."""
    return text.replace("at TIMESTAMP) TIME at", f"{clock} TIMESTAMP) TIME {clock}").replace("ORDER BY at", f"ORDER BY {clock}")


def dropped(wanted: DefinedSequence, rules: Sequence[DefinedRule]) -> int:
    """Rules that read the same types drop repeats together."""
    return sum({each.types: wanted.repeats[each.name] for each in rules}.values())


def batches(plan: Plan, records: Sequence[Record], random: Random, clock: str) -> Iterator[Columns]:
    stripped = [
        {clock if name == "at" and each["type"] != "Heartbeat" else name: value for name, value in each.items()}
        for each in ({name: value for name, value in each.items() if name != "_stored"} for each in records)
    ]
    (whole,) = read_events(stripped, plan.catalogue, last_sequences=AllFresh(), allow_nan=True)
    stored = [microseconds(each["_stored"]) for each in records]
    low = 0
    while low < len(whole):
        high = min(len(whole), low + random.choice((1, 2, 7, 30, len(whole))))
        yield stored_at(whole.part(low, high), stored[low:high])
        low = high


def stored_at(columns: Columns, stored: Sequence[int]) -> Columns:
    return replace(columns, stored=np.array(stored, dtype=np.int64))


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ORDERS)
def test_deliveries_and_verdicts_are_those_of_the_definition(order: str, seed: int) -> None:
    for case in range(sample_size(5)):
        random = Random(f"{order} {seed} {case}")
        rules, clock, bits = chosen(random), random.choice(("at", "t")), random.choice((0, 2, 3, 10))
        plan = fairlead.compile(read_as(clock, TYPES + rules_text(ORDERS[order], rules)))
        records = generated(random, 45)
        told = Told(plan, bits)
        for columns in batches(plan, records, random, clock):
            told.take(told.matcher.step(columns))
            if random.random() < 0.2:
                told.reload()
        told.take(told.matcher.finish())
        wanted = defined(ORDERS[order], rules, records, [at >> bits for at in range(len(records))], FILE)
        assert told.deliveries == wanted.told, (order, seed, case)
        assert sorted(told.verdicts) == sorted(wanted.verdicts), (order, seed, case)
        assert told.duplicates == dropped(wanted, rules), (order, seed, case)
