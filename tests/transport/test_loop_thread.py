"""An event loop in a thread: calls wait, errors and interrupts reach both sides, and nothing is left behind."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import fairlead
from fairlead.transport.threads.loop_thread import LoopThread


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_a_call_waits_for_its_result_and_raises_its_error() -> None:
    async def failing() -> None:
        raise ValueError("so it is")

    loop = LoopThread("test").start()
    try:
        assert [loop.call(answer(each)) for each in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="so it is"):
            loop.call(failing())
        assert loop.call(answer(7)) == 7
    finally:
        loop.stop()


def test_what_is_left_ends_with_the_loop_and_so_does_the_thread() -> None:
    ended: list[str] = []
    executor: list[threading.Thread] = []

    async def left() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("task")

    async def begin() -> None:
        tasks.add(asyncio.create_task(left()))
        await asyncio.sleep(0)
        executor.append(await asyncio.to_thread(threading.current_thread))

    tasks: set[asyncio.Task[None]] = set()
    loop = LoopThread("left").start()
    assert loop.is_running
    loop.call(begin())
    loop.stop()
    assert ended == ["task"]
    assert not loop.is_running
    assert not executor[0].is_alive()
    assert "left" not in {each.name for each in threading.enumerate()}
    loop.stop()
    with pytest.raises(RuntimeError, match="not running"):
        loop.call(answer(1))


def test_a_call_that_takes_too_long_is_cancelled() -> None:
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    loop = LoopThread("long", seconds_max=0.01).start()
    with pytest.raises(TimeoutError):
        loop.call(long())
    assert ended.wait(10)
    loop.stop()


def test_it_can_be_started_again() -> None:
    loop = LoopThread("again")
    for value in range(2):
        loop.start()
        assert loop.call(answer(value)) == value
        loop.stop()


def test_nobody_else_runs_a_loop_in_a_thread() -> None:
    root = Path(fairlead.__file__).parent
    found = [path.name for path in root.rglob("*.py") if "new_event_loop(" in path.read_text("utf-8")]
    assert found == ["loop_thread.py"]
