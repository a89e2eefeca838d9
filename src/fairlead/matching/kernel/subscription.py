"""A subscription on kernels: its branches over the same batches, and its state in the form that every matcher shares.

The dumped state is the incremental matcher's, byte for byte, so an engine can begin with one matcher and go on with the other.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.matching import state
from fairlead.matching.chunk import Words as Refs
from fairlead.matching.chunk import chunk_of_events
from fairlead.matching.instance import Instance, plain_instance, restored_instance
from fairlead.matching.kernel.branch import Batch, Found, KernelBranch
from fairlead.matching.kernel.pool import NEVER
from fairlead.matching.kernel.vector import Rows
from fairlead.matching.store import Store, distinct
from fairlead.model.columns import Columns
from fairlead.model.event import Event
from fairlead.model.identity import words_of
from fairlead.model.plan import Subscription
from fairlead.model.position import Position
from fairlead.model.types import Catalogue


def batch_of(columns: Columns, catalogue: Catalogue) -> Batch:
    """A batch as kernels read it."""
    codes, majors = columns.code_array, columns.position_array
    rows, places = {}, {}
    for code, name in enumerate(columns.types):
        mine = np.flatnonzero(codes == code)
        if len(mine):
            schema, table = catalogue[name], columns.tables[name]
            times = None if schema.time_index is None else table.column(schema.time_index).cast(pa.int64()).to_numpy()
            rows[name], places[name] = Rows(schema, table, times, majors[mine]), mine
    return Batch(len(codes), words_of(majors), rows, places)


class KernelSubscription:
    """Raises `Refused` where a branch has no kernel."""

    def __init__(self, subscription: Subscription, catalogue: Catalogue) -> None:
        self.subscription, self.catalogue = subscription, catalogue
        self.branches = [KernelBranch(subscription, branch, catalogue) for branch in subscription.branches]
        self.reads = subscription.reads(catalogue)
        self.seen: int | None = None

    def feed(self, batch: Batch) -> list[Found]:
        for name, rows in batch.rows.items():
            if name in self.reads and rows.times is not None and len(rows):
                latest = int(rows.times.max())
                self.seen = latest if self.seen is None else max(self.seen, latest)
        return [branch.feed(batch) for branch in self.branches]

    def live(self) -> Refs:
        """The references that are queued, unsorted."""
        return np.concatenate([branch.pool.ref[branch.pool.live()] for branch in self.branches])

    def dump(self, store: Store) -> dict[str, Any]:
        live = distinct(self.live())
        events = dict(zip(live.tolist(), store.view().take(live).events(self.catalogue), strict=True))
        return {
            "seen": self.seen,
            "branches": [sorted(_instances(each, events), key=lambda entry: json.dumps(entry[0])) for each in self.branches],
        }

    def restore(self, content: dict[str, Any], store: Store) -> None:
        """Queue what a dumped state has queued; the events go into the store."""
        self.seen = content["seen"]
        for number, (branch, entries) in enumerate(zip(self.branches, content["branches"], strict=True)):
            loaded = []
            for plain_key, plain in entries:
                key = tuple(map(state.restored, plain_key))
                loaded.append((key, restored_instance(plain, number, key, self.catalogue)))
            self._queue(branch, loaded, store)

    def _queue(self, branch: KernelBranch, loaded: list[tuple[tuple[Any, ...], Instance]], store: Store) -> None:
        events: dict[Position, Event] = {}
        for _, instance in loaded:
            events.update((event.position, event) for queue in instance.lists() for event in queue)
        ordered = [events[position] for position in sorted(events)]
        if ordered:
            store.add_events(ordered)
        rows = {event.position: at for at, event in enumerate(ordered)}
        columns = chunk_of_events(ordered).columns if ordered else Columns((), [], [], {})
        branch.adopt(batch_of(columns, self.catalogue), loaded, rows)


def _instances(branch: KernelBranch, events: dict[int, Event]) -> list[Any]:
    entries = []
    for number, key in enumerate(branch.keys.values()):
        if number >= branch.pool.keys:
            continue
        lists = [
            [events[int(branch.pool.ref[node])] for node in branch.pool.walk(number, queue)]
            for queue in range(branch.pool.queues)
        ]
        queues, noted = lists[: len(branch.shape.needed)], lists[len(branch.shape.needed) :]
        clock = int(branch.pool.clock[number])
        instance = Instance(queues, noted, None if clock == NEVER else clock, bool(branch.pool.flags[number] & 1))
        if not instance.is_empty():
            entries.append([[state.plain(value) for value in key], plain_instance(instance)])
    return entries
