"""Readers of one process read a stream together, and each gets every block behind its place, once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.errors import LogError
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Stored, Stream
from fairlead.transport.log.shared_reader import Sharing, Window
from tests.marks import sample_size
from tests.transport.log.logs import run
from tests.waiting import until

SIZE = 100


class Counted(MemoryLog):
    """A log that knows how many blocks it has given out, and how many read it now."""

    def __init__(self) -> None:
        super().__init__()
        self.given = self.reading = self.begun = 0
        self.fails_at: int | None = None

    async def fill(self, count: int) -> None:
        before = len(self._streams["FL_TOPIC_A"]) if "FL_TOPIC_A" in self._streams else 0
        await self.open_topics(["A"])
        for number in range(before, before + count):
            await self.append(Block("A", "s", number, number, 1, "", bytes(SIZE), topic="A"), number)

    async def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        self.reading += 1
        self.begun += 1
        try:
            async with aclosing(super().read(stream, after, only)) as blocks:  # type: ignore[type-var]
                async for some in blocks:
                    if self.fails_at is not None and some[-1].sequence >= self.fails_at:
                        raise LogError("N001", "the server does not answer", "start it")
                    self.given += len(some)
                    yield some
        finally:
            self.reading -= 1


async def taken(shared: Sharing, stream: Stream, after: int, until: int, pauses: Iterator[float]) -> list[int]:
    found: list[int] = []
    async with aclosing(shared.read(stream, after)) as reading:
        async for some in reading:
            found += [each.sequence for each in some]
            if found[-1] >= until:
                return found
            await asyncio.sleep(next(pauses, 0.0))  # a slow reader
    return found


def test_a_stream_is_read_once_for_all_who_read_it() -> None:
    async def work() -> None:
        log = Counted()
        await log.fill(300)
        shared, stream = Sharing(log), await log.open_topics(["A"])
        each = await asyncio.gather(*(taken(shared, stream, 0, 300, iter(())) for _ in range(10)))
        assert each == [list(range(1, 301))] * 10
        assert (log.given, log.begun, log.reading) == (300, 1, 0)
        assert not shared._readings

    run(work)


@settings(max_examples=sample_size(60), deadline=None)
@given(data=st.data())
def test_whoever_comes_when_and_however_slow_gets_every_block_once(data: Any) -> None:
    """Windows of a few blocks, so that readers are left behind, begin anew and find each other again all the time."""
    readers = data.draw(
        st.lists(
            st.tuples(
                st.integers(0, 60),
                st.floats(0, 0.01),
                st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.001, 0.004]), max_size=12),
            ),
            min_size=1,
            max_size=6,
        )
    )
    fills = data.draw(st.lists(st.tuples(st.integers(1, 20), st.sampled_from([0.0, 0.001])), min_size=1, max_size=8))
    unread, kept = data.draw(st.sampled_from([(150, 0), (350, 250), (2000, 500), (10**6, 10**6)]))

    async def work() -> None:
        log = Counted()
        await log.fill(60)
        shared, stream = Sharing(log, Window(unread, kept, 0.002)), await log.open_topics(["A"])
        end = 60 + sum(count for count, _ in fills)

        async def reader(after: int, late: float, pauses: list[float]) -> list[int]:
            await asyncio.sleep(late)  # one who comes later
            return await taken(shared, stream, after, end, iter(pauses))

        tasks = [asyncio.create_task(reader(*each)) for each in readers]
        for count, pause in fills:
            await log.fill(count)
            await asyncio.sleep(pause)  # a slow writer
        for (after, _, _), found in zip(readers, await asyncio.gather(*tasks), strict=True):
            assert found == list(range(after + 1, end + 1))
        assert log.reading == 0
        assert not shared._readings

    run(work)


def test_one_who_has_stopped_does_not_hold_the_others_up_and_goes_on_where_it_was() -> None:
    async def work() -> None:
        log = Counted()
        await log.fill(5)
        shared, stream = Sharing(log, Window(20 * SIZE, 5 * SIZE, 0.05)), await log.open_topics(["A"])
        stopped = shared.read(stream, 0)
        assert [each.sequence for each in await anext(stopped)] == [1, 2, 3, 4, 5]
        quick = asyncio.create_task(taken(shared, stream, 0, 205, iter(())))
        for _ in range(20):
            await log.fill(10)
            await asyncio.sleep(0.01)  # within which the quick one reads, and after some of which the other one is slow
        assert await quick == list(range(1, 206))
        found: list[int] = []
        while not found or found[-1] < 205:
            found += [each.sequence for each in await anext(stopped)]
        assert found == list(range(6, 206))
        assert log.begun == 2
        await stopped.aclose()
        assert log.reading == 0

    run(work)


def test_readings_that_come_to_the_same_place_become_one() -> None:
    async def work() -> None:
        log = Counted()
        await log.fill(100)
        shared, stream = Sharing(log), await log.open_topics(["A"])
        at_end, from_start = shared.read(stream, 100), shared.read(stream, 0)
        waiting = asyncio.create_task(anext(at_end))
        await asyncio.sleep(0)  # it begins to wait
        assert [each.sequence for each in await anext(from_start)] == list(range(1, 101))
        assert log.reading == 2
        more = asyncio.create_task(anext(from_start))
        await until(lambda: log.reading == 1)
        await log.fill(1)
        assert [each.sequence for each in await waiting] == [101]
        assert [each.sequence for each in await more] == [101]
        await from_start.aclose()
        await at_end.aclose()
        assert log.reading == 0

    run(work)


def test_a_failure_is_told_to_all_after_what_came_before_and_later_readers_begin_anew() -> None:
    async def work() -> None:
        log = Counted()
        await log.fill(10)
        shared, stream = Sharing(log), await log.open_topics(["A"])
        readings = [shared.read(stream, 0) for _ in range(3)]
        for each in readings:
            assert len(await anext(each)) == 10
        log.fails_at = 11
        await log.fill(1)
        for each in readings:
            with pytest.raises(LogError, match="N001"):
                await anext(each)
        log.fails_at = None
        assert await taken(shared, stream, 5, 11, iter(())) == list(range(6, 12))
        assert log.reading == 0

    run(work)


def test_those_who_want_different_blocks_do_not_share() -> None:
    async def work() -> None:
        log = Counted()
        await log.fill(3)
        shared, stream = Sharing(log), await log.open_topics(["A"])
        all_of_it, some = shared.read(stream, 0), shared.read(stream, 0, Only(("B",), {}))
        assert len(await anext(all_of_it)) == 3
        nothing = asyncio.create_task(anext(some))
        await until(lambda: log.reading == 2)
        await asyncio.sleep(0.01)  # nothing comes, which no event marks
        assert not nothing.done()
        nothing.cancel()
        await asyncio.gather(nothing, return_exceptions=True)
        await all_of_it.aclose()
        await some.aclose()
        assert log.reading == 0

    run(work)
