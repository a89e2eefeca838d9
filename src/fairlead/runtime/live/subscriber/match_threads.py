"""Matches of one client that may take long, in threads: those that begin together take turns in one thread.

Python runs one thread at a time. Several that match at once hinder each other, and the event loop: each waits for its turn
after every step into a library, and what one has in the processor's cache the next replaces. So

    1. works that are given in one round of the event loop are a queue, and one thread does them, one after the other
    2. if it is still at the same work after a while, another thread continues with the rest of the queue

The threads are those of these works alone: searches that do not end keep no thread from what else a process does beside its
event loop. A gateway has some for each of its users, so that the rules of one do not take those of another.

Takes: works without arguments. Gives: a future for the result of each. Never: lets a work wait for one that does not end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

LONG_SECONDS = 0.05
"""A batch takes some milliseconds."""
THREADS_MAX = 32
"""Threads are made when they are needed: as many as there are long works at once."""
Result = TypeVar("Result")
Work = tuple[Callable[[], Any], asyncio.Future[Any]]


class MatchThreads:
    """`long_seconds`: after which another thread continues with the rest. `most`: works at once; others wait."""

    def __init__(self, long_seconds: float = LONG_SECONDS, most: int = THREADS_MAX) -> None:
        self._long_seconds = long_seconds
        self._threads = ThreadPoolExecutor(most, "fairlead-match")
        self._given: deque[Work] = deque()

    def run(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Do this work in a thread, after those that are given before it in the same round."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._given.append((work, future))
        if len(self._given) == 1:
            loop.call_soon(self._begin, loop)
        return future

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        queue, self._given = self._given, deque()
        self._send(loop, queue)  # 1

    def _send(self, loop: asyncio.AbstractEventLoop, queue: deque[Work]) -> None:
        done = loop.run_in_executor(self._threads, _do, loop, queue)
        if queue:
            look = loop.call_later(self._long_seconds, self._look, loop, queue, len(queue), done)
            done.add_done_callback(lambda _: look.cancel())

    def _look(self, loop: asyncio.AbstractEventLoop, queue: deque[Work], before: int, done: asyncio.Future[None]) -> None:
        if len(queue) < before:
            look = loop.call_later(self._long_seconds, self._look, loop, queue, len(queue), done)
            done.add_done_callback(lambda _: look.cancel())
            return
        rest: deque[Work] = deque()
        while (work := _next(queue)) is not None:
            rest.append(work)
        if rest:
            self._send(loop, rest)  # 2


def _next(queue: deque[Work]) -> Work | None:
    """The next work of a queue, which other threads take from, too."""
    try:
        return queue.popleft()
    except IndexError:
        return None


def _do(loop: asyncio.AbstractEventLoop, queue: deque[Work]) -> None:
    while (work := _next(queue)) is not None:
        function, future = work
        try:
            result, error = function(), None
        except BaseException as raised:
            result, error = None, raised
        loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
