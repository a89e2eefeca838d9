"""A log of the first edition, with one stream per type, is copied to a log with topics. Here it is written in its layout."""

from __future__ import annotations

import asyncio
import json
import tempfile
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats
import pyarrow as pa
import pytest

import fairlead
from fairlead.errors import FairleadError, LogError
from fairlead.model.blobs import packed
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.log_conversion import convert, convert_log
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.numbered import Numbered
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.first_edition import FirstFileLog, first_block_of
from fairlead.transport.log.jetstream.log import connect
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Log
from tests.cli.shop import fairlead as command
from tests.runtime.live.reading import more, rows_of
from tests.transport.log.logs import run
from tests.transport.log.test_logs import taken

COLUMNS = {"A": {"k": pa.int32(), "n": pa.int32()}, "B": {"k": pa.int32(), "n": pa.int32()}, "Pair": {"k": pa.int32()}}
COLUMNS |= {"Heartbeat": {"at": pa.timestamp("us", tz="UTC")}}
TEXTS = {"A": "TYPE A (k INT, n INT)", "B": "TYPE B (k INT, n INT)", "Pair": "TYPE Pair (k INT)", "U": "EVENT UNION U = A + B"}
TYPES = [{"name": name, "text": text, "version": 1, "required": 2, "derived": name == "Pair"} for name, text in TEXTS.items()]
Written = tuple[str, str, int, list[int]]
"""Type, source, number and values of a block."""
WRITTEN: list[Written] = [
    ("B", "left", 0, [0, 1]),
    ("A", "left", 0, [2]),
    ("A", "right", 0, [0, 1, 2]),
    ("Heartbeat", "left", 0, [5]),
    ("Heartbeat", "=pulse", 0, [0]),
    ("B", "left", 1, [3]),
    ("Pair", "d-1", 0, [7]),
    ("B", "left", 1, [3]),  # once more, after a lost answer
    ("A", "left", 1, [4, 5]),
    ("A", "right", 1, [3]),
]
LEFT = [("B", 0), ("B", 1), ("A", 2), ("B", 3), ("A", 4), ("A", 5)]


def payload(name: str, values: list[int]) -> bytes:
    return packed(pa.record_batch([pa.array(values, each) for each in COLUMNS[name].values()], names=list(COLUMNS[name])))


def before(name: str, source: str, number: int) -> int:
    """The number of the first event of a block."""
    return sum(
        len(each[3]) for each in {each[:3]: each for each in WRITTEN if each[:2] == (name, source)}.values() if each[2] < number
    )


def written_to_folder(folder: Path) -> None:
    """The journal of the first edition."""
    folder.mkdir()

    def line(record: dict[str, Any], value: bytes = b"") -> bytes:
        return json.dumps(record | {"length": len(value), "check": zlib.crc32(value)}).encode() + b"\n" + value

    with (folder / "journal").open("wb") as journal:
        for each in TYPES:
            journal.write(line({"do": "stream", "name": f"FL_T_{each['name']}", "sources": []}))
            journal.write(line({"do": "set", "table": "FL_TYPES", "key": each["name"]}, json.dumps(each).encode()))
        journal.write(line({"do": "stream", "name": "FL_T_Heartbeat", "sources": []}))
        for at, (name, source, number, values) in enumerate(WRITTEN):
            told = {"type": name, "source": source, "number": number, "sequence": before(name, source, number)}
            told |= {"count": len(values), "schema": "s", "writer": "w", "marks": "y0 n-1 u0 u0" if number else ""}
            journal.write(line({"do": "append", "at": 1000 + at, "block": told}, payload(name, values)))
        journal.write(line({"do": "set", "table": "FL_SUBS", "key": "desk"}, b'{"groups": {}}'))


async def written_to_server(url: str) -> None:
    client = await nats.connect(url)
    js = client.jetstream()
    table = await js.create_key_value(bucket="FL_TYPES")
    for each in TYPES:
        await table.put(str(each["name"]), json.dumps(each).encode())
    for name in COLUMNS:
        await js.add_stream(name=f"FL_T_{name}", subjects=[f"fl.t.{name}.>"])
    for name, source, number, values in WRITTEN:
        letters = ".y.n.u.u" if number else ".u.u.u.u" if name == "A" else ""  # the earliest blocks had none
        headers = {"Fl-Type": name, "Fl-Source": source, "Fl-Number": str(number), "Fl-Count": str(len(values))}
        headers |= {"Fl-Sequence": str(before(name, source, number)), "Fl-Schema": "s", "Fl-Writer": "w"}
        headers |= {"Fl-Marks": "y0 n-1 u0 u0"} if number else {}
        await js.publish(f"fl.t.{name}.{source}{letters}", payload(name, values), headers=headers)
    await js.publish("fl.t.A.stranger", b"hello")
    await client.close()


KINDS = ("file", pytest.param("server", marks=pytest.mark.server))


