"""Pauses that double up to a bound, until the time is over; a clock of the test's own tells it."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.transport.log import patience as module
from fairlead.transport.log.patience import Patience


class Clock:
    """As `time`: sleeping moves it."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    async def sleep(seconds: float) -> None:
        clock.sleep(seconds)

    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    return clock


@pytest.mark.parametrize("threaded", [True, False])
def test_pauses_double_up_to_a_bound_until_the_time_is_over(clock: Clock, threaded: bool) -> None:
    patience = Patience(3.0, pause=0.25, pause_max=1.0)

    async def work() -> None:
        while not patience.is_over:
            if threaded:
                patience.wait()
            else:
                await patience.pause()

    asyncio.run(work())
    assert clock.slept == [0.25, 0.5, 1.0, 1.0, 1.0]


def test_what_was_done_gives_all_the_time_again_and_short_pauses(clock: Clock) -> None:
    patience = Patience(1.0, pause=0.5)
    patience.wait()
    patience.renew()
    patience.wait()
    patience.wait()
    assert (clock.slept, patience.is_over) == ([0.5, 0.5, 1.0], True)


def test_more_time_is_never_less(clock: Clock) -> None:
    patience = Patience(10.0)
    patience.extend(5.0)
    clock.now += 9.0
    assert not patience.is_over
    patience.extend(5.0)
    clock.now += 4.0
    assert not patience.is_over
    clock.now += 1.1
    assert patience.is_over
