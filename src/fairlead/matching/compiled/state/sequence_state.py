"""The rows of a sequence's keys as a Group of columns, and back. Searches follow from the rows, so they are no part of a state.

Takes: a kernel between two batches, or one without state and a Group. Gives: a Group in the canonical order; the kernel has the
rows. Never: searches (the kernel begins all searches again before its next row).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.compiled.codegen.auxiliary_programs import walk
from fairlead.matching.compiled.codegen.counters import FRESH, QUEUED
from fairlead.matching.compiled.machine_code.compiler import kernel_of
from fairlead.matching.compiled.planning.shape import every_bit
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.pool import COUNT, HEAD, TAIL
from fairlead.matching.compiled.running.sequences.sequence_kernel import SequenceKernel
from fairlead.matching.state.content import NEVER, Form, InstanceTable, canonical_order

Numbers = npt.NDArray[np.int64]
LANE = 3
"""The column of `links` with the lane of a row (sequence_layout.py)."""


def group_of_sequence(kernel: SequenceKernel, form: Form, subscription: int, branch: int) -> InstanceTable:
    pool, shape = kernel.pool, kernel.shape
    used = pool.used().astype(np.int64)
    keys = kernel.keys.columns(used, form.keys)
    if len(used) > 1:
        order = canonical_order(tuple(keys)) if keys else np.arange(len(used))
        used, keys = used[order], [column.take(pa.array(order)) for column in keys]
    nodes = np.empty(int(pool.queues[used, COUNT].sum()), dtype=np.int64)
    kernel_of(walk())(pool.queues[used, HEAD], pool.links, nodes)
    owner = np.repeat(np.arange(len(used)), pool.queues[used, COUNT])
    # a row stands in every queue whose type accepts it
    lanes = pool.links[nodes, LANE]
    members = np.zeros((len(shape.lanes), shape.stride), dtype=bool)
    for at, lane in enumerate(shape.lanes):
        members[at, list(lane.queues)] = True
    row, queue = np.nonzero(members[lanes])
    lengths = np.zeros((len(used), shape.stride), dtype=np.int64)
    np.add.at(lengths, (owner[row], queue), 1)
    words = pool.nodes[nodes, kernel.source.layout["REF"]]
    order = np.lexsort((row, queue, owner[row]))
    none = np.zeros(0, dtype=np.int64)
    return InstanceTable(
        form,
        np.full(len(used), subscription, dtype=np.int64),
        np.full(len(used), branch, dtype=np.int64),
        tuple(keys),
        np.full(len(used), NEVER, dtype=np.int64),
        np.zeros(len(used), dtype=bool),
        lengths,
        words[row[order]],
        none,
        none,
        np.zeros(0, dtype=bool),
        np.zeros((0, form.members), dtype=np.int64),
        np.zeros((len(used), 0), dtype=np.int64),
    )


def load_sequence(kernel: SequenceKernel, group: InstanceTable, batch: KernelBatch) -> None:
    """`batch` has the events."""
    pool, layout = kernel.pool, kernel.source.layout
    instance = kernel.instances_of(group.keys, np.zeros(len(group), dtype=np.int64))
    owner = np.repeat(instance, group.lengths.sum(axis=1))
    # 1. each row once, by key and place
    order = np.lexsort((group.words, owner))
    owner, words = owner[order], group.words[order]
    first = np.ones(len(words), dtype=bool)
    first[1:] = (owner[1:] != owner[:-1]) | (words[1:] != words[:-1])
    owner, words = owner[first], words[first]
    count = len(words)
    pool.room_for(kernel.instances(), 0, count, 0)
    pool.counters[FRESH] = pool.counters[QUEUED] = count
    # 2. nodes
    pool.nodes[:count] = 0
    pool.nodes[:count, layout["REF"]] = words
    _fill(kernel, batch, words)
    # 3. their lists
    starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1]))) if count else np.zeros(0, dtype=np.int64)
    ends = np.append(starts[1:], count)[: len(starts)]
    pool.links[:count, 0] = np.arange(1, count + 1)
    pool.links[ends - 1, 0] = -1
    keys = owner[starts]
    pool.queues[keys, HEAD], pool.queues[keys, TAIL], pool.queues[keys, COUNT] = starts, ends - 1, ends - starts
    kernel.restart()


def _fill(kernel: SequenceKernel, batch: KernelBatch, words: Numbers) -> None:
    """What nodes have of their events."""
    pool, shape, layout = kernel.pool, kernel.shape, kernel.source.layout
    row = np.searchsorted(batch.words, words)
    codes = batch.codes[row] if len(row) else np.zeros(0, dtype=np.int32)
    for at, lane in enumerate(shape.lanes):
        for name in (each for each in lane.types if each in batch.rows and lane.queues):
            nodes = np.flatnonzero(codes == batch.types[name])
            inner = np.searchsorted(batch.places(name), row[nodes])
            pool.links[nodes, LANE] = at
            times = batch.rows[name].times
            if "TIME" in layout and times is not None:
                pool.nodes[nodes, layout["TIME"]] = times[inner]
            known = {}
            for number, column in enumerate(shape.columns):
                if column.queue in lane.queues:
                    values, known[number] = kernel.values(batch, column, name)
                    found = values[inner]
                    stored = found.view(np.int64) if column.is_double else found
                    pool.nodes[nodes, layout.place_of_column[number]] = stored
            bits = kernel.bits(batch, lane, name, known, 0)
            pool.nodes[nodes, layout["BITS"]] = bits[inner] if len(bits) else every_bit(shape, lane)
