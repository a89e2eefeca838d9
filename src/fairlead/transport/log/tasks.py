"""Cancellation of tasks, and errors that nobody waits for."""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_SECONDS = 0.2


def unreported(task: asyncio.Future[Any]) -> None:
    """Python reports an error that nobody has asked for as a mistake. That of this task is none: its caller has
    left, or has an error of the same cause."""
    task.add_done_callback(lambda each: each.cancelled() or each.exception())


async def ended(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel them until they have ended: Python 3.11 loses a cancellation that meets the end of a `wait_for`, which libraries
    use."""
    waiting = [each for each in tasks if each is not None]
    while waiting := [each for each in waiting if not each.done()]:
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting, timeout=AGAIN_SECONDS)
