"""ORDER BY … DELAY over a sequence: what is late, what is released, and in which order, is a function of the sequence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.engine import Engine
from fairlead.errors import StateError, UsageError
from fairlead.model.events.columns import Columns
from fairlead.runtime.event_time import EventTimeBuffer
from fairlead.runtime.sorting import AllFresh, in_total_order
from fairlead.transport.admission.records import RecordReader

START = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = "TYPE A (k INT, at TIMESTAMP) TIME at TYPE B (k INT, at TIMESTAMP) TIME at "
RULES = "SUBSCRIPTION S MATCH A a THEN B b EMIT D (k = a.k) SUBSCRIPTION T MATCH D d AND A a WITHOUT B b WITHIN 2 SECONDS OF a"
ORDERS = (
    "ORDER BY at DELAY 2 SECONDS ",
    "ORDER BY at, k DESC DELAY 1 SECOND ",
    "ORDER BY TIME DELAY 3 SECONDS PER SOURCE IDLE 4 SECONDS ",
)
Record = dict[str, Any]


@st.composite
def sequences(draw: st.DrawFn) -> list[Record]:
    """Times that rise with steps back, ties, heartbeats, several sources, some of them silent, repeats."""
    random = Random(draw(st.integers(0, 2**32)))
    made: list[Record] = []
    now = 10.0
    for number in range(draw(st.integers(0, 40))):
        now += random.choice((0, 0.5, 1, 1, 3))
        if random.random() < 0.1:
            made.append({"type": "Heartbeat", "at": at(now - random.choice((0, 2))), "_source": random.choice("pq")})
            continue
        behind = random.choice((0, 0, 0, 0.5, 1, 2, 5)) if random.random() < 0.5 else 0
        source = random.choice("ppq") if number < 20 else "p"
        made.append(
            {
                "type": random.choice("AB"),
                "k": random.randrange(3),
                "at": at(now - behind),
                "_source": source,
                "_sequence": number,
            }
        )
        if random.random() < 0.05:
            made.append(made[-1])
    return made


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def batches(plan: fairlead.Plan, records: list[Record], random: Random) -> list[Columns]:
    reader, made, low = RecordReader(plan.catalogue, last_sequences=AllFresh()), [], 0
    while low < len(records):
        size = random.choice((1, 1, 3, 10, 40))
        made += list(reader.read(records[low : low + size]))
        low += size
    return made


def late_by_definition(plan: fairlead.Plan, records: list[Record]) -> list[bool]:
    """One event after the other, with all that came before it."""
    assert plan.order is not None
    delay, idle = timedelta(microseconds=plan.order.delay_us or 0), plan.order.idle_us
    frontier, found = datetime.min.replace(tzinfo=UTC), []
    ends: dict[str, datetime] = {}
    for each in records:
        found.append(each["at"] < frontier)
        bound = each["at"] - delay + timedelta(microseconds=each["type"] == "Heartbeat")
        source = each["_source"] if idle is not None else "all"
        ends[source] = max(ends.get(source, bound), bound)
        least, most = min(ends.values()), max(ends.values())
        frontier = max(frontier, least if idle is None else max(least, most - timedelta(microseconds=idle)))
    return found


@given(sequences(), st.sampled_from(ORDERS), st.integers(0, 2**32))
def test_cuts_dumps_and_loads_change_nothing_and_what_is_not_late_is_released_as_if_sorted(
    records: list[Record], order: str, seed: int
) -> None:
    random, plan = Random(seed), fairlead.compile(TYPES + order + RULES)
    assert plan.order is not None
    late = late_by_definition(plan, records)
    kept = [each for each, is_late in zip(records, late, strict=True) if not is_late]
    sorted_ = in_total_order(RecordReader(plan.catalogue, last_sequences=AllFresh()).read(kept), plan.order, plan.catalogue)
    wanted = [relation.id for relation in Engine(plan).feed(sorted_)]

    buffer, engine = EventTimeBuffer(plan.order, plan.catalogue), Engine(plan)
    whole = EventTimeBuffer(plan.order, plan.catalogue)
    found, told = [], []
    for columns in batches(plan, records, random):
        released = buffer.step(columns)
        told += released.verdicts.columns.positions
        found += [relation.id for relation in engine.feed(released.columns)]
        if random.random() < 0.3:
            dumped = buffer.dump()
            buffer = EventTimeBuffer(plan.order, plan.catalogue)
            buffer.load(dumped)
    for columns in RecordReader(plan.catalogue, last_sequences=AllFresh()).read(records):
        whole.step(columns)
    assert buffer.dump() == whole.dump()
    found += [relation.id for relation in engine.feed(buffer.finish())]
    assert told == [number for number, is_late in enumerate(late) if is_late and records[number]["type"] != "Heartbeat"]
    assert found == wanted


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_a_damaged_state_is_refused(cut: int) -> None:
    plan = fairlead.compile(TYPES + ORDERS[0] + RULES)
    assert plan.order is not None
    buffer = EventTimeBuffer(plan.order, plan.catalogue)
    (columns,) = RecordReader(plan.catalogue).read([{"type": "A", "k": 1, "at": at(1)}])
    buffer.step(columns)
    dumped = buffer.dump()
    with pytest.raises(StateError, match="S119"):
        EventTimeBuffer(plan.order, plan.catalogue).load(dumped[:cut])


def test_an_engine_takes_events_in_their_order_only() -> None:
    plan = fairlead.compile(TYPES + ORDERS[0] + RULES)
    (columns,) = RecordReader(plan.catalogue).read([{"type": "A", "k": 1, "at": at(1)}])
    with pytest.raises(UsageError, match="A013"):
        Engine(plan).feed(columns)
    with pytest.raises(UsageError, match="A013"):
        Engine(plan).arrive(next(columns.events(plan.catalogue)))
