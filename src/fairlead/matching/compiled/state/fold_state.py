"""Folded runs of a kernel as a Group of columns, and back: the events that stand for them are its queues, and each instance has
its numbers (model/plans/folding.py).

A kernel gets a state by being fed these events; then the numbers take the place of what they come to.

Takes: a kernel between two batches, or one without state and a Group. Gives: a Group in the canonical order; the kernel has the
runs. Never: makes an object for an event.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.compiled.codegen.counters import DIRTY
from fairlead.matching.compiled.codegen.folds.fold_words import CLOCK, COUNT, LANE_A, LANE_B, NUMBER
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.folds.fold_kernel import FoldKernel
from fairlead.matching.compiled.running.folds.fold_pool import EVENT, OWNER
from fairlead.matching.state.content import NEVER, Form, InstanceTable, canonical_order
from fairlead.model.plans.folding import HEAD

Numbers = npt.NDArray[np.int64]


def group_of_folds(kernel: FoldKernel, form: Form, subscription: int, branch: int) -> InstanceTable:
    pool = kernel.pool
    folds = pool.folds[: pool.key_count]
    used = np.flatnonzero((folds[:, COUNT] > 0) | (folds[:, CLOCK] != NEVER))
    keys = kernel.keys.columns(used, form.keys)
    if len(used) > 1:
        order = canonical_order(tuple(keys)) if keys else np.arange(len(used))
        used, keys = used[order], [column.take(pa.array(order)) for column in keys]
    rows = folds[used]
    active = rows[:, COUNT] > 0
    owner, words = _events(kernel, rows, active)
    numbers = np.zeros((len(used), form.folded), dtype=np.int64)
    numbers[active, :HEAD] = rows[active][:, [COUNT, LANE_A, LANE_B]]
    numbers[active, HEAD:] = kernel.totals(rows[active])
    none = np.zeros(0, dtype=np.int64)
    return InstanceTable(
        form,
        np.full(len(used), subscription, dtype=np.int64),
        np.full(len(used), branch, dtype=np.int64),
        tuple(keys),
        rows[:, CLOCK].copy(),
        np.zeros(len(used), dtype=bool),
        np.bincount(owner, minlength=len(used)).reshape(-1, 1),
        words,
        none,
        none,
        np.zeros(0, dtype=bool),
        np.zeros((0, form.members), dtype=np.int64),
        numbers,
    )


def _events(kernel: FoldKernel, rows: Numbers, active: npt.NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """The events that stand for runs, each once for a run and in its order: of which row it is, and its word."""
    runs = np.flatnonzero(active)
    roles = rows[active][:, [*kernel.roles.values()]]
    owner, words = np.repeat(runs, roles.shape[1]), roles.reshape(-1)
    values = kernel.pool.values()
    if len(values):
        starts = rows[active][:, NUMBER]
        order = np.argsort(starts)
        at = np.searchsorted(starts[order], values[:, OWNER], side="right") - 1
        owner, words = np.concatenate([owner, runs[order][at]]), np.concatenate([words, values[:, EVENT]])
    owner, words = owner[words >= 0], words[words >= 0]
    order = np.lexsort((words, owner))
    owner, words = owner[order], words[order]
    first = np.ones(len(words), dtype=bool)
    first[1:] = (owner[1:] != owner[:-1]) | (words[1:] != words[:-1])
    return owner[first], words[first]


def load_folds(kernel: FoldKernel, group: InstanceTable, batch: KernelBatch) -> None:
    """`batch`: the events, and no others."""
    pool = kernel.pool
    instance = kernel.instances_of(group.keys, np.zeros(len(group), dtype=np.int64))
    pool.room_for(kernel.instances(), 0, 0, 0)
    pool.counters[DIRTY] = 1
    if len(batch):
        kernel.feed(batch)
    pool.counters[DIRTY] = 0
    pool.folds[instance, CLOCK] = group.clock
    active = group.lengths[:, 0] > 0
    keys, numbers = instance[active], group.folded[active]
    pool.folds[keys[:, None], [COUNT, LANE_A, LANE_B]] = numbers[:, :HEAD]
    kernel.set_totals(keys, numbers[:, HEAD:])
