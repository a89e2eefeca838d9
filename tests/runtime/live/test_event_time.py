"""ORDER BY live: every subscriber releases the same events in the same order, across topics and publishers.

Events are generated with times that run back within the delay, by several publishers, in one topic, in two or in three. The
first subscriber is there before, comes in the middle, or after everything is published; others join it; some leave and go on
from their state. What they deliver is what the embedded runtime finds in the exported file, in one order.
"""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.runtime.live.client import Client
from tests.runtime.live.reading import ids, more
from tests.runtime.live.test_topics import client
from tests.transport.log.logs import KINDS, a_log, run

START = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = " ".join(f"TYPE {name} (k INT, at TIMESTAMP) TIME at" for name in "ABC")
TOPICS = {
    "one topic": "",
    "two topics": "TOPIC a (A, C) TOPIC b (B)",
    "three topics": "TOPIC a (A) TOPIC b (B) TOPIC c (C)",
}
FIRST = ("before", "in the middle", "after")
"""When the first subscriber comes."""
RULES = """
SUBSCRIPTION Pair MATCH A a THEN B b PER k
SUBSCRIPTION Chain MATCH A a THEN B b THEN C c PER k EMIT D (k = a.k)
SUBSCRIPTION Quiet MATCH D d WITHOUT A a WITHIN 2 SECONDS OF d
SUBSCRIPTION Either MATCH A a[2] OR C c WHERE c.k = 1
SUBSCRIPTION Many MATCH A a+ THEN C c HAVING count(a) >= 2 PER k
SUBSCRIPTION Session MATCH A a+ LONGEST WITHIN 2 SECONDS OF PREVIOUS PER k
"""
ORDERS = ("ORDER BY at DELAY 3 SECONDS", "ORDER BY TIME DELAY 3 SECONDS PER SOURCE IDLE 1 HOUR")
SEEDS = {"memory": 3, "file": 1, "server": 1}
CASES = [
    pytest.param(kind, seed, marks=marks)
    for kind, marks, seed in (
        (each if isinstance(each, str) else each.values[0], () if isinstance(each, str) else each.marks, seed)
        for each in KINDS
        for seed in range(SEEDS[each if isinstance(each, str) else str(each.values[0])])
    )
]


def drawn(rolls: random.Random) -> list[dict[str, Any]]:
    """Events in the order of their publishing, whose times lie up to 2.9 seconds back."""
    made = []
    for number in range(rolls.randint(60, 150)):
        seconds = number / 10 + 10 - rolls.choice((0, 0, 0.1, 0.5, 1, 2.9))
        made.append({"type": rolls.choice("ABC"), "k": rolls.randrange(3), "at": START + timedelta(seconds=seconds)})
    return made


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.sampled
@pytest.mark.parametrize("layout", TOPICS)
@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_what_is_delivered_is_what_sorting_gives(kind: str, seed: int, layout: str, first: str, tmp_path: Path) -> None:
    rolls = random.Random(f"{kind} {seed} {layout} {first}")
    text = f"{TOPICS[layout]} {TYPES} {ORDERS[seed % 2]} {RULES}"

    async def work() -> None:
        async with a_log(kind) as log, client(log, "main", rolls, lost=False) as fl:
            await fl.declare(f"{TOPICS[layout]} {TYPES}")
            got: list[list[str]] = []
            over = asyncio.Event()

            async def follow() -> None:
                async with fl.subscribe(text, start="earliest") as sub:
                    found = []
                    while not over.is_set():
                        found += await more(sub)
                        await asyncio.sleep(0)
                    got.append(ids(found + await more(sub)))

            followers = [asyncio.create_task(follow())] if first == "before" else []
            events = drawn(rolls)
            half = len(events) // 2
            await publish(log, events[:half], rolls)
            before = list[str]()
            if first != "after":
                followers.append(asyncio.create_task(follow()))
                before = await rested(fl, text)
            await publish(log, events[half:], rolls)
            for source in ("p0", "p1", "p2"):
                async with client(log, source, rolls, lost=False) as one:
                    for hours in (1, 2):  # the second releases the first
                        await one.publish("Heartbeat", {"at": START + timedelta(hours=hours)}, wait=True)
            over.set()
            await asyncio.gather(*followers, follow())
            got.append(before + await rested(fl, text))
            await fl.export(text, tmp_path / "events.parquet")
        plan = fairlead.compile(text)
        found = fairlead.match(plan, pq.read_table(tmp_path / "events.parquet"))
        assert len(found) > 20
        for each in got:
            assert each == got[0]
            assert sorted(each) == sorted(ids(found))
            for name in ("Pair", "Chain", "Quiet", "Either"):
                mine = ids(found.of(name))
                assert [one for one in each if one in set(mine)] == mine

    run(work)


async def publish(log: Any, events: list[dict[str, Any]], rolls: random.Random) -> None:
    """By up to three publishers, at random, so that each one's times run back, too."""
    sources = [f"p{at}" for at in range(3)]
    mine: dict[str, list[dict[str, Any]]] = {each: [] for each in sources}
    for event in events:
        mine[rolls.choice(sources)].append(event)
    clients = [await client(log, source, rolls, lost=False).__aenter__() for source in sources]
    left = [(each, list(mine[source])) for each, source in zip(clients, sources, strict=True)]
    while any(rest for _, rest in left):
        one, rest = min((each for each in left if each[1]), key=lambda each: each[1][0]["at"])
        event = dict(rest.pop(0))
        await one.publish(event.pop("type"), event, wait=True)
    for each in clients:
        await each.__aexit__(None)


async def rested(fl: Client, text: str) -> list[str]:
    """A named subscriber that goes on from where it was."""
    async with fl.subscribe(text, name="rested", start="earliest") as sub:
        found = await more(sub)
        await sub.ack()
        return ids(found)
