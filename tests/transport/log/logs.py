"""Logs of each kind for the tests: in memory, in a file, in a server of their own."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.file_log import FileLog
from fairlead.transport.log.jetstream.log import connect
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Log

SECONDS_MAX = 120
URLS = ("memory:", pytest.param(None, marks=pytest.mark.server))
"""For `connect`: a log in memory, and one of a server of its own."""
KINDS = ("memory", "file", pytest.param("server", marks=pytest.mark.server))
"""For `a_log`."""


@asynccontextmanager
async def a_log(kind: str) -> AsyncIterator[Log]:
    with tempfile.TemporaryDirectory(prefix="fairlead-log-") as folder:
        if kind == "memory":
            yield MemoryLog()
        elif kind == "file":
            log = FileLog(folder)
            yield log
            await log.close()
        else:
            with Server(folder, durable=False) as server:
                connected = await connect(server.url, Credentials(), 1)
                yield connected
                await connected.close()


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """A coroutine to its end, within a time that no test needs. Fails if a task has an error that nobody asks for."""
    unheard: list[str] = []

    async def watched() -> Any:
        asyncio.get_running_loop().set_exception_handler(note)
        return await asyncio.wait_for(work(), SECONDS_MAX)

    def note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "never retrieved" in context["message"]:
            unheard.append(f"{context['message']}: {context.get('future') or context.get('task')}")
        loop.default_exception_handler(context)

    result = asyncio.run(watched())
    gc.collect(1)
    assert not unheard, unheard
    return result
