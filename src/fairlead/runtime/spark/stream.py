"""An endless input on Spark: the same steps with state between micro-batches.

    input ─packed─► blobs ─one task─► sequenced ─► blobs ─by target─► matched ─► blobs ─unpacked─► relations

`sequenced` is one stateful task for the whole stream: it holds arrivals back until the frontier has passed them (order/holdback.py)
and gives each its position, as the log does elsewhere. `matched` is a stateful task for every target (a group, or a bucket of a
keyed one). What travels between them is a blob a type and micro-batch, so the cost of a stateful call, about a millisecond, is paid
a few times in a micro-batch, never for a row. The state of a task is one value: what is held, or the dumped state of the engine.

docs/decisions/0004-spark-state.md has the measurements behind this.

Takes: an Input, the groups of a plan and a frontier. Gives: a streaming DataFrame of `Outcome.schema`. Never: depends on how the
stream is cut into micro-batches or how many partitions there are, except for what is late.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.model.plan import Plan
from fairlead.order.holdback import Frontier, HoldBack
from fairlead.order.total import SEQUENCE, SOURCE
from fairlead.runtime.spark.blobs import packed, unpacked
from fairlead.runtime.spark.frames import Input
from fairlead.runtime.spark.groups import Group
from fairlead.runtime.spark.outcome import Outcome
from fairlead.runtime.spark.reading import REJECTED, Reader
from fairlead.runtime.spark.steps import POSITION, Job, Task, cut, ordered_rows, shares, together
from fairlead.transport.sequences import LastSequences

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERSION = 1
ARRIVED = "one int, type string, blob binary"
TOLD = "target int, type string, blob binary"
FOUND = "blob binary"
LATE_PLACE = "it comes behind what was released of the order"


def match_stream(plan: Plan, given: Input, groups: tuple[Group, ...], buckets: int, frontier: Frontier) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    outcome = Outcome(plan)
    job = Job(given.reading, groups, buckets, np.zeros(0, dtype=np.int64), given.positioned)

    def arrive(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = Reader(job.reading)
        for batch in together(batches):
            for _, name, table in cut(job, reader, batch):
                yield pa.RecordBatch.from_arrays(
                    [pa.array([0], pa.int32()), pa.array([name]), pa.array([packed(table)], pa.binary())],
                    ["one", "type", "blob"],
                )

    def deliver(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0):
                yield from unpacked(blob).to_batches()

    digest = f"{plan.digest}/{buckets}/{'/'.join(given.order_by)}"
    arrived = given.frame.mapInArrow(arrive, ARRIVED)
    told = arrived.groupBy("one").transformWithState(_sequencer(job, outcome, frontier, digest), TOLD, "Append", "None")
    found = told.groupBy("target").transformWithState(_matcher(job, outcome, digest), FOUND, "Append", "None")
    return found.mapInArrow(deliver, from_arrow_schema(outcome.schema))


class Sequencing:
    """The one order of a stream: arrivals in, numbered rows for each target out."""

    def __init__(self, job: Job, outcome: Outcome, frontier: Frontier) -> None:
        self.job, self.outcome = job, outcome
        self.back = HoldBack(frontier, job.reading.keys)
        self.sequences = LastSequences()

    def step(self, arrivals: dict[str, pa.Table]) -> Iterator[tuple[int, str, bytes]]:
        """Rows for targets; -1 stands for what goes to the output as it is."""
        given = self.back.step(arrivals)
        for name, table in given.late.items():
            yield -1, "", packed(self._late(name, table))
        wanted = {REJECTED}.union(*(group.reads for group in self.job.groups))
        repeats = self._repeats(given.order, given.tables) if self.job.reading.sourced else None
        for name in (each for each in given.order.types if each in wanted):
            places = given.order.places[name]
            table = ordered_rows(self.job, given.tables[name], given.order.rows_of(name), places + given.first)
            if repeats is not None and name != REJECTED:
                table = table.filter(pa.array(~repeats[places]))
            for target, part in shares(self.job, name, table):
                if len(part):
                    yield target, name, packed(part)

    def _repeats(self, order: Any, tables: Any) -> Any:
        """Which rows of the order repeat a sequence of their source."""
        sources: list[Any] = [None] * len(order)
        sequences: list[Any] = [None] * len(order)
        for name in order.types:
            if name == REJECTED:
                continue
            taken = tables[name].select([SOURCE, SEQUENCE]).take(pa.array(order.rows_of(name)))
            for at, source, sequence in zip(
                order.places[name].tolist(), taken.column(0).to_pylist(), taken.column(1).to_pylist(), strict=True
            ):
                sources[at], sequences[at] = source, sequence
        fresh = self.sequences.fresh(sources, sequences)
        return None if fresh is None else ~np.array(fresh)

    def _late(self, name: str, table: pa.Table) -> pa.Table:
        if name == REJECTED:
            none = pa.nulls(len(table), pa.int64())
            return self.outcome.rejected(none, *(table.column(each).combine_chunks() for each in ("code", "problem", "record")))
        return self.outcome.late(name, table, LATE_PLACE)

    def dump(self, digest: str) -> bytes:
        head = json.dumps({"version": VERSION, "plan": digest, "sequences": self.sequences.dump()}).encode()
        return len(head).to_bytes(4, "big") + head + self.back.dump()

    def load(self, state: bytes, digest: str) -> None:
        head, rest = _opened(state, digest)
        self.sequences = LastSequences.load(head["sequences"])
        self.back.load(rest)


def _opened(state: bytes, digest: str) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(state[:4], "big")
    head: dict[str, Any] = json.loads(state[4 : 4 + size])
    if head["version"] != VERSION:
        problem = f"the checkpoint is of version {head['version']}, this is version {VERSION}"
        raise StateError("S110", problem, "run it with the release that wrote it, or begin with a new checkpoint")
    if head["plan"] != digest:
        problem = "the checkpoint is of another plan, order or number of buckets"
        raise StateError("S111", problem, "begin with a new checkpoint folder, or give the plan that it was made with")
    return head, state[4 + size :]


_ENGINES: dict[tuple[str, int], tuple[bytes, Task]] = {}
"""By job and target, the task that gave the state with this hash: a worker that is used again need not load what it has."""
ENGINES_MAX = 64


def resumed(job: Job, outcome: Outcome, digest: str, target: int, state: bytes | None) -> Task:
    """The task of a target as it was after the micro-batch that wrote `state`."""
    if state is None:
        return Task(job, outcome, target)
    kept = _ENGINES.pop((digest, target), None)
    if kept is not None and kept[0] == hashlib.blake2b(state).digest():
        return kept[1]
    task = Task(job, outcome, target)
    _, rest = _opened(state, digest)
    task.engine = Engine.load(task.group.plan, rest)
    return task


def kept(task: Task, digest: str, target: int) -> bytes:
    """Its state as bytes; the task itself is kept beside."""
    head = json.dumps({"version": VERSION, "plan": digest}).encode()
    state = len(head).to_bytes(4, "big") + head + task.engine.dump()
    if len(_ENGINES) >= ENGINES_MAX:
        _ENGINES.clear()
    _ENGINES[digest, target] = hashlib.blake2b(state).digest(), task
    return state


def _sequencer(job: Job, outcome: Outcome, frontier: Frontier, digest: str) -> Any:
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

    class Sequencer(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.state = handle.getValueState("order", "held binary")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            found: dict[str, list[pa.Table]] = {}
            for row in rows:
                found.setdefault(row.type, []).append(unpacked(bytes(row.blob)))
            sequencing = Sequencing(job, outcome, frontier)
            if self.state.exists():
                sequencing.load(bytes(self.state.get()[0]), digest)
            for target, name, blob in sequencing.step({each: pa.concat_tables(found[each]) for each in sorted(found)}):
                yield Row(target=target, type=name, blob=blob)
            self.state.update((sequencing.dump(digest),))

        def close(self) -> None:
            pass

    return Sequencer()


def _matcher(job: Job, outcome: Outcome, digest: str) -> Any:
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

    class Matcher(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.state = handle.getValueState("matcher", "state binary")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            target = int(key[0])
            if target < 0:
                for row in rows:
                    yield Row(blob=bytes(row.blob))
                return
            tables: dict[str, list[pa.Table]] = {}
            for row in rows:
                tables.setdefault(row.type, []).append(unpacked(bytes(row.blob)))
            state = bytes(self.state.get()[0]) if self.state.exists() else None
            task = resumed(job, outcome, digest, target, state)
            found = task.feed(tables, 0)
            if len(found):
                yield Row(blob=packed(found))
            self.state.update((kept(task, digest, target),))

        def close(self) -> None:
            pass

    return Matcher()


__all__ = ["POSITION", "Sequencing", "match_stream"]
