"""Marks of a publisher on the blocks of one type and source: for each route of the type, whether the block has matching events.

The publisher reads the routes at the beginning, and again about every second while it sends blocks. With an older table it
marks fewer routes, but never wrongly: a route keeps its place and its condition.

Takes: blocks to send. Gives: their marks (marks.py). Never: keeps a block from being sent; splits or reorders any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.errors import FairleadError
from fairlead.model.expression import Condition
from fairlead.model.types import EventType
from fairlead.runtime.live.route_table import texts_of
from fairlead.runtime.live.routes import condition_of
from fairlead.transport.log.block import Block, decode
from fairlead.transport.log.block_filter import ROUTES, UNKNOWN, Standing
from fairlead.transport.log.protocol import Log, Unavailable
from fairlead.transport.log.tasks import ended

REFRESH_SECONDS, REFUSED_SECONDS = 1.0, 60.0
SLOWLY_MAX = 512
"""The largest block on which conditions are evaluated event by event, at two microseconds each."""


class Marking:
    """The marks of one type and source."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._standing = Standing()
        self._texts: Sequence[str] = ()
        self._type: EventType | None = None
        self._conditions: Sequence[Condition | None] = ()
        self._next = 0.0
        self._asking: asyncio.Task[None] | None = None

    async def begin(self, type: str, last: Block | None) -> None:
        """Begin after the last stored block of the source."""
        if last is not None:
            self._standing.passed(last.marks, last.number)
        await self._ask(type)

    def marks(self, block: Block, event_type: EventType) -> str:
        """The marks of the next block, which has none yet. `event_type`: the publisher's definition of the type."""
        if asyncio.get_running_loop().time() >= self._next and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(self._ask(event_type.name))
        return self._standing.marks(self._letters(block, event_type), block.number)

    def stored(self, block: Block) -> None:
        """The block as the log stored it: an earlier attempt may have been stored with different marks."""
        self._standing.passed(block.marks, block.number)

    async def close(self) -> None:
        await ended(self._asking)

    async def _ask(self, type: str) -> None:
        clock = asyncio.get_running_loop().time
        try:
            texts, _ = await texts_of(self._log, type)
            self._next = clock() + REFRESH_SECONDS
        except (FairleadError, Unavailable):
            self._next = clock() + REFUSED_SECONDS
            return
        if texts != self._texts:
            self._texts, self._type = texts, None

    def _letters(self, block: Block, event_type: EventType) -> str:
        if not self._texts:
            return UNKNOWN
        if self._type != event_type:
            self._type = event_type
            self._conditions = [condition_of(each, event_type) for each in self._texts[:ROUTES]]
        return letters(decode(block, event_type), event_type, self._conditions)


def letters(batch: pa.RecordBatch, event_type: EventType, conditions: Sequence[Condition | None]) -> str:
    """By route: y if an event satisfies the condition, n if none does, u if that is unknown or takes long."""
    from fairlead.matching.compiled.running.vector import TypeRows, is_columnwise, truth

    at = event_type.time_index
    times = None if at is None else batch.column(at).view(pa.int64()).to_numpy()
    rows = TypeRows(event_type, batch, times, _no_places)
    found = ""
    for each in conditions:
        try:
            told = each is not None and (len(rows) <= SLOWLY_MAX or is_columnwise(each))
            found += "u" if each is None or not told else "y" if truth(each, rows).any() else "n"
        except Exception:  # an error in another client's condition must not keep the block from being sent
            found += "u"
    return found.ljust(ROUTES, "u")


def _no_places() -> npt.NDArray[np.int64]:
    raise AssertionError("conditions of routes do not read places")
