"""Leases end by the clock of the log, whatever the clocks of clients say."""

from __future__ import annotations

import re
from contextvars import copy_context
from random import Random

import pytest

from fairlead.runtime.live.merged_streams import LEASE_SECONDS, LEASE_SECONDS_MAX, TABLE, Lease, lease_value, needed, sweep
from fairlead.transport.clocks import CLOCKS, Clocks
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.names import merged_stream
from fairlead.transport.log.protocol import Log
from tests.source_trees import HOME, modules
from tests.transport.log.logs import KINDS, a_log, run
from tests.waiting import until

MINUTE, YEAR = 60.0, 365 * 86400.0
SKEWS = (0.0, MINUTE, -MINUTE, 10 * MINUTE, -10 * MINUTE, 86400.0, -86400.0, YEAR, -YEAR, 60 * YEAR, -60 * YEAR)


class SkewedClocks(Clocks):
    def __init__(self, skew: float) -> None:
        self._skew = skew

    def wall(self) -> float:
        return super().wall() + self._skew


@pytest.mark.parametrize("holder", SKEWS)
@pytest.mark.parametrize("sweeper", SKEWS)
def test_a_lease_is_in_use_until_the_time_of_the_log_has_passed_it(holder: float, sweeper: float) -> None:
    """Steps of a random length between renewals; another client asks, and sweeps, with a clock of its own."""
    rng, now, renewed = Random(f"{holder} {sweeper}"), 1_800_000_000.0, 0.0

    async def work() -> None:
        nonlocal now, renewed
        log = MemoryLog(clock=lambda: int(now * 1_000_000))
        await log.open_topics(["a", "b"])
        lease, name = Lease(log, [("a", "b")]), merged_stream("ab")
        for _ in range(30):
            now += rng.choice((1.0, 30.0, LEASE_SECONDS - 1, LEASE_SECONDS + 1, 3600.0))
            if rng.random() < 0.4:
                CLOCKS.set(SkewedClocks(holder))
                await lease._renew()
                await log.open_topics(["a", "b"])
                renewed = now
            CLOCKS.set(SkewedClocks(sweeper))
            in_use = now <= renewed + LEASE_SECONDS
            assert (name in await needed(log)) is in_use
            existed = name in {each.name for each in await log.merged()}
            assert (name in await sweep(log)) is (existed and not in_use)
            assert bool(await log.keys(TABLE)) is in_use

    copy_context().run(run, work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_tells_the_time_by_which_it_stores(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            before = await log.now(TABLE)
            await log.put(TABLE, "k", lease_value([("b", "a")], 120.0))
            entry, after = await log.get(TABLE, "k"), await log.now(TABLE)
            assert entry is not None
            assert before <= entry.time <= after
            assert await needed(log) == {merged_stream("ab")}

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_subscribers_that_came_and_went_leave_nothing(kind: str) -> None:
    """Also those that come again under a lease that they had given back."""

    async def work() -> None:
        async with a_log(kind) as log:
            leases = [Lease(log, [("a", "b")]) for _ in range(20)]
            for turn in range(2):
                for each in leases:
                    await each.take()
                assert len(await log.keys(TABLE)) == len(leases), turn
                assert await needed(log) == {merged_stream("ab")}
                for each in leases:
                    await each.give_back()
                assert await needed(log) == set()
            await until(lambda: is_empty(log))

    run(work)


async def is_empty(log: Log) -> bool:
    return not await log.keys(TABLE)


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        (lease_value([("a", "b")], 1e300), LEASE_SECONDS_MAX),
        (b'{"topics": [["a", "b"]], "until": 1e300}', LEASE_SECONDS_MAX),
        (b'{"topics": [["a", "b"]], "seconds": "x"}', 0.0),
        (b'{"topics": [["a", "b"]], "seconds": NaN}', 0.0),
        (b'{"topics": 7, "seconds": 120}', 0.0),
        (b'{"seconds": 120}', 0.0),
        (b"[]", 0.0),
        (b"\xff", 0.0),
        (b"", 0.0),
    ],
)
def test_a_strange_lease_ends_and_breaks_nobody(value: bytes, ends: float) -> None:
    now = 1_800_000_000.0

    async def work() -> None:
        nonlocal now
        log = MemoryLog(clock=lambda: int(now * 1_000_000))
        await log.put(TABLE, "k", value)
        now += 1.0
        assert bool(await needed(log)) is bool(ends)
        now += LEASE_SECONDS_MAX
        assert await needed(log) == set()
        await sweep(log)
        assert await log.keys(TABLE) == []

    run(work)


def test_only_heartbeats_and_simulated_actors_read_the_clock_of_a_client() -> None:
    """Outside of the tests that are shipped, nothing below the runtimes and the log asks for the time of day."""
    asking = re.compile(r"\.wall\(\)|time\.time\(|time_ns\(|datetime\.now\(|utcnow\(")
    rooms = ("runtime", "transport/log", "order", "deliver", "web")
    found = {
        path.relative_to(HOME).as_posix()
        for path in modules()
        if path.relative_to(HOME).as_posix().startswith(rooms) and asking.search(path.read_text("utf-8"))
    }
    assert found == {"runtime/live/publisher/publisher.py", "transport/log/memory_log.py"}
