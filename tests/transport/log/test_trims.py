"""Trimmed streams: what is left keeps its places, readers behind it are told, and numbers go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_store import stored_once
from fairlead.transport.log.file_log import FileLog
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.names import topic_stream
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Log, Stored, Stream, Trimmed, Unavailable
from fairlead.transport.log.trims import TrimmedHead, add_heads, note_trimmed, trimmed_heads
from tests.transport.log.logs import KINDS, a_log, run
from tests.transport.log.test_logs import block, taken


async def filled(log: Log, count: int) -> Stream:
    """A topic with blocks of t, s, s, t, s, s …"""
    stream = await log.open_topics(["A"])
    last, numbers = {"s": 0, "t": 0}, {"s": 0, "t": 0}
    for at in range(count):
        source = "s" if at % 3 else "t"
        last[source] = await log.append(block("A", source, numbers[source]), last[source])
        numbers[source] += 1
    return stream


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_keeps_its_places(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            stream = await filled(log, 12)
            await log.trim(stream, 8)
            state = await log.state(stream)
            assert (state.first, state.last) == (8, 12)
            assert [each.sequence for each in await taken(log, stream, 5, after=7)] == [8, 9, 10, 11, 12]
            for after in (0, 6):
                with pytest.raises(Trimmed) as told:
                    await taken(log, stream, 1, after=after)
                assert (told.value.after, told.value.first) == (after, 8)
            later = await log.open_topics(["A", "C"])
            found = await taken(log, later, 5)
            assert [each.block.number for each in found] == [each.block.number for each in await taken(log, stream, 5, after=7)]
            assert [each.sequence for each in found] == [1, 2, 3, 4, 5]

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_of_which_nothing_is_left_goes_on(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            stream = await filled(log, 6)
            await log.trim(stream, 7)
            state = await log.state(stream)
            assert (state.first, state.last, await log.last(stream)) == (7, 6, 6)
            assert await log.last_of("A", "s") is None
            assert await log.append(block("A", "s", 4), 0) == 7
            assert [each.sequence for each in await taken(log, stream, 1, after=6)] == [7]

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_block_of_a_source_is_known_when_it_is_gone(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as raw:
            log = PatientLog(raw, 10.0)
            stream = await filled(log, 6)
            heads = [each async for some in log.heads(stream, 0, 4) for each in some]
            assert [(each.sequence, each.block.payload) for each in heads] == [(at, b"") for at in (1, 2, 3, 4)]
            found_heads: dict[str, dict[str, TrimmedHead]] = {}
            add_heads(found_heads, heads)
            for source, found in found_heads.items():
                await note_trimmed(log, stream.name, source, found)
            await log.trim(stream, 5)
            assert (await trimmed_heads(log, stream.name, "t"))["A"].number == 1
            gone, kept = await log.last_block_of("A", "t"), await log.last_block_of("A", "s", "A")
            assert gone is not None
            assert (gone.sequence, gone.block.number, gone.block.type) == (0, 1, "A")
            assert kept is not None
            assert (kept.sequence, kept.block.number) == (6, 3)
            assert await log.last_block_of("A", "nobody") is None
            assert await log.last_block_of("A", "t", "B") is None
            assert await log.append(block("A", "t", 2), gone.sequence) == 7

    run(work)


def test_a_journal_is_trimmed_again_when_it_is_read(tmp_path: Path) -> None:
    async def work() -> None:
        log = FileLog(tmp_path / "log")
        stream = await filled(log, 6)
        await log.trim(stream, 4)
        await log.close()
        again = FileLog(tmp_path / "log")
        assert (await again.state(stream)).first == 4
        assert [each.sequence for each in await taken(again, stream, 3, after=3)] == [4, 5, 6]
        await again.close()

    run(work)


@pytest.mark.server
def test_a_reader_that_has_not_caught_up_is_told_when_the_stream_is_trimmed_under_it() -> None:
    async def work() -> None:
        async with a_log("server") as log:
            stream, last = await log.open_topics(["A"]), 0
            for number in range(1_500):
                last = await log.append(block("A", "s", number), last)
            seen = list[int]()

            async def read_on() -> None:
                async for some in log.read(stream, 0):
                    if not seen:
                        await log.trim(stream, 1_499)
                    seen.extend(each.sequence for each in some)

            with pytest.raises(Trimmed) as told:
                await read_on()
            assert seen == list(range(1, told.value.after + 1))
            assert (told.value.first, len(seen) < 1_498) == (1_499, True)

    run(work)


class Unanswering(MemoryLog):
    """Does not answer the first append; what it stores is trimmed before that is sent again."""

    asked = False

    async def append(self, block: Block, after: int) -> int:
        sequence = await super().append(block, after)
        if not self.asked:
            self.asked = True
            await note_trimmed(
                self, topic_stream(block.topic), block.source, heads_of(self._streams[topic_stream(block.topic)])
            )
            self._trim(topic_stream(block.topic), sequence + 1)
            raise Unavailable("no answer")
        return sequence


def heads_of(blocks: list[Stored]) -> dict[str, TrimmedHead]:
    found: dict[str, dict[str, TrimmedHead]] = {}
    add_heads(found, blocks)
    return found["s"]


def test_a_first_block_is_not_stored_again_if_it_was_trimmed_before_it_was_confirmed() -> None:
    async def work() -> None:
        log = Unanswering()
        patient = PatientLog(log, 5.0)
        stream = await log.open_topics(["A"])
        await stored_once(patient, block("A", "s", 0), 0, 5.0)
        assert (await log.state(stream)).last == 1
        await stored_once(patient, block("A", "s", 1), 0, 5.0)
        assert [each.block.number for each in await taken(log, stream, 1, after=1)] == [1]

    run(work)


@pytest.mark.parametrize("ours", [False, True])
def test_a_block_is_looked_for_in_what_trimming_has_left(ours: bool) -> None:
    """Before the first one that is left there was none of this source. Seed 7002997 of the simulator."""

    async def work() -> None:
        log = MemoryLog()
        patient, stream = PatientLog(log, 5.0), await log.open_topics(["A"])
        await log.append(block("A", "another", 0), 0)
        await log.trim(stream, 2)
        mine = replace(block("A", "s", 0), writer="mine")
        theirs = replace(block("A", "s", 1 if ours else 0), writer="theirs")
        at = await log.append(mine, 0) if ours else 0
        await log.append(theirs, at)
        found = await stored_once(patient, mine, 0, 5.0)
        assert (found.sequence, found.block.writer) == (2, "mine" if ours else "theirs")

    run(work)
