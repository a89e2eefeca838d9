"""When what fails: a schedule that is a function of its seed.

Takes: a seed. Gives: steps, each with its injected faults, their duration, and a seed for their choices. Never: depends on what
happens.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator

from fairlead.dataclass import dataclass
from fairlead.testing.live.cluster.faults import OF_SERVERS, OF_WORKERS
from fairlead.testing.live.cluster.operations import OPERATIONS

HOLD_SECONDS = 0.5, 3.0
LONG = ("cut_off_leader", "paused_leader", "unreachable_leader", "full_disk")
LONG_SECONDS = 6.0, 12.0
"""Sometimes longer than a client waits for an answer, so that pending requests are sent again."""


@dataclass(frozen=True)
class ScheduledFaults:
    """`faults` happen together: the last one done is undone first."""

    faults: tuple[str, ...]
    hold: float
    seed: int


def schedule(seed: int, count: int) -> Iterator[ScheduledFaults]:
    """Every injected fault of servers occurs once before any is repeated; in every second step one of workers joins it, and in
    every fourth an operation."""
    rolls, servers, workers, operations = random.Random(seed), list[str](), list[str](), list[str]()
    for at in range(count):
        servers = servers or rolls.sample(list(OF_SERVERS), len(OF_SERVERS))
        workers = workers or rolls.sample(list(OF_WORKERS), len(OF_WORKERS))
        operations = operations or rolls.sample(list(OPERATIONS), len(OPERATIONS))
        name = servers.pop()
        together = (name, workers.pop()) if at % 2 else (operations.pop(), name) if at % 4 == 0 else (name,)
        hold = LONG_SECONDS if name in LONG and rolls.random() < 0.5 else HOLD_SECONDS
        yield ScheduledFaults(together, rolls.uniform(*hold), rolls.randrange(2**32))


def until(seconds: float, steps: Iterable[ScheduledFaults]) -> Iterator[ScheduledFaults]:
    """The steps that begin within this many seconds of the first."""
    end: float | None = None
    for each in steps:
        end = time.monotonic() + seconds if end is None else end
        if time.monotonic() > end:
            return
        yield each
