"""The leading lineage of a subscription: the one that others join, and the only one that stores derived events.

A table has its origin, for all subscribers with the same subscription on the same streams. The first subscriber decides it. One
that does not store derived events (`emit=False`) decides only where others join: the first that does may begin elsewhere. So
what is derived is stored once, in whichever order they come. A subscriber that stores derived events and follows another
lineage follows the leading one too, without delivering from it: otherwise nothing more would be derived when the subscribers
of that one leave.

It begins with an event that is stored, or with the next one: a subscriber may begin at a later position, and those that join
are promised everything from now on.

If blocks were trimmed that the leading lineage has not read by its newest snapshot, nobody can follow it any more. The next one
begins with the events from then on if events are derived, so that none is stored again.

Takes: a group and its streams, an origin. Gives: the origin of the leading lineage. Never: moves it while it can be followed
and stores events.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.runtime.live.core.stream_groups import PLACES, Origin, StreamGroup, places_from_json, places_to_json
from fairlead.runtime.live.merged_streams import caught_up
from fairlead.runtime.live.subscriber.snapshots import Snapshots
from fairlead.runtime.live.subscriber.trim_check import after_trim, has_lost
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.entry_values import entry_value, unreadable
from fairlead.transport.log.protocol import Conflict, Log, Stream, TableEntry

TABLE = "FL_ORIGINS"
LOGGER = logging.getLogger("fairlead")


EQUAL = "-"
"""Precedes the number in the keys of equal subscriptions, except the first."""


def base_key(key: str) -> str:
    """The common prefix of the keys of equal subscriptions."""
    return key.partition(EQUAL)[0]


@dataclass(frozen=True)
class LeadingRecord:
    """What is recorded of a leading lineage. `streams`: that it reads; empty in records of earlier releases."""

    origin: Origin
    emits: bool
    streams: tuple[Stream, ...]


async def leading_origin(log: Log, key: str) -> Origin | None:
    """Where the leading lineage of a group begins, if there is one."""
    found = await leading_record(log, key)
    return None if found is None else found.origin


async def leading_record(log: Log, key: str) -> LeadingRecord | None:
    """Raises StateError (S147)."""
    entry = await log.get(TABLE, base_key(key))
    if entry is None:
        return None
    told = _told(entry, base_key(key))
    streams = tuple(Stream(*each) for each in told.get("streams", []) if len(each) == 2)
    return LeadingRecord(places_from_json(told["origin"]), told.get("emits", True), streams)


def _told(entry: TableEntry, key: str) -> dict[str, Any]:
    found: dict[str, Any] = entry_value(entry.value, {"origin": PLACES, "emits?": bool, "streams?": [[str]]}, TABLE, key)
    return found


class LeadingLineage:
    """`key`: of the group. `emits`: the subscriber stores derived events."""

    def __init__(self, log: Log, group: StreamGroup, streams: Sequence[Stream], key: str, *, emits: bool) -> None:
        self._log, self._group, self._streams, self._key, self._emits = log, group, streams, base_key(key), emits

    async def joined(self, origin: Origin) -> Origin:
        """For a subscriber that joins others; it begins at `origin` if there are none."""
        return await self._decided(origin, joins=True)

    async def beside(self, origin: Origin) -> Origin:
        """For a subscriber that begins at an origin of its own."""
        return await self._decided(origin, joins=False)

    async def _decided(self, mine: Origin, *, joins: bool) -> Origin:
        while True:
            entry = await self._log.get(TABLE, self._key)
            if entry is None:
                origin, stores, revision = await self._present(mine), self._emits, 0
            else:
                told = _told(entry, self._key)
                if len(places_from_json(told["origin"])) != len(self._streams):
                    raise unreadable(TABLE, self._key)
                origin, was, revision = places_from_json(told["origin"]), told.get("emits", True), entry.revision
                stores = was or self._emits
                alone = not joins and (origin == mine or (self._emits and not was))
                if alone:
                    origin = origin if origin == mine else await self._present(mine)
                elif (joins or self._emits) and not await self._is_followed(origin):
                    LOGGER.warning("the state of '%s' was trimmed away: it begins again", self._group.names[0])
                    origin = await self.now() if stores else mine
                if (origin, stores) == (places_from_json(told["origin"]), was):
                    return origin
            told = {"origin": places_to_json(origin), "emits": stores, "streams": [[*each] for each in self._streams]}
            value = json.dumps(told).encode()
            try:
                await self._log.put(TABLE, self._key, value, revision)
                return origin
            except Conflict:
                continue

    async def _present(self, origin: Origin) -> Origin:
        """The origin, or that of the next event if it is later."""
        begun = zip(self._streams, origin, strict=True)
        return tuple(
            [
                first if first >> INDEX_BITS <= 1 else min(first, (await self._log.last(each) + 1) << INDEX_BITS)
                for each, first in begun
            ]
        )

    async def now(self) -> Origin:
        """The origin of a lineage that begins with events that are stored from now on."""
        ends = [
            await caught_up(self._log, stream, topics)
            for stream, topics in zip(self._streams, self._group.sources, strict=True)
        ]
        return tuple((each + 1) << INDEX_BITS for each in ends)

    async def _is_followed(self, origin: Origin) -> bool:
        """Whether the log has all that the lineage reads after its newest snapshot. If it has all from the origin on, no state
        has to be loaded to tell."""
        reads = [*zip(self._streams, self._group.sources, strict=True)]
        before = [max(0, (each >> INDEX_BITS) - 1) for each in origin]
        if all(
            [
                len(topics) == 1
                and await after_trim(self._log, each) <= last
                and (await self._log.state(each)).first <= last + 1
                for (each, topics), last in zip(reads, before, strict=True)
            ]
        ):
            return True
        lineage = await Snapshots(self._log, self._group, self._key, origin, emits=self._emits).begin(None, None)
        return not any([await has_lost(self._log, *each, place) for each, place in zip(reads, lineage.places, strict=True)])
