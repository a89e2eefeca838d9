"""One measurement: a server, a publisher in this process, subscribers in others, and what each of them saw and cost.

    1. everybody subscribes
    2. some events are published and read that do not count: modules are loaded, kernels compiled
    3. from here on: as fast as events are taken, or at a pace. The time ends when the last subscriber has read the last event

Takes: a side, a scenario, how many subscribers, a pace or none. Gives: `Measured`. At a pace, latency counts from when an event
was due, so a publisher that falls behind does not hide it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time, time
from typing import Any

import numpy as np

from benchmarks.live.scenarios import GAP_US, Scenario, events
from benchmarks.live.sides import SIDES
from fairlead.transport.log.jetstream.server import Server

PROCESSES = 2
"""That the subscribers are in. Those in one read the log together."""
TICK = 0.01
"""Seconds between two publications at a pace."""
GIVE_UP = 60.0
AT_ONCE = 4096
"""Events of a type, then of the next: a topic keeps the publisher's order, so types have to take turns."""
ROUNDS, ROUND = 3, 2000
"""Of events of each type that do not count."""
NEVER_LATE_US = 1_000_000
"""From the events that do not count to those that do, by event time."""
SETTLED_SECONDS = 1.0
"""Of a paced run that are not measured."""


@dataclass(frozen=True)
class Measured:
    events: int
    seconds: float
    read: list[int]
    wanted: list[int]
    latencies_ms: list[float]
    cpu_s: dict[str, float]
    early_ms: list[float]

    @property
    def per_subscriber(self) -> float:
        """Events a second that a subscriber got, on average."""
        return statistics.mean(self.read) / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU microseconds of all processes for an event that one subscriber got."""
        return 1e6 * sum(self.cpu_s.values()) / max(1, sum(self.read))

    @property
    def is_whole(self) -> bool:
        return self.read == self.wanted

    def latency(self, percent: float, early: bool = False) -> float:
        found = self.early_ms if early else self.latencies_ms
        return float(np.percentile(found, percent)) if found else float("nan")


def measure(
    side: str, scenario: Scenario, subscribers: int, total: int, pace: float | None = None, shared_by: int = PROCESSES
) -> Measured:
    """`total` events over all types; `pace` is in events a second over all types; `shared_by` so many processes."""
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server:
        ready, over = processes.Queue(), processes.Queue()
        shares = [list(range(at, subscribers, shared_by)) for at in range(min(shared_by, subscribers))]
        each = total // len(scenario.types)
        types = {at: len(scenario.reads(at)) for at in range(subscribers)}
        asyncio.run(_prepare(side, scenario, server.url))
        children = [
            processes.Process(
                target=_child,
                args=(side, server.url, scenario, {at: types[at] for at in mine}, each, ready, over),
                daemon=True,
            )
            for mine in shares
        ]
        for child in children:
            child.start()

        def all_are() -> None:
            for _ in children:
                ready.get(timeout=2 * GIVE_UP)

        all_are()  # 1
        began, cpu = asyncio.run(_publish(side, scenario, server, each, pace, all_are))
        found = [over.get(timeout=10 * GIVE_UP) for _ in children]
        for child in children:
            child.join()
        cpu |= {"subscribers": sum(one["cpu_s"] for one in found), "server": _cpu_of(server.pid) - cpu["server"]}
        read = {at: count for one in found for at, count in one["read"].items()}
        settled = began + SETTLED_SECONDS
        latencies, early = ([ms for one in found for at, ms in one[kind] if at >= settled] for kind in ("latencies", "early"))
        order = sorted(read)
        return Measured(
            each * len(scenario.types),
            max(one["ended"] for one in found) - began,
            [read[at] for at in order],
            [each * types[at] for at in order],
            latencies,
            cpu,
            early,
        )


async def _prepare(side: str, scenario: Scenario, url: str) -> None:
    async with SIDES[side](url) as mine:
        await mine.prepare(scenario)


async def _publish(
    side: str, scenario: Scenario, server: Server, each: int, pace: float | None, all_have: Callable[[], None]
) -> tuple[float, dict[str, float]]:
    """When it began, and the CPU seconds of publishing, and of the server before it."""
    random, types, times = np.random.default_rng(42), scenario.types, scenario.times

    def drawn(first: int, gap_us: float, code: int, low: int, count: int, turn: int) -> Any:
        """Event times of the rows from `low` of a type: types take turns of so many rows."""
        rows = low + np.arange(count)
        places = (rows // turn * len(types) + code) * turn + rows % turn
        return None if times is None else times.drawn(random, first, gap_us, places)

    async with SIDES[side](server.url) as mine:
        for _ in range(ROUNDS):  # 2
            now = int(time() * 1e6)
            for code, name in enumerate(types):
                await mine.publish(name, events(random, ROUND, now, drawn(now, GAP_US, code, 0, ROUND, ROUND)))
            await mine.flush()
        first = int(time() * 1e6) + NEVER_LATE_US
        made = []
        for code in range(len(types) if pace is None else 0):
            made.append(events(random, each, 0, drawn(first, GAP_US, code, 0, each, AT_ONCE)))
        await asyncio.to_thread(all_have)
        before, began, served = process_time(), time(), _cpu_of(server.pid)
        if pace is None:  # 3
            for low in range(0, each, AT_ONCE):
                for name, rows in zip(types, made, strict=True):
                    await mine.publish(name, rows.slice(low, AT_ONCE))
        else:
            first, at_once = int(began * 1e6), max(1, round(pace * TICK / len(types)))
            for done in range(0, each, at_once):
                due = began + done * len(types) / pace
                await asyncio.sleep(max(0.0, due - time()))
                count = min(at_once, each - done)
                for code, name in enumerate(types):
                    at = drawn(first, 1e6 / pace, code, done, count, at_once)
                    await mine.publish(name, events(random, count, int(due * 1e6), at))
        await mine.flush()
        return began, {"publisher": process_time() - before, "server": served}


def _child(side: str, url: str, scenario: Scenario, types: dict[int, int], each: int, ready: Any, over: Any) -> None:
    over.put(asyncio.run(_followed(side, url, scenario, types, each, ready)))


async def _followed(side: str, url: str, scenario: Scenario, types: dict[int, int], each: int, ready: Any) -> dict[str, Any]:
    read = dict.fromkeys(types, 0)
    latencies, early = list[tuple[float, float]](), list[tuple[float, float]]()

    async def follow(subscriber: int, mine: Any, here: asyncio.Event, warm: asyncio.Event) -> float:
        last, before = time(), ROUNDS * ROUND * types[subscriber]
        wanted = each * types[subscriber]
        async for count, published, sooner in mine.follow(scenario, subscriber, here):
            now = time()
            latencies.extend((now, 1e3 * (now - at)) for at in published)
            early.extend((now, 1e3 * (now - at)) for at in sooner)
            if count - before != read[subscriber]:
                last = now
            read[subscriber] = count - before
            if count >= before:
                warm.set()
            if count - before >= wanted or now - last > GIVE_UP:
                break
        return last

    async with SIDES[side](url) as mine:
        began, warm = ([asyncio.Event() for _ in types] for _ in range(2))
        following = [asyncio.create_task(follow(at, mine, *told)) for at, *told in zip(types, began, warm, strict=True)]
        for events in (began, warm):
            for here in events:
                await here.wait()
            ready.put(os.getpid())
        before = process_time()
        ended = max(await asyncio.gather(*following))
        return {"read": read, "latencies": latencies, "early": early, "cpu_s": process_time() - before, "ended": ended}


def _cpu_of(pid: int | None) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
