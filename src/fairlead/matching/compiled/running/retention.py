"""What kernels need not remember: numbers of keys, of equal values and of texts that nothing queued refers to.

Keys are numbered once for all branches of a plan whose keys are alike, so they can only go together. With WITHIN a key has a
clock, and the answer is a function of it: such keys stay (those of sequences have none). All of it happens between batches, and
only once at least half of the numbers are of no use: then it costs each number once more what it cost to hand it out.

Takes: branches between two batches. Gives: the same branches, renumbered. Never: changes what can still match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.codegen.deadlines import KEY, MEMBERS
from fairlead.matching.compiled.planning.join_conditions import TEXTS
from fairlead.matching.compiled.running.folds.fold_pool import FoldPool
from fairlead.matching.compiled.running.keys import KeyNumbering, WholeNumbering
from fairlead.matching.compiled.running.pool import COUNT, WAITS, Pool
from fairlead.matching.compiled.running.run_output import recount
from fairlead.matching.compiled.running.sequences.sequence_pool import SequencePool

if TYPE_CHECKING:
    from fairlead.matching.compiled.running.branch import KernelBranch

Mask = npt.NDArray[np.bool_]
FEW = 4096
"""Numbers that are not worth forgetting."""
LOW = 0xFFFFFFFF


def forget_keys(numbering: KeyNumbering, branches: Sequence[KernelBranch]) -> None:
    """The keys that none of the branches needs."""
    count, known = len(numbering), numbering.known()
    clocked = any(branch.shape.windowed and branch.shape.sequence is None for branch in branches)
    if not numbering.parts or known < FEW or clocked:
        return
    used = np.zeros(count, dtype=bool)
    for branch in branches:
        used |= _used_keys(branch, count)
    if 2 * int(used.sum()) + FEW > known:
        return
    new_number = np.cumsum(used) - 1
    for branch in branches:
        _keep_keys(branch, used, new_number)
    numbering.keep(used)


def _used_instances(pool: Pool) -> Mask:
    if isinstance(pool, FoldPool):
        folded = np.zeros(pool.key_count, dtype=bool)
        folded[pool.active] = True
        return folded
    counts = pool.queues[: pool.key_count * pool.queues_per_key, COUNT].reshape(pool.key_count, pool.queues_per_key)
    used: Mask = counts.any(axis=1) | (pool.keys[: pool.key_count, WAITS] != -1)
    return used


def _used_keys(branch: KernelBranch, count: int) -> Mask:
    used = np.zeros(count, dtype=bool)
    instances = np.flatnonzero(_used_instances(branch.pool))
    used[instances if len(branch.branches) == 1 else branch.member_keys.all()[instances] >> 32] = True
    return used


def _keep_keys(branch: KernelBranch, used: Mask, new_number: npt.NDArray[np.int64]) -> None:
    pool = branch.pool
    if isinstance(pool, SequencePool | FoldPool):
        pool.keep_keys(np.flatnonzero(used[: pool.key_count]), np.where(used, new_number, -1))
        return
    if len(branch.branches) == 1:
        kept = np.flatnonzero(used[: pool.key_count])
    else:
        pairs = branch.member_keys.all()
        kept = np.flatnonzero(used[pairs >> 32])
        branch.member_keys = WholeNumbering((new_number[pairs[kept] >> 32] << 32) | (pairs[kept] & LOW))
    instance = np.full(max(pool.key_count, 1), -1, dtype=np.int64)
    instance[kept] = np.arange(len(kept)) if len(branch.branches) > 1 else new_number[kept]
    size = len(kept) if len(branch.branches) > 1 else int(used.sum())
    fresh = Pool(pool.queues_per_key, pool.size, pool.layout)
    fresh.room_for(max(size, 1), 0, 0, 0)
    old = (kept[:, None] * pool.queues_per_key + np.arange(pool.queues_per_key)).reshape(-1)
    new = (instance[kept][:, None] * pool.queues_per_key + np.arange(pool.queues_per_key)).reshape(-1)
    fresh.queues[new], fresh.keys[instance[kept]] = pool.queues[old], pool.keys[kept]
    if pool.layout.keyed:
        fresh.least_keys[new] = pool.least_keys[old]
    waiting = pool.heap[: pool.waiting_count()]
    pool.waiting[waiting, KEY] = instance[pool.waiting[waiting, KEY]]
    pool.queues, pool.least_keys, pool.keys, pool.key_count = fresh.queues, fresh.least_keys, fresh.keys, size
    if branch.shape.equal and branch.is_keyed:
        _keep_buckets(branch, instance)
    pool.kept = fresh.kept
    recount(branch)


def forget_values(branch: KernelBranch) -> None:
    """Equal values and texts of which nothing is queued."""
    if isinstance(branch.pool, FoldPool):
        branch.forget_texts()
        return
    count = max(branch.buckets(), len(branch.equal_values))
    if count >= FEW and 2 * branch.held() + FEW < count:
        _keep_buckets(branch, None)
    columns = branch.shape.columns
    stored = branch.source.layout.place_of_column
    texts = [at for at in stored if columns[at].expression.kind in TEXTS and not columns[at].truth]
    if len(branch.texts) >= FEW and 2 * branch.held() * max(1, len(texts)) + FEW < len(branch.texts):
        _keep_texts(branch, texts)
        recount(branch)


def _keep_buckets(branch: KernelBranch, instance: npt.NDArray[np.int64] | None) -> None:
    """The chains that have a node. `instance`: new numbers of the instances that chains belong to."""
    pool, at = branch.pool, branch.source.layout["BUCKET"]
    nodes = pool.live()
    numbers = pool.chain_links[nodes, at]
    used = np.zeros(branch.buckets(), dtype=bool)
    used[numbers[numbers >= 0]] = True
    pool.chain_links[nodes, at] = _new_numbers(used)[numbers]
    kept = np.flatnonzero(used)
    rows = (kept[:, None] * pool.queues_per_key + np.arange(pool.queues_per_key)).reshape(-1)
    pool.chains, pool.chain_least = pool.chains[rows].copy(), pool.chain_least[rows[: len(pool.chain_least)]].copy()
    if not branch.is_keyed:
        branch.equal_values.keep(used)
        return
    pairs = branch.equal_pairs.all()[kept]
    owner, value = pairs >> 32, pairs & LOW
    values = np.zeros(len(branch.equal_values), dtype=bool)
    values[value] = True
    value = (np.cumsum(values) - 1)[value]
    branch.equal_values.keep(values)
    branch.equal_pairs = WholeNumbering(((owner if instance is None else instance[owner]) << 32) | value)


def _keep_texts(branch: KernelBranch, columns: list[int]) -> None:
    pool, layout = branch.pool, branch.source.layout
    used = np.zeros(len(branch.texts), dtype=bool)
    queued = {column: _nodes_of(branch, branch.shape.columns[column].queue) for column in columns}
    for column, nodes in queued.items():
        numbers = pool.nodes[nodes, layout.place_of_column[column]]
        used[numbers[numbers >= 0]] = True
    new_number = _new_numbers(used)
    for column, nodes in queued.items():
        pool.nodes[nodes, layout.place_of_column[column]] = new_number[pool.nodes[nodes, layout.place_of_column[column]]]
    branch.texts.keep(used)
    if isinstance(pool, SequencePool):
        pool.search_anew()  # what paths carry along has texts too


def _new_numbers(used: Mask) -> npt.NDArray[np.int64]:
    """By number; the last one stands for -1, which an event without a value has, also where there is no number at all."""
    return np.append(np.cumsum(used) - 1, -1)


def _nodes_of(branch: KernelBranch, queue: int) -> npt.NDArray[np.int64]:
    """The nodes of one queue over all keys, and the copies that wait for its slots."""
    pool = branch.pool
    if isinstance(pool, SequencePool):
        lanes = [at for at, lane in enumerate(branch.shape.lanes) if queue in lane.queues]
        return pool.rows_of(lanes)
    queues = pool.queues[queue : pool.key_count * pool.queues_per_key : pool.queues_per_key, COUNT]
    nodes = [node for key in np.flatnonzero(queues).tolist() for node in pool.walk(key, queue)]
    waiting = pool.heap[: pool.waiting_count()]
    for slot, each in enumerate(branch.shape.queue_of_slot):
        if each == queue and len(waiting):
            nodes += pool.waiting[waiting, MEMBERS + slot].tolist()
    return np.array(nodes, dtype=np.int64)
