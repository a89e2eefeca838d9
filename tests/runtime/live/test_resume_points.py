"""The states from which durable subscribers resume stay when a log is trimmed, whoever saves others at the same time."""

from __future__ import annotations

import asyncio
import random

import pytest

import fairlead
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.runtime.live.resume_points import ResumePoints, resume_points
from fairlead.runtime.live.subscriber.snapshots import STORE, Snapshots, snapshot_list, state_name
from fairlead.transport.log.memory_log import MemoryLog
from tests.marks import sample_size
from tests.runtime.live.reading import RULES, TYPES, some
from tests.runtime.live.subscriber.test_record import opened
from tests.runtime.live.subscriber.test_snapshots import Waiting
from tests.transport.log.logs import run

KEY = "g0"


@pytest.mark.parametrize("seed", range(sample_size(60)))
def test_a_state_that_is_held_stays_although_others_are_saved(seed: int) -> None:
    """Also by somebody who read the list, and what is trimmed, before it was marked. Seed 9073511 of the simulator."""

    async def work() -> None:
        rolls = random.Random(seed)
        log, (group,) = Waiting(rolls), groups_of(fairlead.compile(TYPES + RULES))
        record = await opened(log, 1)
        record.groups[KEY] |= {"count": rolls.randint(0, 5), "digest": None}
        await record.write()
        held = ResumePoints({}, {})

        async def saves() -> None:
            for steps in range(1, 40):
                if rolls.random() < 0.7:
                    await Snapshots(log, group, KEY, (0,), emits=False).keep(steps, steps // 3, b"state")

        async def trims() -> None:
            nonlocal held
            for _ in range(rolls.randint(1, 4)):
                await asyncio.sleep(0)
                for _ in range(rolls.randrange(200)):
                    await asyncio.sleep(0)
                points = await resume_points(log, {})
                if await points.hold(log):
                    held = points

        async with asyncio.TaskGroup() as several:
            for work in (saves, saves, saves, trims):
                several.create_task(work())
        log.behind = 0
        there = {*await log.objects(STORE)}
        for key, steps in held.held.items():
            assert {*steps} <= dict((await snapshot_list(log, key)).snapshots).keys()
            assert {state_name(key, each) for each in steps} <= there

    run(work)


def test_a_state_that_is_gone_is_not_held() -> None:
    async def work() -> None:
        log, (group,) = MemoryLog(), groups_of(fairlead.compile(TYPES + RULES))
        for steps in range(1, 12):
            await Snapshots(log, group, KEY, (0,), emits=False).keep(steps, steps, b"state")
        (key,) = await log.keys("FL_LINEAGES")
        listed = [each for each, _ in (await snapshot_list(log, key)).snapshots]
        gone = next(each for each in range(1, 12) if each not in listed)
        assert not await ResumePoints({}, {key: (gone,)}).hold(log)
        assert await ResumePoints({}, {key: (listed[0], listed[2])}).hold(log)
        assert (await snapshot_list(log, key)).held == (listed[0], listed[2])
        assert await ResumePoints({}, {key: (listed[1],)}).hold(log)
        assert (await snapshot_list(log, key)).held == (listed[1], listed[2])  # somebody may have joined there

    run(work)


def test_who_joins_a_lineage_of_several_streams_holds_its_state() -> None:
    """One of the streams can be trimmed further than another, so a state is not as good as any other with fewer steps."""

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(
                "TOPIC left (A) TOPIC right (B) TYPE A (k INT, at TIMESTAMP) TIME at TYPE B (k INT, at TIMESTAMP) TIME at"
            )
            for turn in range(3):
                for name in "AB":
                    await fl.publish(name, k=turn, at="2026-01-01T00:00:00Z", wait=True)
            rules = "ORDER BY at DELAY 1 SECOND\n" + RULES
            fl._shared.times.every_events = 1
            async with fl.subscribe(rules, name="desk", start="earliest") as sub:
                await fl.publish("A", k=9, at="2026-01-01T00:01:00Z", wait=True)
                assert len(await some(sub, 3)) == 3
            async with fl.subscribe(rules, name="other", start="snapshot"):
                pass
            held = [(await snapshot_list(fl.log, key)).held for key in await fl.log.keys("FL_LINEAGES")]
            assert [len(each) for each in held] == [1]

    run(work)
