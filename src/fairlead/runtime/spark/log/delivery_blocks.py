"""The deliveries of a lineage as events of their own (`into`), for rules with ORDER BY.

Every delivery is an event, in the order of delivery: a relation that late events take back is delivered again with the sign
-1. Deliveries that one block of the log released, or revised, are one block; so blocks are a function of the log and the
subscription, as those of derived events are (runtime/live/core/derived_blocks.py).

Takes: what a lineage found in stretches of the log. Gives: numbered blocks. Never: depends on how the log is divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.matching.results.relation_batches import relation_table
from fairlead.model.events.columns import arrow_schema, record_batch
from fairlead.model.events.types import EventType
from fairlead.model.relations.layout import layout_of
from fairlead.runtime.live.core.deliveries import FoundRelations
from fairlead.runtime.live.core.derived_blocks import derived_blocks
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup, origin_name
from fairlead.runtime.live.core.stream_merge import Stretch
from fairlead.runtime.spark.log.outputs import source_of_relations
from fairlead.transport.log.blocks.block import INDEX_BITS, Block


class DeliveryBlocks:
    """`number`, `sequence`: of the next block, and of its first event."""

    def __init__(self, group: StreamGroup, origin: Origin, event_type: EventType) -> None:
        self.type, self.number, self.sequence = event_type, 0, 0
        (name,) = group.names
        self._source = source_of_relations(group.plan[name].digest, origin_name(origin))
        self._layout = layout_of(group.plan, name)

    def blocks(self, found: FoundRelations, stretches: Sequence[Stretch]) -> Iterator[Block]:
        """The blocks of the deliveries of these stretches."""
        if not len(found.relations):
            return
        assert found.by is not None
        sequences = found.by >> INDEX_BITS
        begins = np.flatnonzero(np.diff(found.turns, prepend=-1) | np.diff(sequences, prepend=-1))
        places = np.searchsorted(begins, np.arange(len(sequences)), "right")
        hops = {}
        for place, at in enumerate(begins.tolist(), 1):
            blocks = stretches[int(found.turns[at])].blocks
            hops[place] = next(each.block.hops for each in blocks if each.sequence == sequences[at])
        told = derived_blocks(
            self.type, self._source, self._batch(found), places << INDEX_BITS, self.number, self.sequence, hops
        )
        for block in told:
            self.number, self.sequence = block.number + 1, block.sequence + block.count
            yield block

    def _batch(self, found: FoundRelations) -> pa.RecordBatch:
        table = relation_table([found.relations], self._layout).combine_chunks()
        columns = {name: table.column(name) for name in ("subscription", "branch", "completed_at")}
        columns["relation_id"] = table.column("id")
        columns["positions"] = pc.binary_join(table.column("positions").cast(pa.list_(pa.string())), ",")
        columns["sign"] = table.column("sign") if self._layout.signed else pa.repeat(pa.scalar(1, pa.int32()), len(table))
        schema = arrow_schema(self.type)
        return record_batch([_one(columns.get(each.name), each, len(table)) for each in schema], schema, len(table))


def _one(column: pa.ChunkedArray | pa.Array | None, field: pa.Field, rows: int) -> pa.Array:
    """An attribute that was declared since has no value."""
    if column is None:
        return pa.nulls(rows, field.type)
    found = column.cast(field.type)
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