@asynccontextmanager
async def first_log(kind: str) -> AsyncIterator[tuple[str, Log]]:
    """A log of the first edition: its address, and as it is read."""
    with tempfile.TemporaryDirectory(prefix="fairlead-log-") as folder:
        if kind == "file":
            written_to_folder(Path(folder) / "old")
            log = FirstFileLog(Path(folder) / "old")
            try:
                yield f"file:{folder}/old", log
            finally:
                await log.close()
        else:
            with Server(folder, durable=False) as server:
                await written_to_server(server.url)
                connected = await connect(server.url, Credentials(), 1, first_block_of)
                yield server.url, connected
                await connected.close()


async def order_of(log: Log, topic: str) -> list[tuple[str, str, int, int]]:
    stream = await log.open_topics([topic])
    blocks = [each.block for each in await taken(log, stream, await log.last(stream))]
    return [(each.type, each.source, each.number, each.sequence) for each in blocks]


@pytest.mark.parametrize("kind", KINDS)
def test_events_keep_their_order_and_publishers_their_numbers(kind: str) -> None:
    async def work() -> None:
        async with first_log(kind) as (_, old):
            new = MemoryLog()
            assert (await convert(old, new)).events == {"A": 7, "B": 3}
            found = await order_of(new, "main")
            wanted = [(*each[:3], before(*each[:3])) for each in dict.fromkeys((one[0], one[1], one[2]) for one in WRITTEN)]
            assert found == [each for each in wanted if each[0] != "Pair" and each[1] != "=pulse"]
            await convert(old, new)
            assert await order_of(new, "main") == found
            registry = Registry(new)
            await registry.refresh()
            assert [each.name for each in registry.catalogue] == ["A", "B", "U"]
            assert await new.keys("FL_SUBS") == []
            assert await Numbered(new, "main", "A", "right", 1).next() == 4

    run(work)


class Gone(Exception):
    pass


class Ending:
    """A log that goes away after some blocks."""

    def __init__(self, log: Log, left: int) -> None:
        self._log, self._left = log, left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, block: Block, after: int) -> int:
        self._left -= 1
        if self._left < 0:
            raise Gone
        return await self._log.append(block, after)


@pytest.mark.parametrize("done", range(8))
def test_an_interrupted_conversion_is_repeated(done: int) -> None:
    async def work() -> None:
        async with first_log("file") as (_, old):
            new, whole = MemoryLog(), MemoryLog()
            await old.remove("FL_TYPES", "U")  # a union has one topic
            with pytest.raises(Gone):
                await convert(old, Ending(new, done), "TOPIC other (B)")  # type: ignore[arg-type]
            assert await new.keys("FL_TYPES") == []
            for each in (new, whole):
                await convert(old, each, "TOPIC other (B)")
            for topic in ("main", "other"):
                assert await order_of(new, topic) == await order_of(whole, topic)
            assert [each[:2] for each in await order_of(whole, "other")] == [
                ("B", "left"),
                ("Heartbeat", "left"),
                ("B", "left"),
            ]

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_by_the_command_and_then_as_any_log(kind: str, tmp_path: Path) -> None:
    target = f"file:{tmp_path / 'new'}"

    async def converting() -> None:
        async with first_log(kind) as (url, old):
            await old.close()
            if kind == "file":
                with pytest.raises(LogError, match="N013"):
                    await fairlead.connect(url).__aenter__()
            else:
                async with fairlead.connect(url) as fl:
                    with pytest.raises(LogError, match="N013") as error:
                        await fl.types()
                    assert "fairlead convert" in str(error.value)
            done = await asyncio.to_thread(command, "convert", "--from", url, "--url", target)
            assert (done.exit_code, done.output) == (0, SHOWN), done.output
            with pytest.raises(LogError, match="N014"):
                await convert_log(target, f"file:{tmp_path / 'again'}")

    async def using() -> None:
        async with fairlead.connect(target, source="left") as fl:
            got = await left_of(fl)
            assert got == LEFT
            await fl.publish("B", k=6, n=6)
            await fl.publish("A", k=7, n=7, wait=True)
            assert await left_of(fl) == [*LEFT, ("B", 6), ("A", 7)]
            assert [each["n"] for each in await rows_of(fl, "B")] == [0, 1, 3, 6]

    run(converting)
    run(using)


SHOWN = """converted:
             7  A (topic main)
             3  B (topic main)
"""


async def left_of(fl: Client) -> list[tuple[str, int]]:
    """The events of one source, in the order of a subscriber."""
    found = []
    async with fl.subscribe("SUBSCRIPTION S MATCH U u", start="earliest") as sub:
        for relation in await more(sub):
            (event,) = relation.events
            found.append((event.type, event["n"]))
    right = [("A", n) for n in range(4)]
    for each in right:
        found.remove(each)
    return found


@pytest.mark.parametrize("taken_out", [0, 1])
def test_a_gap_is_said(taken_out: int) -> None:
    """Blocks that were lost are not passed over."""

    async def work() -> None:
        async with first_log("file") as (_, old):
            held = old._streams["FL_T_B"]  # type: ignore[attr-defined]
            del held[taken_out]
            if taken_out:
                del held[-1]  # its repeat
                held.append(held[0]._replace(sequence=2, block=replace(held[0].block, number=5)))
            with pytest.raises(FairleadError, match=r"S120|N020"):
                await convert(old, MemoryLog())

    run(work)
