"""The routes of each type, in a table of the log that publishers and subscribers share.

A type has a few places for routes. The first durable subscribers that need a route take them, and a route keeps its place for
ever, since the blocks of the log refer to it. A subscriber without a place (all are taken, or it is not durable) uses another
route that includes everything it needs, or reads everything.

Takes: a plan, or blocks to send. Gives: by type, the place of a route; the marks of blocks. Never: changes an existing route;
keeps a block from being sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress

from fairlead.errors import FairleadError, LogError
from fairlead.model.events.types import EventType
from fairlead.model.plans.expression import Condition
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.routes import condition_of, is_within, route_letters, routes_of, text_of
from fairlead.transport.log.blocks.block import Block, decode
from fairlead.transport.log.blocks.block_filter import ROUTES, UNKNOWN, Standing
from fairlead.transport.log.names import token
from fairlead.transport.log.protocol import Conflict, Log, Unavailable
from fairlead.transport.log.tasks import ended

TABLE = "FL_ROUTES"
REFRESH_SECONDS, REFUSED_SECONDS = 1.0, 60.0


async def routes_for(log: Log, plan: Plan, types: Sequence[str], *, durable: bool) -> dict[str, int]:
    """By type, the number of the route that a plan needs; types without one are read completely. `durable`: take a place for
    it."""
    routes: dict[str, int] = {}
    for name, condition in routes_of(plan, types).items():
        with suppress(LogError):  # a subscriber that cannot write the table reads everything
            place = await _place(log, plan.catalogue[name], condition, durable)
            if place is not None:
                routes[name] = place
    return routes


async def texts_of(log: Log, type: str) -> tuple[list[str], int]:
    """The routes of a type, in their places, and the revision of the entry."""
    entry = await log.get(TABLE, token(type))
    if entry is None:
        return [], 0
    try:
        found = json.loads(entry.value)["routes"]
    except (ValueError, KeyError, TypeError):
        found = [""] * ROUTES  # an unreadable entry has no free place
    return [str(each) for each in found], entry.revision


async def _place(log: Log, event_type: EventType, condition: Condition, durable: bool) -> int | None:
    text = text_of(condition)
    if condition_of(text, event_type) != condition:
        return None  # the text would not compile to the same condition for others
    while True:
        texts, revision = await texts_of(log, event_type.name)
        if text in texts[:ROUTES]:
            return texts.index(text)
        if len(texts) >= ROUTES or not durable:
            return _wider(texts, event_type, condition)
        try:
            value = json.dumps({"type": event_type.name, "routes": [*texts, text]})
            await log.put(TABLE, token(event_type.name), value.encode(), revision)
            return len(texts)
        except Conflict:
            continue


def _wider(texts: Sequence[str], event_type: EventType, condition: Condition) -> int | None:
    """The first route that includes everything that the condition needs."""
    for place, text in enumerate(texts[:ROUTES]):
        known = condition_of(text, event_type)
        if known is not None and is_within(condition, known):
            return place
    return None


class RouteMarks:
    """The marks of a publisher on the blocks of one type and source: for each route of the type, whether the block has matching
    events (transport/log/blocks/block_filter.py).

    The publisher reads the routes at the beginning, and again about every second while it sends blocks. With an older table it
    marks fewer routes, but never wrongly: a route keeps its place and its condition. A block is sent whatever happens here.
    """

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
        return route_letters(decode(block, event_type), event_type, self._conditions)
