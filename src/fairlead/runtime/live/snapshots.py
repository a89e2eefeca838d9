"""States of lineages in the log, for everybody who follows the same lineage.

An entry of a table lists the states that a lineage has, with the steps and the number of deliveries after which each was taken;
the states themselves are objects. Of older ones, fewer are kept: each is about twice as far back as the one before it, so that
whoever comes from far back reads at most about twice what he needs.

Takes: lineages. Gives: the newest state at or before a number of deliveries. Never: needs a state to be there: the log has it
all.
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
"""States that are always kept: whoever is loading one finds it still there."""


class Snapshots:
    """Of one lineage: a group on its streams (`key`) from an origin."""

    def __init__(self, log: Log, group: StreamGroup, key: str, origin: Origin) -> None:
        self._log, self._group, self._origin = log, group, origin
        self.key = f"{key}-{name_of(origin)}"

    async def begin(self, count_max: int | None, border: Sequence[int] | None, *, emits: bool) -> Lineage:
        """The lineage at its newest state with at most so many deliveries, in no part behind the border; or at its origin."""
        listed, _ = await self._listed()
        for steps, count in reversed(listed):
            if (count_max is not None and count > count_max) or (border is not None and steps > sum(border)):
                continue
            dumped = await self._log.get_object(STORE, self._name(steps))
            if dumped is not None:
                try:
                    made = Lineage.load(self._group, self._origin, dumped, emits=emits)
                except StateError:
                    continue  # of another version: an older one, or the origin, will do
                if border is None or all(map(le, made.after, border)):
                    return made
        return Lineage(self._group, self._origin, emits=emits)

    async def keep(self, steps: int, count: int, state: bytes) -> None:
        """Of so many steps and deliveries: 1. the state, 2. the list that names it, 3. away with what that does not name any
        more."""
        listed, revision = await self._listed()
        if any(theirs >= steps for theirs, _ in listed):
            return  # somebody was faster
        await self._log.put_object(STORE, self._name(steps), state)  # 1
        kept = thinned([*listed, (steps, count)])
        try:
            await self._log.put(TABLE, self.key, json.dumps(kept).encode(), revision)  # 2
        except Conflict:
            listed, _ = await self._listed()
            if steps not in dict(listed):  # somebody was faster
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
    """The newest few, and of the others each twice as far back as the one kept before it."""
    newest = listed[-1][0]
    kept = listed[-NEWEST:]
    for each in reversed(listed[:-NEWEST]):
        if newest - each[0] >= 2 * (newest - kept[0][0]):
            kept.insert(0, each)
    return kept
