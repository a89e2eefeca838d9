"""What a kernel has queued and waiting, as a Group of columns (content.py): nothing in Python for an event.

Takes: a family between two batches. Gives: a Group in the canonical order. Never: changes the kernel.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.compiled.codegen.auxiliary_programs import walk
from fairlead.matching.compiled.codegen.deadlines import CANCELLED, DEADLINE, KEY, MEMBERS
from fairlead.matching.compiled.machine_code.compiler import kernel_of
from fairlead.matching.compiled.running.branch import KernelBranch
from fairlead.matching.compiled.running.pool import CLOCK, COUNT, FLAGS, HEAD, WAITS, Pool
from fairlead.matching.state.content import NEVER, Form, InstanceTable, canonical_order

Numbers = npt.NDArray[np.int64]


def group_of_kernel(kernel: KernelBranch, form: Form, subscriptions: Numbers, branches: Numbers) -> InstanceTable:
    """`subscriptions` and `branches`: what each branch of the family is in the plan."""
    pool = kernel.pool
    counts = pool.queues[: pool.key_count * pool.queues_per_key, COUNT].reshape(pool.key_count, pool.queues_per_key)
    clocks, waits = pool.keys[: pool.key_count, CLOCK], pool.keys[: pool.key_count, WAITS]
    used = np.flatnonzero(counts.any(axis=1) | (clocks != NEVER) | (waits != -1))
    numbers, which = kernel.origin(used)
    keys = kernel.keys.columns(numbers, form.keys)
    if len(used) > 1:
        order = canonical_order((pa.array(subscriptions[which]), pa.array(branches[which]), *keys))
        used, which, keys = used[order], which[order], [column.take(pa.array(order)) for column in keys]
    row = np.full(pool.key_count, -1, dtype=np.int64)
    row[used] = np.arange(len(used))
    waiting = pool.waiting[pool.heap[: pool.waiting_count()]]
    words = pool.nodes[:, kernel.source.layout["REF"]]
    return InstanceTable(
        form,
        subscriptions[which],
        branches[which],
        tuple(keys),
        clocks[used],
        (pool.keys[used, FLAGS] & 1).astype(bool),
        counts[used].astype(np.int64),
        words[_nodes(pool, used)],
        row[waiting[:, KEY]],
        waiting[:, DEADLINE],
        waiting[:, CANCELLED].astype(bool),
        words[waiting[:, MEMBERS:]],
        np.zeros((len(used), 0), dtype=np.int64),
    ).in_order_of_deadlines()


def _nodes(pool: Pool, instances: Numbers) -> Numbers:
    queues = (instances[:, None] * pool.queues_per_key + np.arange(pool.queues_per_key)).reshape(-1)
    nodes = np.empty(int(pool.queues[queues, COUNT].sum()), dtype=np.int64)
    kernel_of(walk())(pool.queues[queues, HEAD], pool.links, nodes)
    return nodes
