"""The times of published events: some of them out of order, late, too late, or ahead of the log's clock.

Which one an event is, is a function of its source, type and number. Its time is the clock's, less the lag; so an event that is
published again after a restart has another time, and the record has them all.

Takes: the identity of an event, the time of the clock. Gives: its time. Never: reads the clock.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from fairlead.testing.live.actors.setting import AHEAD_SECONDS, DELAY_SECONDS, REVISE_SECONDS

AHEAD_SHARE, TOO_LATE_SHARE, REVISING_SHARE, DELAYED_SHARE = 0.02, 0.02, 0.03, 0.4
"""The rest is in order, as far as publishers are. A revision costs each subscriber some milliseconds."""


def lag_of(source: str, type: str, x: int) -> float:
    """Seconds; negative: ahead."""
    rolls = random.Random(f"lag {source} {type} {x}")
    drawn, most = rolls.random(), DELAY_SECONDS + REVISE_SECONDS
    for share, low, high in (
        (AHEAD_SHARE, -3 * AHEAD_SECONDS, -2 * AHEAD_SECONDS),
        (TOO_LATE_SHARE, 2 * most, 3 * most),
        (REVISING_SHARE, 1.2 * DELAY_SECONDS, 0.9 * most),
        (DELAYED_SHARE, 0, 0.9 * DELAY_SECONDS),
    ):
        if drawn < share:
            return rolls.uniform(low, high)
        drawn -= share
    return 0.0


def time_of(source: str, type: str, x: int, now: datetime) -> datetime:
    return now - timedelta(seconds=lag_of(source, type, x))
