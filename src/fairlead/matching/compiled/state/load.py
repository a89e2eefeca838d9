"""A kernel resumes from a state: its pool is filled from the columns of a Group, all nodes at once.

Nodes are numbered in the order of the Group, so in a queue the next node is simply the next number; after them come the copies
of the members of what waits. Ordered indexes are not made here: a kernel makes them when it needs them.

Takes: a kernel without state, a Group and the events. Gives: nothing, the kernel has it. Never: makes an object for an event.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.codegen.counters import FRESH, HEAP, QUEUED, WAIT_FRESH
from fairlead.matching.compiled.codegen.deadlines import BORN, CANCELLED, DEADLINE, KEY, MEMBERS, NEXT, PREVIOUS
from fairlead.matching.compiled.planning.access import ShortKey
from fairlead.matching.compiled.planning.shape import Lane, every_bit
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.branch import KernelBranch
from fairlead.matching.compiled.running.keys import paired
from fairlead.matching.compiled.running.pool import CLOCK, COUNT, FLAGS, HEAD, OLDEST, TAIL, WAITS
from fairlead.matching.compiled.running.run_output import recount
from fairlead.matching.state.content import InstanceTable

Numbers = npt.NDArray[np.int64]
WORST_KEY = np.iinfo(np.int64).max


def load(kernel: KernelBranch, group: InstanceTable, which: Numbers, batch: KernelBatch) -> None:
    """`which`: of each row of the group, the branch of the family. `batch` has the events."""
    Loading(kernel, group, which, batch).run()


class Loading:
    def __init__(self, kernel: KernelBranch, group: InstanceTable, which: Numbers, batch: KernelBatch) -> None:
        self.kernel, self.group, self.batch = kernel, group, batch
        self.pool, self.shape, self.layout = kernel.pool, kernel.shape, kernel.source.layout
        self.instance = kernel.instances_of(group.keys, which)
        stride, size, waits = self.shape.stride, self.shape.size, len(group.owner)
        lengths = group.lengths.reshape(-1)
        self.queued = len(group.words)
        rows = np.arange(len(group))
        owner = np.concatenate([np.repeat(np.repeat(rows, stride), lengths), np.repeat(group.owner, size)])
        slots = np.array(self.shape.queue_of_slot, dtype=np.int64)
        self.queue = np.concatenate([np.repeat(np.tile(np.arange(stride), len(group)), lengths), np.tile(slots, waits)])
        self.words = np.concatenate([group.words, group.members.reshape(-1)])
        self.owner, self.which = self.instance[owner], which[owner]

    def run(self) -> None:
        # 1. the numbers of equal values, for they say how much room there must be
        self.found = self._rows_of_events()
        buckets = self._buckets() if self.shape.equal else None
        self.pool.room_for(self.kernel.instances(), self.kernel.buckets(), len(self.words), len(self.group.owner))
        # 2. the nodes, with what they know of their events
        self.pool.counters[FRESH], self.pool.counters[QUEUED] = len(self.words), self.queued
        self.pool.nodes[: len(self.words)] = 0
        self.pool.nodes[: len(self.words), self.layout["REF"]] = self.words
        self.short = np.zeros(len(self.words), dtype=np.int32)
        """Keys along the chains of the hash index, as far as 32 bits hold them."""
        for lane, queue, name, nodes, inner in self.found:
            self._fill(lane, queue, name, nodes, inner)
        # 3. what lies across them
        self._link()
        if buckets is not None:
            self._chain(buckets)
        self._keep_time()
        self._wait()
        recount(self.kernel)

    def _rows_of_events(self) -> list[tuple[Lane, int, str, Numbers, Numbers]]:
        """By queue and type, the nodes and which rows of the type's table they are."""
        batch, found = self.batch, []
        row = np.searchsorted(batch.words, self.words)
        codes = batch.codes[row] if len(row) else np.zeros(0, dtype=np.int32)
        place = np.empty(len(batch), dtype=np.int64)
        for name in batch.rows:
            place[batch.places(name)] = np.arange(len(batch.rows[name]))
        for lane in (each for each in self.shape.lanes if not each.joined):  # the joined ones lead to the same queues
            for name in (each for each in lane.types if each in batch.rows):
                of_type = codes == batch.types[name]
                for queue in lane.queues:
                    nodes = np.flatnonzero(of_type & (self.queue == queue))
                    if len(nodes):
                        found.append((lane, queue, name, nodes, place[row[nodes]]))
        return found

    def _buckets(self) -> Numbers:
        """The chain of the hash index that each node is in; copies are in none."""
        made = np.full(len(self.words), -1, dtype=np.int64)
        for _, queue, name, nodes, inner in self.found:
            if queue in self.shape.equal:
                numbers = self.kernel.equal_numbers(self.batch, name, self.shape.equal[queue])[inner]
                if self.kernel.is_keyed:
                    numbers = paired(self.kernel.equal_pairs, self.owner[nodes], numbers)
                made[nodes] = numbers
        made[self.queued :] = -1
        return made

    def _fill(self, lane: Lane, queue: int, name: str, nodes: Numbers, inner: Numbers) -> None:
        stored, layout, shape, batch = self.pool.nodes, self.layout, self.shape, self.batch
        times = batch.rows[name].times
        if "TIME" in layout and times is not None:
            stored[nodes, layout["TIME"]] = times[inner]
        bits = self._bits(lane, name, nodes, inner) if "BITS" in layout else None
        if bits is not None:
            stored[nodes, layout["BITS"]] = bits
        values: dict[int, npt.NDArray[Any]] = {}
        for number, column in enumerate(shape.columns):
            if column.queue == queue:
                values[number] = self.kernel.values(batch, column, name)[0][inner]
                if number in layout.place_of_column:
                    words = values[number].view(np.int64) if column.is_double else values[number]
                    stored[nodes, layout.place_of_column[number]] = words
        chained = self.kernel.source.accesses.chained.get(queue)
        if chained is not None and chained.form is not None:
            keys = sortable(values[chained.column], chained.sign)
            self.short[nodes] = keys >> 32 if chained.form is ShortKey.UPPER else keys
        tree = self.kernel.source.accesses.trees.get(queue)
        if tree is not None and tree.column is not None:
            keys = sortable(values[tree.column], tree.sign)
            if bits is not None and tree.slot in self.kernel.source.accesses.chosen_bits:
                keys[(bits >> tree.slot) & 1 == 0] = WORST_KEY
            stored[nodes, layout["KEY"]] = keys

    def _bits(self, lane: Lane, name: str, nodes: Numbers, inner: Numbers) -> Numbers:
        """An event of a lane of one slot was accepted by whichever branch has it: then all branches see the same bits."""
        kernel, shape, batch = self.kernel, self.shape, self.batch
        known = {at: kernel.values(batch, each, name)[1] for at, each in enumerate(shape.columns) if each.queue in lane.queues}
        several = len(kernel.branches) > 1
        single = sum(queue in lane.queues for queue in shape.queue_of_slot) == 1
        made = np.full(len(nodes), every_bit(shape, lane), dtype=np.int64)
        if single and several:
            bits = kernel.bits(batch, lane, name, known, None)
            return bits[inner] if len(bits) else made
        which = self.which[nodes]
        for member in np.unique(which).tolist():
            bits = kernel.bits(batch, lane, name, known, member)
            if len(bits):
                mine = np.flatnonzero(which == member)
                made[mine] = bits[inner[mine]]
        return made

    def _link(self) -> None:
        """Queues: first and last node, length, least key; nodes: the next one and the one before."""
        pool, stride, count = self.pool, self.shape.stride, self.queued
        lengths = self.group.lengths.reshape(-1)
        at = (self.instance[:, None] * stride + np.arange(stride)).reshape(-1)[lengths > 0]
        lengths = lengths[lengths > 0]
        ends = np.cumsum(lengths)
        starts = ends - lengths
        pool.queues[at, HEAD], pool.queues[at, TAIL], pool.queues[at, COUNT] = starts, ends - 1, lengths
        pool.links[:count, 0], pool.links[:count, 1] = np.arange(1, count + 1), np.arange(-1, count - 1)
        pool.links[ends - 1, 0], pool.links[starts, 1] = -1, -1
        if "KEY" in self.layout and count:
            keys = pool.nodes[: len(self.words), self.layout["KEY"]]
            pool.links[: len(self.words), self.layout["HIGH"]] = keys >> 32
            pool.least_keys[at] = np.minimum.reduceat(keys[:count], starts)

    def _chain(self, buckets: Numbers) -> None:
        """The hash index: of each value and queue the nodes in their order."""
        pool, at = self.pool, buckets * self.shape.stride + self.queue
        pool.chain_links[: len(buckets)] = -1
        pool.chain_links[: len(buckets), self.layout["BUCKET"]] = buckets
        pool.chain_links[: len(buckets), self.layout["SHORT"]] = self.short
        nodes = np.flatnonzero(buckets >= 0)
        nodes = nodes[np.argsort(at[nodes], kind="stable")]
        if not len(nodes):
            return
        following, first = _neighbours(at[nodes], nodes)
        pool.chain_links[nodes, self.layout["BNEXT"]] = following
        before = np.roll(nodes, 1)
        before[first] = -1
        pool.chain_links[nodes, self.layout["BPREV"]] = before
        last = following == -1
        pool.chains[at[nodes[first]], 0], pool.chains[at[nodes[last]], 1] = nodes[first], nodes[last]

    def _keep_time(self) -> None:
        """Clocks and flags; the oldest member of each key, and whether some queue of members is not in the order of time."""
        pool, group = self.pool, self.group
        pool.keys[self.instance, CLOCK] = group.clock
        pool.keys[self.instance, FLAGS] = group.loose
        if not self.shape.windowed:
            return
        member = self.queue[: self.queued] < len(self.shape.needed)
        times = pool.nodes[: self.queued, self.layout["TIME"]]
        np.minimum.at(pool.keys[:, OLDEST], self.owner[: self.queued][member], times[member])
        falls = np.flatnonzero((pool.links[: self.queued, 0] != -1)[:-1] & member[:-1] & (times[1:] < times[:-1]))
        pool.keys[self.owner[falls], FLAGS] |= 2

    def _wait(self) -> None:
        """What waits comes in the order of deadlines and members; sorted so, it is a heap."""
        pool, group = self.pool, self.group
        rows, size = np.arange(len(group.owner)), self.shape.size
        if not len(rows):
            return
        keys = self.instance[group.owner]
        pool.waiting[rows, DEADLINE], pool.waiting[rows, CANCELLED] = group.deadline, group.cancelled
        pool.waiting[rows, KEY], pool.waiting[rows, BORN] = keys, 0
        pool.waiting[rows, MEMBERS:] = self.queued + np.arange(len(rows) * size).reshape(-1, size)
        pool.heap[: len(rows)] = rows
        pool.counters[HEAP] = pool.counters[WAIT_FRESH] = len(rows)
        order = np.argsort(keys, kind="stable")
        following, first = _neighbours(keys[order], order)
        pool.waiting[order, NEXT] = following
        before = np.roll(order, 1)
        before[first] = -1
        pool.waiting[order, PREVIOUS] = before
        pool.keys[keys[order[first]], WAITS] = order[first]


def _neighbours(of: Numbers, numbers: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Numbers sorted by what they belong to: of each the next one that belongs to the same, -1 for none, and whether it is
    the first."""
    first = np.concatenate(([True], of[1:] != of[:-1]))
    following = np.roll(numbers, -1)
    following[np.roll(first, -1)] = -1
    return following, first


def sortable(values: npt.NDArray[Any], sign: str) -> Numbers:
    """Keys in the ordered index, as `key_of` (ordered_index.py) has them."""
    if values.dtype != np.float64:
        return ~values if sign == ">" else values.copy()
    turned = ((-values if sign == ">" else values) + 0.0).view(np.int64)
    made = np.where(turned >= 0, turned, turned ^ WORST_KEY)
    made[np.isnan(values)] = WORST_KEY
    return made
