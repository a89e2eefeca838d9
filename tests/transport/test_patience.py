"""Pauses that double up to a bound, until the time is over; a clock of the test's own tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from fairlead.transport.clocks import CLOCKS, Clocks
from fairlead.transport.log import patience as module
from fairlead.transport.log.patience import ATTEMPTS_MIN, Patience


class Clock(Clocks):
    """Sleeping moves it."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()

    async def sleep(seconds: float) -> None:
        clock.sleep(seconds)

    monkeypatch.setattr(module.time, "sleep", clock.sleep)
    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    token = CLOCKS.set(clock)
    yield clock
    CLOCKS.reset(token)


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
    assert not patience.is_over
    patience.wait()
    assert (clock.slept, patience.is_over) == ([0.5, 0.5, 1.0], True)


def test_more_time_is_never_less(clock: Clock) -> None:
    patience = Patience(10.0)
    patience.extend(5.0)
    for _ in range(9):
        clock.now += 1.0
        assert not patience.is_over
    patience.extend(5.0)
    for _ in range(2):
        clock.now += 2.0
        assert not patience.is_over
    clock.now += 1.1
    assert patience.is_over


@pytest.mark.parametrize("stood", [0.5, 9.0, 10.1, 3600.0])
@pytest.mark.parametrize("seconds", [0.2, 2.0, 10.0, 60.0])
def test_a_process_that_stood_still_tries_again(clock: Clock, seconds: float, stood: float) -> None:
    """However long each attempt took: several are made, and there is an end."""
    patience, attempts = Patience(seconds), 1
    clock.now += stood
    while not patience.is_over:
        patience.wait()
        clock.now += stood
        attempts += 1
        assert attempts < 1000
    assert attempts >= (ATTEMPTS_MIN if seconds > 4 else 1)


def test_no_patience_is_one_attempt(clock: Clock) -> None:
    patience = Patience(0.0)
    clock.now += 0.001
    assert patience.is_over
