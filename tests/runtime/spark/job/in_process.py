"""The steps of a job composed as Spark composes them, in this process: no JVM, and every choice of Spark's is drawn by chance.

Which partition a row is read in, how large batches are, in which order blobs come out of a shuffle: none of it is promised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import fairlead
from fairlead.matching.results.relation_batches import relation_table
from fairlead.model.events.columns import arrow_type
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.plans.plan import Plan
from fairlead.order.total import SEQUENCE, SOURCE, order_column
from fairlead.runtime.spark.input.arrivals import CODE, TYPE, InputColumns
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.job.shuffle import Job, matched, numbered, sliced
from fairlead.runtime.spread.targets import groups_of
from fairlead.transport.events import read_events


def reading_of(plan: Plan, keys: int, sourced: bool = False) -> InputColumns:
    """As frames.py makes it of a frame that has a column for every attribute of every type."""
    read = {name for each in plan.subscriptions for name in each.reads(plan.catalogue) if not plan.catalogue[name].derived}
    types = list(dict.fromkeys((*plan.input_types, HEARTBEAT.name)))
    columns = {
        name: {each.name: f"{name}.{each.name}" for each in plan.catalogue[name].attributes} for name in types if name in read
    }
    return InputColumns(plan.catalogue, columns, tuple(name for name in types if name not in read), keys, sourced)


def input_table(plan: Plan, reading: InputColumns, events: Sequence[dict[str, Any]], orders: Sequence[pa.Array]) -> pa.Table:
    """The events as Spark would hand them over: all types in one table, and their order columns."""
    plain = [{name: value for name, value in each.items() if name not in ("_source", "_sequence")} for each in events]
    tables: dict[str, list[pa.RecordBatch]] = {}
    for batch in read_events(plain, plan.catalogue):
        for name, table in batch.tables.items():
            tables.setdefault(name, []).append(table)
    names = [each["type"] for each in events] if all("type" in each for each in events) else [next(iter(tables))] * len(events)
    codes = {name: code for code, name in enumerate(reading.types)}
    made: dict[str, Any] = {
        CODE: pa.array([codes.get(name) for name in names], pa.int32()),
        TYPE: pa.array([None if name in codes else name for name in names], pa.string()),
    }
    for number, column in enumerate(orders):
        made[order_column(number)] = column
    if reading.sourced:
        made[SOURCE] = pa.array([each.get("_source") for each in events], pa.string())
        made[SEQUENCE] = pa.array([each.get("_sequence") for each in events], pa.int64())
    for name, columns in reading.columns.items():
        rows = np.flatnonzero(np.array(names, dtype=object) == name)
        at = np.full(len(events), -1)
        at[rows] = np.arange(len(rows))
        where = pa.array(at, mask=at < 0)
        mine = pa.Table.from_batches(tables[name]).combine_chunks() if name in tables else None
        for attribute in plan.catalogue[name].attributes:
            kind = arrow_type(attribute.type)
            cells = pa.nulls(len(events), kind)
            if mine is not None:
                cells = mine.column(attribute.name).combine_chunks().take(where)
            made[columns[attribute.name]] = cells
    return pa.table(made)


def spread(rows: pa.Table, random: Random, partitions: int) -> list[list[pa.RecordBatch]]:
    """The rows in any order, over partitions, in batches of any size."""
    order = list(range(len(rows)))
    random.shuffle(order)
    mixed = rows.take(pa.array(order, pa.int64()))
    cuts = sorted(random.randint(0, len(rows)) for _ in range(partitions - 1))
    parts = [mixed.slice(low, high - low) for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    return [list(batches_of(part.combine_chunks(), random)) for part in parts]


def batches_of(table: pa.Table, random: Random) -> Iterator[pa.RecordBatch]:
    start = 0
    while start < len(table):
        size = random.choice((1, 2, 5, len(table)))
        yield from table.slice(start, size).combine_chunks().to_batches()
        start += size


def shuffled(batches: Iterable[pa.RecordBatch], column: str, partitions: int, random: Random, by: Sequence[str]) -> Any:
    """Rows go where the column says and come in any order, or sorted where Spark is asked to sort."""
    held = list(batches)
    if not held:
        return [[] for _ in range(partitions)]
    whole = pa.Table.from_batches(held)
    made = []
    for number in range(partitions):
        mine = [at for at, value in enumerate(whole.column(column).to_pylist()) if value % partitions == number]
        random.shuffle(mine)
        part = whole.take(pa.array(mine, pa.int64()))
        if by:
            keys = list(zip(*(part.column(each).to_pylist() for each in by), strict=True))
            part = part.take(pa.array(sorted(range(len(part)), key=keys.__getitem__), pa.int64()))
        made.append(list(batches_of(part, random)))
    return made


def run(job: Job, outcome: ResultRows, rows: pa.Table, random: Random) -> pa.Table:
    """What the three steps give."""
    slices = [each for part in spread(rows, random, random.choice((1, 2, 5))) for each in sliced(job, iter(part))]
    told = [
        each
        for part in shuffled(slices, "slice", random.choice((1, len(job.cuts) + 1)), random, ())
        for each in numbered(job, iter(part))
    ]
    parts = shuffled(told, "task", random.choice((1, job.tasks)), random, ("target", "slice"))
    found = [each for part in parts for each in matched(job, outcome, iter(part))]
    return pa.Table.from_batches(found, outcome.schema)


def job_of(
    plan: Plan,
    reading: InputColumns,
    buckets: int,
    cuts: Sequence[Any] = (),
    until: Any = None,
    positioned: bool = False,
    together: int = 1,
) -> Job:
    reading = replace(reading, positioned=positioned, order_by=reading.order_by or ("number",))
    return Job(reading, groups_of(plan), buckets, np.array(cuts, dtype=np.int64), until, together, plan.order)


COMPARED = ("subscription", "relation_id", "branch", "completed_at", "place", "members", "emitted")


def delivered(table: pa.Table) -> list[str]:
    """The relations of all subscriptions in the order of delivery, as the columns tell it, as texts: NaN equals itself."""
    rows = [row for row in table.to_pylist() if row["verdict"] == "in order"]
    turns = [(row["completed_at"], row["turn"]) for row in rows]
    assert len(set(turns)) == len(rows)  # it is one order
    return [repr([row[name] for name in COMPARED]) for _, row in sorted(zip(turns, rows, strict=True), key=itemgetter(0))]


def embedded(plan: Plan, events: Any, until: Any = None, position: str | None = None, order_by: Any = None) -> list[str]:
    """The same of the embedded runtime."""
    return shown(plan, fairlead.match(plan, events, until=until, position=position, order_by=order_by).batches)


def shown(plan: Plan, batches: Sequence[Any]) -> list[str]:
    held = relation_table(batches, ResultRows(plan).layout)
    return [repr([row["id" if name == "relation_id" else name] for name in COMPARED]) for row in held.to_pylist()]


def counts(plan: Plan, found: Sequence[str]) -> dict[str, int]:
    """How many of these each subscription has."""
    return {each.name: sum(one.startswith(f"[{each.name!r}, ") for one in found) for each in plan.subscriptions}
