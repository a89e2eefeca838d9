"""Sorts events without an order into the order of their content (order/total.py).

Takes: batches from a transport, repeats not yet dropped, and the names of the order columns: attributes that every type of the
input has. Gives: one batch in order, with positions from 0. Never: depends on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.errors import DataError, UsageError
from fairlead.model.columns import Columns, arrow_schema, record_batch
from fairlead.model.types import Catalogue, EventType
from fairlead.order.repeats import repeated
from fairlead.order.total import SEQUENCE, SOURCE, in_order, order_column
from fairlead.transport.admission.problems import did_you_mean
from fairlead.transport.admission.sequences import LastSequences


class AllFresh(LastSequences):
    """Keeps repeats: which of them is the first is known only when they are in order."""

    def fresh(self, sources: Sequence[str | None] | None, sequences: Sequence[int | None]) -> list[bool] | None:
        return None


def in_total_order(batches: Iterable[Columns], order_by: Sequence[str] | str, catalogue: Catalogue) -> Columns:
    """1. order, 2. positions, 3. repeats of a source's sequence are dropped; in this order a repeat takes a position, too."""
    names = [order_by] if isinstance(order_by, str) else list(order_by)
    if not names:
        raise UsageError("A211", "the events have no order: order_by is empty", 'order_by=["at"]')
    found: dict[str, list[pa.Table]] = {}
    for columns in batches:
        for name, table in columns.tables.items():
            found.setdefault(name, []).append(_arrived(columns, table, catalogue[name], names))
    arrivals = {name: pa.concat_tables(tables) for name, tables in found.items()}
    order = in_order(arrivals, len(names))  # 1
    sources = order.column(SOURCE, arrivals, order.types, pa.string())
    sequences = order.column(SEQUENCE, arrivals, order.types, pa.int64())
    fresh = ~repeated(sources, sequences)[0]  # 3
    tables = {}
    for name in order.types:
        mine = arrivals[name].take(pa.array(order.rows_of(name)[fresh[order.places[name]]]))
        schema = arrow_schema(catalogue[name])
        tables[name] = record_batch([mine.column(each).combine_chunks() for each in schema.names], schema, len(mine))
    kept = np.flatnonzero(fresh)  # 2
    return Columns(
        order.types,
        order.codes[kept],
        range(len(order)) if len(kept) == len(order) else kept.tolist(),
        tables,
        _given(sources, kept),
        _given(sequences, kept),
        len(order) - len(kept),
        len(order) - 1,
    )


def _arrived(columns: Columns, table: pa.RecordBatch, schema: EventType, names: Sequence[str]) -> pa.Table:
    made = pa.Table.from_batches([table])
    for number, name in enumerate(names):
        if name not in schema.index:
            fix = (
                did_you_mean(name, schema.index)
                or f"order by attributes that all types have; '{schema.name}' has {', '.join(schema.index)}"
            )
            raise DataError("D020", f"'{schema.name}' has no attribute '{name}' to order by", fix)
        column = table.column(schema.index[name])
        nan = pa.types.is_floating(column.type) and bool(np.isnan(column.to_numpy(zero_copy_only=False)).any())
        if column.null_count or nan:
            problem = f"an event of '{schema.name}' has no value in the order column '{name}'"
            raise DataError("D019", problem, "filter such events out, or order by columns that are never null", name)
        made = made.append_column(order_column(number), column)
    places = columns.places[schema.name].tolist()
    for name, given, kind in ((SOURCE, columns.sources, pa.string()), (SEQUENCE, columns.sequences, pa.int64())):
        made = made.append_column(
            name, pa.nulls(len(made), kind) if given is None else pa.array([given[at] for at in places], kind)
        )
    return made


def _given(column: pa.Array, rows: npt.NDArray[np.int64]) -> list[Any] | None:
    return None if column.null_count == len(column) else column.take(pa.array(rows)).to_pylist()
