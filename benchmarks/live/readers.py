"""The two ways to read a stream of a NATS server, in one run: by a consumer, and by direct requests of a user with rights.

    .venv/bin/python -m benchmarks.live.readers [--blocks 20000] [--single 500]

Prints for each, in turns: blocks and megabytes per second of a backlog, and CPU seconds of this process; the time from before
the append to the block at the reader, for single blocks, median and the slowest of a hundred; and appends per second.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import aclosing
from statistics import median, quantiles

from fairlead.runtime.rights.apply import apply
from fairlead.runtime.rights.policy import policy_of
from fairlead.runtime.rights.server_config import server_config
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.log import JetStreamLog, connect
from fairlead.transport.log.jetstream.server import Server

POLICY = policy_of(
    """
    users:
      consumer: {password: $PASSWORD, manage: true}
      direct: {password: $PASSWORD, subscribe: [a], publish: [a]}
    """
)
WAYS = ("consumer", "direct")
BYTES = 4000


def block(number: int, source: str) -> Block:
    return Block("A", source, number, number, 1, "s", b"x" * BYTES, topic="a")


async def backlog(log: JetStreamLog, blocks: int) -> tuple[float, float]:
    stream = await log.open_topics(["a"])
    start, cpu, seen = time.perf_counter(), time.process_time(), 0
    async with aclosing(log.read(stream, 0)) as reading:  # type: ignore[type-var]
        while seen < blocks:
            seen += len(await anext(reading))
    return blocks / (time.perf_counter() - start), time.process_time() - cpu


async def single(log: JetStreamLog, writer: JetStreamLog, count: int, source: str) -> list[float]:
    stream = await log.open_topics(["a"])
    found, after = [], 0
    async with aclosing(log.read(stream, await log.last(stream))) as reading:  # type: ignore[type-var]
        for number in range(count):
            waiting = asyncio.ensure_future(anext(reading))
            await asyncio.sleep(0.002)  # the reader waits
            start = time.perf_counter()
            after = await writer.append(block(number, source), after)
            await waiting
            found.append((time.perf_counter() - start) * 1000)
    return found


async def appends(log: JetStreamLog, count: int, source: str) -> float:
    after, start = 0, time.perf_counter()
    for number in range(count):
        after = await log.append(block(number, source), after)
    return count / (time.perf_counter() - start)


async def compare(url: str, blocks: int, singles: int) -> None:
    logs = {each: await connect(url, Credentials(each, "pass"), 1) for each in WAYS}
    await apply(logs["consumer"], POLICY)
    for each in WAYS:
        print(f"{each:9} {await appends(logs[each], blocks // 2, each):10,.0f} appends a second")
    for _ in range(3):
        for each in WAYS:
            rate, cpu = await backlog(logs[each], blocks)
            print(f"{each:9} {rate:10,.0f} blocks/s {rate * BYTES / 1e6:8,.0f} MB/s {cpu:6.2f} CPU s")
    for turn in range(3):
        for each in WAYS:
            found = await single(logs[each], logs["consumer"], singles, f"{each}-{turn}")
            print(f"{each:9} {median(found):10.2f} ms, slowest of a hundred {quantiles(found, n=100)[-1]:.2f} ms")
    for log in logs.values():
        await log.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=20_000)
    parser.add_argument("--single", type=int, default=500)
    given = parser.parse_args()
    os.environ["PASSWORD"] = "pass"
    with tempfile.TemporaryDirectory() as folder, Server(folder, durable=False, more=server_config(POLICY)) as server:
        asyncio.run(compare(server.url, given.blocks, given.single))


if __name__ == "__main__":
    main()
