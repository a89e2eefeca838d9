"""When the tasks of a client wake: together, and not too often.

An engine takes about as long for one event as for a thousand. So a task that does not lag pauses for several times as long as
it worked, and the next events are matched together. A pause ends at a stroke of a clock that the tasks share. The clock strikes
every few milliseconds, and twice, four times … as often for tasks whose work was short. So the subscribers of a process receive
the same blocks, and share the work of preparing them (core/block_columns.py).

A process that has hardly a pause left between two strokes takes from other processes, as from the publisher that it waits for,
and is not sooner for it: its strokes become slower, and quicker again once it has time.

Takes: when a task ended its work, and how long that took. Gives: its pause. Never: sleeps; has an influence on what is
delivered.
"""

from __future__ import annotations

from fairlead.runtime.live.core.block_columns import EVENTS_TOGETHER
from fairlead.transport.clocks import clocks

PAUSES = 16
"""With this pause a subscriber uses about a seventeenth of a processor under steady load, as far as the strokes allow it."""
STROKE_SECONDS, STROKE_SECONDS_MIN, STROKE_SECONDS_MAX = 0.016, 0.001, 0.032
"""Events wait for half of that, on average. With 32 ms ten subscribers used a fifth less of the processors, and delivered 6 to
12 ms later; where no processor was left at 16 ms, they delivered sooner (benchmarks/README.md)."""
BUSY, IDLE = 0.7, 0.45
"""Shares of a processor, at which strokes become slower and quicker. With half as many strokes a process uses seven to nine
tenths of what it used (benchmarks/README.md), so one above BUSY does not come below IDLE by that."""
LOOK_SECONDS, LOOKS = 0.25, 4
"""Between two looks at what the process has used: some strokes. It has to be idle at so many in a row."""
GOLDEN = 0.618034
"""The fractional parts of its multiples are spread as evenly as possible."""


class WakeClock:
    """`stroke`: seconds between two strokes of the slowest clock."""

    def __init__(self) -> None:
        self.stroke = STROKE_SECONDS
        self._looked: tuple[float, float] | None = None
        self._idle = 0

    def lags(self, events: int) -> bool:
        """Whether a task that found so many new events is behind, and continues without a pause."""
        return events >= EVENTS_TOGETHER * self.stroke / STROKE_SECONDS

    def pause(self, now: float, work: float) -> float:
        """How long to wait. `work`: the seconds that the subscriber has worked, up to now."""
        self.look(now, clocks().busy())
        every = self.stroke
        while every / 2 >= max(PAUSES * work, STROKE_SECONDS_MIN):
            every /= 2
        phase = clocks().process * GOLDEN * STROKE_SECONDS  # so that not all processes wake at once
        return every - (now + phase) % every

    def look(self, now: float, busy: float) -> None:
        """Adapts the strokes to the share of a processor that the process has used since the last look. `busy`:
        for how many seconds it has used one."""
        if self._looked is None or now < self._looked[0]:
            self._looked = now, busy
            return
        seconds = now - self._looked[0]
        if seconds < LOOK_SECONDS:
            return
        share = (busy - self._looked[1]) / seconds
        self._looked = now, busy
        self._idle = self._idle + 1 if share < IDLE else 0
        if share > BUSY:
            self.stroke = min(STROKE_SECONDS_MAX, 2 * self.stroke)
        elif self._idle == LOOKS:
            self.stroke, self._idle = max(STROKE_SECONDS, self.stroke / 2), 0
