"""A server stores and sends any bytes as subject and headers of a message. Who may publish may write them, and harms nobody:
every reader skips the same messages and goes on, and those who listen meanwhile keep their connection.

The matrix: who writes (through an import, or in the account of the streams) × subjects × headers × who reads × how.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nats.aio.client import Client as Nats

from fairlead.runtime.live.client import Client
from fairlead.transport.log.jetstream.predecessor import read_headers
from fairlead.transport.log.protocol import Stored
from tests.runtime.live.reading import ids, rows_of, some
from tests.runtime.rights.served import AC, A, connected, js_of, merged, raw, served
from tests.transport.log.logs import run

pytestmark = pytest.mark.server

SUBJECT = b"fl.e.a.A.shop."
LETTERS = b"u.u.u.u"
ENDS = (
    LETTERS,
    *(bytes((each,)) for each in (0x00, 0x01, 0x0B, 0x0C, 0x1C, 0x22, 0x24, 0x27, 0x5C, 0x7B, 0x7F, 0x80, 0x85, 0xC3, 0xFF)),
    "ä".encode(),
    "\u2028".encode(),
    b"\xed\xa0\x80",
    b"u.u.u.\xff",
    b"x" * 3000,
    b".".join([b"x"] * 1000),
)
STATUSES = (
    b"100 Idle Heartbeat",
    b"204 EOB",
    b"404 Message Not Found",
    b"408",
    b"409 Consumer Deleted",
    b"503",
    b"\xff\xff\xff",
)
ANSWER = b"Nats-Stream: FL_TOPIC_a\r\nNats-Subject: fl.e.a.A.boss.u.u.u.u\r\nNats-Sequence: 1\r\nNats-Time-Stamp: ?\r\n"
HEADERS = (
    b"",
    b"abc",
    b"NATS/1.0",
    b"NATS/1.0\r\n",
    b"NATS/1.0\r\n\r\n",
    b"NATS/1.0 ",
    b"\r\n\r\n",
    b"\x00\x00\x00\x00",
    b"NATS/1.0\nA: b\n\n",
    b"NATS/1.0\r\n:\r\n\r\n",
    b"NATS/1.0\r\nA\r\n\r\n",
    b"NATS/1.0\r\n\xff\xfe: \xff\r\n\r\n",
    b"NATS/1.0\r\nFl-Topic: \xff\r\nFl-Type: A\r\n\r\n",
    b"NATS/1.0\r\nStatus: 503\r\n\r\n",
    b"NATS/1.0\r\nStatus: 204\r\nNats-Num-Pending: 7\r\nNats-Last-Sequence: 7\r\n\r\n",
    b"NATS/1.0\r\n" + ANSWER + b"\r\n",
    b"NATS/1.0\r\n" + ANSWER + ANSWER + b"Nats-Num-Pending: x\r\nNats-Last-Sequence: y\r\n\r\n",
    *(b"NATS/1.0 " + each + b"\r\n\r\n" for each in STATUSES),
    *(b"NATS/1.0 " + each + b"\r\nNats-Last-Sequence: 3\r\n\r\n" for each in STATUSES),
)
"""Not a single byte: by that, nats-server 2.15.1 ends if it comes from the account of the streams (not through an import)."""
MESSAGES = [*((end, b"") for end in ENDS), *((end, HEADERS[12]) for end in ENDS), *((LETTERS, each) for each in HEADERS)]
WAYS = ("a",), ("a", "c")


async def write(client: Nats, messages: Sequence[tuple[bytes, bytes]]) -> None:
    """As bytes of the protocol: the client itself would refuse them."""
    for end, headers in messages:
        sizes = b"%d %d" % (len(headers), len(headers) + 1) if headers else b"1"
        line = (b"HPUB " if headers else b"PUB ") + SUBJECT + end + b" " + sizes
        client._transport.write(line + b"\r\n" + headers + b"x\r\n")  # type: ignore[union-attr]
    await client.flush()


async def seen(client: Client, topics: Sequence[str], last: int) -> list[tuple[int, int, str, int]]:
    found: list[Stored] = []
    async with asyncio.timeout(60), aclosing(client.log.read(await client.log.open_topics(topics), 0)) as reading:
        async for some in reading:
            found += some
            if found[-1].sequence >= last:
                break
    return [(each.sequence, each.time, each.block.rejected, each.block.number) for each in found]


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["shop", "boss"], ids=["through an import", "in the account of the streams"])
def test_nobody_ends_a_reader(writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "SUBSCRIPTION S MATCH A a"

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (url, boss), AsyncExitStack() as held:
            desk = await held.enter_async_context(connected(url, "desk"))
            listening = [
                await held.enter_async_context(each.subscribe(rules, start="earliest"))
                for each in (boss, desk)
                for _ in range(2)
            ]
            start = datetime.now(UTC)
            async with raw(url, writer) as client:
                await write(client, MESSAGES)
            await boss.publish("A", k=99, wait=True)
            for each in listening:
                assert [one.events[0]["k"] for one in await some(each, 3)] == [0, 2, 99]
            await merged(js_of(boss))
            for topics in WAYS:
                last = (await js_of(boss).stream_info(A if len(topics) == 1 else AC)).state.last_seq
                found = []
                for user in ("boss", "desk"):
                    async with connected(url, user) as again:
                        found.append(await seen(again, topics, last))
                assert found[0] == found[1]
                assert len(found[0]) == len(MESSAGES) + (3 if len(topics) == 1 else 4)
                assert sum(not each[2] for each in found[0]) == (3 if len(topics) == 1 else 4)
            for user in ("boss", "desk"):
                async with connected(url, user) as again:
                    assert [each["k"] for each in await rows_of(again, "A")] == [0, 2, 99]
                    async with again.subscribe(rules, start=start) as sub:
                        assert len(ids(await some(sub, 1))) == 1

    run(work)


def test_headers_are_read_whatever_they_are() -> None:
    source = random.Random(7)
    for _ in range(20_000):
        found = read_headers(bytes(source.choice(b"NATS/1.0\r\n :aA\x00\xff\xc3") for _ in range(source.randrange(40))))
        assert all(isinstance(each, str) and each.encode() for part in found.items() for each in part if each)
