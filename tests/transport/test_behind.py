"""Calls behind the caller's back: in order, and never a silent failure."""

from __future__ import annotations

import threading
from itertools import count

import pytest

from fairlead.transport.threads.write_behind import WriteBehind


def test_calls_are_done_in_order_before_the_end() -> None:
    done: list[int] = []
    asked = threading.Event()

    def call(number: int) -> None:
        asked.wait()  # all are done behind the caller's back, none before it has asked for two
        done.append(number)

    behind = WriteBehind()
    for number in range(20):
        behind.do(lambda number=number: call(number))  # type: ignore[misc]
        if number == 1:
            asked.set()
    behind.end()
    assert done == list(range(20))
    behind.end()


def test_a_failure_surfaces_and_nothing_is_done_after_it() -> None:
    done: list[int] = []

    def fail() -> None:
        raise OSError(28, "No space left on device")

    def go_on() -> None:
        for number in count():
            behind.do(lambda number=number: done.append(number))  # type: ignore[misc]

    behind = WriteBehind()
    behind.do(fail)
    with pytest.raises(OSError, match="No space"):
        go_on()
    behind.end()
    assert done == []


def test_a_failure_of_the_last_call_surfaces_at_the_end() -> None:
    behind = WriteBehind()
    behind.do(lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    with pytest.raises(ZeroDivisionError):
        behind.end()
