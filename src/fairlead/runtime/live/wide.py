"""Blocks of several types as rows of one table: position, type, and the attributes of all types by name.

    position   of the event in the stream (transport/log/block.py)
    stream     which stream it is, by its topics; only if there are several
    type       of the event
    source     the publisher, and
    sequence   the number of the event in its topic; both only on request, and only if no attribute has this name. In exports of
               events that are ordered by value they are called `_source` and `_sequence`, as in every input
    …          attributes, null in events of types that have no such attribute

Takes: blocks in the order of the stream. Gives: record batches. Never: makes an object of an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from fairlead.errors import UsageError
from fairlead.model.columns import arrow_schema
from fairlead.model.types import HEARTBEAT
from fairlead.runtime.live.rejection import report
from fairlead.runtime.live.selecting import Selection
from fairlead.transport.log.block import INDEX_BITS
from fairlead.transport.log.mixed_block import MixedEvents, in_order, wanted_events
from fairlead.transport.log.protocol import Stored

STREAM = "stream"
ROWS = 65_536
"""Rows of a record batch: small blocks are combined up to this size."""


class Wide:
    """The table of a selection. `position` is the name of its column, `origin` those of source and sequence."""

    def __init__(self, selection: Selection, position: str = "position", *, origin: Sequence[str] = ()) -> None:
        self._streams = [" ".join(topics) for topics in selection.topics] if len(selection.parts) > 1 else []
        self._wanted = [
            {*types, HEARTBEAT.name} if selection.timed or len(selection.types) > 1 else {*types} for types in selection.parts
        ]
        self._types = {name: selection.catalogue[name] for name in selection.comes}
        fields: dict[str, pa.Field] = {}
        for name, each in self._types.items():
            for field in arrow_schema(each):
                known = fields.setdefault(field.name, field)
                fields[field.name] = _common(known, field, name)
        if position in fields or position in ("type", "", *([STREAM] if self._streams else [])):
            raise UsageError(
                "A262",
                f"the column of positions is called '{position}', like an attribute",
                "use another name for the column of positions",
            )
        if self._streams and STREAM in fields:
            problem = f"the column that names the stream is called '{STREAM}', like an attribute"
            raise UsageError("A262", problem, "write each pattern between ORs as its own subscription")
        kinds = zip(origin, (pa.string(), pa.int64()), strict=False)
        self._origin = {name: kind for name, kind in kinds if name not in fields and name != position}
        before = [(position, pa.int64()), ("type", pa.string()), *self._origin.items()]
        before += [(STREAM, pa.string())] if self._streams else []
        self.schema = pa.schema([*before, *fields.values()])
        self._attributes = list(fields.values())

    def batches(self, blocks: Iterable[Stored], first: int = 0, part: int = 0) -> Iterator[pa.RecordBatch]:
        """The events of one stream from position `first`."""
        held: list[pa.RecordBatch] = []
        rows = 0
        for each in blocks:
            batch = self._batch(each, part)
            if each.sequence << INDEX_BITS < first:
                batch = batch.slice(int(np.searchsorted(batch.column(0).to_numpy(), first)))
            held.append(batch)
            rows += batch.num_rows
            if rows >= ROWS:
                yield joined(held)
                held, rows = [], 0
        if rows:
            yield joined(held)

    def _batch(self, stored: Stored, part: int) -> pa.RecordBatch:
        """The events of the part's types, in their order."""
        block = stored.block
        found = wanted_events(block, {name: self._types[name] for name in self._wanted[part]})
        report(stored, found.rejected)
        at, events = found.indices, found.events
        if not len(at):
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        columns = [
            pa.array((stored.sequence << INDEX_BITS) + at),
            pa.array(events.types, pa.string()).take(pa.array(events.codes)),
        ]
        for kind in self._origin.values():
            columns.append(pa.repeat(block.source, len(at)) if pa.types.is_string(kind) else pa.array(block.sequence + at))
        if self._streams:
            columns.append(pa.repeat(self._streams[part], len(at)))
        columns += [_column(field, events) for field in self._attributes]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _column(field: pa.Field, events: MixedEvents) -> pa.Array:
    """An attribute of all events; null where a type does not have it."""
    parts = []
    for batch in events.batches:
        at = batch.schema.get_field_index(field.name)
        column = pa.nulls(batch.num_rows, field.type) if at < 0 else batch.column(at)
        parts.append(column if column.type.equals(field.type) else column.cast(field.type))
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts).take(pa.array(in_order(events.codes)))


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _common(known: pa.Field, field: pa.Field, name: str) -> pa.Field:
    """INT and BIGINT combine to BIGINT; other types with the same name do not combine."""
    if known.type.equals(field.type):
        return known
    if {str(known.type), str(field.type)} == {"int32", "int64"}:
        return pa.field(known.name, pa.int64())
    problem = f"'{field.name}' is {field.type} in '{name}' and {known.type} in another type: they need different columns"
    raise UsageError("A263", problem, "read these types separately, or rename the attribute")
