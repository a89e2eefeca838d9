"""The state of a kernel: nodes, queues, keys and what waits, as arrays that grow by doubling (loop.py has their meaning)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.codegen.counters import FREE, FRESH, HEAP, NAMES, NONE_FREE, QUEUED, SEEN
from fairlead.matching.compiled.codegen.kernel_names import LINKS
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.ordered_index import ROW
from fairlead.matching.compiled.codegen.reduced_search import room
from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.machine_code.compiler import kernel_of
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.expressions import NONE, Array, variables
from fairlead.matching.compiled.representation.statements import Program

NEVER = np.iinfo(np.int64).min
"""The clock of a key that has seen nothing."""
LATEST = np.iinfo(np.int64).max
LINE = 64
"""Bytes in a line of the processor's cache."""
HEAD, TAIL, COUNT, ROOT = range(4)
"""Columns of `qs`."""
CLOCK, FLAGS, WAITS, OLDEST = range(4)
"""Columns of `ks`."""
NEXT = 0
"""The column of `nn` with the node that follows."""


@lru_cache(maxsize=1)
def freed() -> Program:
    """A kernel along the free nodes."""
    used, node, count = Array("used"), *variables("node count")
    code = Code()
    code.assign(count, 0)
    with code.loop(node != NONE):
        code.assign(used[node], 0)
        code.assign(node, LINKS[node, NEXT])
        code.increase(count)
    code.give_results(count, 0)
    return Program([code.function("kernel", LINKS, used, node)])


class Pool:
    def __init__(self, queues: int, size: int, layout: Layout) -> None:
        self.queues, self.size, self.layout = queues, size, layout
        self.keys = 0
        self.ni = _aligned(0, layout.width)
        self.nn = self.ni.view(np.int32)
        self.tt = np.zeros((0, layout.linked["trees"]), dtype=np.int64 if layout.keyed else np.int32)
        self.bb = np.zeros((0, layout.linked["chain_links"]), dtype=np.int32)
        self.qs = np.zeros((0, layout.queue_width), dtype=np.int32)
        self.fr = np.zeros((0, 2 * ROW), dtype=np.int32)
        self.ks = np.zeros((0, 4), dtype=np.int64)
        self.bs = np.zeros((0, 2), dtype=np.int32)
        self.gs = np.zeros(0, dtype=np.int64)
        self.wait = np.zeros((0, 6 + size), dtype=np.int64)
        self.heap = np.zeros(0, dtype=np.int64)
        self.st = np.zeros(len(NAMES), dtype=np.int64)
        self.st[[*NONE_FREE]], self.st[SEEN] = -1, NEVER
        self.sc = np.zeros(0, dtype=np.int32)
        self.members = np.zeros(size, dtype=np.int64)

    def room_for(self, keys: int, buckets: int, nodes: int, waits: int) -> None:
        """At least `keys` keys and `buckets` chains, and `nodes` more nodes and `waits` more that wait."""
        if keys > len(self.ks):
            wanted = max(16, keys + keys // 2)
            self.qs = _grown(self.qs, wanted * self.queues, (-1, -1, 0, -1, -1, 0, 0, 0)[: self.layout.queue_width])
            self.ks = _grown(self.ks, wanted, (NEVER, 0, -1, LATEST))
            if self.layout.keyed:
                self.gs = np.concatenate([self.gs, np.zeros(wanted * self.queues - len(self.gs), dtype=np.int64)])
        self.keys = max(self.keys, keys)
        if buckets * self.queues > len(self.bs):
            self.bs = _grown(self.bs, max(16, 2 * buckets) * self.queues, (-1, -1))
        nodes += self.queued() + self.waiting() * self.size
        if self.layout.rowed and min(nodes // 2, len(self.qs)) > len(self.fr):
            self.fr = _longer(self.fr, nodes)
        if nodes > len(self.ni):
            nodes = max(64, nodes + nodes // 2)
            grown = _aligned(nodes, self.layout.width)
            grown[: len(self.ni)] = self.ni
            self.ni = grown
            self.nn = grown.view(np.int32)
            self.tt, self.bb = (_longer(each, nodes) for each in (self.tt, self.bb))
        waits += self.waiting()
        if waits > len(self.heap):
            self.wait, self.heap = _longer(self.wait, 2 * waits), _longer(self.heap, 2 * waits)

    def room_to_reduce(self, rows: int) -> None:
        """For a reduced search (reduced_search.py) over the queues of any one key, with as many more events."""
        most = int(self.qs[:, COUNT].reshape(-1, self.queues).sum(axis=1).max(initial=0))
        wanted = room(self.size, most + rows * self.queues)
        if wanted > len(self.sc):
            self.sc = np.zeros(2 * wanted, dtype=np.int32)

    def arguments(self) -> dict[str, npt.NDArray[Any]]:
        """By the names that kernels have for them (kernel_names.py)."""
        return {
            "nodes": self.ni, "links": self.nn, "trees": self.tt, "chain_links": self.bb, "queues": self.qs, "keys": self.ks,
            "chains": self.bs, "least_keys": self.gs, "rows": self.fr, "waiting": self.wait, "heap": self.heap,
            "counters": self.st, "scratch": self.sc, "members": self.members,
        }  # fmt: skip

    def queued(self) -> int:
        return int(self.st[QUEUED])

    def waiting(self) -> int:
        return int(self.st[HEAP])

    def live(self) -> npt.NDArray[np.int64]:
        """The nodes in use, queued or copied for what waits, in no particular order."""
        used = np.ones(int(self.st[FRESH]), dtype=np.int8)
        if self.st[FREE] != -1:
            kernel_of(freed())(self.nn, used, int(self.st[FREE]))
        return np.flatnonzero(used)

    def walk(self, key: int, queue: int) -> list[int]:
        """The nodes of one queue, oldest first."""
        nodes, node = [], int(self.qs[key * self.queues + queue, HEAD])
        while node != -1:
            nodes.append(node)
            node = int(self.nn[node, 0])
        return nodes


def _aligned(rows: int, width: int, dtype: Any = np.int64) -> npt.NDArray[Any]:
    """Rows that begin where a line of the processor's cache begins."""
    size = np.dtype(dtype).itemsize
    room = unwritten(rows * width * size + LINE, np.int8)
    skip = -int(room.__array_interface__["data"][0]) % LINE
    made: npt.NDArray[Any] = room[skip : skip + rows * width * size].view(dtype).reshape(rows, width)
    return made


def _longer(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """With room that nobody reads before it is written."""
    grown = unwritten((rows, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def _grown(array: npt.NDArray[Any], rows: int, fill: tuple[int, ...]) -> npt.NDArray[Any]:
    grown = _aligned(rows, len(fill), array.dtype)
    grown[: len(array)] = array
    grown[len(array) :] = fill
    return grown
