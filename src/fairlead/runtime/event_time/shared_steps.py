"""Steps of an order by value (ORDER BY … DELAY) that the subscribers of one client take together.

What a step releases is a function of the state before it and of the events that arrive, and nobody changes either. So
subscribers with the same order that read the same blocks (live/core/block_columns.py) compute each step once: the first
computes it, the others take over what it released, prepared for their engines, and the state after it. Every one has its own
engine.

A subscriber that reads other blocks, or the same blocks in other portions, computes its own steps. Once it arrives at a state
that equals another's, it shares again.

Takes: buffers of one sequence, and the columns that they are given. Gives: released events. Never: changes what a buffer would
release.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.running.batch import Prepared
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.event_order import EventOrder
from fairlead.runtime.event_time.buffer import BufferState, EventTimeBuffer, ReleasedEvents

REMEMBERED = 8
"""Steps, some hundred kilobytes each: as many as stretches of blocks (live/core/block_columns.py)."""


@dataclass(frozen=True, eq=False)
class SharedStep:
    """Holds the columns: as long as they are here, no others are mistaken for them."""

    order: EventOrder
    catalogue: Catalogue
    before: BufferState
    arrived: Columns
    stored: npt.ArrayLike | None
    after: BufferState
    released: ReleasedEvents
    prepared: Prepared

    def is_of(self, buffer: EventTimeBuffer, columns: Columns, stored: npt.ArrayLike | None) -> bool:
        """Whether it is also the step of this buffer, if the states before are the same. Columns are shared by subscribers
        with the same definitions of their types; those of the types that are held only have to be the same, too."""
        if self.arrived is not columns or self.order != buffer.order:
            return False
        if any(self.catalogue[name] != buffer.catalogue[name] for name in buffer.held.runs.keys() - columns.tables.keys()):
            return False
        if buffer.order.ahead_us is None or stored is None or self.stored is None:
            return buffer.order.ahead_us is None or stored is self.stored
        return np.array_equal(np.asarray(stored), np.asarray(self.stored))


class SharedSteps:
    """`lock`: slow matches run in threads (group_task.py)."""

    def __init__(self, lock: AbstractContextManager[Any]) -> None:
        self._lock = lock
        self._taken: list[SharedStep] = []

    def step(
        self, buffer: EventTimeBuffer, columns: Columns, stored: npt.ArrayLike | None = None
    ) -> tuple[ReleasedEvents, Prepared]:
        """`buffer.step(columns, stored)`, and what it releases, prepared for engines."""
        with self._lock:
            before = buffer.state
            alike = [each for each in self._taken if each.is_of(buffer, columns, stored)]
            known = next((each for each in alike if _is_same(buffer, before, each.before)), None)
            if known is None:
                released = buffer.step(columns, stored)
                prepared = Prepared(released.columns, buffer.catalogue)
                told = buffer.order, buffer.catalogue, before, columns, stored, buffer.state
                known = SharedStep(*told, released, prepared)
                self._taken = [*self._taken[1 - REMEMBERED :], known]
            else:
                buffer.state = known.after
            return known.released, known.prepared


def _is_same(buffer: EventTimeBuffer, mine: BufferState, other: BufferState) -> bool:
    """Whether a buffer in one of these states could as well be in the other. One that was loaded knows only what it holds."""
    if mine == other or not (mine.loaded or other.loaded):
        return mine == other
    if replace(mine, given=0) != replace(other, given=0):
        return False
    dumped = [_dumped(buffer, each) for each in (other, mine)]
    return dumped[0] == dumped[1]


def _dumped(buffer: EventTimeBuffer, state: BufferState) -> bytes:
    """The dump of a buffer in this state, which it keeps."""
    buffer.state = state
    return buffer.dump()
