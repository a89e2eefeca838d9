"""The state of a sequence's kernel: rows as nodes, a list of them and a suspended search for each key, choice points.

Takes: a layout. Gives: arrays that grow by doubling. Never: what cannot be found again from the rows alone: a search can always
be begun anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead.matching.compiled.codegen.counters import DIRTY, FRAME_FREE, FRAME_FRESH, HEAP
from fairlead.matching.compiled.codegen.sequences.search_state import (
    BOTTOM,
    DUE,
    ERA,
    FRAME,
    PLACE,
    SearchState,
    clock,
    era,
    offered,
    top,
    walked,
)
from fairlead.matching.compiled.codegen.sequences.sequence_deadlines import IN_RING, LAST_TIME
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.running.pool import HEAD, LATEST, NEVER, Numbers, Pool, grown, longer

EARLIEST = -LATEST


class SequencePool(Pool):
    def __init__(self, shape: Shape, layout: SequenceLayout) -> None:
        super().__init__(1, shape.size, layout)
        self.state = SearchState(shape)
        columns = [*range(self.state.columns), *(each.name for each in (*self.state.saved, *self.state.members))]
        first = {FRAME: -1, BOTTOM: -1, DUE: LAST_TIME + 1, PLACE: -1}
        first |= {walked.name: -1, top.name: -1, clock.name: EARLIEST, offered.name: -1}  # type: ignore[dict-item]
        padded = [*columns, *[0] * (self.state.search_width - len(columns))]
        self.fresh = tuple(first.get(each, 0) if at else 0 for at, each in enumerate(padded))
        self._dues = [DUE, PLACE] if shape.waits else []
        self._era = [at for at, each in enumerate(columns) if each == era.name]
        self.searches = np.zeros((0, self.state.search_width), dtype=np.int64)
        self.frames = np.zeros((0, self.state.frame_width), dtype=np.int64)
        self.listed = np.zeros(0, dtype=np.int64)
        self.ring = np.zeros((1, 2), dtype=np.int32)

    def room_for(self, keys: int, buckets: int, nodes: int, waits: int) -> None:
        """At least `keys` keys, and `nodes` more rows."""
        if keys > len(self.keys):
            wanted = max(16, keys + keys // 2)
            self.queues = grown(self.queues, wanted, (-1, -1, 0, -1))
            self.keys = grown(self.keys, wanted, (NEVER, 0, -1, LATEST))
            self.searches = grown(self.searches, wanted, self.fresh)
            self.ring = grown(self.ring, wanted + 1, (0, 0))
            self.heap, self.listed = longer(self.heap, wanted), longer(self.listed, wanted)
        self.key_count = max(self.key_count, keys)
        self.room_for_nodes(nodes + self.queued_count())

    def room_for_frames(self) -> None:
        """For more choice points, if all are in use."""
        if self.counters[FRAME_FREE] == -1 and self.counters[FRAME_FRESH] == len(self.frames):
            self.frames = longer(self.frames, max(64, 2 * len(self.frames)))

    def waiting_count(self) -> int:
        """Every key with rows has an open path."""
        return self.queued_count()

    def search_anew(self) -> None:
        """All searches begin again: at the next row of their key, or where time alone can decide, before the next of all."""
        kept = (*self._dues, *self._era)
        self.searches[:] = np.where(np.isin(np.arange(self.searches.shape[1]), kept), self.searches, self.fresh)
        self.searches[:, self._era] += ERA
        self.frames = np.zeros((0, self.state.frame_width), dtype=np.int64)
        self.counters[FRAME_FREE], self.counters[FRAME_FRESH], self.counters[DIRTY] = -1, 0, 1

    def keep_keys(self, kept: Numbers, new_number: Numbers) -> None:
        """Only these keys, all that have rows among them; `new_number`: of each key, -1 if it goes."""
        size = int(new_number.max(initial=-1)) + 1
        queues, keys, searches = self.queues[kept], self.keys[kept], self.searches[kept]
        listed = new_number[np.flatnonzero(self.searches[:, PLACE] != -1)] if self._dues else np.zeros(0, dtype=np.int64)
        self.queues, self.keys = np.zeros((0, 4), dtype=np.int32), np.zeros((0, 4), dtype=np.int64)
        self.searches = np.zeros((0, self.state.search_width), dtype=np.int64)
        self.heap, self.listed = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.ring = np.zeros((1, 2), dtype=np.int32)
        self.key_count = 0
        self.room_for(max(size, 1), 0, 0, 0)
        numbers = new_number[kept]
        self.queues[numbers], self.keys[numbers], self.searches[numbers] = queues, keys, searches
        self.key_count = size
        if self._dues:
            self._list_again(listed[listed >= 0])

    def _list_again(self, listed: Numbers) -> None:
        """These keys in the order of their deadlines, without those that have none."""
        self.searches[:, PLACE] = -1
        listed = listed[self.searches[listed, DUE] <= LAST_TIME]
        listed = listed[np.argsort(self.searches[listed, DUE], kind="stable")]
        self.searches[listed, PLACE] = IN_RING.value
        rows = np.concatenate(([0], listed + 1, [0])).astype(np.int32)
        self.ring[rows[:-1], 0], self.ring[rows[1:], 1] = rows[1:], rows[:-1]
        self.counters[HEAP] = 0

    def rows_of(self, lanes: Sequence[int]) -> Numbers:
        """The rows that came by these lanes."""
        nodes = self.live()
        return nodes[np.isin(self.links[nodes, 3], lanes)]

    def used(self) -> Numbers:
        """The keys that have rows."""
        return np.flatnonzero(self.queues[: self.key_count, HEAD] != -1)
