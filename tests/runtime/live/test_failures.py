"""Processes die: nothing acknowledged is lost, nothing is doubled, and everybody still agrees."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sys
from pathlib import Path

import pytest

import fairlead
from fairlead.errors import LogError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.subscriber.record import groups_of_name
from fairlead.transport.log.jetstream.server import Server
from tests.runtime.live.reading import EMITTING, RULES, TYPES, ids, more, publish_some, rows_of, some
from tests.transport.log.logs import run
from tests.transport.log.test_logs import taken
from tests.waiting import until


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@pytest.mark.server
def test_a_killed_server_that_comes_back_has_lost_and_doubled_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        server = Server(tmp_path, port=free_port()).start()
        stored: dict[str, list[int]] = {"A": [], "B": []}
        try:
            async with fairlead.connect(server.url) as fl, fairlead.connect(server.url) as other:
                await fl.declare(TYPES)

                async def publishing(name: str, count: int) -> None:
                    async with fairlead.connect(server.url, source=f"p-{name}") as mine:
                        for number in range(count):
                            await mine.publish(name, k=number % 7, x=number, wait=number % 3 == 0)
                            stored[name].append(number)

                async with (
                    fl.subscribe(EMITTING, name="a", start="earliest") as one,
                    other.subscribe(EMITTING, name="b", start="earliest") as two,
                ):
                    publishers = [asyncio.create_task(publishing(name, 300)) for name in "AB"]
                    for kill in range(3):
                        await until(lambda count=75 * (kill + 1): len(stored["A"]) >= count)
                        os.kill(server.pid or 0, signal.SIGKILL)
                        server.stop()
                        await asyncio.sleep(0.2)  # there is none for a while
                        server.start()
                    await asyncio.gather(*publishers)
                    first, second = await asyncio.gather(more(one), more(two))
                    assert len(first) > 20
                    assert ids(first) == ids(second)
                    assert one.receipt == two.receipt
                for name in "AB":
                    assert [row["x"] for row in await rows_of(fl, name)] == stored[name]
                assert await rows_of(fl, "Pair") == [each.emitted for each in first]
        finally:
            server.stop()

    run(work)


async def subscriber(url: str, name: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.runtime.live.subscriber_process", url, name, RULES, stdout=asyncio.subprocess.PIPE
    )


async def count(fl: Client, name: str) -> int:
    (group,) = (await groups_of_name(fl.log, name)).values()
    return int(group["count"])


@pytest.mark.server
def test_a_killed_subscriber_goes_on_where_it_was() -> None:
    async def work() -> None:
        rolls = random.Random(11)
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            acknowledged: list[str] = []
            publishing = asyncio.create_task(publish_some(fl, seed=12, rounds=100))
            for _ in range(4):
                process = await subscriber(fl.url, "desk")
                assert process.stdout is not None
                wanted, seen = rolls.randrange(2, 12), 0
                async for line in process.stdout:
                    what, relation = line.decode().split()
                    if what == "got":
                        last = relation
                    else:
                        acknowledged.append(relation)
                        seen += 1
                        if seen == wanted:
                            break
                process.kill()
                # what it has acknowledged after we stopped listening
                async for line in process.stdout:
                    what, relation = line.decode().split()
                    if what == "ack":
                        acknowledged.append(relation)
                    else:
                        last = relation
                await process.wait()
                if await count(fl, "desk") > len(acknowledged):
                    acknowledged.append(last)  # killed between storing the acknowledgement and saying so
                assert await count(fl, "desk") == len(acknowledged)
            await publishing
            async with fl.subscribe(RULES, name="whole", start="earliest") as sub:
                whole = ids(await more(sub))
            async with fl.subscribe(RULES, name="desk") as sub:
                rest = ids(await some(sub, 1))
            assert acknowledged == whole[: len(acknowledged)]
            assert rest[0] == whole[len(acknowledged)]

    run(work)


@pytest.mark.server
def test_a_full_server_refuses_and_keeps_what_it_has(tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False, bytes_max=3_000_000) as server:
            fl = fairlead.connect(server.url, source="s")
            await fl.__aenter__()
            await fl.declare("TYPE T (x INT, text STRING)")
            stored = 0

            async def fill() -> None:
                nonlocal stored
                for x in range(100):
                    await fl.publish("T", x=x, text="t" * 100_000, wait=True)
                    stored += 1

            with pytest.raises(LogError, match="N004"):
                await fill()
            stream = await fl.log.open_topics(["main"])
            blocks = await taken(fl.log, stream, await fl.log.last(stream))
            assert [each.block.number for each in blocks] == list(range(stored))
            assert 10 < stored < 40
            await fl.__aexit__(LogError, None, None)

    run(work)
