"""The steps of a stream composed as Spark composes them, in this process: no JVM, and every choice of Spark's drawn by chance.

Rows come in any partition and batch, blobs in any order, state as bytes; a micro-batch may fail at any step and be done again, in
the same worker, which may still have what the failed attempt left, or in another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import fairlead
from fairlead.model.columns import arrow_type
from fairlead.model.plan import Plan
from fairlead.model.types import HEARTBEAT
from fairlead.order.holdback import Frontier
from fairlead.order.total import SEQUENCE, SOURCE, order_column
from fairlead.runtime.spark import stream
from fairlead.runtime.spark.blobs import unpacked
from fairlead.runtime.spark.groups import groups_of
from fairlead.runtime.spark.outcome import Outcome
from fairlead.runtime.spark.reading import TYPE, Reading
from fairlead.runtime.spark.steps import Job
from fairlead.runtime.spark.stream import APART, UNPLACED, Sequencing, Setup, arrived, fed, kept, resumed
from fairlead.transport.events import read_events
from fairlead.transport.write import relation_table

COMPARED = ("branch", "completed_at", "place", "positions", "members", "emitted")
Event = dict[str, Any]


def reading_of(plan: Plan, sourced: bool = False) -> Reading:
    """As frames.py makes it of a frame that has a column for every attribute of every type."""
    read = {name for each in plan.subscriptions for name in each.reads(plan.catalogue) if not plan.catalogue[name].derived}
    types = list(dict.fromkeys((*plan.input_types, HEARTBEAT.name)))
    columns = {
        name: {each.name: f"{name}.{each.name}" for each in plan.catalogue[name].attributes} for name in types if name in read
    }
    return Reading(plan.catalogue, columns, tuple(name for name in types if name not in read), 1, sourced)


def setup_of(plan: Plan, buckets: int, frontier: Frontier, sourced: bool = False) -> Setup:
    job = Job(reading_of(plan, sourced), groups_of(plan), buckets, np.zeros(0, dtype=np.int64))
    return Setup(job, Outcome(plan), frontier, ("number",), {"plan": plan.digest})


def rows_of(plan: Plan, reading: Reading, events: Sequence[Event]) -> pa.Table:
    """The events as Spark would hand them over, in one table, ordered by their number."""
    plain = [{name: value for name, value in each.items() if name not in ("_source", "_sequence")} for each in events]
    tables: dict[str, list[pa.RecordBatch]] = {}
    for batch in read_events(plain, plan.catalogue):
        for name, table in batch.tables.items():
            tables.setdefault(name, []).append(table)
    names = [each["type"] if "type" in each else next(iter(tables)) for each in events]
    made: dict[str, Any] = {TYPE: pa.array(names, pa.string()), order_column(0): pa.array(range(len(events)), pa.int64())}
    if reading.sourced:
        made[SOURCE] = pa.array([each.get("_source") for each in events], pa.string())
        made[SEQUENCE] = pa.array([each.get("_sequence") for each in events], pa.int64())
    for name, columns in reading.columns.items():
        mine = [at for at, each in enumerate(names) if each == name]
        at = np.full(len(events), -1)
        at[mine] = np.arange(len(mine))
        where = pa.array(at, mask=at < 0)
        for attribute in plan.catalogue[name].attributes:
            column = pa.nulls(len(events), arrow_type(attribute.type))
            if mine:
                column = pa.Table.from_batches(tables[name]).column(attribute.name).combine_chunks().take(where)
            made[columns[attribute.name]] = column
    return pa.table(made)


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
        self.setup, self.random, self.crashes = setup, random, crashes
        self.sequence: bytes | None = None
        self.states: dict[int, bytes] = {}
        self.found: list[pa.Table] = []

    def batch(self, rows: pa.Table) -> None:
        while self.crashes and self.random.random() < 0.2:
            self._attempt(rows, self.random.random())
            if self.random.random() < 0.5:
                stream._TASKS.clear()  # another worker
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
            task = resumed(self.setup, target, sequencing.buckets, self.states.get(target))
            found += map(unpacked, fed(task, targets[target]))
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


def streamed(plan: Plan, events: Sequence[Event], buckets: int, random: Random, sourced: bool = False) -> pa.Table:
    """What a stream of the events gives, in any order of arrival and any rounds; the last event is a heartbeat."""
    reading = reading_of(plan, sourced)
    rows = rows_of(plan, reading, events)
    names = rows.column(TYPE).to_pylist()
    frontier = Frontier(tuple(sorted(set(names))), together=random.random() < 0.3)
    order = list(range(len(names))) if frontier.together else mixed(names, random)
    query = Streaming(setup_of(plan, buckets, frontier, sourced), random)
    start = 0
    while start < len(order):
        size = random.choice((1, 1, 2, 5, 20, len(order)))
        query.batch(rows.take(pa.array(order[start : start + size])))
        start += size
    return query.table


def by_subscription(plan: Plan, rows: Sequence[Event]) -> dict[str, list[str]]:
    """The relations of each subscription in the order of delivery, as texts: NaN equals itself."""
    found: dict[str, list[str]] = {each.name: [] for each in plan.subscriptions}
    for row in sorted((row for row in rows if row["verdict"] == "in order"), key=delivery):
        found[row["subscription"]].append(repr([row["relation_id"], *(row[name] for name in COMPARED)]))
    return found


def delivery(row: Event) -> tuple[Any, ...]:
    return row["completed_at"], row["subscription"], row["turn"]


def embedded(plan: Plan, events: Any, until: datetime | None = None) -> dict[str, list[str]]:
    """The same of the embedded runtime."""
    held = relation_table(fairlead.match(plan, events, until=until).batches, Outcome(plan).layout)
    found: dict[str, list[str]] = {each.name: [] for each in plan.subscriptions}
    for row in held.to_pylist():
        found[row["subscription"]].append(repr([row["id"], *(row[name] for name in COMPARED)]))
    return found
