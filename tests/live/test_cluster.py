"""A cluster of three servers: leaders are killed and paused under load."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import fairlead
from fairlead.runtime.live.client import Client
from fairlead.transport.log.block import decode
from tests.live.cluster import Cluster
from tests.live.test_logs import taken
from tests.live.test_subscribing import COVERING, EMITTING, RULES, TYPES, ids, more

ROUNDS = int(os.environ.get("FAIRLEAD_FAILURES", "3"))
"""How often a server is killed or paused; `FAIRLEAD_FAILURES=50 FAIRLEAD_SEED=7` for a longer run."""
SEED = int(os.environ.get("FAIRLEAD_SEED", "20"))
SECONDS_MAX = 120 + 30 * ROUNDS


async def ready(cluster: Cluster) -> Client:
    """A client, once the servers have found each other."""
    end = time.monotonic() + 30
    while True:
        fl = fairlead.connect(cluster.url, replicas=3, patience=60)
        await fl.__aenter__()
        try:
            await fl.declare(TYPES)
            return fl
        except fairlead.LogError:
            await fl.__aexit__(None, None, None)
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)


def test_servers_that_are_killed_or_paused_lose_nothing_and_nobody_disagrees(tmp_path: Path) -> None:
    rolls = random.Random(SEED)

    async def work() -> None:
        with Cluster(tmp_path) as cluster:
            fl = await ready(cluster)
            stored: dict[str, list[int]] = {"A": [], "B": [], "C": []}
            over = asyncio.Event()

            async def publishing(name: str) -> None:
                async with fairlead.connect(cluster.url, source=f"p-{name}", replicas=3) as mine:
                    number = 0
                    while not over.is_set():
                        await mine.publish(name, k=number % 7, x=number, wait=number % 5 == 0)
                        stored[name].append(number)
                        number += 1
                        await asyncio.sleep(0.005)

            async with (
                fairlead.connect(cluster.url, replicas=3) as one,
                fairlead.connect(cluster.url, replicas=3) as two,
                one.subscribe(EMITTING, name="a", start="earliest") as first,
                two.subscribe(EMITTING, name="b", start="earliest") as second,
                two.subscribe(COVERING, name="c", start="earliest") as third,
                two.subscribe(RULES, name="d", start="earliest") as fourth,
            ):
                publishers = [asyncio.create_task(publishing(name)) for name in "ABC"]
                await asyncio.sleep(1)
                for _ in range(ROUNDS):
                    at = rolls.randrange(3)
                    if rolls.random() < 0.5:
                        cluster.kill(at)
                        await asyncio.sleep(rolls.random() * 3)
                        cluster.start(at)
                    else:
                        cluster.pause(at)
                        await asyncio.sleep(rolls.random() * 6)
                        cluster.go_on(at)
                    await asyncio.sleep(2 + rolls.random() * 2)
                over.set()
                await asyncio.gather(*publishers)
                counts = [len(each) for each in stored.values()]
                await asyncio.sleep(3)
                got = await asyncio.gather(*(more(each, 8) for each in (first, second, third, fourth)))
                assert min(counts) > 50
                assert ids(got[0]) == ids(got[1])
                assert len(got[0]) > 20
                assert first.receipt == second.receipt
                assert ids(got[3]) == [each.id for each in got[2] if each.subscription == "S"]
                assert await first.lag() == await third.lag() == 0
                await asyncio.gather(first.ack(), second.ack())
            catalogue = await fl.types()
            for name, rows in (*stored.items(), ("Pair", [each.emitted for each in got[0]])):
                stream = await fl.log.open_type(name)
                blocks = await taken(fl.log, stream, await fl.log.last(stream))
                found = [row for each in blocks for row in decode(each.block, catalogue[name]).to_pylist()]
                assert [row if name == "Pair" else row["x"] for row in found] == rows
            assert await fl.compare("a", "b")
            await fl.__aexit__(None, None, None)

    asyncio.run(asyncio.wait_for(work(), SECONDS_MAX))
