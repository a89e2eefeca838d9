"""States of lineages in the log, for everybody who follows the same lineage.

An entry of a table lists the states that a lineage has, with the sequence and the number of deliveries at which each was taken;
the states themselves are objects. Of older ones, fewer are kept: each is about twice as far back as the one before it, so that
whoever comes from far back reads at most about twice what he needs.

Takes: lineages. Gives: the newest state at or before a number of deliveries. Never: needs a state to be there: the log has it
all.
"""

from __future__ import annotations

import json

from fairlead.errors import StateError
from fairlead.runtime.live.grouping import Group
from fairlead.runtime.live.lineage import Lineage
from fairlead.transport.log.protocol import Conflict, Log

TABLE, STORE = "FL_LINEAGES", "FL_STATES"
NEWEST = 3
"""States that are always kept: whoever is loading one finds it still there."""


class Snapshots:
    """Of one lineage: a group on a stream (`key`) from an origin."""

    def __init__(self, log: Log, group: Group, key: str, origin: int) -> None:
        self._log, self._group, self._origin = log, group, origin
        self._key = f"{key}-{origin:x}"

    async def begin(self, count_max: int | None, sequence_max: int | None, *, emits: bool) -> Lineage:
        """The lineage at its newest state with at most so many deliveries, up to that sequence; or at its origin."""
        listed, _ = await self._listed()
        for sequence, count in reversed(listed):
            if (count_max is not None and count > count_max) or (sequence_max is not None and sequence > sequence_max):
                continue
            dumped = await self._log.get_object(STORE, self._name(sequence))
            if dumped is not None:
                try:
                    return Lineage.load(self._group, self._origin, dumped, emits=emits)
                except StateError:
                    continue  # of another version: an older one, or the origin, will do
        return Lineage(self._group, self._origin, emits=emits)

    async def keep(self, lineage: Lineage) -> None:
        """1. the state, 2. the list that names it, 3. away with what the list does not name any more."""
        listed, revision = await self._listed()
        if any(sequence >= lineage.after for sequence, _ in listed):
            return  # somebody was faster
        await self._log.put_object(STORE, self._name(lineage.after), lineage.dump())  # 1
        kept = thinned([*listed, (lineage.after, lineage.book.count)])
        try:
            await self._log.put(TABLE, self._key, json.dumps(kept).encode(), revision)  # 2
        except Conflict:
            listed, _ = await self._listed()
            if lineage.after not in dict(listed):  # somebody was faster
                await self._log.remove_object(STORE, self._name(lineage.after))
            return
        for sequence, _ in listed:
            if sequence not in dict(kept):
                await self._log.remove_object(STORE, self._name(sequence))  # 3

    async def _listed(self) -> tuple[list[tuple[int, int]], int]:
        entry = await self._log.get(TABLE, self._key)
        if entry is None:
            return [], 0
        return [(sequence, count) for sequence, count in json.loads(entry.value)], entry.revision

    def _name(self, sequence: int) -> str:
        return f"{self._key}-{sequence:016x}"


def thinned(listed: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The newest few, and of the others each twice as far back as the one kept before it."""
    newest = listed[-1][0]
    kept = listed[-NEWEST:]
    for each in reversed(listed[:-NEWEST]):
        if newest - each[0] >= 2 * (newest - kept[0][0]):
            kept.insert(0, each)
    return kept
