"""What a subscription reads, as tables: to be matched elsewhere, by file or on Spark, to the same ids.

A table is wide (transport/tables.py): `position` and `type`, and a column for every attribute of any type that is read.

Takes: a group of subscriptions and its stream. Gives: tables in the order of the stream, up to its present end. Never: waits
for more; makes an object of an event.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import numpy as np
import pyarrow as pa

from fairlead.errors import UnsupportedError
from fairlead.model.columns import arrow_schema, number_array
from fairlead.model.types import HEARTBEAT, Catalogue
from fairlead.order.continuity import Continuity
from fairlead.runtime.live.gathering import columns_of, portions
from fairlead.runtime.live.grouping import Group
from fairlead.transport.log.protocol import Log, Stored


async def exported(log: Log, group: Group) -> AsyncIterator[pa.Table]:
    """Raises UnsupportedError where two types have an attribute of one name and different data types."""
    stream, catalogue = await group.stream(log), group.plan.catalogue
    schema, continuity = wide_schema(group.types, catalogue), Continuity()
    last, after = await group.end(log, stream), 0
    reading = log.read(stream, after)
    while after < last:
        blocks = [each for each in await anext(reading) if each.sequence <= last]
        after = blocks[-1].sequence if blocks else last
        for some in portions(blocks, 0):
            fresh = [each for each in some if continuity.check(*_told(each))]
            if fresh:
                yield _wide(fresh, catalogue, schema)


def wide_schema(types: Sequence[str], catalogue: Catalogue) -> pa.Schema:
    fields: dict[str, pa.Field] = {}
    for name in (*types, HEARTBEAT.name):
        for field in arrow_schema(catalogue[name]):
            known = fields.setdefault(field.name, field)
            if known.type != field.type:
                problem = f"attribute '{field.name}' has different data types in what is read, and one column in a table"
                raise UnsupportedError("U123", problem, "export subscriptions of fewer types")
    return pa.schema([pa.field("position", pa.int64()), pa.field("type", pa.string()), *fields.values()])


def _told(each: Stored) -> tuple[str, str, int, int]:
    return each.block.type, each.block.source, each.block.number, each.block.count


def _wide(blocks: Sequence[Stored], catalogue: Catalogue, schema: pa.Schema) -> pa.Table:
    """Type after type, and then in the order of the positions."""
    columns = columns_of(blocks, catalogue, 0)
    parts = []
    for name, rows in columns.places.items():
        table = pa.Table.from_batches([columns.tables[name]])
        for at, field in enumerate(schema):
            if field.name == "position":
                table = table.add_column(at, field, number_array(columns.position_array[rows]))
            elif field.name == "type":
                table = table.add_column(at, field, pa.array([name] * len(rows), pa.string()))
            elif field.name not in table.column_names:
                table = table.append_column(field, pa.nulls(len(rows), field.type))
        parts.append(table.select(schema.names))
    whole = pa.concat_tables(parts)
    return whole.take(number_array(np.argsort(whole.column("position").to_numpy(), kind="stable")))
