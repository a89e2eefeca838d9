"""Strangers who may publish under the subject of an honest source, by any program: what they store is skipped by every kind of
reader alike, and the honest publisher goes on.

A matrix: kinds of forgery × kinds of readers. Every forgery stands between honest events, in each topic.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nats
import pyarrow.parquet as pq
import pytest
from nats.js import JetStreamContext

import fairlead
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.subscriber.stream_reader import blocks_between
from fairlead.transport.log.blocks.block import NUMBER_MAX
from fairlead.transport.log.jetstream.server import Server
from tests.runtime.live.reading import more
from tests.transport.log.logs import run

pytestmark = pytest.mark.server
EVERY = ("A", "B", "C", "D")
DECLARED = "; ".join(f"TYPE {name} (k INT, s STRING, at TIMESTAMP) TIME at" for name in EVERY)
TYPES = f"TOPIC a (A, B); TOPIC b (C); TOPIC c (D); {DECLARED}"
TOPIC = {"A": "a", "B": "a", "C": "b", "D": "c"}
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
Headers = dict[str, str]


def with_number(number: int) -> Callable[[Headers], Headers]:
    return lambda told: told | {"Fl-Number": str(number), "Fl-Sequence": str(number)}


def with_lines(lines: str, **first: str) -> Callable[[Headers], Headers]:
    """Headers that begin so, followed by lines as they are written here; `@` is the topic."""

    def forge(told: Headers) -> Headers:
        made = told | {name.replace("_", "-"): each for name, each in first.items()} | {"X": f"y\r\n{lines}"}
        return {name: each.replace("@", told["Fl-Topic"]) for name, each in made.items()}

    return forge


OTHERS, OWN = f"{EXPECTED}-Subject: fl.e.@.*.nobody.>", f"{EXPECTED}-Subject: fl.e.@.*.honest.>"
FORGERIES: dict[str, Callable[[Headers], Headers]] = {
    "the next number": lambda told: with_number(int(told["Fl-Number"]) + 1)(told),
    "a gap": with_number(1_000_000),
    "a number again": with_number(0),
    "the largest number": with_number(NUMBER_MAX - 1),
    "a copy": lambda told: told,
    "the id of the next block": lambda told: told | {"Nats-Msg-Id": f"honest:{told['Fl-Type']}:{int(told['Fl-Number']) + 1}"},
    "an id for all": lambda told: told | {"Nats-Msg-Id": "mine"},
    "no writer": lambda told: {name: each for name, each in told.items() if name != "Fl-Writer"},
    "another writer": lambda told: told | {"Fl-Writer": "stranger"},
    "no block": lambda told: {},
    "two subjects": with_lines(f"{EXPECTED}: 0\r\n{OTHERS}\r\n{OWN}"),
    "two numbers": with_lines(f"{EXPECTED}: 0\r\n{OTHERS}\r\n{EXPECTED}: 1\r\n{OWN}"),
    "a subject in other letters": with_lines(f"{EXPECTED}: 0\r\n{OTHERS}\r\n{OWN.upper()}"),
    "spaces after the names": with_lines(f"{EXPECTED} : 0\r\n{OWN.replace(':', ' :', 1)}"),
    "spaces before the names": with_lines(f" {EXPECTED}: 0\r\n {OWN}"),
    "tabs": with_lines(f"{EXPECTED}\t: 0\r\n{OWN.replace(':', chr(9) + ':', 1)}"),
    "further lines": with_lines(f"{EXPECTED}: 0\r\n{OTHERS}\r\n \r\n{OWN}"),
}


async def stranger(js: JetStreamContext, forge: Callable[[Headers], Headers], name: str) -> bool:
    """Stores a forgery of the last honest block of a type, in its source, without a condition. Whether it was stored: a server
    drops a message whose id was used some milliseconds before."""
    last = await js.get_last_msg(f"FL_TOPIC_{TOPIC[name]}", f"fl.e.{TOPIC[name]}.{name}.honest.>")
    told = {key: each for key, each in (last.headers or {}).items() if not key.startswith("Nats-")}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nats.aio.client._HEADER_VALUE_NEWLINES", {})  # lines as they are
        answer = await js.publish(last.subject or "", (last.data or b"").replace(b"honest", b"forged"), headers=forge(told))
    return not answer.duplicate


async def publish(fl: Client, number: int) -> None:
    for name in EVERY:
        await fl.publish(name, k=number, s="honest", at=f"2026-01-01T00:00:{number:02}Z", wait=True)


def keys(relations: list[Relation]) -> list[tuple[int, ...]]:
    assert all(event["s"] == "honest" for each in relations for event in each.events)
    return [tuple(event["k"] for event in each.events) for each in relations]


async def by_rules(fl: Client, rules: str, **options: Any) -> list[tuple[int, ...]]:
    async with fl.subscribe(rules, **options) as sub:
        found = await more(sub)
        if options.get("name"):
            await sub.ack()
        return keys(found)


def alone(rules: str, **options: Any) -> Callable[[Client, Path, int], Awaitable[list[int]]]:
    async def read(fl: Client, folder: Path, first: int) -> list[int]:
        return [each[0] for each in await by_rules(fl, rules, **({"start": "earliest"} | options))]

    return read


async def of_export(fl: Client, folder: Path, first: int) -> list[int]:
    await fl.export("SUBSCRIPTION S MATCH A a", folder / "a.parquet")
    return list(pq.read_table(folder / "a.parquet")["k"].to_pylist())


async def of_merged_export(fl: Client, folder: Path, first: int) -> list[int]:
    await fl.export("SUBSCRIPTION S MATCH A a AND C c AND D d", folder / "m.parquet")
    found = pq.read_table(folder / "m.parquet").to_pylist()
    assert {each["s"] for each in found if each["type"] in EVERY} == {"honest"}
    return [each["k"] for each in found if each["type"] == "A"]


async def of_ranges(fl: Client, folder: Path, first: int) -> list[int]:
    """As tasks of Spark read: each a range of the stream, from anywhere."""
    stream = await fl.log.open_topics(["a"])
    last, found = await fl.log.last(stream), []
    for after in range(0, last, 3):
        async for some in blocks_between(fl.log, stream, after, min(after + 3, last)):
            found += [k for each in some if each.block.type == "A" for k in each.block.batch.column("k").to_pylist()]
    return found


async def in_order(fl: Client, folder: Path, first: int) -> list[int]:
    """The last events are held back: none has passed them."""
    rules = "ORDER BY at DELAY 0 SECONDS SUBSCRIPTION S MATCH A a AND C c WHERE a.k = c.k"
    found = [each[0] for each in await by_rules(fl, rules, start="earliest")]
    return [*found, len(FORGERIES)] if found == list(range(len(FORGERIES))) else found


READERS: dict[str, Callable[[Client, Path, int], Awaitable[list[int]]]] = {
    "of a type": alone("SUBSCRIPTION S MATCH A a"),
    "of several types": alone("SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k"),
    "of a route": alone("SUBSCRIPTION S MATCH A a WHERE a.s = 'honest' OR a.s = 'forged'", name="route"),
    "of a merged stream": alone("SUBSCRIPTION S MATCH A a AND C c WHERE a.k = c.k"),
    "of three topics": alone("SUBSCRIPTION S MATCH A a AND C c AND D d WHERE a.k = c.k AND c.k = d.k"),
    "of several streams": alone("SUBSCRIPTION S MATCH (A a AND B b) OR (C c AND D d) WHERE a.k = b.k AND c.k > d.k + 1000"),
    "in an order by value": in_order,
    "of an export": of_export,
    "of a merged export": of_merged_export,
    "of ranges": of_ranges,
}


async def late(fl: Client, first: int, rules: str) -> list[int]:
    """From the position of a block after the first forgery."""
    return [each[0] for each in await by_rules(fl, rules, start=first)]


def test_every_reader_skips_every_forgery(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "fairlead")

    async def work() -> None:
        with Server(tmp_path / "log", durable=False) as server:
            async with fairlead.connect(server.url, source="honest") as fl:
                await fl.declare(TYPES)
                rules = "SUBSCRIPTION S MATCH A a AND C c WHERE a.k = c.k"
                client = await nats.connect(server.url)
                js = client.jetstream()
                early = await fl.subscribe(rules, name="early", start="earliest").__aenter__()
                await publish(fl, 0)
                middle, stored = 0, list[str]()
                for number, forge in enumerate(FORGERIES.values(), 1):
                    stored += [TOPIC[name] for name in EVERY if await stranger(js, forge, name)]
                    if number == 3:
                        middle = await fl.log.last(await fl.log.open_topics(["a"])) + 1
                    await publish(fl, number)
                honest = list(range(len(FORGERIES) + 1))
                for name, read in READERS.items():
                    assert (name, sorted(await read(fl, tmp_path, 0))) == (name, honest)
                assert [each[0] for each in keys(await more(early))] == honest
                assert early.rejected.keys() == {"D030", "D037"}
                assert early.rejected["D030"] == 2
                lines = {each.topic: each for each in (await fl.overview()).topics}
                counts = {"D030": 2, "D037": stored.count("a") - 2}  # of A and of B
                assert (lines["a"].rejections.counts, lines["a"].rejected) == (counts, stored.count("a"))
                assert {each.source for each in lines["a"].rejections.last} == {"honest"}
                assert (await fl.overview()).topics == tuple(lines.values())
                await early.ack()
                await early.__aexit__(None, None, None)
                assert await late(fl, middle << 12, "SUBSCRIPTION S MATCH A a") == honest[3:]
                async with fairlead.connect(server.url, source="honest") as again:  # a new process under the same name
                    for name in EVERY:
                        await stranger(js, FORGERIES["the largest number"], name)
                    await publish(again, len(honest))
                    assert await by_rules(again, rules, name="early") == [(len(honest), len(honest))]
                    assert await by_rules(again, rules, start="snapshot") == []
                    sequences = [(await again.log.last_block_of(topic, "honest")).block.sequence for topic in "bc"]  # type: ignore[union-attr]
                    assert sequences == [len(honest)] * 2
                await client.close()

    run(work)
