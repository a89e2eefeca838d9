"""The end of a merged stream: everything that is stored now, also while its topics grow and one of them is copied late."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.errors import LogError
from fairlead.runtime.live import merged_streams
from fairlead.runtime.live.merged_streams import caught_up, end_of
from fairlead.transport.log.blocks.block import Block, rejected_block
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Stored, Stream
from tests.transport.log.logs import run
from tests.transport.log.test_logs import block


class Late(MemoryLog):
    """Merged streams copy the topic `a` at once, and the topic `b` when they are told."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[str, int, Block]] | None = []

    def _take(self, name: str, at: int, block: Block) -> Stored:
        if self.held is not None and name.startswith("FL_M_") and block.topic == "b":
            self.held.append((name, at, block))
            return Stored(0, at, block)
        return super()._take(name, at, block)

    def copy(self) -> None:
        held, self.held = self.held or [], None
        for each in held:
            self._take(*each)


async def two_topics(log: MemoryLog) -> Stream:
    stream = await log.open_topics(["a", "b"])
    for topic in ("a", "b"):
        await log.append(block("T", "s", 0, topic=topic), 0)
    return stream


@pytest.mark.parametrize("growth", [0, 1, 5])
def test_blocks_that_came_since_do_not_count_for_those_that_are_missing(growth: int) -> None:
    async def work() -> None:
        log = Late()
        stream = await two_topics(log)
        asked = [asyncio.create_task(each(log, stream, ["a", "b"])) for each in (end_of, caught_up)]
        await asyncio.sleep(0)
        after = 1
        for number in range(1, growth + 1):
            after = await log.append(block("T", "s", number, topic="a"), after)
        for _ in range(20):
            await asyncio.sleep(0)
        await asyncio.wait(asked, timeout=0.05)
        assert not any(each.done() for each in asked)
        log.copy()
        end, last = await asyncio.gather(*asked)
        assert end == last == await log.last(stream) == growth + 2

    run(work)


def test_a_stream_that_does_not_advance_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_streams, "BEHIND_SECONDS_MAX", 0.0)

    async def work() -> None:
        log = Late()
        with pytest.raises(LogError, match="N021"):
            await end_of(log, await two_topics(log), ["a", "b"])

    run(work)


class Junk(Late):
    """The last message of the topic `b` is no block."""

    async def last_of(self, topic: str, source: str | None, type: str | None = None) -> Stored | None:
        found = await super().last_of(topic, source, type)
        if topic == "b" and source is None and found is not None:
            return found._replace(block=rejected_block("D030", "fl.e.b.T.s.u.u.u.u"))
        return found


def test_a_message_that_is_no_block_hides_nothing() -> None:
    async def work() -> None:
        log = Junk()
        stream = await two_topics(log)
        asked = asyncio.create_task(end_of(log, stream, ["a", "b"]))
        await asyncio.wait([asked], timeout=0.05)
        assert not asked.done()
        log.copy()
        assert await asked == 2

    run(work)
