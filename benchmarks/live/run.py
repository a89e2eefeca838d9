"""One measurement: a server, a publisher in this process, subscribers in others, and what each of them saw and cost.

Takes: a side, a scenario, how many subscribers, a pace or none. Gives: `Measured`. Without a pace, events are published as fast
as they are taken; the time ends when the last subscriber has read the last event.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import process_time, time
from typing import Any

import numpy as np

from benchmarks.live.scenarios import SCENARIOS, Scenario, events
from benchmarks.live.sides import SIDES
from fairlead.transport.log.server import Server

PROCESSES = 2
TICK = 0.01
"""Seconds between two publications at a pace."""
GIVE_UP = 60.0
SETTLED = 0.4
"""The part of a paced run that is not measured: compiling, and the first blocks."""


@dataclass(frozen=True)
class Measured:
    events: int
    seconds: float
    read: list[int]
    wanted: list[int]
    latencies_ms: list[float]
    cpu_s: dict[str, float]

    @property
    def per_subscriber(self) -> float:
        """Events a second that a subscriber got, on average."""
        return statistics.mean(self.read) / self.seconds

    @property
    def is_whole(self) -> bool:
        return self.read == self.wanted

    def latency(self, percent: float) -> float:
        return float(np.percentile(self.latencies_ms, percent)) if self.latencies_ms else float("nan")


def measure(side: str, scenario: Scenario, subscribers: int, total: int, pace: float | None = None) -> Measured:
    """`total` events over all types; `pace` is in events a second over all types."""
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server:
        ready, over = processes.Queue(), processes.Queue()
        shares = [list(range(at, subscribers, PROCESSES)) for at in range(min(PROCESSES, subscribers))]
        each = total // len(scenario.types)
        counts = {at: each * len(scenario.reads(at)) for at in range(subscribers)}
        asyncio.run(_prepare(side, scenario, server.url))
        children = [
            processes.Process(
                target=_child, args=(side, server.url, scenario.name, {at: counts[at] for at in mine}, ready, over)
            )
            for mine in shares
        ]
        for child in children:
            child.start()
        for _ in children:
            ready.get(timeout=GIVE_UP)
        before, began = process_time(), time()
        asyncio.run(_publish(side, scenario, server.url, each, pace))
        cpu = {"publisher": process_time() - before}
        found = [over.get(timeout=10 * GIVE_UP) for _ in children]
        for child in children:
            child.join()
        cpu |= {"subscribers": sum(one["cpu_s"] for one in found), "server": _cpu_of(server.pid)}
        read = {at: count for one in found for at, count in one["read"].items()}
        ended = max(one["ended"] for one in found)
        start = began + SETTLED * (ended - began)
        latencies = [ms for one in found for at, ms in one["latencies"] if at >= start]
        order = sorted(read)
        return Measured(
            each * len(scenario.types), ended - began, [read[at] for at in order], [counts[at] for at in order], latencies, cpu
        )


async def _prepare(side: str, scenario: Scenario, url: str) -> None:
    async with SIDES[side](url) as mine:
        await mine.prepare(scenario)


async def _publish(side: str, scenario: Scenario, url: str, each: int, pace: float | None) -> None:
    random = np.random.default_rng(42)
    async with SIDES[side](url) as mine:
        if pace is None:
            made = [events(random, each, int(time() * 1e6)) for _ in scenario.types]
            await asyncio.gather(*(mine.publish(name, rows) for name, rows in zip(scenario.types, made, strict=True)))
        else:
            at_once = max(1, round(pace * TICK / len(scenario.types)))
            began = time()
            for tick, done in enumerate(range(0, each, at_once)):
                await asyncio.sleep(max(0.0, began + tick * TICK - time()))
                for name in scenario.types:
                    await mine.publish(name, events(random, min(at_once, each - done), int(time() * 1e6)))
        await mine.flush()


def _child(side: str, url: str, name: str, counts: dict[int, int], ready: Any, over: Any) -> None:
    over.put(asyncio.run(_followed(side, url, SCENARIOS[name], counts, ready)))


async def _followed(side: str, url: str, scenario: Scenario, counts: dict[int, int], ready: Any) -> dict[str, Any]:
    read: dict[int, int] = {}
    latencies: list[tuple[float, float]] = []
    began: list[asyncio.Event] = []

    async def follow(subscriber: int, mine: Any, here: asyncio.Event) -> float:
        last, silent = time(), 0
        async for count, newest in mine.follow(scenario, subscriber, here):
            now = time()
            if newest is not None:
                latencies.append((now, 1e3 * (now - newest)))
            if count != read.get(subscriber, 0):
                last = now
            read[subscriber] = count
            silent = now - last
            if count >= counts[subscriber] or silent > GIVE_UP:
                break
        return last

    async with SIDES[side](url) as mine:
        began = [asyncio.Event() for _ in counts]
        following = [asyncio.create_task(follow(at, mine, here)) for at, here in zip(counts, began, strict=True)]
        for here in began:
            await here.wait()
        before = process_time()
        ready.put(os.getpid())
        ended = max(await asyncio.gather(*following))
        return {"read": read, "latencies": latencies, "cpu_s": process_time() - before, "ended": ended}


def _cpu_of(pid: int | None) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
