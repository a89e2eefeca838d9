"""A subscription on kernels: its branches over the same batches, and its state in the form that every matcher shares.

The dumped state is the incremental matcher's, byte for byte, so an engine can begin with one matcher and go on with the other.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fairlead.matching import state
from fairlead.matching.chunk import Words, chunk_of_events
from fairlead.matching.instance import Instance, Pending, plain_instance, restored_instance
from fairlead.matching.kernel.batch import Batch
from fairlead.matching.kernel.branch import Found, KernelBranch
from fairlead.matching.kernel.pool import CLOCK, FLAGS, NEVER, SEEN, WAITS
from fairlead.matching.outcome import Match
from fairlead.matching.store import Store, distinct
from fairlead.model.columns import Columns
from fairlead.model.event import Event
from fairlead.model.plan import Subscription
from fairlead.model.types import Catalogue


class KernelSubscription:
    """Raises `Refused` where a branch has no kernel."""

    def __init__(self, subscription: Subscription, catalogue: Catalogue) -> None:
        self.subscription, self.catalogue = subscription, catalogue
        self.branches = [KernelBranch(subscription, branch, catalogue) for branch in subscription.branches]
        self.reads = subscription.reads(catalogue)
        self.seen: int | None = None

    def feed(self, batch: Batch) -> list[tuple[Found, Found]]:
        """For each branch what the batch completes, and what absences it decides."""
        for name, rows in batch.rows.items():
            if name in self.reads and rows.times is not None and len(rows):
                latest = int(rows.times.max())
                self.seen = latest if self.seen is None else max(self.seen, latest)
        return [branch.feed(batch) for branch in self.branches]

    def finish(self, until: int, last: int) -> list[Found]:
        """What absences are decided before the time `until`."""
        nothing = Batch(Columns((), [], range(0), {}), self.catalogue)
        return [branch.feed(nothing, until, last)[1] for branch in self.branches]

    def live(self) -> Words:
        """The words of what is queued or waits, in any order."""
        return np.concatenate([branch.live() for branch in self.branches])

    def queued(self) -> int:
        return sum(branch.pool.queued() + branch.pool.waiting() * branch.pool.size for branch in self.branches)

    def dump(self, store: Store) -> dict[str, Any]:
        live = distinct(self.live())
        events = dict(zip(live.tolist(), store.view().take(live).events(self.catalogue), strict=True))
        return {
            "seen": self.seen,
            "branches": [
                sorted(_instances(number, each, events), key=lambda entry: json.dumps(entry[0]))
                for number, each in enumerate(self.branches)
            ],
        }

    def restore(self, content: dict[str, Any], store: Store) -> None:
        """Queue what a dumped state has queued; the events go into the store."""
        self.seen = content["seen"]
        for number, (branch, entries) in enumerate(zip(self.branches, content["branches"], strict=True)):
            branch.pool.st[SEEN] = NEVER if self.seen is None else self.seen
            loaded = []
            for plain_key, plain in entries:
                key = tuple(map(state.restored, plain_key))
                loaded.append((key, restored_instance(plain, number, key, self.catalogue)))
            events = [
                event
                for _, instance in loaded
                for each in (*instance.lists(), *(pending.match.members for pending in instance.pending))
                for event in each
            ]
            if events:
                store.add_events(events)
                by_position = {event.position: event for event in events}
                chunk = chunk_of_events([by_position[position] for position in sorted(by_position)])
                branch.adopt(Batch(chunk.columns, self.catalogue, chunk.words, chunk.times), loaded)
            else:
                branch.adopt(Batch(Columns((), [], range(0), {}), self.catalogue), loaded)


def _instances(number: int, branch: KernelBranch, events: dict[int, Event]) -> list[Any]:
    entries = []
    pool, shape = branch.pool, branch.shape
    for at, key in enumerate(branch.keys.values()):
        if at >= pool.keys:
            continue
        lists = [[events[word] for word in branch.words_of(pool.walk(at, queue))] for queue in range(shape.stride)]
        queues, noted = lists[: len(shape.needed)], lists[len(shape.needed) :]
        clock = int(pool.ks[at, CLOCK])
        pending, row = [], int(pool.ks[at, WAITS])
        while row != -1:
            deadline, cancelled, _, following, *nodes = pool.wait[row].tolist()
            members = tuple(events[word] for word in branch.words_of(nodes))
            match = Match(number, members, deadline)
            pending.append(Pending((deadline, tuple(each.position for each in members), number), match, key, bool(cancelled)))
            row = following
        instance = Instance(queues, noted, None if clock == NEVER else clock, bool(pool.ks[at, FLAGS] & 1), pending)
        if not instance.is_empty():
            entries.append([[state.plain(value) for value in key], plain_instance(instance)])
    return entries
