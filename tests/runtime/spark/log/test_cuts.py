"""Cuts of several topics are beginnings of their one order, and heartbeats complete them, but not for ever."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from fairlead.errors import LogError
from fairlead.order.merging import Merging
from fairlead.runtime.live.core.stream_merge import PULSE, pulse_after
from fairlead.runtime.spark.log.cuts import advance, certain_cut, complete_cut, limited_cut
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Stored, Stream
from tests.transport.log.logs import run
from tests.transport.log.test_logs import taken

TOPICS = ("b", "a", "Ä")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


async def store(log: MemoryLog, topic: str, source: str) -> None:
    """A heartbeat of a publisher: the smallest block."""
    last = await log.last_of(topic, source)
    block, after = pulse_after(last, topic), 0 if last is None else last.sequence
    await log.append(replace(block, source=source), after)


async def one_order(log: MemoryLog, streams: list[Stream]) -> list[tuple[str, int]]:
    """All blocks in the one order."""
    merging: Merging[Stored] = Merging([each.name for each in streams])
    found = []
    for stream in streams:
        if last := await log.last(stream):
            for each in await taken(log, stream, last):
                found += merging.push(stream.name, each.time, each.sequence, each)
    for stream in streams:
        found += merging.end(stream.name)
    return [(each.input, each.sequence) for each in found]


def beginning(order: list[tuple[str, int]], streams: list[Stream], cut: list[int]) -> bool:
    ends = {stream.name: end for stream, end in zip(streams, cut, strict=True)}
    inside = [sequence <= ends[name] for name, sequence in order]
    return inside == sorted(inside, reverse=True) and sum(inside) == sum(cut)


@pytest.mark.parametrize("seed", range(20))
def test_cuts_are_beginnings_of_the_one_order(seed: int) -> None:
    random, clock = Random(seed), Clock()

    async def work() -> None:
        log = MemoryLog(clock=clock)
        topics = TOPICS[: random.choice((2, 3))]
        streams = [await log.open_topics([each]) for each in topics]
        before = [0] * len(topics)
        for _ in range(random.choice((3, 30))):
            clock.now += random.choice((0, 0, 1, 5))
            await store(log, random.choice(topics), random.choice("pq"))
            if random.random() < 0.2:
                await advance(log, streams, topics, before)
            cut = await certain_cut(log, streams, topics)
            order = await one_order(log, streams)
            assert beginning(order, streams, cut)
            middle = await limited_cut(log, streams, before, [max(each) for each in zip(before, cut, strict=True)], 3)
            assert beginning(order, streams, list(middle))
            assert all(low <= at for low, at in zip(before, middle, strict=True))
            before = list(middle)
        wanted = [await log.last(each) for each in streams]
        sizes = [await log.last(each) for each in streams]
        while True:  # time goes on
            clock.now += 1
            found = await certain_cut(log, streams, topics)
            if not await advance(log, streams, topics, found):
                break
        last = await complete_cut(log, streams, topics)
        assert beginning(await one_order(log, streams), streams, last)
        missing = [name for name, end in zip(streams, last, strict=True) if end < wanted[streams.index(name)]]
        for stream in missing:  # nothing but heartbeats of readers
            blocks = await taken(log, stream, await log.last(stream))
            assert {each.block.source for each in blocks[last[streams.index(stream)] :]} == {PULSE}
        grown = [await log.last(each) for each in streams]
        assert all(0 <= after - size <= 3 for after, size in zip(grown, sizes, strict=True))
        assert not await advance(log, streams, topics, last)

    run(work)


def test_a_clock_that_was_set_back_is_said() -> None:
    clock = Clock()

    async def work() -> None:
        log = MemoryLog(clock=clock)
        streams = [await log.open_topics([each]) for each in ("a", "b")]
        await store(log, "a", "p")
        clock.now -= 500
        with pytest.raises(LogError, match="N025"):
            await complete_cut(log, streams, ("a", "b"), seconds_max=0.02)

    run(work)
