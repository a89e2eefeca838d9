"""The stateful task of one target in a stream: it resumes from its state, is fed a micro-batch, and is saved.

With LATE REVISE, a task keeps the recent past (runtime/event_time/reviser.py), into which late rows are inserted. A micro-batch
is a round, or has several: first the rows are matched that were released before, then all late rows of the round revise
together. Positions come from the order of the
stream. A late row takes the next one, and in a revision the positions of all rows after its place, and its own, are dealt out
again.

A reused worker that wrote a state keeps the task beside it, and need not load it in the next micro-batch.

Takes: a state as bytes, and tables of numbered rows by type. Gives: blobs of relations, and the next state. Never: depends on
which worker has the task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.engine import Engine
from fairlead.errors import require
from fairlead.model.blobs import packed
from fairlead.model.events.columns import Columns
from fairlead.order.holdback import with_head
from fairlead.runtime.event_time.buffer import EVERYTHING
from fairlead.runtime.event_time.reviser import Reviser
from fairlead.runtime.event_time.segment import first_keys
from fairlead.runtime.spark.input.sequences import POSITION
from fairlead.runtime.spark.job.shuffle import Job, Task
from fairlead.runtime.spark.job.target_rows import columns_of
from fairlead.runtime.spark.stream.resumption import head
from fairlead.runtime.spark.stream.stream_job import LATE_OF, Setup, opened, pieces
from fairlead.runtime.spread.targets import TargetGroup

PAST = "past"
"""In the head of a state with LATE REVISE: the number of bytes of the engine's state, before those of the past."""
_TASKS: dict[tuple[str, int], tuple[bytes, Task]] = {}
"""By start and target, the task that wrote the state with this digest: a reused worker need not load it."""
TASKS_MAX = 64


class RevisedTask(Task):
    """A running target whose late rows revise what it delivered."""

    def __init__(self, job: Job, setup: Setup, group: TargetGroup, engine: Engine | None = None) -> None:
        super().__init__(job, setup.outcome, group)
        mine = self.engine if engine is None else engine
        self.reviser = Reviser(group.plan, mine, keeps_positions=True, limits=setup.limits)
        self.engine = self.reviser.engine

    def feed(self, tables: Mapping[str, Sequence[pa.Table]], rows: int) -> pa.Table:
        made = list(self._apart(tables, 0))
        released, low = self._columns(tables, ""), 0
        rounds = {int(name.split()[1]) for name in tables if name.startswith(LATE_OF)}
        for number in sorted(rounds):
            late = self._columns(tables, f"{LATE_OF}{number} ")
            high = int(np.searchsorted(released.position_array, late.position_array[0]))  # those of this round follow
            first = int(first_keys(late, self.reviser.order, self.group.plan.catalogue).min())
            made += self._matched(released, low, high, first)
            repeats = self.reviser.note(late)
            require(not repeats.any(), "the order of the stream drops repeats", rows=int(repeats.sum()))
            revision = self.reviser.revise()
            made.append(self.outcome.revised(revision.retracted, revision.added, number))
            low = high
        made += self._matched(released, low, len(released))
        self.engine = self.reviser.engine
        return pa.concat_tables(made) if made else self.outcome.schema.empty_table()

    def _matched(self, released: Columns, low: int, high: int, needed: int = EVERYTHING) -> list[pa.Table]:
        if low == high:
            return []
        mine = released if (low, high) == (0, len(released)) else released.part(low, high)
        return [self.outcome.relations(found) for found in self.reviser.feed(mine, needed)]

    def _columns(self, tables: Mapping[str, Sequence[pa.Table]], mark: str) -> Columns:
        """The rows with this mark before their types, in order."""
        mine = {name: pa.concat_tables(tables[mark + name]) for name in sorted(self.group.reads) if mark + name in tables}
        return columns_of(self.group, mine, 0, None, sourced=True)


def resumed(setup: Setup, target: int, buckets: int, state: bytes | None, whose: str) -> Task:
    """The task of a target after the micro-batch that wrote `state`. If the rules have changed since, unchanged ones continue,
    and new ones, or those removed for a while, begin."""
    told = json.loads(whose)
    job = replace(setup.job, buckets=buckets)
    group = next(each for each in job.groups if each.identity == told["group"])
    if state is None:
        return _begun(RevisedTask(job, setup, group) if setup.revises else Task(job, setup.outcome, group), told)
    told_before, rest = opened(state, setup)
    known = _TASKS.pop((setup.start, target), None)
    if known is not None and known[0] == _digest(rest) and known[1].since == told["since"]:
        return _begun(known[1], told)
    other = {digest for digest, since in told_before["since"].items() if told["since"].get(digest) != since}
    size = told_before.get(PAST, len(rest))
    engine = Engine.load(group.plan, bytes(rest[:size]), without=other)
    engine.owed = told_before["fed"]  # so that it moves to kernels as if it had never been loaded
    if not setup.revises:
        task = Task(job, setup.outcome, group)
        task.engine = engine
        return _begun(task, told)
    revised = RevisedTask(job, setup, group, engine)
    if told_before["since"] == told["since"] and told_before.get("forms") == setup.forms(group.frontier):
        revised.reviser.load(rest[size:])
    return _begun(revised, told)


def _begun(task: Task, told: Mapping[str, Any]) -> Task:
    task.since = dict(told["since"])
    return task


def fed(setup: Setup, task: Task, tables: Mapping[str, Sequence[pa.Table]]) -> Iterator[bytes]:
    """The relations of a target in a micro-batch. Blobs of one type may have arrived in any order."""
    in_order = {name: sorted(pieces, key=lambda piece: piece.column(POSITION)[0].as_py()) for name, pieces in tables.items()}
    found = task.feed(in_order, 0)
    for piece in pieces(found, setup.blob_bytes_max):
        yield packed(piece)


def kept(setup: Setup, target: int, task: Task) -> bytes:
    """Its state as bytes; the task itself is cached beside it."""
    dumped, more = task.engine.dump(), {"fed": task.engine.owed, "since": task.since}
    if isinstance(task, RevisedTask):
        more |= {PAST: len(dumped), "forms": setup.forms(task.group.frontier)}
        dumped += task.reviser.dump()
    if len(_TASKS) >= TASKS_MAX:
        _TASKS.clear()
    _TASKS[setup.start, target] = _digest(dumped), task
    return with_head(head(setup.identity) | more, dumped)


def _digest(dumped: bytes | memoryview) -> bytes:
    """An engine's state begins with a line that has the digest of the rest (matching/state/encoding.py). Equal states of an
    engine have the same past: every row changes them, since it has a position."""
    return bytes(dumped[:256]).partition(b"\n")[0]
