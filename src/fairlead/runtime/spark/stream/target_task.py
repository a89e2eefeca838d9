"""The stateful task of one target in a stream: it resumes from its state, is fed a micro-batch, and is saved.

A reused worker that wrote a state keeps the task beside it, and need not load it in the next micro-batch.

Takes: a state as bytes, and tables of numbered rows by type. Gives: blobs of relations, and the next state. Never: depends on
which worker has the task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from fairlead.engine import Engine
from fairlead.model.blobs import packed
from fairlead.order.holdback import with_head
from fairlead.runtime.spark.input.sequences import POSITION
from fairlead.runtime.spark.job.shuffle import Task
from fairlead.runtime.spark.stream.resumption import head
from fairlead.runtime.spark.stream.stream_job import Setup, opened, pieces

_TASKS: dict[tuple[str, int], tuple[bytes, Task]] = {}
"""By start and target, the task that wrote the state with this digest: a reused worker need not load it."""
TASKS_MAX = 64


def resumed(setup: Setup, target: int, buckets: int, state: bytes | None, whose: str) -> Task:
    """The task of a target after the micro-batch that wrote `state`. If the rules have changed since, unchanged ones continue,
    and new ones, or those removed for a while, begin."""
    told = json.loads(whose)
    job = replace(setup.job, buckets=buckets)
    group = next(each for each in job.groups if each.identity == told["group"])
    if state is None:
        return _begun(Task(job, setup.outcome, group), told["since"])
    told_before, rest = opened(state, setup)
    known = _TASKS.pop((setup.start, target), None)
    if known is not None and known[0] == _digest(rest) and known[1].since == told["since"]:
        return known[1]
    task = Task(job, setup.outcome, group)
    other = {digest for digest, since in told_before["since"].items() if told["since"].get(digest) != since}
    task.engine = Engine.load(task.group.plan, bytes(rest), without=other)
    task.engine.owed = told_before["fed"]  # so that it moves to kernels as if it had never been loaded
    return _begun(task, told["since"])


def _begun(task: Task, since: Mapping[str, int]) -> Task:
    task.since = dict(since)
    return task


def fed(setup: Setup, task: Task, tables: Mapping[str, Sequence[pa.Table]]) -> Iterator[bytes]:
    """The relations of a target in a micro-batch. Blobs of one type may have arrived in any order."""
    in_order = {name: sorted(pieces, key=lambda piece: piece.column(POSITION)[0].as_py()) for name, pieces in tables.items()}
    found = task.feed(in_order, 0)
    for piece in pieces(found, setup.blob_bytes_max):
        yield packed(piece)


def kept(setup: Setup, target: int, task: Task) -> bytes:
    """Its state as bytes; the task itself is cached beside it."""
    dumped = task.engine.dump()
    if len(_TASKS) >= TASKS_MAX:
        _TASKS.clear()
    _TASKS[setup.start, target] = _digest(dumped), task
    return with_head(head(setup.identity) | {"fed": task.engine.owed, "since": task.since}, dumped)


def _digest(dumped: bytes | memoryview) -> bytes:
    """An engine's state begins with a line that has the digest of the rest (matching/state/encoding.py)."""
    return bytes(dumped[:256]).partition(b"\n")[0]
