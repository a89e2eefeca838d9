"""The states from which durable subscribers resume stay when a log is trimmed, whoever saves others at the same time."""

from __future__ import annotations

import asyncio
import random
from unittest import mock

import pytest

import fairlead
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.runtime.live.resume_points import ResumePoints, resume_points
from fairlead.runtime.live.subscriber.snapshots import STORE, Snapshots, SnapshotWriter, snapshot_list, state_name
from fairlead.transport.log.blocks.block_filter import ROUTES
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.trims import TrimmedHead, TrimRecord, note_record, note_trimmed
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
                for again in (False, True, True):
                    points = await resume_points(log, {})
                    if await points.hold(log, again=again):
                        held = points
                        break

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
        for steps, again, wanted in (
            ((listed[0], listed[2]), False, ((listed[0], listed[2]), ())),
            ((listed[1],), False, ((listed[1],), (listed[0], listed[2]))),  # somebody may have joined there
            ((listed[3],), True, ((listed[1], listed[3]), (listed[0], listed[2]))),
            ((listed[1],), False, ((listed[1],), (listed[3],))),
        ):
            assert await ResumePoints({}, {key: steps}).hold(log, again=again)
            told = await snapshot_list(log, key)
            assert (told.held, told.aged) == wanted

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


@pytest.mark.parametrize(("begun", "left"), [(begun, left) for begun in range(5) for left in range(begun, 6)])
def test_who_joins_a_lineage_whose_beginning_was_trimmed_begins_anew(begun: int, left: int) -> None:
    """Without a saved state, a lineage reads again from its origin. If one block of that is gone, it cannot be joined: the next
    one begins later, not at the same place at every attempt. Seed 10131206 of the simulator."""

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            for turn in range(5):
                await fl.publish("A", k=turn, x=0, wait=True)
            await trim(fl, begun)
            with mock.patch.object(SnapshotWriter, "end"):
                async with fl.subscribe(RULES, start="snapshot"):
                    pass  # decides where the leading lineage begins
            await trim(fl, left)
            async with fl.subscribe(RULES, name="desk", start="snapshot") as sub:
                await fl.publish("A", k=9, x=0, wait=True)
                await fl.publish("B", k=9, x=0, wait=True)
                assert [each.events[0]["k"] for each in await some(sub, 1)] == [9]

    run(work)


async def trim(fl: Client, blocks: int) -> None:
    """The first blocks of the one topic, which are of one source."""
    stream = await fl.log.open_topics(["main"])
    for number in range(blocks):
        head = TrimmedHead("A", number, number, 1, "", number + 1, 1, (number + 1,) * ROUTES)
        await note_trimmed(fl.log, stream.name, fl.source, {"A": head})
    await note_record(fl.log, stream.name, TrimRecord(first=blocks + 1))
    await fl.log.trim(stream, blocks + 1)
