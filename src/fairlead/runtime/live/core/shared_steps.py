"""Steps of an order by value (ORDER BY … DELAY) that the subscribers of one client take together.

What a step releases is a function of the state before it and of the events that arrive, and both are values that nobody
changes. So subscribers with the same order that read the same blocks (block_columns.py) compute each step once: the first
computes it, the others take over what it released, prepared for their engines, and the state after it. Every one has its own
engine.

A subscriber that reads other blocks, or the same blocks in other portions, computes its own steps. Once it arrives at a state
that equals another's, it takes over that state, and shares from then on.

Takes: buffers, and the columns that they are given. Gives: released events. Never: changes what a buffer would release.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.running.batch import Prepared
from fairlead.model.columns import Columns
from fairlead.model.event_order import EventOrder
from fairlead.model.types import EventType
from fairlead.runtime.event_time import BufferState, EventTimeBuffer, ReleasedEvents

REMEMBERED = 8
"""Steps, some hundred kilobytes each: as many as stretches of blocks (block_columns.py)."""


@dataclass(frozen=True, eq=False)
class SharedStep:
    """Holds the state before and the columns: as long as they are here, no other object is mistaken for them. `types`: the
    definitions by which the events are read, also those that are held."""

    order: EventOrder
    types: tuple[EventType, ...]
    before: BufferState
    arrived: Columns
    after: BufferState
    released: ReleasedEvents
    prepared: Prepared


class SharedSteps:
    """`lock`: slow matches run in threads (group_task.py)."""

    def __init__(self, lock: AbstractContextManager[Any]) -> None:
        self._lock = lock
        self._taken: list[SharedStep] = []

    def step(self, buffer: EventTimeBuffer, types: tuple[EventType, ...], columns: Columns) -> tuple[ReleasedEvents, Prepared]:
        """`buffer.step(columns)`, and what it releases, prepared for engines. `types`: all that the buffer is given."""
        with self._lock:
            known = self._known(buffer, types, columns)
            if known is None:
                before, released = buffer.state, buffer.step(columns)
                prepared = Prepared(released.columns, buffer.catalogue)
                known = SharedStep(buffer.order, types, before, columns, buffer.state, released, prepared)
                self._taken = [*self._taken[1 - REMEMBERED :], known]
            buffer.state = known.after
            return known.released, known.prepared

    def _known(self, buffer: EventTimeBuffer, types: tuple[EventType, ...], columns: Columns) -> SharedStep | None:
        alike = [each for each in self._taken if each.arrived is columns and each.order == buffer.order and each.types == types]
        same = (each for each in alike if each.before is buffer.state)
        return next(same, None) or next((each for each in alike if buffer.stands_at(each.before)), None)
