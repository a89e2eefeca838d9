"""When a unit does something another way: numbers that change how fast a result is found, never the result.

They are one value, so that a test can pass others: small ones, with which the other way is taken at once.
"""

from __future__ import annotations

from fairlead.dataclass import dataclass
from fairlead.matching.attempt import ARRIVAL, EVENT


@dataclass(frozen=True)
class Thresholds:
    event_steps: int = EVENT + ARRIVAL
    """Steps of an event of the usual cost, in which budgets are given (matching/attempt.py)."""

    loaded_events: int = 2_000
    """Queued events from which a loaded state moves to kernels at once: as objects they would take longer than the kernels."""

    path_cells: int = 1 << 24
    """Numbers that the paths of a part of a batch may have: 128 MB, and while they are sorted as much again."""


THRESHOLDS = Thresholds()
