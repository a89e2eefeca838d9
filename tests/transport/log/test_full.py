"""A store that is full refuses; when it is given more room, publishers and subscribers go on where they were."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import fairlead
from fairlead.errors import LogError
from fairlead.runtime.live.client import Client
from fairlead.testing.live.cluster.ports import free_ports
from fairlead.testing.live.verdict.log_copy import copied
from fairlead.transport.log.blocks.block import decode
from fairlead.transport.log.jetstream.server import Server
from tests.transport.log.logs import run

TYPES = "TYPE T (x INT, text STRING)"
RULES = "SUBSCRIPTION S MATCH T t"
EVENTS = 60


async def stored(fl: Client) -> None:
    while True:
        try:
            await fl.flush()
            return
        except LogError:
            await asyncio.sleep(0.1)  # the client finds the server again when it looks again


@pytest.mark.server
def test_a_store_that_was_full_goes_on_when_it_has_room(tmp_path: Path) -> None:
    async def work() -> None:
        server = Server(tmp_path, port=free_ports(1)[0], bytes_max=2_000_000).start()
        try:
            async with fairlead.connect(server.url, source="s") as fl:
                await fl.declare(TYPES)
                async with fl.subscribe(RULES, name="reader", start="earliest") as sub:
                    refused = []
                    for x in range(EVENTS):
                        await fl.publish("T", x=x, text="t" * 60_000)
                        try:
                            await fl.flush()
                        except LogError as error:
                            refused.append(error.code)
                            server.stop()
                            server.bytes_max = None
                            server.start()
                            await stored(fl)
                    assert refused == ["N004"]
                    got = [(await anext(sub.__aiter__())).members[0]["x"] for _ in range(EVENTS)]
                    assert got == list(range(EVENTS))
                blocks = (await copied(fl, [("main",)], 0)).topics["main"]
                catalogue = await fl.types()
                rows = [row["x"] for each in blocks for row in decode(each.block, catalogue["T"]).to_pylist()]
                assert rows == list(range(EVENTS))
        finally:
            server.stop()

    run(work)
