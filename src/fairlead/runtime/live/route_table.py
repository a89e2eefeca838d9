"""The routes of each type, in a table of the log that publishers and subscribers share.

A type has a few places for routes. The first durable subscribers that need a route take them, and a route keeps its place for
ever, since the blocks of the log refer to it. When no durable subscriber has it recorded any more, it is retired: publishers no
longer evaluate it, and the next subscriber that needs it takes it up again, in the same place. A subscriber without a place
(all are taken, or it is not durable) uses another route that includes everything it needs, or reads everything.

Takes: a plan, or blocks to send. Gives: by type, the place of a route; the marks of blocks. Never: changes an existing route;
keeps a block from being sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from fairlead.errors import FairleadError, LogError, StateError
from fairlead.model.events.types import EventType
from fairlead.model.expressions.expression import Condition
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.routes import condition_of, is_within, route_letters, routes_of, text_of
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.subscriber.record import groups_of_name
from fairlead.transport.log.blocks.block import Block, decode
from fairlead.transport.log.blocks.block_filter import ROUTES, UNKNOWN, Standing
from fairlead.transport.log.entry_values import entry_value
from fairlead.transport.log.names import token
from fairlead.transport.log.protocol import Conflict, Log, Unavailable
from fairlead.transport.log.signed_log import ignored
from fairlead.transport.log.tasks import ended

TABLE = "FL_ROUTES"
REFRESH_SECONDS, REFUSED_SECONDS = 1.0, 60.0
LONG = 1_000
"""Characters of the routes of a type from which they are compiled in a thread."""


async def routes_for(log: Log, plan: Plan, types: Sequence[str], *, durable: bool) -> dict[str, int]:
    """By type, the number of the route that a plan needs; types without one are read completely. `durable`: take a place for
    it."""
    routes: dict[str, int] = {}
    for name, condition in routes_of(plan, types).items():
        with suppress(LogError):  # a subscriber that cannot write the table reads everything
            try:
                place = await _place(log, plan.catalogue[name], condition, durable)
            except StateError as error:
                ignored(error)
                continue
            if place is not None:
                routes[name] = place
    return routes


class TypeRoutes(NamedTuple):
    """The routes of a type: the text of each, in its place; the places of those that nobody reads any more; the revision of the
    entry."""

    texts: tuple[str, ...] = ()
    retired: frozenset[int] = frozenset()
    revision: int = 0

    @property
    def active(self) -> tuple[str, ...]:
        """The texts that publishers evaluate, in their places; empty for the others."""
        return tuple("" if place in self.retired else text for place, text in enumerate(self.texts))

    def value(self, type: str) -> bytes:
        return json.dumps({"type": type, "routes": self.texts, "retired": sorted(self.retired)}).encode()


async def type_routes(log: Log, type: str) -> TypeRoutes:
    entry = await log.get(TABLE, token(type))
    if entry is None:
        return TypeRoutes()
    try:
        told = json.loads(entry.value)
        texts, retired = [str(each) for each in told["routes"]][:ROUTES], {int(each) for each in told.get("retired", ())}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        texts, retired = [""] * ROUTES, set()  # an unreadable entry has no free place
    return TypeRoutes(tuple(texts), frozenset(retired), entry.revision)


async def _place(log: Log, event_type: EventType, condition: Condition, durable: bool) -> int | None:
    text = text_of(condition)
    if condition_of(text, event_type) != condition:
        return None  # the text would not compile to the same condition for others
    while True:
        known = await type_routes(log, event_type.name)
        place = known.texts.index(text) if text in known.texts else len(known.texts)
        if place == len(known.texts) and (place >= ROUTES or not durable):
            return _wider(known.texts, event_type, condition)
        if place < len(known.texts) and (place not in known.retired or not durable):
            return place
        made = TypeRoutes((*known.texts[:place], text, *known.texts[place + 1 :]), known.retired - {place})
        try:
            await log.put(TABLE, token(event_type.name), made.value(event_type.name), known.revision)
            return place
        except Conflict:
            continue


async def retire_routes(log: Log) -> dict[str, list[int]]:
    """Retire the routes that no durable subscriber has recorded; returns their places, by type. Publishers stop evaluating
    them within seconds. A subscriber that has just begun, and not recorded them yet, reads more than it needs, never less: a
    block whose publisher does not know a route goes to all of its readers. Raises StateError, LogError."""
    used: dict[str, set[int]] = {}
    for name in await log.keys(SUBSCRIBERS):
        for told in (await groups_of_name(log, name)).values():
            for type, place in told.get("routes", {}).items():
                used.setdefault(token(type), set()).add(place)
    found: dict[str, list[int]] = {}
    for key in await log.keys(TABLE):
        entry = await log.get(TABLE, key)
        type = "" if entry is None else _type_of(entry.value)
        known = await type_routes(log, type) if type and token(type) == key else TypeRoutes()
        idle = {*range(len(known.texts))} - known.retired - used.get(key, set())
        if idle:
            made = known._replace(retired=known.retired | idle)
            with suppress(Conflict):  # somebody begins at this moment; the next one retires the others
                await log.put(TABLE, key, made.value(type), known.revision)
                found[type] = sorted(idle)
    return found


def _type_of(value: bytes) -> str:
    """The type of an entry; empty if it does not say it."""
    try:
        return str(entry_value(value, {"type": str}, TABLE, "")["type"])
    except StateError:
        return ""


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
        self._compiling: asyncio.Task[None] | None = None
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
        await ended(self._asking, self._compiling)

    async def _ask(self, type: str) -> None:
        clock = asyncio.get_running_loop().time
        try:
            texts = (await type_routes(self._log, type)).active
            self._next = clock() + REFRESH_SECONDS
        except (FairleadError, Unavailable) as error:
            if isinstance(error, StateError):
                ignored(error)  # the routes that were known before stay: they are true
            self._next = clock() + REFUSED_SECONDS
            return
        if texts != self._texts:
            self._texts, self._type = texts, None

    async def _compile(self, texts: Sequence[str], event_type: EventType) -> None:
        found = await asyncio.to_thread(lambda: [condition_of(each, event_type) for each in texts])
        if texts == self._texts and event_type == self._type:
            self._conditions = found

    def _letters(self, block: Block, event_type: EventType) -> str:
        if not any(self._texts):
            return UNKNOWN
        if self._type != event_type:
            self._type = event_type
            if sum(map(len, self._texts)) > LONG:  # somebody else's text: the event loop does not wait for it
                self._conditions = ()
                self._compiling = asyncio.create_task(self._compile(self._texts, event_type))
            else:
                self._conditions = [condition_of(each, event_type) for each in self._texts]
        return route_letters(decode(block, event_type), event_type, self._conditions)
