"""How long one tries again, and how long one waits between two attempts: the one place for both.

    patience = Patience(10.0)
    while True:
        try:
            return await ask()
        except Unavailable:
            if patience.is_over:
                raise
        await patience.pause()

Takes: seconds. Gives: pauses that double, and whether the time is over. Never: tries anything itself.
"""

from __future__ import annotations

import asyncio
import time

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.05, 1.0
"""The first pause, about what a server takes that is only busy; and the longest, about what a new leader takes."""


class Patience:
    """For so many seconds from now on. Pauses double from `pause` to `pause_max` seconds."""

    def __init__(self, seconds: float, pause: float = PAUSE_SECONDS, pause_max: float = PAUSE_SECONDS_MAX) -> None:
        self._seconds, self._first, self._most = seconds, pause, pause_max
        self.renew()

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._end

    def renew(self) -> None:
        """Something was done: all the time again, and short pauses."""
        self._end, self._next = time.monotonic() + self._seconds, self._first

    def extend(self, seconds: float) -> None:
        """At least so many seconds from now on."""
        self._end = max(self._end, time.monotonic() + seconds)

    async def pause(self) -> None:
        await asyncio.sleep(self._taken())

    def wait(self) -> None:
        """The same, without asyncio."""
        time.sleep(self._taken())

    def _taken(self) -> float:
        pause, self._next = self._next, min(2 * self._next, self._most)
        return pause
