"""An event loop in its own thread, for callers without asyncio: the synchronous client, the processes of Spark.

Takes: coroutines. Gives: their results, once available. Never: leaves a task or a thread running.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Self, TypeVar

from fairlead.transport.log.tasks import ended

Answer = TypeVar("Answer")


class LoopThread:
    """`seconds_max`: how long a call, or the end of the thread, may take; None: no limit."""

    def __init__(self, name: str, seconds_max: float | None = None) -> None:
        self._name, self._seconds_max = name, seconds_max
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    def start(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()
        return self

    def call(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run it in the thread, and wait. If the wait is interrupted (by Ctrl-C, for instance), the work ends too."""
        if self._loop is None:
            work.close()
            raise RuntimeError("the event loop is not running")
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result(self._seconds_max)
        except BaseException:
            waiting.cancel()
            raise

    def stop(self) -> None:
        """Ends as `asyncio.run` does: remaining tasks are cancelled first. Stopping twice is harmless."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        with suppress(Exception):
            self.call(_rest_ended())
        self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join(self._seconds_max)
        if not thread.is_alive():
            loop.close()


async def _rest_ended() -> None:
    await ended(*(asyncio.all_tasks() - {asyncio.current_task()}))
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
