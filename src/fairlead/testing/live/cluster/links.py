"""Links between servers, and from clients to servers, that can be cut: each is a small proxy, so no privileges are needed.

    open      bytes are passed on
    refused   connections are closed, and new ones as soon as they are made
    silent    connections stay, and nothing passes; bytes that were sent arrive when the link is open again

Takes: target ports. Gives: ports of the proxies. Never: changes or drops a byte of a connection that stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Literal, Self, TypeVar

from fairlead.transport.threads.loop_thread import LoopThread

Way = Literal["open", "refused", "silent"]
End = int | str
"""A server by its number, a client by its name."""
Result = TypeVar("Result")
SECONDS_MAX = 10.0
CHUNK = 65_536


class ServerLink:
    """One direction in which connections are made; bytes go both ways."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._way: Way = "open"
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ends: set[asyncio.StreamWriter] = set()

    async def open(self) -> int:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def become(self, way: Way) -> None:
        self._way = way
        if way == "silent":
            self._flowing.clear()
        else:
            self._flowing.set()
        if way == "refused":
            for each in list(self._ends):
                each.transport.abort()

    async def close(self) -> None:
        self._server.close()
        await self.become("refused")

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        onward: asyncio.StreamWriter | None = None
        try:
            await self._flowing.wait()
            if self._way == "open":
                back, onward = await asyncio.open_connection("127.0.0.1", self._target)
                self._ends.add(onward)
                await asyncio.gather(self._pump(reader, onward), self._pump(back, writer))
        except (OSError, asyncio.CancelledError):
            pass  # one side is gone, and so is the other; or all links are ending
        finally:
            for each in (writer, onward):
                if each is not None:
                    self._ends.discard(each)
                    each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await reader.read(CHUNK):
            await self._flowing.wait()
            writer.write(some)
            await writer.drain()
        raise ConnectionError("closed")


class Links:
    """All links of a cluster, in their own thread: work elsewhere does not delay them."""

    def __init__(self) -> None:
        self._thread = LoopThread("fairlead-links", SECONDS_MAX)
        self._do = self._thread.call
        self._links: dict[tuple[End, End], ServerLink] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(TimeoutError):
            self._do(self._closed())
        self._thread.stop()

    def between(self, one: End, other: int, target: int) -> int:
        """The port at which `one` finds `other`, which listens at `target`."""

        async def opened() -> int:
            link = self._links[one, other] = ServerLink(target)
            return await link.open()

        return self._do(opened())

    def turn(self, pairs: Iterable[tuple[End, End]], way: Way) -> None:
        """Each pair in the directions in which it makes connections: servers in both."""

        async def turned() -> None:
            for one, other in pairs:
                for key in {(one, other), (other, one)} & self._links.keys():
                    await self._links[key].become(way)

        self._do(turned())

    async def _closed(self) -> None:
        for each in self._links.values():
            await each.close()
