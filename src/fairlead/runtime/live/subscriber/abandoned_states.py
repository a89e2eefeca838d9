"""Snapshots that nobody needs any more: the lists and states of lineages that no durable subscriber follows.

Every `start` at a position or a time, and every change of a rule, begins a lineage with snapshots of its own (snapshots.py).
They serve subscribers that return or join. A lineage is needed

    1. by every durable subscriber that is recorded with its origin, or that stores what it derives
    2. for some time after its last snapshot, since others may join: longer if it is the one that others join

Then its states are removed, and its list. Nothing is lost by that while the log has all events: who begins there again reads
them again. States that no list names are removed, too: a process ended between storing the state and naming it. A list exists
before its first state, so the states are looked up first: what has no list then will have none.

Takes: a log. Gives: the names of removed lists. Never: removes what a durable subscriber may resume from; asks clocks of
clients.
"""

from __future__ import annotations

import re

from fairlead.errors import LogError, StateError
from fairlead.runtime.live.core.stream_groups import places_from_json
from fairlead.runtime.live.subscriber.leading_lineage import TABLE as ORIGINS
from fairlead.runtime.live.subscriber.leading_lineage import base_key, leading_origin
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.subscriber.record import groups_of_name
from fairlead.runtime.live.subscriber.snapshots import STORE, TABLE, listed_snapshots, snapshot_lists, state_name
from fairlead.transport.log.protocol import Conflict, Log
from fairlead.transport.log.signed_log import ignored

KEPT_US, LEADING_KEPT_US = 24 * 3600 * 1_000_000, 30 * 24 * 3600 * 1_000_000
"""After the last snapshot: a day, and 30 days if others join that lineage."""
STATE = re.compile(r"(.+)-[0-9a-f]{16}")
"""The name of a state: that of its list, and its steps."""


async def remove_abandoned(log: Log, kept_us: int = KEPT_US, leading_us: int = LEADING_KEPT_US) -> list[str]:
    """A client that may not remove states leaves them. `kept_us`, `leading_us`: how long lineages without durable subscribers
    are kept, by the clock of the log."""
    try:
        states = await log.objects(STORE)
        lists = await log.keys(TABLE)
        needed, leading = await _needed(log), await _leading(log)
        now, removed = await log.now(TABLE) if lists else 0, list[str]()
        for key in lists:
            entry = await _entry_of(log, key)
            after_us = leading_us if key in leading else kept_us
            if entry is None or key in needed or now - entry[1] <= after_us:
                continue
            try:
                await log.remove(TABLE, key, entry[0])
            except Conflict:
                continue  # somebody follows it
            removed.append(key)
        named = {each for key in lists if key not in removed for each in await _named(log, key, states)}
        for each in states:
            if each not in named:
                await log.remove_object(STORE, each)
    except LogError as error:
        if error.code != "N003":
            raise
        return []
    return removed


async def _entry_of(log: Log, key: str) -> tuple[int, int] | None:
    """The revision of a list, and when it was stored; None if it is not one that this client relies on."""
    try:
        entry = await log.get(TABLE, key)
    except StateError as error:
        ignored(error)
        return None
    return None if entry is None else (entry.revision, entry.time)


async def _named(log: Log, key: str, states: list[str]) -> set[str]:
    """The states that a list names, and those after its newest one, which are about to be named."""
    listed, revision = await listed_snapshots(log, key)
    if not listed and revision:
        return {each for each in states if _list_of(each) == key}  # not signed, or empty: the first is on its way
    newest = state_name(key, max((steps for steps, _ in listed), default=0))
    later = {each for each in states if _list_of(each) == key and each > newest}
    return later | {state_name(key, steps) for steps, _ in listed}


def _list_of(state: str) -> str:
    found = STATE.fullmatch(state)
    return "" if found is None else found[1]


async def _needed(log: Log) -> set[str]:
    """The lists from which durable subscribers resume."""
    found = set[str]()
    for name in await log.keys(SUBSCRIBERS):
        for key, told in (await groups_of_name(log, name)).items():
            found.update(snapshot_lists(key, places_from_json(told["origin"]), whole=False))
            leading = await leading_origin(log, key) if told.get("emits") else None
            if leading is not None:
                found.update(snapshot_lists(base_key(key), leading, whole=True))
    return found


async def _leading(log: Log) -> set[str]:
    """The lists of the lineages that others join."""
    found = set[str]()
    for key in await log.keys(ORIGINS):
        try:
            origin = await leading_origin(log, key)
        except StateError as error:
            ignored(error)
            continue
        if origin is not None:
            found.update(snapshot_lists(key, origin, whole=False))
    return found
