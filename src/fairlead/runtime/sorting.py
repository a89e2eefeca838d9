"""Sorts events into an order by value (order/total.py).

Takes: batches from a transport, repeats not yet dropped, and the order: by attributes that every type of the input has. Gives:
one batch in order, with positions from 0 and identities. Never: depends on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.errors import DataError, UsageError
from fairlead.model.canonical import with_order
from fairlead.model.columns import Columns, arrow_schema, record_batch
from fairlead.model.event_order import EventOrder, OrderKey, by_attributes
from fairlead.model.plan import Plan
from fairlead.model.types import HEARTBEAT, Catalogue, EventType, Kind
from fairlead.order.event_identity import event_identities
from fairlead.order.repeats import doubled
from fairlead.order.total import SEQUENCE, SOURCE, Arrivals, RowOrder, in_order, order_column
from fairlead.transport.admission.problems import did_you_mean
from fairlead.transport.admission.sequences import LastSequences


class AllFresh(LastSequences):
    """Keeps repeats: which of them is the first is known only when they are in order."""

    def fresh(self, sources: Sequence[str | None] | None, sequences: Sequence[int | None]) -> list[bool] | None:
        return None


def ordered_plan(plan: Plan, order_by: Sequence[str] | str | None) -> Plan:
    """The plan with the order of the shorthand `order_by`, if that names attributes of all events. Other columns of the input,
    such as a row number, do not make it another plan: they are no part of the events."""
    names = [order_by] if isinstance(order_by, str) else list(order_by or ())
    if not names:
        return plan
    if plan.order is not None:
        raise UsageError("A210", f"order_by is set, and the rules say {plan.order}", "leave order_by out")
    order = by_attributes(names)
    read = {name for each in plan.subscriptions for name in each.reads(plan.catalogue)} - {HEARTBEAT.name}
    schemas = [plan.catalogue[name] for name in sorted(read) if not plan.catalogue[name].derived]
    known = all(key.column(schema) is not None for key in order.keys for schema in schemas)
    return with_order(plan, order) if known else plan


def order_of(plan: Plan, order_by: Sequence[str] | str) -> EventOrder:
    """That of the rules, or of the shorthand."""
    names = [order_by] if isinstance(order_by, str) else list(order_by)
    if plan.order is None and not names:
        raise UsageError("A211", "the events have no order: order_by is empty", 'order_by=["at"]')
    return plan.order or by_attributes(names)


def in_total_order(batches: Iterable[Columns], wanted: EventOrder, catalogue: Catalogue) -> Columns:
    """1. order, 2. positions, 3. what a source sent twice is dropped; in this order a repeat takes a position, too;
    4. identities."""
    found: dict[str, list[pa.Table]] = {}
    for columns in batches:
        for name, table in arrivals_of(columns, wanted, catalogue).items():
            found.setdefault(name, []).append(table)
    arrivals = {name: pa.concat_tables(tables) for name, tables in found.items()}
    return in_their_places(in_order(arrivals, len(wanted.keys), wanted.descending), arrivals, wanted, catalogue)


def arrivals_of(columns: Columns, wanted: EventOrder, catalogue: Catalogue) -> dict[str, pa.Table]:
    """A batch by type, with order columns, sources and sequences. Raises DataError if an event has no place in the order."""
    if HEARTBEAT.name in columns.places:
        _require_time(wanted.keys[0], catalogue)
    return {name: _arrived(columns, columns.tables[name], catalogue[name], wanted) for name in columns.places}


def _require_time(first: OrderKey, catalogue: Catalogue) -> None:
    """A heartbeat has a time and nothing else, so it has a place only in an order that begins with a time."""
    for schema in catalogue:
        at = first.column(schema)
        if at is not None and schema.attributes[at].type.kind is not Kind.TIMESTAMP:
            problem = f"a heartbeat has no value for the first order key '{first.attribute}', which is no time"
            raise DataError("D020", problem, "order by the event time first, or leave heartbeats out", first.attribute)


def in_their_places(order: RowOrder, arrivals: Arrivals, wanted: EventOrder, catalogue: Catalogue, first: int = 0) -> Columns:
    """Arrivals as one batch in this order, with positions from `first`: steps 2 to 4."""
    sources = order.column(SOURCE, arrivals, order.types, pa.string())
    sequences = order.column(SEQUENCE, arrivals, order.types, pa.int64())
    fresh = ~doubled(order.doubles, sources, sequences)  # 3
    tables, identities = {}, np.empty((len(order), 2), dtype=np.uint64)
    for name in order.types:
        mine = arrivals[name].take(pa.array(order.rows_of(name)[fresh[order.places[name]]]))
        schema = arrow_schema(catalogue[name])
        identities[order.places[name][fresh[order.places[name]]]] = event_identities(catalogue[name], mine, wanted)  # 4
        tables[name] = record_batch([mine.column(each).combine_chunks() for each in schema.names], schema, len(mine))
    kept = np.flatnonzero(fresh)  # 2
    return Columns(
        order.types,
        order.codes[kept],
        range(first, first + len(order)) if len(kept) == len(order) else (kept + first).tolist(),
        tables,
        _given(sources, kept),
        _given(sequences, kept),
        len(order) - len(kept),
        first + len(order) - 1,
        identities=identities[kept],
    )


def _arrived(columns: Columns, table: pa.RecordBatch, schema: EventType, wanted: EventOrder) -> pa.Table:
    made = pa.Table.from_batches([table])
    for number, key in enumerate(wanted.keys):
        name, at = key.attribute, key.column(schema)
        if at is None and schema is HEARTBEAT:
            made = made.append_column(order_column(number), _of_heartbeat(table, number))
            continue
        if at is None:
            fix = (
                did_you_mean(name, schema.index)
                or f"order by attributes that all types have; '{schema.name}' has {', '.join(schema.index)}"
            )
            raise DataError("D020", f"'{schema.name}' has no attribute '{name}' to order by", fix)
        column = table.column(at)
        nan = pa.types.is_floating(column.type) and bool(np.isnan(column.to_numpy(zero_copy_only=False)).any())
        if column.null_count or nan:
            problem = f"an event of '{schema.name}' has no value in the order column '{name}'"
            raise DataError("D019", problem, "filter such events out, or order by columns that are never null", name)
        made = made.append_column(order_column(number), column)
    for name, given, kind in ((SOURCE, columns.sources, pa.string()), (SEQUENCE, columns.sequences, pa.int64())):
        made = made.append_column(name, _chosen(given, columns, schema.name, kind))
    return made


def _chosen(given: Sequence[Any] | None, columns: Columns, name: str, kind: pa.DataType) -> pa.Array:
    """The sources or sequences of the events of a type."""
    places = columns.places[name]
    if given is None:
        return pa.nulls(len(places), kind)
    if isinstance(given, np.ndarray | pa.Array):
        return pa.array(given, kind).take(pa.array(places))
    return pa.array(given if len(places) == len(columns) else [given[at] for at in places.tolist()], kind)


def _of_heartbeat(table: pa.RecordBatch, number: int) -> pa.Array:
    """A heartbeat has its time for the first key, and no value for others."""
    return table.column(0) if not number else pa.nulls(len(table))


def _given(column: pa.Array, rows: npt.NDArray[np.int64]) -> list[Any] | None:
    return None if column.null_count == len(column) else column.take(pa.array(rows)).to_pylist()
