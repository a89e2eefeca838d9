"""A worker: matches the events of its keys, one batch after the other.

Takes: its part of the plan, then shares of batches, from a pipe. Gives: for each the relations that it completes, or the error.
Never: survives the run: when the pipe ends, it ends, even in the middle of a search.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.engine import Engine
from fairlead.matching.results.delivery_order import completed, due_of, ids_of, names_of
from fairlead.matching.results.relation_batches import relation_tables
from fairlead.matching.results.transferred import TransferredRelations, Wanted, WrittenRelation, json_line
from fairlead.model.events.columns import Columns
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.spread.frames import read_frame, write_frame


@dataclass(frozen=True)
class Assignment:
    """The work of all workers. `plans`: of each group, with the state to begin from. It has all keys; those of other workers
    are never asked for. `numbers`: of the subscriptions in the whole plan. `wanted`: what is sent of their relations."""

    plans: Sequence[Plan]
    state: bytes | None
    kernels_from: int | None
    numbers: Mapping[str, int]
    wanted: Wanted

    def engines(self) -> list[Engine]:
        if self.state is None:
            return [Engine(each, kernels_from=self.kernels_from) for each in self.plans]
        return [Engine.load(each, self.state, self.kernels_from) for each in self.plans]


def work(source: IO[bytes], target: IO[bytes]) -> None:
    """Until the pipe ends."""
    shares: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_receive, args=(source, shares), daemon=True).start()
    try:
        assignment: Assignment = shares.get()
        engines = assignment.engines()
        while True:
            write_frame(target, matched(assignment, engines, shares.get()))
    except Exception as error:
        write_frame(target, error)
        shares.get()  # the run ends this process


def matched(assignment: Assignment, engines: Sequence[Engine], share: Sequence[Columns]) -> list[TransferredRelations]:
    """The relations of each group."""
    return [
        transferred(engine.feed(columns), assignment) for engine, columns in zip(engines, share, strict=True) if len(columns)
    ]


def transferred(found: Sequence[Relation], assignment: Assignment) -> TransferredRelations:
    names = names_of(found, np.arange(len(found)))
    layout, number = assignment.wanted.layout, np.array([assignment.numbers[name] for name in names], dtype=np.int64)
    objects: list[Relation | WrittenRelation] = list(found[: assignment.wanted.objects])
    if assignment.wanted.lines:
        objects = [WrittenRelation(json_line(each)) for each in found]
    return TransferredRelations(
        ids_of(found) if len(found) else np.empty((0, 2), dtype=np.uint64),
        completed(found),
        due_of(found),
        number,
        {assignment.numbers[name]: name for name in set(names)},
        None if layout is None else pa.concat_tables([layout.schema.empty_table(), *relation_tables(found, layout)]),
        objects,
    )


def _receive(source: IO[bytes], shares: SimpleQueue[Any]) -> None:
    """A thread: the end of the run is noticed whatever the worker does."""
    try:
        while True:
            shares.put(read_frame(source))
    except EOFError:
        os._exit(0)
