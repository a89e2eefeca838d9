"""A reader without consumers gives what a reader with them gives: the same blocks, times, rejections and errors."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.api import StreamConfig

from fairlead.errors import LogError
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.direct_reader import subject_pattern
from fairlead.transport.log.jetstream.log import JetStreamLog, connect
from fairlead.transport.log.jetstream.predecessor import PRESENT
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.protocol import Stored, Stream, Trimmed
from tests.transport.log.logs import run

pytestmark = pytest.mark.server
FORGED: tuple[dict[str, str], ...] = (
    {},
    {"Nats-Sequence": "1", "Nats-Subject": "fl.e.a.A.boss.u.u.u.u", "Nats-Stream": "FL_TOPIC_b"},
    {"Nats-Time-Stamp": "2020-01-01T00:00:00Z", "Nats-Num-Pending": "0", "Nats-Last-Sequence": "9"},
    {"Status": "204", "Description": "EOB"},
    {"Status": "404"},
    {"Nats-Stream": "x\r\nNats-Subject: y\r\nNats-Sequence: 1\r\nNats-Time-Stamp: 2020-01-01T00:00:00Z"},
    {"Nats-Expected-Last-Subject-Sequence": "0"},
)
"""Headers that a server gives its answers, from a sender."""


def block(number: int, topic: str, type: str, source: str) -> Block:
    return Block(type, source, number, number, 1, "s", b"x" * random.Random(number).randrange(2000), topic=topic)


class TwoReaders:
    """Two connections to one server: one makes consumers, the other is not allowed to."""

    def __init__(self, by_consumer: JetStreamLog, directly: JetStreamLog) -> None:
        self.by_consumer, self.directly = by_consumer, directly

    def forbid(self, stream: Stream) -> None:
        self.directly._readers.direct |= {stream.name, "FL_TOPIC_a", "FL_TOPIC_b"}

    async def read(self, stream: Stream, after: int, count: int, only: Only | None = None) -> list[Stored]:
        """What both give, which is the same."""
        self.forbid(stream)
        one, two = [await some(log, stream, after, count, only) for log in (self.by_consumer, self.directly)]
        assert one == two
        return one


async def some(log: JetStreamLog, stream: Stream, after: int, count: int, only: Only | None = None) -> list[Stored]:
    found: list[Stored] = []
    async with aclosing(log.read(stream, after, only)) as reading:  # type: ignore[type-var]
        while len(found) < count:
            found += await anext(reading)
    return found


def with_readers(folder: Path, work: Any) -> None:
    async def all_of_it() -> None:
        with Server(folder, durable=False) as server:
            logs = [await connect(server.url, Credentials(), 1) for _ in range(2)]
            try:
                await work(TwoReaders(*logs), server.url)
            finally:
                for each in logs:
                    await each.close()

    run(all_of_it)


async def fill(log: JetStreamLog, url: str, seed: int, count: int) -> dict[str, int]:
    """Blocks of two topics, and messages that are none, or say that they are something else. By topic, how many."""
    draw, client = random.Random(seed), await nats.connect(url)
    last: dict[tuple[str, str], tuple[int, int]] = {}
    stored = {"a": 0, "b": 0}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nats.aio.client._HEADER_VALUE_NEWLINES", {})  # lines as they are
        for _ in range(count):
            topic, source = draw.choice("ab"), draw.choice(("one", "two"))
            number, after = last.get((topic, source), (0, 0))
            made = block(number, topic, f"T{topic}", source)
            subject = f"fl.e.{topic}.T{topic}.{source}.u.u.u.u"
            if draw.random() < 0.5:
                sequence = await log.append(made, after)
                number += 1
            else:
                told = made.headers() | PRESENT.condition(made, after) | draw.choice(FORGED) if draw.random() < 0.7 else {}
                data = draw.choice((b"", b"x", made.payload))
                try:
                    sequence = (await client.jetstream().publish(subject, data, headers=told or None)).seq
                except nats.js.errors.APIError:
                    continue
                number += 1
            last[topic, source] = number, sequence
            stored[topic] += 1
    await client.close()
    return stored


@pytest.mark.parametrize("seed", range(4))
def test_both_readers_give_the_same(seed: int, tmp_path: Path) -> None:
    """Of a topic and of a merged stream, from several places, all blocks and some types."""

    async def work(readers: TwoReaders, url: str) -> None:
        log = readers.by_consumer
        streams = {"a": await log.open_topics("a"), "b": await log.open_topics("b"), "ab": await log.open_topics(["a", "b"])}
        stored = await fill(log, url, seed, 120)
        for name, stream in streams.items():
            count = sum(stored[each] for each in name)
            whole = await readers.read(stream, 0, count)
            assert [each.sequence for each in whole] == list(range(1, count + 1))
            assert {True, False} == {bool(each.block.rejected) for each in whole}
            await readers.read(stream, count // 2, count - count // 2)
            wanted = [each for each in whole if f".T{name[-1]}." in f".{each.block.type}.{each.block.writer}."]
            await readers.read(stream, 0, len(wanted), Only((f"T{name[-1]}",)))
            for each in (whole[0], whole[count // 2]):
                times = [await one.before(stream, each.time) for one in (log, readers.directly)]
                assert times[0] == times[1]
            times = [await one.before(stream, whole[-1].time + 1_000_000_000) for one in (log, readers.directly)]
            assert times == [count, count]

    with_readers(tmp_path, work)


@pytest.mark.parametrize("announced", [True, False])
def test_a_new_block_is_read_at_once_or_soon(announced: bool, tmp_path: Path) -> None:
    """Streams of earlier releases are not announced."""

    async def work(readers: TwoReaders, url: str) -> None:
        if not announced:
            client = await nats.connect(url)
            await client.jetstream().add_stream(StreamConfig("FL_TOPIC_a", subjects=["fl.e.a.>"], allow_direct=True))
            await client.close()
        stream = await readers.by_consumer.open_topics("a")
        readers.forbid(stream)
        after = 0
        async with aclosing(readers.directly.read(stream, 0)) as reading:  # type: ignore[type-var]
            for number in range(5):
                waiting = asyncio.ensure_future(anext(reading))
                after = await readers.by_consumer.append(block(number, "a", "A", "s"), after)
                assert [each.sequence for each in await waiting] == [after]

    with_readers(tmp_path, work)


def test_a_trimmed_stream_is_noticed(tmp_path: Path) -> None:
    async def work(readers: TwoReaders, url: str) -> None:
        log, after = readers.by_consumer, 0
        stream = await log.open_topics("a")
        readers.forbid(stream)
        for number in range(9):
            after = await log.append(block(number, "a", "A", "s"), after)
        async with aclosing(readers.directly.read(stream, 0)) as reading:  # type: ignore[type-var]
            assert len(await anext(reading)) == 9
            await log.append(block(9, "a", "A", "s"), after)
            await log.trim(stream, 5)
            assert [each.sequence for each in await anext(reading)] == [10]  # it has read all that is gone
        for place in (0, 3):
            with pytest.raises(Trimmed) as found:
                await some(readers.directly, stream, place, 1)
            assert (found.value.after, found.value.first) == (place, 5)
        assert [each.sequence for each in await readers.read(stream, 4, 6)] == [5, 6, 7, 8, 9, 10]

    with_readers(tmp_path, work)


@pytest.mark.parametrize("blocks", [0, 2, 20])
def test_a_stream_that_was_made_anew_is_noticed(blocks: int, tmp_path: Path) -> None:
    """Between two requests of a reader, with fewer blocks than it has read, or more."""

    async def work(readers: TwoReaders, url: str) -> None:
        log, after = readers.by_consumer, 0
        stream = await log.open_topics("a")
        readers.forbid(stream)
        for number in range(9):
            after = await log.append(block(number, "a", "A", "s"), after)
        async with aclosing(readers.directly.read(stream, 0)) as reading:  # type: ignore[type-var]
            assert len(await anext(reading)) == 9
            await log.remove_stream(stream)
            log._opened.clear()
            await log.open_topics("a")
            after = 0
            for number in range(blocks):
                after = await log.append(block(number, "a", "A", "s"), after)
            with pytest.raises(LogError, match="N022"):
                await anext(reading)

    with_readers(tmp_path, work)


def test_removed_blocks_are_noticed(tmp_path: Path) -> None:
    async def work(readers: TwoReaders, url: str) -> None:
        client = await nats.connect(url)
        js = client.jetstream()
        await js.add_stream(StreamConfig("FL_TOPIC_a", subjects=["fl.e.a.>"], allow_direct=True))  # ours would deny it
        log, after = readers.by_consumer, 0
        stream = await log.open_topics("a")
        readers.forbid(stream)
        for number in range(9):
            after = await log.append(block(number, "a", "A", "s"), after)
        await js.delete_msg(stream.name, 5)
        await client.close()
        for one in (readers.directly, log):
            with pytest.raises(LogError, match="N020"):
                await some(one, stream, 0, 9)

    with_readers(tmp_path, work)


@pytest.mark.parametrize(
    ("subjects", "wanted", "others"),
    [
        (["fl.e.*.A.>"], ["fl.e.a.A.s.u.u.u.u", "fl.e.b.A.=e.x.u"], ["fl.e.a.AA.s.u", "fl.e.a.A", "fl.e.a.b.A.s"]),
        (["a.*", "b.>"], ["a.x", "b.x.y"], ["a.x.y", "a", "b", "c.x"]),
        (["a+.x"], ["a+.x"], ["aa.x"]),
    ],
)
def test_subjects_are_filtered_as_a_server_does(subjects: Sequence[str], wanted: list[str], others: list[str]) -> None:
    pattern = subject_pattern(subjects)
    assert [each for each in (*wanted, *others) if pattern.fullmatch(each)] == wanted
