"""Stores relations of a job on Spark in the log, each once.

Tasks return their relations, and the driver stores them, since blocks of a source are numbered one after the other. The
progress of a stream is an entry of the log's table `FL_SINKS`:

    1. the numbers with which the micro-batch begins; they are known for the first one (0), and from the one before
    2. store the blocks that the log does not have yet
    3. the numbers with which it ends

Spark repeats a micro-batch, unchanged, if it did not learn that it was stored. The repeat finds its entry of step 1, makes the
same blocks, and the log has them already.

Takes: rows of `match`. Gives: blocks in the log. Never: stores anything of a micro-batch that Spark has not computed
completely.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from fairlead.errors import StateError, UsageError
from fairlead.model.blobs import packed, unpacked
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.derived_blocks import emitting_of
from fairlead.runtime.live.core.event_table import only_group, only_stream, selection_of
from fairlead.runtime.live.core.stream_groups import Origin, groups_of, origin_name
from fairlead.runtime.live.merged_streams import open_streams
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.live.subscriber.leading_lineage import LeadingLineage
from fairlead.runtime.spark.log.block_rows import blocks_in
from fairlead.runtime.spark.log.link import PATIENCE_SECONDS, LogLink
from fairlead.runtime.spark.log.options import LogOptions
from fairlead.runtime.spark.log.outputs import DELIVERY, RELATION, Marks, Output, blocks_of, kept, source_of_relations
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_store import Tails
from fairlead.transport.log.entry_values import NOTHING, entry_value
from fairlead.transport.log.names import SINKS as TABLE
from fairlead.transport.log.names import checked, is_derived
from fairlead.transport.log.protocol import Conflict, Log

SINK = {"batch": int, "begin": {str: [int]}, "end": (NOTHING, {str: [int]})}


@dataclass(frozen=True)
class SinkRows(WriterCommitMessage):
    rows: bytes | None


class LogWriter(DataSourceArrowWriter):
    """A batch starts at the beginning, so its numbers start at 0."""

    def __init__(self, asked: LogOptions) -> None:
        self.asked = asked

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkRows:
        return found(iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        with LogLink(self.asked) as link:
            link.call(lambda log: stored(log, self.asked, messages, None))


class LogStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, asked: LogOptions) -> None:
        self.asked = asked

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkRows:
        return found(iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        with LogLink(self.asked) as link:
            link.call(lambda log: stored(log, self.asked, messages, batchId))


def found(batches: Iterator[pa.RecordBatch]) -> SinkRows:
    table = kept(batches)
    return SinkRows(None if table is None or not table.num_rows else packed(table))


def rows_of(batches: Iterator[pa.RecordBatch]) -> SinkRows:
    """Rows of blocks (block_rows.py)."""
    some = [each for each in batches if each.num_rows]
    return SinkRows(packed(pa.Table.from_batches(some)) if some else None)


async def stored(log: Log, asked: LogOptions, messages: Sequence[Any], batch: int | None) -> None:
    """Store the relations of the tasks, of a micro-batch or (None) of a whole job. Raises StateError, LogError, UsageError."""
    assert isinstance(asked.what, str)
    plan = await Registry(log).plan(asked.what)
    outputs = await outputs_of(log, plan, asked)
    entry = None if batch is None else await SinkEntry.opened(log, asked, plan, batch)
    tables = [unpacked(each.rows) for each in messages if each is not None and each.rows is not None]
    blocks, end = blocks_of(plan, outputs, pa.concat_tables(tables), entry.begin if entry else {}) if tables else ([], None)
    await store(log, blocks)  # 2
    if entry is not None:
        await entry.write(entry.begin if end is None else end)  # 3


async def outputs_of(log: Log, plan: Plan, asked: LogOptions) -> list[Output]:
    assert isinstance(asked.start, (int, str))
    only_stream(selection_of(plan))
    group, origin = only_group(plan), 0 if asked.start == "earliest" else int(asked.start)
    emitting = emitting_of(group.plan, origin_name((origin,)))
    made = [Output(each.subscription.name, each.type, each.source, each) for each in emitting]
    streams = await open_streams(log, group.sources)
    leading = LeadingLineage(log, group, streams, group.key(streams), emits=True)
    if emitting:
        await _require_leading(leading, (origin,))
    if asked.into is not None:
        registry = Registry(log)
        await registry.declare(f"TYPE {asked.into} {RELATION}")
        told = registry.catalogue[asked.into]
        name = origin_name((origin,))
        made += [Output(each.name, told, source_of_relations(each.digest, name), None) for each in plan.subscriptions]
    if not made:
        raise UsageError("A229", "the rules emit nothing that could be stored", 'name a type for the relations: into="Name"')
    return made


async def store_made(log: Log, asked: LogOptions, messages: Sequence[Any]) -> None:
    """Store the blocks that tasks have made, of rules with ORDER BY: they have their numbers. Raises StateError, LogError,
    UsageError."""
    assert isinstance(asked.what, str)
    tables = [unpacked(each.rows) for each in messages if each is not None and each.rows is not None]
    made = [each for table in tables for each in blocks_in(table)]
    if not made:
        return
    registry = Registry(log)
    groups = groups_of(await registry.plan(asked.what))
    if asked.into is not None:
        await registry.declare(f"TYPE {asked.into} {DELIVERY}")
    emitted = {each.lineage: each.origin for each in made if is_derived(each.block.source)}
    for group in groups:
        streams = await open_streams(log, group.sources)
        key = group.key(streams)
        if key in emitted:
            await _require_leading(LeadingLineage(log, group, streams, key, emits=True), emitted[key])
    await store(log, sorted((each.block for each in made), key=lambda each: (each.source, each.number)))


async def _require_leading(leading: LeadingLineage, origin: Origin) -> None:
    if await leading.beside(origin) != origin:
        begins = " and ".join(map(str, origin))
        problem = f"other subscribers store what these rules emit, and did not start at position {begins}"
        raise UsageError("A228", problem, "start where they did, or let them store it")


async def store(log: Log, blocks: Sequence[Block]) -> None:
    """Store the blocks that the log does not have yet, of each source in their order."""
    tails = Tails(log, PATIENCE_SECONDS, "start the stream again with a new checkpoint folder")
    for block in blocks:
        await tails.store(block)


class SinkEntry:
    """The progress of a stream, in the log's table."""

    def __init__(self, log: Log, key: str, batch: int, begin: Marks, revision: int) -> None:
        self._log, self._key, self._batch, self.begin, self._revision = log, key, batch, begin, revision

    @classmethod
    async def opened(cls, log: Log, asked: LogOptions, plan: Plan, batch: int) -> SinkEntry:
        key = checked(asked.sink, "sink") if asked.sink is not None else f"{plan.digest[:24]}-{asked.start}"
        held = await log.get(TABLE, key)
        begun: dict[str, Any] = {"batch": -1, "begin": {}, "end": {}}
        told = begun if held is None else entry_value(held.value, SINK, TABLE, key)
        if batch == 0:
            begin: dict[str, Any] = {}
        elif batch == told["batch"]:
            begin = told["begin"]
        elif batch == told["batch"] + 1 and told["end"] is not None:
            begin = told["end"]
        else:
            problem = f"the sink '{key}' has micro-batch {told['batch']}, this stream {batch}: another stream uses this name"
            raise StateError("S138", problem, 'give every stream its own name: to_log(…, name="…")')
        made = cls(log, key, batch, {name: tuple(pair) for name, pair in begin.items()}, 0 if held is None else held.revision)
        await made.write(None)  # 1
        return made

    async def write(self, end: Marks | None) -> None:
        told = {"batch": self._batch, "begin": self.begin, "end": end}
        try:
            self._revision = await self._log.put(TABLE, self._key, json.dumps(told).encode(), self._revision)
        except Conflict:
            problem = f"another stream stores under the name '{self._key}' at this time"
            raise StateError("S138", problem, 'give every stream its own name: to_log(…, name="…")') from None
