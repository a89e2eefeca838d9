"""An event in the log without a value for an order key ends no subscriber: every one rejects it, and reports it alike."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import fairlead
from fairlead.model.events.verdict import EventVerdict
from tests.runtime.event_time.sequences import Record, at

TYPES = "TYPE A (k INT, t TIMESTAMP, n INT, at TIMESTAMP) TIME at"
EVENTS: list[Record] = [
    {"type": "A", "k": 1, "t": at(0), "n": 1, "at": at(0)},
    {"type": "A", "k": 2, "t": None, "n": None, "at": at(1)},
    {"type": "A", "k": 3, "t": at(50), "n": 2, "at": at(50)},
    {"type": "A", "k": 4, "t": at(99), "n": 2, "at": at(99)},
]


@pytest.mark.parametrize("late", ["", "LATE REVISE WITHIN 60 SECONDS"])
@pytest.mark.parametrize("keys", ["t", "at, t", "at, n DESC"])
def test_subscribers_before_and_after_it_deliver_the_others(keys: str, late: str) -> None:
    rules = f"ORDER BY {keys} DELAY 5 SECONDS {late} SUBSCRIPTION S MATCH A a WHERE a.k > 0"

    async def delivered() -> list[tuple[list[Any], int]]:
        found = []
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            for name in ("before", "after"):
                async with fl.subscribe(rules, name=name, start="earliest") as sub:
                    if name == "before":
                        await fl.publish_all(EVENTS, wait=True)
                    got = [await sub.next_within(30) for _ in range(2)]
                    keys_of = [None if each is None else each.members[0]["k"] for each in got]
                    found.append((keys_of, sub.verdict_counts[EventVerdict.REJECTED]))
        return found

    assert asyncio.run(delivered()) == [([1, 3], 1)] * 2
