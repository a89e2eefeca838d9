"""The routes of each type, in a table of the log that publishers and subscribers share.

A type has a few places for routes. The first durable subscribers that need a route take them, and a route keeps its place for
ever, since the blocks of the log refer to it. A subscriber without a place (all are taken, or it is not durable) uses another
route that includes everything it needs, or reads everything.

Takes: a plan. Gives: by type, the place of a route. Never: changes an existing route.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from fairlead.errors import LogError
from fairlead.model.expression import Condition
from fairlead.model.plan import Plan
from fairlead.model.types import EventType
from fairlead.runtime.live.routes import condition_of, is_within, routes_of, text_of
from fairlead.transport.log.block_filter import ROUTES
from fairlead.transport.log.names import token
from fairlead.transport.log.protocol import Conflict, Log

TABLE = "FL_ROUTES"


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
