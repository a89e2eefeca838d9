"""Errors that nobody waits for any more are not reported as mistakes: neither of a reading nor of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from fairlead.errors import LogError
from fairlead.transport.log.jetstream.failures import Refusals
from fairlead.transport.log.jetstream.merged_reader import unless_failed
from tests.transport.log.logs import run

Waiting = Callable[[Awaitable[int]], Awaitable[int]]


async def heeded(wanted: Awaitable[int]) -> int:
    async def asked() -> int:
        return await wanted

    return await Refusals().heeded(asked(), "subject")


async def alone(wanted: Awaitable[int]) -> int:
    return await unless_failed(wanted, asyncio.get_running_loop().create_future())


async def failing(closed: asyncio.Event) -> int:
    """The connection is closed; or the reading is cancelled, and its end fails."""
    with suppress(asyncio.CancelledError):
        await closed.wait()
    raise LogError("N001", "closed", "connect")


def test_a_task_that_fails_unheard_fails_a_test() -> None:
    async def work() -> None:
        task = asyncio.create_task(failing(asyncio.Event()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    with pytest.raises(AssertionError, match="never retrieved"):
        run(work)


def test_a_reading_and_its_topic_fail_together() -> None:
    async def work() -> None:
        closed, failed = asyncio.Event(), asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(unless_failed(failing(closed), failed))
        await asyncio.sleep(0)
        closed.set()
        failed.set_exception(LogError("N001", "the topic", "connect"))
        with pytest.raises(LogError, match="the topic"):
            await waiting

    run(work)


@pytest.mark.parametrize("way", [heeded, alone])
@pytest.mark.parametrize("closes", [False, True])
def test_who_waits_leaves_while_it_fails(way: Waiting, closes: bool) -> None:
    async def work() -> None:
        closed = asyncio.Event()
        waiting = asyncio.ensure_future(way(failing(closed)))
        for _ in range(3):
            await asyncio.sleep(0)
        if closes:
            closed.set()
        waiting.cancel()
        with pytest.raises((asyncio.CancelledError, LogError)):
            await waiting
        await asyncio.sleep(0)

    run(work)
