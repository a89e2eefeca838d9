"""Snapshots of lineages in the log, shared by all subscribers that follow the same lineage.

A table entry lists the snapshots of a lineage, each with its steps and number of deliveries; the states themselves are objects.
Older snapshots are thinned out: each is about twice as far back as the next newer one, so a subscriber that resumes from far
back reads at most about twice what it needs.

Takes: lineages. Gives: the newest snapshot at or before a number of deliveries. Never: requires a snapshot: the log has all
events.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import le

from fairlead.errors import StateError
from fairlead.runtime.live.grouping import StreamGroup
from fairlead.runtime.live.lineage import Lineage
from fairlead.runtime.live.origin import Origin, name_of
from fairlead.transport.log.protocol import Conflict, Log

TABLE, STORE = "FL_LINEAGES", "FL_STATES"
NEWEST = 3
"""Snapshots that are always kept, so that one that is being loaded is not removed."""


class Snapshots:
    """The snapshots of one lineage: a group on its streams (`key`) from an origin."""

    def __init__(self, log: Log, group: StreamGroup, key: str, origin: Origin) -> None:
        self._log, self._group, self._origin = log, group, origin
        self.key = f"{key}-{name_of(origin)}"

    async def begin(self, count_max: int | None, border: Sequence[int] | None, *, emits: bool) -> Lineage:
        """The lineage at its newest snapshot with at most this many deliveries and not after the border in any part; or at its
        origin."""
        listed, _ = await self._listed()
        for steps, count in reversed(listed):
            if (count_max is not None and count > count_max) or (border is not None and steps > sum(border)):
                continue
            dumped = await self._log.get_object(STORE, self._name(steps))
            if dumped is not None:
                try:
                    made = Lineage.load(self._group, self._origin, dumped, emits=emits)
                except StateError:
                    continue  # of another version: use an older one, or the origin
                if border is None or all(map(le, made.after, border)):
                    return made
        return Lineage(self._group, self._origin, emits=emits)

    async def keep(self, steps: int, count: int, state: bytes) -> None:
        """Save a snapshot: 1. the state, 2. the list that names it, 3. remove the states that the list no longer names."""
        listed, revision = await self._listed()
        if any(theirs >= steps for theirs, _ in listed):
            return  # another subscriber was faster
        await self._log.put_object(STORE, self._name(steps), state)  # 1
        kept = thinned([*listed, (steps, count)])
        try:
            await self._log.put(TABLE, self.key, json.dumps(kept).encode(), revision)  # 2
        except Conflict:
            listed, _ = await self._listed()
            if steps not in dict(listed):  # another subscriber was faster
                await self._log.remove_object(STORE, self._name(steps))
            return
        for theirs, _ in listed:
            if theirs not in dict(kept):
                await self._log.remove_object(STORE, self._name(theirs))  # 3

    async def _listed(self) -> tuple[list[tuple[int, int]], int]:
        entry = await self._log.get(TABLE, self.key)
        if entry is None:
            return [], 0
        return [(steps, count) for steps, count in json.loads(entry.value)], entry.revision

    def _name(self, steps: int) -> str:
        return f"{self.key}-{steps:016x}"


def thinned(listed: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The newest few, and of the others each twice as far back as the next newer one that is kept."""
    newest = listed[-1][0]
    kept = listed[-NEWEST:]
    for each in reversed(listed[:-NEWEST]):
        if newest - each[0] >= 2 * (newest - kept[0][0]):
            kept.insert(0, each)
    return kept
