"""A gateway in front of a log of its own, and somebody who asks."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from fairlead.transport.log.jetstream.server import Server
from fairlead.web.gateway import Settings
from fairlead.web.serving import gateway

TYPES = "TYPE A (k INT, x INT); TYPE B (k INT, x INT)"
RULES = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k"
SECONDS_MAX = 120
Answer = tuple[int, Any]


class Asker:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self.url = session, url

    async def ask(self, method: str, path: str, **more: Any) -> Answer:
        """Of a stream that opens, the status alone."""
        async with self.session.request(method, path, **more) as response:
            if response.status == 101 or response.content_type == "text/event-stream":
                return response.status, {}
            text = await response.text()
            is_json = response.content_type == "application/json" and text
            return response.status, json.loads(text) if is_json else text

    async def post(self, path: str, value: Any, **more: Any) -> Answer:
        return await self.ask("POST", path, json=value, **more)

    async def declare(self) -> None:
        assert await self.post("/types", {"text": TYPES}) == (200, {"types": ["A", "B"]})

    async def subscribe(self, name: str = "desk", rules: str = RULES, start: str = "earliest") -> None:
        status, _ = await self.post("/subscriptions", {"name": name, "rules": rules, "start": start})
        assert status == 201

    async def pairs(self, keys: range) -> None:
        """One relation of `RULES` for every key, in their order."""
        for name in "AB":
            status, _ = await self.post("/events", [{"type": name, "k": k, "x": 0} for k in keys])
            assert status == 202


@asynccontextmanager
async def asking(settings: Settings | None = None, url: str | None = None, **more: Any) -> AsyncIterator[Asker]:
    with tempfile.TemporaryDirectory(prefix="fairlead-web-") as folder, Server(folder, durable=False) as server:
        async with (
            gateway(url or server.url, settings or Settings()) as address,
            aiohttp.ClientSession(address, **more) as session,
        ):
            yield Asker(session, server.url)


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(work(), SECONDS_MAX))


class Event(dict[str, str]):
    """One server-sent event, by field."""

    @property
    def relation(self) -> Any:
        return json.loads(self["data"])


async def sse(response: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    """The events of a stream, until it ends."""
    found = Event()
    async for line in response.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name and value:
            found[name] = value
        elif found:
            if "data" in found:
                yield found
            found = Event()


async def some(response: aiohttp.ClientResponse, count: int) -> list[Event]:
    found = []
    async for each in sse(response):
        found.append(each)
        if len(found) == count:
            break
    return found
