"""Snapshots that nobody needs any more: the lists and states of lineages that no durable subscriber follows.

Every `start` at a position or a time, and every change of a rule, begins a lineage with snapshots of its own (snapshots.py).
They serve subscribers that return or join. A lineage is kept

    1. while a durable subscriber is recorded with its origin, or stores what it derives
    2. for a day after its last snapshot
    3. if others join it (leading_lineage.py): for 30 days; and, if it stores derived events, as long as its streams exist. Its
       state may be the only one that knows their numbers

Then its list is removed, and its states. A subscriber that begins with a state renews its list first, and the log accepts
either that or the removal, so none begins with a state and finds it gone when it returns. One that begins there later reads the
events again; where they have been trimmed, a lineage that stores nothing begins again. States that no list names are removed,
too: a process ended between storing the state and naming it. A list exists before its first state, so the states are looked up
first: what has no list then will have none.

Takes: a log. Gives: the names of removed lists. Never: removes what a durable subscriber may resume from; asks clocks of
clients.
"""

from __future__ import annotations

import re

from fairlead.errors import LogError, StateError
from fairlead.runtime.live.core.stream_groups import places_from_json
from fairlead.runtime.live.subscriber.leading_lineage import TABLE as ORIGINS
from fairlead.runtime.live.subscriber.leading_lineage import base_key, leading_origin, leading_record
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.subscriber.record import groups_of_name
from fairlead.runtime.live.subscriber.snapshots import KEPT_US, STORE, TABLE, snapshot_list, snapshot_lists, state_name
from fairlead.transport.log.names import MERGED
from fairlead.transport.log.protocol import Conflict, Log
from fairlead.transport.log.signed_log import ignored

LEADING_KEPT_US = 30 * KEPT_US
STATE = re.compile(r"(.+)-[0-9a-f]{16}")
"""The name of a state: that of its list, and its steps."""


async def remove_abandoned(log: Log, kept_us: int = KEPT_US, leading_us: int = LEADING_KEPT_US) -> list[str]:
    """A client that may not remove states leaves them. `kept_us`, `leading_us`: how long lineages without durable subscribers
    are kept, by the clock of the log."""
    try:
        states = await log.objects(STORE)
        lists, removed = await log.keys(TABLE), list[str]()
        if not lists and not states:
            return removed
        needed, leading, now = await _needed(log), await _leading(log), await log.now(TABLE)
        for key in lists:
            entry, after_us = await _entry_of(log, key), kept_us
            if key in leading:
                if leading[key]:
                    continue
                after_us = leading_us
            if entry is None or now - entry[1] <= after_us or key in needed:
                continue
            try:
                await log.remove(TABLE, key, entry[0])
            except Conflict:
                continue  # somebody follows it
            removed.append(key)
        for key in sorted({_list_of(each) for each in states}):
            named = await _named(log, key, states)
            for each in states:
                if _list_of(each) == key and each not in named:
                    await log.remove_object(STORE, each)
    except LogError as error:
        if error.code != "N003":
            raise
        return []
    except StateError as error:  # a record that is not readable: nobody knows what it needs
        ignored(error)
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
    told = await snapshot_list(log, key)
    listed, revision = told.snapshots, told.revision
    if not listed:  # not signed, or the first is on its way; or it is removed
        return {each for each in states if _list_of(each) == key} if revision and await _exists(log, key) else set()
    newest = state_name(key, max(steps for steps, _ in listed))
    later = {each for each in states if _list_of(each) == key and each > newest}
    return later | {state_name(key, steps) for steps, _ in listed}


async def _exists(log: Log, key: str) -> bool:
    try:
        return await log.get(TABLE, key) is not None
    except StateError:
        return True


def _list_of(state: str) -> str:
    found = STATE.fullmatch(state)
    return "" if found is None else found[1]


async def _needed(log: Log) -> set[str]:
    """The lists from which durable subscribers resume. Raises StateError if a record is not readable: then nobody knows."""
    found = set[str]()
    for name in await log.keys(SUBSCRIBERS):
        for key, told in (await groups_of_name(log, name)).items():
            found.update(snapshot_lists(key, places_from_json(told["origin"]), whole=False))
            leading = await leading_origin(log, key) if told.get("emits") else None
            if leading is not None:
                found.update(snapshot_lists(base_key(key), leading, whole=True))
    return found


async def _leading(log: Log) -> dict[str, bool]:
    """The lists of the lineages that others join; True if it stays, whatever its age."""
    found, live = dict[str, bool](), {*await log.merged()}
    for key in await log.keys(ORIGINS):
        try:
            told = await leading_record(log, key)
        except StateError as error:
            ignored(error)
            continue
        if told is not None:
            gone = any(each.name.startswith(MERGED) and each not in live for each in told.streams)
            for each in snapshot_lists(key, told.origin, whole=False):
                found[each] = told.emits and not gone
    return found
