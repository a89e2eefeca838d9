"""A connection lasts: what is used of nats-py beyond its public interface, tried on a server that goes and comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.connection import connected
from fairlead.transport.log.jetstream.server import Server

ATTEMPTS = 4
"""More than the first connection may take (1)."""


@pytest.mark.server
def test_who_was_let_in_once_waits_for_the_server_to_come_back(tmp_path: Path) -> None:
    failed: list[Exception] = []
    enough, back = asyncio.Event(), asyncio.Event()

    async def note(error: Exception) -> None:
        failed.append(error)
        if len(failed) >= ATTEMPTS:
            enough.set()

    async def reconnected() -> None:
        back.set()

    async def work() -> None:
        with Server(tmp_path, durable=False) as server:
            client = await connected(server.url, Credentials(), note, reconnected)
            assert client.options["max_reconnect_attempts"] == -1
            server.port = int(server.url.rpartition(":")[2])
            server.stop()
            async with asyncio.timeout(60):
                await enough.wait()
                assert not client.is_closed
                server.start()
                await back.wait()
            assert client.is_connected
            await client.close()

    asyncio.run(work())
