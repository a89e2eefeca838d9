"""Clocks of processes that are wrong by minutes: which are, and by how much, is a function of their names.

The client asks them for the times of heartbeats only; everything else goes by the clock of the log. The times of events that
publishers here publish are right, but for their jitter.

Takes: the name of a process. Gives: its clocks. Never: changes those of the machine.
"""

from __future__ import annotations

import random

from fairlead.testing.live.actors.setting import SKEW_SECONDS
from fairlead.transport.clocks import CLOCKS, Clocks


class SkewedClock(Clocks):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def wall(self) -> float:
        return super().wall() + self._seconds


def skew_of(name: str) -> float:
    """Seconds."""
    return random.Random(f"clock of {name}").choice((-SKEW_SECONDS, 0.0, SKEW_SECONDS))


def skew_clock(name: str) -> None:
    """For all tasks that the caller starts."""
    CLOCKS.set(SkewedClock(skew_of(name)))
