"""The state of a kernel: queues of nodes for each key, as columns that grow by doubling.

A queue is numbered key * queues + queue. A node that is not on the stack `free[:free_top]` is queued. `flags`: bit 0, a
relation without the newest event may be ready; bit 1, some queue of the key is not in the order of time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

NEVER = np.iinfo(np.int64).min
"""The clock of a key that has seen nothing."""


class Pool:
    def __init__(self, queues: int, doubles: list[bool]) -> None:
        self.queues = queues
        self.keys = 0
        self.head = np.full(0, -1, dtype=np.int32)
        self.tail = np.full(0, -1, dtype=np.int32)
        self.count = np.zeros(0, dtype=np.int32)
        self.clock = np.full(0, NEVER, dtype=np.int64)
        self.flags = np.zeros(0, dtype=np.int8)
        self.next = np.zeros(0, dtype=np.int32)
        self.prev = np.zeros(0, dtype=np.int32)
        self.ref = np.zeros(0, dtype=np.int64)
        self.time = np.zeros(0, dtype=np.int64)
        self.bits = np.zeros(0, dtype=np.int64)
        self.values: list[npt.NDArray[Any]] = [np.zeros(0, dtype=np.float64 if each else np.int64) for each in doubles]
        self.free = np.zeros(0, dtype=np.int32)
        self.free_top = 0

    def room_for(self, keys: int, nodes: int) -> None:
        """At least `keys` keys, and `nodes` free nodes."""
        if keys * self.queues > len(self.head):
            wanted = max(16, 2 * keys)
            self.head = _grown(self.head, wanted * self.queues, -1)
            self.tail = _grown(self.tail, wanted * self.queues, -1)
            self.count = _grown(self.count, wanted * self.queues, 0)
            self.clock = _grown(self.clock, wanted, NEVER)
            self.flags = _grown(self.flags, wanted, 0)
        self.keys = max(self.keys, keys)
        if self.free_top < nodes:
            size = len(self.next)
            wanted = max(64, 2 * (size - self.free_top + nodes))
            for name in ("next", "prev", "ref", "time", "bits"):
                setattr(self, name, _grown(getattr(self, name), wanted, 0))
            self.values = [_grown(each, wanted, 0) for each in self.values]
            fresh = np.arange(wanted - 1, size - 1, -1, dtype=np.int32)
            self.free = np.concatenate([fresh, self.free[: self.free_top], np.zeros(size - self.free_top, dtype=np.int32)])
            self.free_top += len(fresh)

    def append(self, key: int, queue: int, ref: int, time: int, bits: int, values: list[Any]) -> None:
        """One node at the end of a queue, for a loaded state; a kernel does this by itself."""
        self.free_top -= 1
        node, at = int(self.free[self.free_top]), key * self.queues + queue
        self.ref[node], self.time[node], self.bits[node] = ref, time, bits
        for column, value in zip(self.values, values, strict=True):
            column[node] = value
        before = self.tail[at]
        self.prev[node], self.next[node] = before, -1
        if before == -1:
            self.head[at] = node
        else:
            self.next[before] = node
        self.tail[at] = node
        self.count[at] += 1

    def queued(self) -> int:
        return len(self.next) - self.free_top

    def live(self) -> npt.NDArray[np.int32]:
        """The queued nodes, in no particular order."""
        queued = np.ones(len(self.next), dtype=bool)
        queued[self.free[: self.free_top]] = False
        return np.flatnonzero(queued).astype(np.int32)

    def walk(self, key: int, queue: int) -> list[int]:
        """The nodes of one queue, oldest first."""
        nodes, node = [], int(self.head[key * self.queues + queue])
        while node != -1:
            nodes.append(node)
            node = int(self.next[node])
        return nodes


def _grown(array: npt.NDArray[Any], size: int, fill: int) -> npt.NDArray[Any]:
    grown = np.full(size, fill, dtype=array.dtype)
    grown[: len(array)] = array
    return grown
