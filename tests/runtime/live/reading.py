"""What the tests of subscribers share: rules, publishers at once, readers to the end, and the same by the embedded engine."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import fairlead
from fairlead.engine import Engine
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.block_columns import columns_of
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.transport.admission.records import read_records
from fairlead.transport.log.protocol import Stream
from tests.transport.log.test_logs import taken
from tests.waiting import until

TYPES = "TYPE A (k INT, x INT); TYPE B (k INT, x INT); TYPE C (k INT, x INT)"
APART = f"TOPIC a (A); TOPIC b (B); TOPIC c (C); {TYPES}"
"""The same types, each in a topic of its own: several of them are merged."""
RULES = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k"
COVERING = f"{RULES} SUBSCRIPTION T MATCH A a AND B b AND C c WHERE a.k = b.k AND b.k = c.k"
EMITTING = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k EMIT Pair (k = a.k, total = a.x + b.x)"


async def some(sub: LiveSubscription, count: int) -> list[Relation]:
    found: list[Relation] = []
    if count:
        async for relation in sub:
            found.append(relation)
            if len(found) == count:
                break
    return found


async def more(sub: LiveSubscription, seconds: float = 0.02) -> list[Relation]:
    """What comes of all that is stored when nothing has come for so long."""
    found: list[Relation] = []
    while True:
        relation = await sub.next_within(seconds)
        if relation is not None:
            found.append(relation)
        elif await settled(sub):
            return found


async def settled(sub: LiveSubscription) -> bool:
    """Whether everything published is merged and read: on a busy machine that takes its time."""
    return await sub.has_passed(await sub.ends())


def ids(relations: Sequence[Relation]) -> list[str]:
    return [each.id for each in relations]


async def publish_some(fl: Client, seed: int, rounds: int = 40) -> None:
    """Three publishers at once, in blocks of all sizes."""
    rolls = random.Random(seed)

    async def one(name: str) -> None:
        async with fairlead.connect(fl.url) as mine:
            for _ in range(rounds):
                count = rolls.choice([1, 2, 7, 30])
                rows = {"k": [rolls.randrange(5) for _ in range(count)], "x": [rolls.randrange(1000) for _ in range(count)]}
                await mine.publish_many(name, rows, wait=rolls.random() < 0.3)
                await asyncio.sleep(rolls.random() * 0.003)  # so that they take turns in many ways

    await asyncio.gather(*(one(name) for name in "ABC"))


async def exported(fl: Client, types: Sequence[str]) -> list[tuple[int, dict[str, Any]]]:
    """The events of a merged stream with their positions, as a file would have them."""
    catalogue = await fl.types()
    topics = catalogue.topics_of(types)
    stream = await fl.log.open_topics(topics)
    await merged(fl, types, sum([await fl.log.last(await fl.log.open_topics([each])) for each in topics]))
    columns = columns_of(await taken(fl.log, stream, await fl.log.last(stream)), {name: catalogue[name] for name in types}, 0)
    return [(each.position.major, {"type": each.type} | each.values) for each in columns.events(catalogue)]


async def rows_of(fl: Client, name: str) -> list[dict[str, Any]]:
    """The events of a type, in the order of its topic."""
    event_type = (await fl.types())[name]
    stream = await fl.log.open_topics([event_type.topic])
    columns = columns_of(await taken(fl.log, stream, await fl.log.last(stream)), {name: event_type}, 0)
    return columns.tables[name].to_pylist() if name in columns.tables else []


async def merged(fl: Client, types: Sequence[str], count: int) -> None:
    """Wait until so many blocks are merged: what is published one after the other may be merged otherwise."""
    stream = await fl.log.open_topics((await fl.types()).topics_of(types))
    await until(lambda: reached(fl, stream, count))


async def reached(fl: Client, stream: Stream, count: int) -> bool:
    return await fl.log.last(stream) >= count


def matched(text: str, events: list[tuple[int, dict[str, Any]]]) -> list[Relation]:
    """By the embedded engine, over the exported events."""
    plan = fairlead.compile(text)
    engine = Engine(plan)
    (columns,) = read_records([event for _, event in events], plan.catalogue, batch_rows=10**6)
    return list(engine.feed(replace(columns, positions=[at for at, _ in events])))
