"""Sorts events into an order by value (order/total.py).

Takes: batches from a transport, repeats not yet dropped, and the order: by attributes that every type of the input has. Gives:
one batch in order, with positions from 0 and identities. Never: depends on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.errors import DataError, UsageError
from fairlead.model.events.columns import Columns, arrow_schema, record_batch
from fairlead.model.events.origin_columns import SequenceColumn, SourceColumn
from fairlead.model.events.types import HEARTBEAT, Catalogue, EventType, Kind
from fairlead.model.plans.canonical import with_order
from fairlead.model.plans.event_order import EventOrder, OrderKey, by_attributes
from fairlead.model.plans.plan import Plan
from fairlead.order.event_identity import event_identities
from fairlead.order.held_events import taken_table
from fairlead.order.repeats import same_numbers
from fairlead.order.total import SEQUENCE, SOURCE, Arrivals, RowOrder, in_order, order_column, sources_of
from fairlead.transport.admission.problems import did_you_mean
from fairlead.transport.admission.sequences import LastSequences

Origin = TypeVar("Origin", SourceColumn, SequenceColumn)


class AllFresh(LastSequences):
    """Keeps repeats: which of them is the first is known only when they are in order."""

    def fresh(self, sources: Sequence[str | None] | None, sequences: Sequence[int | None]) -> list[bool] | None:
        return None


def ordered_plan(plan: Plan, order_by: Sequence[str] | str | None, argument: str = "order_by") -> Plan:
    """The plan with the order of the shorthand `order_by`, if that names attributes of all events. Other columns of the input,
    such as a row number, do not make it another plan: they are no part of the events. `argument`: what the user wrote."""
    names = [order_by] if isinstance(order_by, str) else list(order_by or ())
    if not names:
        return plan
    if plan.order is not None:
        raise UsageError("A210", f"{argument} is set, and the rules say {plan.order}", f"leave {argument} out")
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
    return with_arrivals(batches, wanted, catalogue)[0]


def with_arrivals(
    batches: Iterable[Columns], wanted: EventOrder, catalogue: Catalogue
) -> tuple[Columns, npt.NDArray[np.int64]]:
    """The same, and for each position the one at which the event arrived."""
    found: dict[str, list[pa.Table]] = {}
    came: dict[str, list[npt.NDArray[np.int64]]] = {}
    for columns in batches:
        for name, table in arrivals_of(columns, wanted, catalogue).items():
            found.setdefault(name, []).append(table)
            came.setdefault(name, []).append(columns.position_array[columns.places[name]])
    arrivals = {name: pa.concat_tables(tables) for name, tables in found.items()}
    order = in_order(arrivals, len(wanted.keys), wanted.descending)
    by = np.empty(len(order), dtype=np.int64)
    for name in order.types:
        by[order.places[name]] = np.concatenate(came[name])[order.rows_of(name)]
    return in_their_places(order, arrivals, wanted, catalogue), by


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
    sources, sequences = order.sources(arrivals), order.sequences(arrivals)
    repeats = same_numbers(order.doubles, sources, sequences)  # 3
    kept = np.flatnonzero(~repeats) if repeats.any() else None  # 2
    tables, identities = {}, np.empty((len(order), 2), dtype=np.uint64)
    for name in order.types:
        places = order.places[name] if kept is None else order.places[name][~repeats[order.places[name]]]
        schema = arrow_schema(catalogue[name])
        mine = taken_table(arrivals[name].select(schema.names), order.rows[places])
        origin = sources.taken(places), sequences.taken(places)
        identities[places] = event_identities(catalogue[name], mine, wanted, origin)  # 4
        tables[name] = record_batch([mine.column(each).chunk(0) for each in schema.names], schema, len(places))
    count = len(order) if kept is None else len(kept)
    return Columns(
        order.types,
        order.codes if kept is None else order.codes[kept],
        range(first, first + len(order)) if kept is None else (kept + first).tolist(),
        tables,
        _given(sources, kept),
        _given(sequences, kept),
        len(order) - count,
        first + len(order) - 1,
        order.places if kept is None else None,
        identities=identities if kept is None else identities[kept],
    )


def _arrived(columns: Columns, table: pa.RecordBatch, schema: EventType, wanted: EventOrder) -> pa.Table:
    made, places = _with_order_columns(table, schema, wanted), columns.places[schema.name]
    for name, origin in ((SOURCE, columns.source_column), (SEQUENCE, columns.sequence_column)):
        mine = origin if len(places) == len(columns) else origin.taken(places)
        made = made.append_column(name, mine.to_arrow())
    return made


def fitted(table: pa.Table, schema: EventType, wanted: EventOrder) -> pa.Table:
    """Arrivals that were dumped, as their type is declared now: attributes that were added since are NULL. Raises DataError if
    an event has no place in the order any more."""
    columns, declared = [], arrow_schema(schema)
    for each in declared:
        known = each.name in table.column_names and table.schema.field(each.name).type == each.type
        columns.append(_one_chunk(table.column(each.name)) if known else pa.nulls(len(table), each.type))
    made = _with_order_columns(record_batch(columns, declared, len(table)), schema, wanted)
    made = made.append_column(SOURCE, sources_of(table).to_arrow())
    return made.append_column(SEQUENCE, table.column(SEQUENCE))


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([*column.chunks, pa.array([], column.type)])


def _with_order_columns(table: pa.RecordBatch, schema: EventType, wanted: EventOrder) -> pa.Table:
    made = pa.Table.from_batches([table])
    for number, key in enumerate(wanted.keys):
        name, at = key.attribute, key.column(schema)
        if at is None and schema.name == HEARTBEAT.name:
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
    return made


def _of_heartbeat(table: pa.RecordBatch, number: int) -> pa.Array:
    """A heartbeat has its time for the first key, and no value for others."""
    return table.column(0) if not number else pa.nulls(len(table))


def _given(column: Origin, rows: npt.NDArray[np.int64] | None) -> Origin | None:
    return None if column.is_empty else column if rows is None else column.taken(rows)
