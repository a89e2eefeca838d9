"""The state of a kernel: nodes, queues, keys and what waits, as arrays that grow by doubling (loop.py has their meaning)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.codegen.auxiliary_programs import freed
from fairlead.matching.compiled.codegen.counters import FREE, FRESH, HEAP, NAMES, NONE_FREE, QUEUED, SEEN
from fairlead.matching.compiled.codegen.indexes.queue_row import ROW
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.searches.reduced_search import room
from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.machine_code.compiler import kernel_of

NEVER = np.iinfo(np.int64).min
"""The clock of a key that has seen nothing; no key of an index is below it either."""
LATEST = np.iinfo(np.int64).max
LINE = 64
"""Bytes in a line of the processor's cache."""
HEAD, TAIL, COUNT, ROOT = range(4)
"""Columns of `queues`."""
CLOCK, FLAGS, WAITS, OLDEST = range(4)
"""Columns of `keys`."""
ARRAYS = (
    "nodes", "links", "trees", "chain_links", "queues", "keys", "chains", "chain_least", "least_keys", "rows", "waiting",
    "heap", "counters", "scratch", "members", "chosen", "different", "kept", "kept_table",
)  # fmt: skip
"""The arrays of a pool, by the names that kernels have for them (kernel_names.py)."""


Numbers = npt.NDArray[np.int64]


class Pool:
    def __init__(self, queues: int, size: int, layout: Layout) -> None:
        self.queues_per_key, self.size, self.layout = queues, size, layout
        self.key_count = 0
        self.nodes = _aligned(0, layout.width)
        self.links = self.nodes.view(np.int32)
        self.trees = np.zeros((0, layout.linked["trees"]), dtype=np.int64 if layout.keyed else np.int32)
        self.chain_links = np.zeros((0, layout.linked["chain_links"]), dtype=np.int32)
        self.queues = np.zeros((0, layout.queue_width), dtype=np.int32)
        self.rows = np.zeros((0, 2 * ROW), dtype=np.int32)
        self.keys = np.zeros((0, 4), dtype=np.int64)
        self.chains = np.zeros((0, 2), dtype=np.int32)
        self.chain_least = np.zeros(0, dtype=np.int64)
        self.least_keys = np.zeros(0, dtype=np.int64)
        self.waiting = np.zeros((0, 6 + size), dtype=np.int64)
        self.heap = np.zeros(0, dtype=np.int64)
        self.counters = np.zeros(len(NAMES), dtype=np.int64)
        self.counters[[*NONE_FREE]], self.counters[SEEN] = -1, NEVER
        self.scratch = np.zeros(0, dtype=np.int32)
        self.members = np.zeros(size, dtype=np.int64)
        self.chosen = np.zeros((0, size), dtype=np.int64)
        self.different, self.kept_table = np.zeros((0, 2), dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
        self.kept = np.zeros((0, layout.kept_width), dtype=np.int64)

    def room_for(self, keys: int, buckets: int, nodes: int, waits: int) -> None:
        """At least `keys` keys and `buckets` chains, and `nodes` more nodes and `waits` more that wait."""
        if keys > len(self.keys):
            wanted = max(16, keys + keys // 2)
            empty = (-1, -1, 0, -1, -1, 0, 0, 0)[: self.layout.queue_width]
            self.queues = grown(self.queues, wanted * self.queues_per_key, empty)
            self.keys = grown(self.keys, wanted, (NEVER, 0, -1, LATEST))
            if self.layout.kept_width:
                self.kept = grown(self.kept, wanted * self.queues_per_key, (0,) * self.layout.kept_width)
            if self.layout.keyed:
                more = wanted * self.queues_per_key - len(self.least_keys)
                self.least_keys = np.concatenate([self.least_keys, np.zeros(more, dtype=np.int64)])
        self.key_count = max(self.key_count, keys)
        if buckets * self.queues_per_key > len(self.chains):
            self.chains = grown(self.chains, max(16, 2 * buckets) * self.queues_per_key, (-1, -1))
            more = len(self.chains) - len(self.chain_least) if self.layout.chain_keyed else 0
            self.chain_least = np.concatenate([self.chain_least, np.full(more, NEVER)])
        nodes += self.queued_count() + self.waiting_count() * self.size
        if self.layout.rowed and min(nodes // 2, len(self.queues)) > len(self.rows):
            self.rows = longer(self.rows, nodes)
        self.room_for_nodes(nodes)
        waits += self.waiting_count()
        if waits > len(self.heap):
            self.waiting, self.heap = longer(self.waiting, 2 * waits), longer(self.heap, 2 * waits)

    def room_for_nodes(self, nodes: int) -> None:
        """So many, those in use among them."""
        if nodes > len(self.nodes):
            nodes = max(64, nodes + nodes // 2)
            wider = _aligned(nodes, self.layout.width)
            wider[: len(self.nodes)] = self.nodes
            self.nodes = wider
            self.links = wider.view(np.int32)
            self.trees, self.chain_links = (longer(each, nodes) for each in (self.trees, self.chain_links))

    def room_to_reduce(self, rows: int) -> None:
        """For a reduced search (reduced_search.py) over the queues of any one key, with as many more events: pages that no
        search gets to are never touched."""
        most = int(self.queues[:, COUNT].reshape(-1, self.queues_per_key).sum(axis=1).max(initial=0))
        wanted = room(self.size, most + rows * self.queues_per_key)
        if wanted > len(self.scratch):
            self.scratch = unwritten(2 * wanted, np.int32)

    def room_to_choose(self, relations: int) -> None:
        """For the relations of one event."""
        if relations > len(self.chosen):
            self.chosen = unwritten((relations, self.size), np.int64)

    def room_to_count(self, values: int) -> None:
        """For the different values of one run, at most so many: what is in the table matters to no other run."""
        if 2 * values > len(self.different):
            self.different = np.zeros((1 << (4 * values).bit_length(), 2), dtype=np.int64)

    def arguments(self) -> dict[str, npt.NDArray[Any]]:
        """By name."""
        return {name: getattr(self, name) for name in ARRAYS}

    def queued_count(self) -> int:
        return int(self.counters[QUEUED])

    def waiting_count(self) -> int:
        return int(self.counters[HEAP])

    def live(self) -> npt.NDArray[np.int64]:
        """The nodes in use, queued or copied for what waits, in no particular order."""
        used = np.ones(int(self.counters[FRESH]), dtype=np.int8)
        if self.counters[FREE] != -1:
            kernel_of(freed())(self.links, used, int(self.counters[FREE]))
        return np.flatnonzero(used)

    def walk(self, key: int, queue: int) -> list[int]:
        """The nodes of one queue, oldest first."""
        nodes, node = [], int(self.queues[key * self.queues_per_key + queue, HEAD])
        while node != -1:
            nodes.append(node)
            node = int(self.links[node, 0])
        return nodes


def _aligned(rows: int, width: int, dtype: Any = np.int64) -> npt.NDArray[Any]:
    """Rows that begin where a line of the processor's cache begins."""
    size = np.dtype(dtype).itemsize
    room = unwritten(rows * width * size + LINE, np.int8)
    skip = -int(room.__array_interface__["data"][0]) % LINE
    made: npt.NDArray[Any] = room[skip : skip + rows * width * size].view(dtype).reshape(rows, width)
    return made


def longer(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """With room that nobody reads before it is written."""
    grown = unwritten((rows, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def grown(array: npt.NDArray[Any], rows: int, fill: tuple[int, ...]) -> npt.NDArray[Any]:
    grown = _aligned(rows, len(fill), array.dtype)
    grown[: len(array)] = array
    grown[len(array) :] = fill
    return grown
