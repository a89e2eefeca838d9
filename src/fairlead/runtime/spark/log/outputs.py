"""Rows of `match` as blocks for the log: the events that subscriptions emit, and the relations themselves as events.

The blocks equal those that a live subscriber makes of the same relations (runtime/live/core/derived_blocks.py): relations that
one block of the log completes form one block, numbered after the last one of its source. So number and content are a function
of the log and the subscription, and the log stores each once, whichever client sends it, and however often.

Takes: Arrow tables in the columns of result_rows.py. Gives: blocks. Never: depends on the order in which Spark delivers rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.dataclass import dataclass
from fairlead.model.events.columns import arrow_array, arrow_schema, record_batch
from fairlead.model.events.types import NO_TIME, EventType
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.layout import ResultLayout, layout_of
from fairlead.runtime.live.core.derived_blocks import EmittingSubscription, derived_blocks
from fairlead.runtime.spark.job.result_rows import IN_ORDER
from fairlead.transport.log.blocks.block import Block

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
KEPT = ("subscription", "relation_id", "branch", "completed_at", "turn", "members", "emitted")
RELATION = "(subscription STRING, relation_id STRING, branch INT, completed_at BIGINT, positions STRING)"
"""The attributes of a relation as an event; `positions` with commas between them."""
DELIVERY = f"{RELATION[:-1]}, sign INT)"
"""The attributes of a delivery of rules with ORDER BY: `sign` is -1 if it takes the relation back, otherwise 1."""
Marks = Mapping[str, tuple[int, int]]
"""By source: the number of the next block, and the sequence of its first event."""


@dataclass(frozen=True)
class Output:
    """One source of blocks: the events that a subscription emits, or (`of` is None) its relations."""

    subscription: str
    type: EventType
    source: str
    of: EmittingSubscription | None

    def batch(self, rows: pa.Table, layout: ResultLayout) -> pa.RecordBatch:
        schema = arrow_schema(self.type)
        columns = self._emitted(rows, layout) if self.of is not None else _told(rows, schema)
        made = [_one(column).cast(field.type) for column, field in zip(columns, schema, strict=True)]
        at = self.type.time_index
        if self.of is not None and at is not None and made[at].null_count:
            made[at] = self._times(made[at], rows, layout)
        return record_batch(made, schema, rows.num_rows)

    def _emitted(self, rows: pa.Table, layout: ResultLayout) -> Iterator[pa.Array]:
        emitted = _one(rows.column("emitted"))
        for at in range(len(self.type.attributes)):
            held = next(each.name for each in layout.emitted if each.sources.get(self.type.name) == at)
            yield pc.struct_field(emitted, [held])

    def _times(self, column: pa.Array, rows: pa.Table, layout: ResultLayout) -> pa.Array:
        """If the emitted TIME is null, the largest time of the members (docs/semantics.md)."""
        held: dict[str, str] = {}
        for name in layout.types:
            at = layout.catalogue[name].time_index
            if at is not None:
                held[name] = next(each.name for each in layout.members if each.sources.get(name) == at)
        found = column.cast(pa.int64()).to_pylist()
        for row in (at for at, time in enumerate(found) if time is None):
            members = rows.column("members")[row].as_py()
            times = [each[held[each["type"]]] for each in members if each["type"] in held]
            found[row] = max(((time - EPOCH) // MICROSECOND for time in times if time is not None), default=NO_TIME)
        return arrow_array(found, self.type.attributes[self.type.time_index or 0].type)


def source_of_relations(digest: str, origin: str) -> str:
    """The source of the relations of a subscription. `origin`: the name of the place where they begin."""
    return f"r-{digest[:24]}-{origin}"


def _told(rows: pa.Table, schema: pa.Schema) -> Iterator[pa.Array]:
    """The type may have attributes that were declared since: nothing is taken back without ORDER BY."""
    columns = {name: rows.column(name) for name in ("subscription", "relation_id", "branch", "completed_at")}
    members = _one(rows.column("members"))
    positions = pc.struct_field(members.values, ["position"])
    columns["positions"] = pc.binary_join(pa.ListArray.from_arrays(members.offsets, positions.cast(pa.string())), ",")
    columns["sign"] = pa.repeat(pa.scalar(1, pa.int32()), len(rows))
    for field in schema:
        yield columns.get(field.name, pa.nulls(len(rows), field.type))


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) and column.num_chunks else column


def kept(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """A task's relations, reduced to the columns that are needed."""
    tables = [pa.Table.from_batches([each]) for each in batches]
    if not tables:
        return None
    whole = pa.concat_tables(tables)
    return whole.filter(pc.equal(whole.column("verdict"), IN_ORDER)).select(KEPT)


def blocks_of(plan: Plan, outputs: Iterable[Output], rows: pa.Table, begin: Marks) -> tuple[list[Block], Marks]:
    """The blocks of these relations, and the numbers of the next ones."""
    layout, blocks, marks = layout_of(plan), [], dict(begin)
    for output in outputs:
        mine = rows.filter(pc.equal(rows.column("subscription"), output.subscription))
        if not mine.num_rows:
            continue
        mine = mine.take(pc.sort_indices(mine, [("completed_at", "ascending"), ("turn", "ascending")])).combine_chunks()
        number, sequence = marks.get(output.source, (0, 0))
        completed = mine.column("completed_at").to_numpy()
        for block in derived_blocks(output.type, output.source, output.batch(mine, layout), completed, number, sequence):
            blocks.append(block)
            marks[output.source] = block.number + 1, block.sequence + block.count
    return blocks, marks
