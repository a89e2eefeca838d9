"""When a subscriber goes on that is not behind: together with the others of its process, and not too often.

An engine takes about as long for one event as for a thousand. So it is left alone for some times as long as it took, and the
next events come together. Then a subscriber wakes at the stroke of a clock that all of a process have, which strikes every few
milliseconds, and twice, four times as often for those whom that suits: so they are given the same blocks, and share what they
make of them (gathering.py).

Takes: the time, and how long a subscriber has worked. Gives: how long to wait.
"""

from __future__ import annotations

import os

PAUSES = 16
"""A subscriber takes about a seventeenth of a processor where events keep coming, as long as the strokes allow it."""
STROKE_SECONDS_MAX, STROKE_SECONDS_MIN = 0.016, 0.001
"""Events wait for half of that, on average. With 32 ms ten subscribers took a fifth less of the processors, and were 6 to 12 ms
later."""
GOLDEN = 0.618034
"""Multiples of it, but for their whole part, are spread as evenly as can be."""


def pause(now: float, work: float) -> float:
    """`work`: the seconds that the subscriber has taken, up to now."""
    every = STROKE_SECONDS_MAX
    while every / 2 >= max(PAUSES * work, STROKE_SECONDS_MIN):
        every /= 2
    phase = os.getpid() * GOLDEN * STROKE_SECONDS_MAX  # processes need not all wake at once
    return every - (now + phase) % every
