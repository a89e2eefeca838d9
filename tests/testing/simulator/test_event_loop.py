"""The simulated event loop: time jumps, nodes crash without cleanup, pause and resume, and a seed decides between nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead.testing.simulator.live.event_loop import SimulatedLoop, SimulatedNode
from fairlead.transport.clocks import clocks

Noted = list[tuple[str, object]]


async def counting(name: str, noted: Noted) -> None:
    try:
        for number in range(4):
            await asyncio.sleep(1.0)  # simulated
            noted.append((name, number))
    finally:
        noted.append((name, "cleanup"))
        await asyncio.sleep(1.0)  # simulated


def simulated(loop: SimulatedLoop, work: Any) -> Noted:
    """What was noted until the end of the run."""
    noted: Noted = []

    async def run() -> Noted:
        await work(loop, noted)
        return list(noted)

    return loop.simulate(run())  # type: ignore[no-any-return]


def test_a_crashed_node_does_nothing_more_not_even_cleanup() -> None:
    async def work(loop: SimulatedLoop, noted: Noted) -> None:
        node = SimulatedNode("one", loop)
        node.start(counting("one", noted))
        node.trap = (5, node.crash)
        await asyncio.sleep(10.0)  # simulated

    assert simulated(SimulatedLoop(1), work) == [("one", 0), ("one", 1)]


def test_a_paused_node_continues_later() -> None:
    async def work(loop: SimulatedLoop, noted: Noted) -> None:
        node = SimulatedNode("one", loop)
        node.start(counting("one", noted))
        await asyncio.sleep(1.5)  # simulated
        node.paused = True
        await asyncio.sleep(100.0)  # simulated
        noted.append(("resumed", loop.time()))
        node.paused = False
        await asyncio.sleep(10.0)  # simulated

    found = [("one", 0), ("resumed", 101.5), ("one", 1), ("one", 2), ("one", 3), ("one", "cleanup")]
    assert simulated(SimulatedLoop(1), work) == found


def test_a_seed_decides_whose_turn_it_is() -> None:
    async def work(loop: SimulatedLoop, noted: Noted) -> None:
        for name in ("one", "two"):
            SimulatedNode(name, loop).start(counting(name, noted))
        await asyncio.sleep(10.0)  # simulated

    runs = [tuple(simulated(SimulatedLoop(seed), work)) for seed in range(8)]
    assert runs == [tuple(simulated(SimulatedLoop(seed), work)) for seed in range(8)]
    assert len(set(runs)) > 1


def test_every_node_has_clocks_of_its_own() -> None:
    async def told(noted: Noted) -> None:
        noted.append((str(clocks().process), clocks().wall() - clocks().monotonic()))

    async def work(loop: SimulatedLoop, noted: Noted) -> None:
        one, other = SimulatedNode("one", loop), SimulatedNode("other", loop)
        other.skew = 60.0
        await one.start(told(noted))
        await other.start(told(noted))

    (_, first), (_, second) = simulated(SimulatedLoop(1), work)
    assert isinstance(first, float)
    assert second == first + 60.0


@pytest.mark.parametrize("waits", [True, False])
def test_a_run_that_cannot_end_does(waits: bool) -> None:
    async def work(loop: SimulatedLoop, noted: Noted) -> None:
        while True:
            await (asyncio.Event().wait() if waits else asyncio.sleep(0))

    loop = SimulatedLoop(1, steps_max=1000)
    assert simulated(loop, work) is None
    assert loop.trouble == ["nothing is left to do" if waits else "1,000 steps do not end"]


def test_nothing_is_left_of_generators_threads_and_tasks() -> None:
    async def endless() -> AsyncIterator[int]:
        while True:
            await asyncio.sleep(1.0)  # simulated
            yield 1

    async def reading(noted: Noted) -> None:
        async for each in endless():
            noted.append(("read", each))

    async def work(loop: SimulatedLoop, noted: Noted) -> None:
        SimulatedNode("one", loop).start(reading(noted))
        noted.append(("thread", await asyncio.to_thread(lambda: 5)))
        await asyncio.sleep(2.5)  # simulated

    assert simulated(SimulatedLoop(1), work) == [("thread", 5), ("read", 1), ("read", 1)]
