"""The rows that a target receives, as columns in one order.

Takes: tables of several types, each in order, with their positions. Gives: `Columns`. Never: makes an object for an event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.model.events.columns import Columns, arrow_schema, record_batch
from fairlead.model.events.origin_columns import SequenceColumn, SourceColumn
from fairlead.model.relations.identity import ID_BYTES, Words
from fairlead.order.total import SEQUENCE, SOURCE
from fairlead.runtime.spark.input.sequences import POSITION
from fairlead.runtime.spread.targets import TargetGroup

IDENTITY = "_identity"


def bytes_of(identities: Words) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(ID_BYTES), len(identities), [None, pa.py_buffer(np.ascontiguousarray(identities))])


def identities_in(table: pa.Table) -> Words:
    column = table.column(IDENTITY).combine_chunks()
    words = np.frombuffer(column.buffers()[1], dtype=np.uint64).reshape(-1, 2)
    return words[column.offset : column.offset + len(column)]


def columns_of(
    group: TargetGroup, tables: Mapping[str, pa.Table], offset: int, last: int | None, sourced: bool = False
) -> Columns:
    """Rows of several types, each in order, as one batch in order; `sourced`: with their sources and sequences, if they have
    these."""
    names = tuple(sorted(tables))
    places = {name: tables[name].column(POSITION).combine_chunks().to_numpy() for name in names}
    sizes = [len(places[name]) for name in names]
    codes = np.repeat(np.arange(len(names), dtype=np.int64), sizes)
    positions = np.concatenate([places[name] for name in names]) if names else np.zeros(0, dtype=np.int64)
    is_identified = bool(names) and all(IDENTITY in tables[name].column_names for name in names)
    identities = np.concatenate([identities_in(tables[name]) for name in names]) if is_identified else None
    order: npt.NDArray[np.int64] | None = None
    if len(names) > 1:
        order = np.argsort(positions, kind="stable")
        codes, positions = codes[order], positions[order]
        identities = None if identities is None else identities[order]
    held = [tables[name] for name in names] if sourced else []
    origin = [_in_order(held, name, order) for name in (SOURCE, SEQUENCE)]
    sources = None if origin[0] is None else SourceColumn.of(origin[0], len(codes))
    sequences = None if origin[1] is None else SequenceColumn.of(origin[1], len(codes))
    made = {}
    for name in names:
        schema = arrow_schema(group.plan.catalogue[name])
        table = tables[name].select(schema.names).combine_chunks()
        arrays = [
            table.column(at).chunk(0) if table.column(at).num_chunks else table.column(at).combine_chunks()
            for at in range(len(schema))
        ]
        made[name] = record_batch(arrays, schema, len(tables[name]))
    moved: Any = positions + offset
    return Columns(names, codes, moved, made, sources, sequences, last_position=last, identities=identities)


def _in_order(tables: Sequence[pa.Table], name: str, order: npt.NDArray[np.int64] | None) -> pa.ChunkedArray | None:
    """A column of all rows, in their order; None if they have no such column."""
    if not tables or any(name not in each.column_names for each in tables):
        return None
    joined = pa.chunked_array([chunk for each in tables for chunk in each.column(name).chunks])
    return joined if order is None else joined.take(pa.array(order))
