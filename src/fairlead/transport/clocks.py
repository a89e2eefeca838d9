"""The clocks of a client: those of the machine, unless a simulation has given it others (testing/simulator/).

Which clocks a task has is part of its context, so clients of one process can have different ones.

Takes: nothing. Gives: the time, and a number of the process. Never: sleeps.
"""

from __future__ import annotations

import os
import time
from contextvars import ContextVar


class Clocks:
    """The clocks of this machine."""

    def wall(self) -> float:
        """Seconds since 1970. It may be wrong, and it may jump."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment. They only increase."""
        return time.monotonic()

    def busy(self) -> float:
        """Seconds for which the process has used a processor."""
        return time.process_time()

    @property
    def process(self) -> int:
        """A number that other processes of the machine do not have."""
        return os.getpid()


CLOCKS: ContextVar[Clocks] = ContextVar("CLOCKS", default=Clocks())  # noqa: B039 (it has no state)


def clocks() -> Clocks:
    """The clocks of the current task."""
    return CLOCKS.get()
