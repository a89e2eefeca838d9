"""Waiting for a state that nobody announces: a file of another process, an answer of a server, a process that ends.

Where there is an event, a line of output or a task, tests wait for that instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

SECONDS_MAX = 120.0
"""For a busy machine; no test needs it."""
LOOK_SECONDS = 0.01


def wait_until(holds: Callable[[], Any], seconds: float = SECONDS_MAX) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(LOOK_SECONDS)


async def until(holds: Callable[[], Any], seconds: float = SECONDS_MAX) -> None:
    """`holds` may be a coroutine function."""
    async with asyncio.timeout(seconds):
        while not (await found if isinstance(found := holds(), Awaitable) else found):
            await asyncio.sleep(LOOK_SECONDS)
