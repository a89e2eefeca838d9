"""The steps of a stream composed as Spark composes them, in this process: no JVM, and every choice of Spark's drawn by chance.

The setup is sent to workers as Spark sends it, so nothing in it is the object that it is here. Rows come in any partition and
batch, blobs in any order, state as bytes; a micro-batch may fail at any step and be done again, in the same worker, which may
still have what the failed attempt left, or in another one.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa

from fairlead.model.blobs import unpacked
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.plans.plan import Plan
from fairlead.order.holdback import Frontier
from fairlead.runtime.spark.input.arrivals import CODE, UNPLACED
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.stream import target_task
from fairlead.runtime.spark.stream.sequencing import Sequencing
from fairlead.runtime.spark.stream.stream_job import APART, BLOB_BYTES, Setup, arrived
from fairlead.runtime.spark.stream.target_task import fed, kept, resumed
from tests.runtime.spark.job.in_process import input_table, job_of, reading_of

Event = dict[str, Any]


def setup_of(plan: Plan, buckets: int, frontier: Frontier, sourced: bool = False, positioned: bool = False) -> Setup:
    job = job_of(plan, reading_of(plan, 1, sourced), buckets, positioned=positioned)
    return Setup(job, ResultRows(plan), frontier, {"use of sources": sourced})


def closed(events: Sequence[Event], until: datetime | None = None) -> list[Event]:
    """The events and a last heartbeat, which releases all of them. It decides what `until` would, or nothing at all."""
    at = datetime(1, 1, 1, tzinfo=UTC) if until is None else until + timedelta(microseconds=1)
    return [*events, {"type": "Heartbeat", "at": at}]


def mixed(names: Sequence[str], random: Random) -> list[int]:
    """An order of arrival in which each type comes in order, and a heartbeat after everything up to it."""
    order: list[int] = []
    queues: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        if name != HEARTBEAT.name:
            queues.setdefault(name, []).append(at)
            continue
        while queues:
            chosen = random.choice(sorted(queues))
            order.append(queues[chosen].pop(0))
            if not queues[chosen]:
                del queues[chosen]
        order.append(at)
    return order


class Streaming:
    """A query: states by task, and what was delivered."""

    def __init__(self, setup: Setup, random: Random, crashes: bool = True) -> None:
        self.setup, self.random, self.crashes = pickle.loads(pickle.dumps(setup)), random, crashes
        self.sequence: bytes | None = None
        self.states: dict[int, bytes] = {}
        self.found: list[pa.Table] = []

    def batch(self, rows: pa.Table) -> None:
        while self.crashes and self.random.random() < 0.2:
            self._attempt(rows, self.random.random())
            if self.random.random() < 0.5:
                target_task._TASKS.clear()  # another worker
        self.sequence, states, found = self._attempt(rows, 1.0)
        self.states |= states
        self.found += found

    def _attempt(self, rows: pa.Table, share: float) -> tuple[bytes | None, dict[int, bytes], list[pa.Table]]:
        """The micro-batch, or with a share below 1 as many of its targets."""
        arrivals: dict[str, list[pa.Table]] = {}
        found: list[pa.Table] = []
        blobs = [each for part in self._parts(rows) for each in arrived(self.setup, part)]
        self.random.shuffle(blobs)
        for name, blob in ((each.column(1)[0].as_py(), each.column(2)[0].as_py()) for each in blobs):
            if name == UNPLACED:
                found.append(unpacked(blob))
            else:
                arrivals.setdefault(name, []).append(unpacked(blob))
        sequencing = Sequencing(self.setup, self.sequence)
        told = list(sequencing.step({name: pa.concat_tables(arrivals[name]) for name in sorted(arrivals)}))
        self.random.shuffle(told)
        targets: dict[int, dict[str, list[pa.Table]]] = {}
        for target, name, blob in told:
            if target == APART:
                found.append(unpacked(blob))
            else:
                targets.setdefault(target, {}).setdefault(name, []).append(unpacked(blob))
        states = {}
        for target in sorted(targets, key=lambda _: self.random.random())[: round(share * len(targets))]:
            task = resumed(self.setup, target, sequencing.buckets, self.states.get(target), sequencing.whose(target))
            found += map(unpacked, fed(self.setup, task, targets[target]))
            states[target] = kept(self.setup, target, task)
        return sequencing.dump(), states, found

    def _parts(self, rows: pa.Table) -> Iterator[list[pa.RecordBatch]]:
        """Partitions, each of some batches."""
        start = 0
        while start < len(rows):
            size = self.random.choice((1, 3, 10, len(rows)))
            yield rows.slice(start, size).combine_chunks().to_batches()
            start += size

    @property
    def table(self) -> pa.Table:
        return pa.concat_tables([self.setup.outcome.schema.empty_table(), *self.found])


def streamed(
    plan: Plan,
    events: Sequence[Event],
    buckets: int,
    random: Random,
    sourced: bool = False,
    order: Sequence[int] | None = None,
    blob_bytes_max: int = BLOB_BYTES,
) -> pa.Table:
    """What a stream of the events gives, in any order of arrival and any rounds; the last event is a heartbeat. They stand by
    their index, or by `order`, which rises; heartbeats last where it does not."""
    reading = reading_of(plan, 1, sourced)
    rows = input_table(plan, reading, events, [pa.array(range(len(events)) if order is None else order, pa.int64())])
    names = [reading.types[code] for code in rows.column(CODE).to_pylist()]
    frontier = Frontier(tuple(sorted(set(names))), together=random.random() < 0.3)
    coming = list(range(len(names))) if frontier.together else mixed(names, random)
    query = Streaming(replace(setup_of(plan, buckets, frontier, sourced), blob_bytes_max=blob_bytes_max), random)
    start = 0
    while start < len(coming):
        size = random.choice((1, 1, 2, 5, 20, len(coming)))
        query.batch(rows.take(pa.array(coming[start : start + size])))
        start += size
    return query.table
