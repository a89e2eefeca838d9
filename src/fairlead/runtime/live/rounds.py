"""When a subscriber that does not lag continues: together with the others of its process, and not too often.

An engine takes about as long for one event as for a thousand. So it pauses for several times as long as it worked, and the next
events are matched together. A pause ends at a tick of a clock that the process shares. The clock ticks every few milliseconds,
and twice, four times … as often for subscribers whose work was short. So the subscribers of a process receive the same blocks,
and share the work of preparing them (gathering.py).

Takes: the time, and how long a subscriber has worked. Gives: how long to wait.
"""

from __future__ import annotations

import os

PAUSES = 16
"""With this pause a subscriber uses about a seventeenth of a processor under steady load, as far as the ticks allow it."""
STROKE_SECONDS_MAX, STROKE_SECONDS_MIN = 0.016, 0.001
"""Events wait for half of that, on average. With 32 ms ten subscribers used a fifth less of the processors, and delivered 6 to
12 ms later."""
GOLDEN = 0.618034
"""The fractional parts of its multiples are spread as evenly as possible."""


def pause(now: float, work: float) -> float:
    """`work`: the seconds that the subscriber has worked, up to now."""
    every = STROKE_SECONDS_MAX
    while every / 2 >= max(PAUSES * work, STROKE_SECONDS_MIN):
        every /= 2
    phase = os.getpid() * GOLDEN * STROKE_SECONDS_MAX  # so that not all processes wake at once
    return every - (now + phase) % every
