"""How long to retry, and how long to wait between two attempts: the one place for both.

    patience = Patience(10.0)
    while True:
        try:
            return await ask()
        except Unavailable:
            if patience.is_over:
                raise
        await patience.pause()

A process that stood still (stopped, or on a machine that slept) has not been waiting: one attempt counts for at most a share of
the time, so several are always made.

Takes: seconds. Gives: pauses that double, and whether the time is over. Never: retries anything itself.
"""

from __future__ import annotations

import asyncio
import time

from fairlead.transport.clocks import clocks

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.05, 1.0
"""The first pause, about the delay of a busy server; and the longest, about the time of a leader election."""


ATTEMPTS_MIN = 4
"""How many attempts the time is enough for, however long one takes."""


class Patience:
    """Lasts this many seconds from now. Pauses double from `pause` to `pause_max` seconds."""

    def __init__(self, seconds: float, pause: float = PAUSE_SECONDS, pause_max: float = PAUSE_SECONDS_MAX) -> None:
        self._seconds, self._first, self._most = seconds, pause, pause_max
        self._end = self._asked = 0.0
        self.renew()

    @property
    def is_over(self) -> bool:
        now = clocks().monotonic()
        if self._seconds:
            self._end += max(0.0, now - self._asked - max(self._seconds / ATTEMPTS_MIN, self._most))
        self._asked = now
        return now > self._end

    def renew(self) -> None:
        """There was progress: start again with the full time, and short pauses."""
        self._asked = clocks().monotonic()
        self._end, self._next = self._asked + self._seconds, self._first

    def extend(self, seconds: float) -> None:
        """At least this many seconds from now."""
        self._end = max(self._end, clocks().monotonic() + seconds)

    async def pause(self) -> None:
        await asyncio.sleep(self._taken())

    def wait(self) -> None:
        """The same, without asyncio."""
        time.sleep(self._taken())

    def _taken(self) -> float:
        pause, self._next = self._next, min(2 * self._next, self._most)
        return pause
