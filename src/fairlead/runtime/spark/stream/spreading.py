"""Keys of stateful tasks under which Spark distributes them evenly.

Spark sends a group to the partition given by the hash of its key, so of four tasks with keys 0 to 3 on four partitions two or
three share one, and cores are idle. The key of a task is therefore a number whose hash equals the task's own number, for all
numbers of partitions that divide EVEN_FOR: 1 to 10, 12, 16, 20 and many more.

Takes: the number of tasks. Gives: their keys, and the task of a key. Never: depends on the number of partitions; a checkpoint
can be resumed with any.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

EVEN_FOR = 5_040
FIRST = 1 << 20
"""The first key, above all plain numbers of tasks."""
TRIED = 40 * EVEN_FOR


def key_of(task: int) -> int:
    """The key of a task. Other targets (below 0) keep their number."""
    return _keys()[task] if 0 <= task < EVEN_FOR else task


def task_of(key: int) -> int:
    """The inverse; a checkpoint of a version without keys has plain numbers."""
    return _tasks().get(key, key)


@cache
def _keys() -> list[int]:
    """For each task the first number whose hash is that of the task."""
    tried = np.arange(FIRST, FIRST + TRIED, dtype=np.int64)
    found, first = np.unique(spark_hash(tried.astype(np.int32)) % EVEN_FOR, return_index=True)
    assert len(found) == EVEN_FOR
    return [int(each) for each in tried[first]]


@cache
def _tasks() -> dict[int, int]:
    return {key: task for task, key in enumerate(_keys())}


def spark_hash(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Spark's hash of INT values, by which it partitions: Murmur3 of four bytes, from the seed 42."""
    with np.errstate(over="ignore"):
        k = numbers.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = (k << np.uint32(15) | k >> np.uint32(17)) * np.uint32(0x1B873593)
        h = np.uint32(42) ^ k
        h = (h << np.uint32(13) | h >> np.uint32(19)) * np.uint32(5) + np.uint32(0xE6546B64) ^ np.uint32(4)
        h = (h ^ h >> np.uint32(16)) * np.uint32(0x85EBCA6B)
        h = (h ^ h >> np.uint32(13)) * np.uint32(0xC2B2AE35)
        return (h ^ h >> np.uint32(16)).view(np.int32).astype(np.int64)
