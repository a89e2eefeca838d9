"""One order of a topic: a publisher's own across types, the same for all who read any of its types, and that of the file.

Publishers are generated: how they publish (one event, many of a type, mixed records, a table, with and without waiting), what
the log answers (lost answers, stored or not), when they are killed and start again. Subscribers read any of the types, from
before, in the middle of, or after all that.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.transport.log.blocks.block import EVENTS_MAX, Block
from fairlead.transport.log.protocol import Log, Unavailable
from tests.runtime.live.reading import ids, more
from tests.transport.log.logs import KINDS, a_log, run

NAMES = ("A", "B", "C", "D")
TYPES = "; ".join(f"TYPE {name} (k INT, who STRING, n INT)" for name in NAMES)
TOPICS = {"one topic": "", "two topics": "TOPIC first (A, B); TOPIC second (C, D);"}
KEYS = 3
LARGE = EVENTS_MAX
"""Events of one call that have blocks of their own."""
SEEDS = {"memory": 10, "file": 2, "server": 4}
Who = tuple[str, int]
"""The identity of an event: its publisher, and its number among all that the publisher has."""


@dataclass
class Place:
    """Clients of one log, which is open already."""

    log: Log
    lost: random.Random | None = None

    async def open(self, held: ExitStack) -> tuple[Log, str]:
        return (self.log if self.lost is None else Forgetful(self.log, self.lost)), "memory:"  # type: ignore[return-value]


class Forgetful:
    """A log whose answers get lost: each append is done, or not, and then nothing is heard of it."""

    def __init__(self, log: Log, rolls: random.Random) -> None:
        self._log, self._rolls = log, rolls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, block: Block, after: int) -> int:
        roll = self._rolls.random()
        if roll < 0.15:
            await self._log.append(block, after)
        if roll < 0.3:
            raise Unavailable("no answer")
        return await self._log.append(block, after)

    async def close(self) -> None:
        """Others use it."""


class Shared(Forgetful):
    async def append(self, block: Block, after: int) -> int:
        return await self._log.append(block, after)


def client(log: Log, source: str, rolls: random.Random, *, lost: bool) -> Client:
    place = Place(log, random.Random(rolls.random())) if lost else Place(Shared(log, rolls))  # type: ignore[arg-type]
    return Client(place, source, rolls.choice([0.0, 0.002]), 60.0, None)  # type: ignore[arg-type]


@dataclass
class Script:
    """What a publisher publishes, in its order, and in which way."""

    source: str
    seed: int
    events: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def drawn(cls, source: str, seed: int, *, large: bool) -> Script:
        rolls = random.Random(f"{seed} {source}")
        some = rolls.sample(NAMES, rolls.randint(1, len(NAMES)))
        count = rolls.randint(20, 90) + (LARGE if large else 0)
        events = [{"type": rolls.choice(some), "k": rolls.randrange(KEYS), "who": source, "n": n} for n in range(count)]
        return cls(source, seed, events)

    def of_topic(self, types: Sequence[str]) -> list[dict[str, Any]]:
        return [each for each in self.events if each["type"] in types]


async def publish(log: Log, script: Script, topics: dict[str, list[str]]) -> None:
    """Until all is stored. A life that is killed leaves events that were accepted and not stored; the next one looks how far
    the log is in each topic, and sends the rest."""
    rolls = random.Random(f"{script.seed} {script.source} ways")
    while True:
        stored = {name: await count_of(log, name, script.source) for name in topics}
        left = [
            each for name, types in topics.items() for each in script.of_topic(types)[stored[name] :]
        ]  # those of a topic in their order, whatever the order of topics
        if rolls.random() < 0.5:
            left.sort(key=lambda each: each["n"])
        if not left:
            return
        one = await client(log, script.source, rolls, lost=rolls.random() < 0.5).__aenter__()
        killed = rolls.random() < 0.6 and len(left) > 5
        await send(one, left[: rolls.randint(1, len(left))] if killed else left, rolls)
        await one.__aexit__(KeyboardInterrupt if killed else None)


async def count_of(log: Log, topic: str, source: str) -> int:
    last = await log.last_of(topic, source)
    return 0 if last is None else last.block.sequence + last.block.count


async def send(fl: Client, events: Sequence[dict[str, Any]], rolls: random.Random) -> None:
    at = 0
    while at < len(events):
        wait, way = rolls.random() < 0.2, rolls.choice(["one", "one", "many", "all", "table"])
        if way == "one":
            await fl.publish(events[at]["type"], values(events[at]), wait=wait)
            at += 1
        elif way == "many":  # a run of one type
            end = at + 1
            while end < len(events) and events[end]["type"] == events[at]["type"]:
                end += 1
            await fl.publish_many(events[at]["type"], [values(each) for each in events[at:end]], wait=wait)
            at = end
        else:
            some = events[at : at + rolls.choice([1, 3, 10, 40, LARGE + 10] if len(events) > LARGE else [1, 3, 10, 40])]
            await fl.publish_all(pa.Table.from_pylist(some) if way == "table" else some, wait=wait)
            at += len(some)
        if rolls.random() < 0.1:
            await fl.flush()
        if rolls.random() < 0.3:
            await asyncio.sleep(0)


def values(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "type"}


class Reader:
    """A subscriber that is given every event of its types."""

    def __init__(self, types: Sequence[str]) -> None:
        self.types = types
        self.rules = "SUBSCRIPTION Every MATCH " + " OR ".join(f"{name} e{at}" for at, name in enumerate(types))
        self.got: list[tuple[str, Who]] = []

    @asynccontextmanager
    async def reading(self, fl: Client) -> Any:
        async with fl.subscribe(self.rules, start="earliest") as sub:
            yield self
            await self.rest(sub)

    async def rest(self, sub: LiveSubscription) -> None:
        for relation in await more(sub):
            (event,) = relation.events
            self.got.append((event.type, (event["who"], event["n"])))


THEN = [
    "SUBSCRIPTION Pair MATCH {0} a THEN {1} b PER k",
    "SUBSCRIPTION Turn MATCH {1} a THEN {0} b WHERE a.who = b.who PER k",
    "SUBSCRIPTION Last MATCH {0} a AND {1} b PER who MATCHING RECENT",
    "SUBSCRIPTION Three MATCH {0} a[2] THEN {1} b PER k",
]


@pytest.mark.sampled
@pytest.mark.parametrize("layout", TOPICS)
@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        pytest.param(kind, seed, marks=marks)
        for kind, marks, seed in (
            (each if isinstance(each, str) else each.values[0], () if isinstance(each, str) else each.marks, seed)
            for each in KINDS
            for seed in range(SEEDS[each if isinstance(each, str) else str(each.values[0])])
        )
    ],
)
def test_publishers_and_subscribers_of_a_topic_have_one_order(kind: str, seed: int, layout: str, tmp_path: Path) -> None:
    rolls = random.Random(f"{kind} {seed} {layout}")

    async def work() -> None:
        async with a_log(kind) as log:
            main = client(log, "main", rolls, lost=False)
            async with main as fl:
                await fl.declare(TOPICS[layout] + TYPES)
                topics: dict[str, list[str]] = {}
                for each in await fl.types():
                    topics.setdefault(each.topic, []).append(each.name)
                scripts = [
                    Script.drawn(f"p{at}", rolls.randrange(1 << 30), large=at == seed == 0 and layout == "two topics")
                    for at in range(rolls.randint(1, 3))
                ]
                readers = [Reader(rolls.sample(NAMES, rolls.randint(1, len(NAMES)))) for _ in range(4)]
                rules = [text.format(*rolls.sample(pair, 2)) for text in THEN for pair in ("AB", "CD")]
                pairs: dict[str, list[list[str]]] = {text: [] for text in rules}

                async def follow(reader: Reader, begun: asyncio.Event, ended: asyncio.Event) -> None:
                    async with reader.reading(fl):
                        begun.set()
                        await ended.wait()

                async def follow_pairs(text: str, ended: asyncio.Event) -> None:
                    async with fl.subscribe(text, start="earliest") as sub:
                        await ended.wait()
                        pairs[text].append(ids(await more(sub)))

                ended, begun = asyncio.Event(), [asyncio.Event() for _ in readers]
                early = [asyncio.create_task(follow(readers[0], begun[0], ended))]
                early += [asyncio.create_task(follow_pairs(text, ended)) for text in rules]
                await begun[0].wait()
                publishing = [asyncio.create_task(publish(log, each, topics)) for each in scripts]
                await publishing[0]
                early += [asyncio.create_task(follow(readers[at], begun[at], ended)) for at in (1, 2)]
                await asyncio.gather(*publishing)
                ended.set()
                await asyncio.gather(*early)
                over = asyncio.Event()
                over.set()
                await asyncio.gather(follow(readers[3], begun[3], over), *(follow_pairs(text, over) for text in rules))

                await own_orders(fl, scripts, topics)
                agreed(readers, topics, scripts)
                for text in rules:
                    await fl.export(text, tmp_path / "events.parquet")
                    plan = fairlead.compile(f"{TOPICS[layout]}{TYPES} {text}")
                    found = fairlead.match(plan, pq.read_table(tmp_path / "events.parquet"), position="position")
                    assert pairs[text] == [ids(found)] * 2, text

    run(work)


async def own_orders(fl: Client, scripts: Sequence[Script], topics: dict[str, list[str]]) -> None:
    """The log has every event once, in the order of its publisher."""
    for types in topics.values():
        reader = Reader(types)
        async with reader.reading(fl):
            pass
        for script in scripts:
            wanted = [(each["type"], (each["who"], each["n"])) for each in script.of_topic(types)]
            assert [each for each in reader.got if each[1][0] == script.source] == wanted
        assert len(reader.got) == sum(len(each.of_topic(types)) for each in scripts)


def agreed(readers: Sequence[Reader], topics: dict[str, list[str]], scripts: Sequence[Script]) -> None:
    for one in readers:
        assert len(one.got) == sum(len(each.of_topic(one.types)) for each in scripts)
        for other in readers:
            both = {*one.types} & {*other.types}
            assert [each for each in one.got if each[0] in both] == [each for each in other.got if each[0] in both]
