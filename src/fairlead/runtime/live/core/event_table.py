"""Events of a log as rows of one table: position, type, and the attributes of all types by name.

A selection says which: those of some types, or those that rules read, from the streams that live subscribers read.

    position   of the event in the stream (transport/log/blocks/block.py)
    stream     which stream it is, by its topics; only if there are several
    type       of the event
    source     the publisher, and
    sequence   the number of the event in its topic; both only on request, and only if no attribute has this name. In exports of
               events that are ordered by value they are called `_source` and `_sequence`, as in every input, and with AHEAD
               `_stored` has the time at which the log stored the event. On Spark such events also have `_topic` and
               `_offset`, their position in the stream of the topic
    …          attributes, null in events of types that have no such attribute

Takes: a plan or types; blocks in the order of the stream. Gives: a selection; record batches. Never: makes an object of an
event; treats rules that read several streams as one stream, whose positions would mean nothing together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.model.events.columns import arrow_schema
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.model.plans.partition import needs_one_stream
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.block_columns import Report
from fairlead.runtime.live.core.stream_groups import StreamGroup, groups_of, together
from fairlead.runtime.live.core.stream_merge import PULSE
from fairlead.runtime.parts import parts_of
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.blocks.mixed_block import MixedEvents, in_order, joined, wanted_events
from fairlead.transport.log.blocks.room import require_position
from fairlead.transport.log.protocol import Stored

STREAM = "stream"
ROWS = 65_536
"""Rows of a record batch: small blocks are combined up to this size."""


@dataclass(frozen=True)
class Selection:
    """`parts`: the types of each stream, by name. `timed`: include heartbeats even for a single type. `ordered`: the rules have
    ORDER BY, so the order is not that of the log. `stored`: it matters when the log stored an event (AHEAD)."""

    parts: tuple[tuple[str, ...], ...]
    timed: bool
    catalogue: Catalogue
    ordered: bool = False
    stored: bool = False

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(sorted({name for types in self.parts for name in types}))

    @property
    def comes(self) -> tuple[str, ...]:
        """The types of the events to read."""
        return (*self.types, HEARTBEAT.name) if self.timed or len(self.types) > 1 else self.types

    @property
    def topics(self) -> tuple[tuple[str, ...], ...]:
        """The topics of each stream, by name."""
        return tuple(map(self.catalogue.topics_of, self.parts))

    def by_topic(self) -> Selection:
        """The same events, in the order in which live subscribers of ordered rules read them: those of each topic's own
        stream, by stored time."""
        topics = self.catalogue.topics_of(self.types)
        parts = [tuple(name for name in self.types if self.catalogue[name].topic == topic) for topic in topics]
        return replace(self, parts=tuple(parts))


def selection_of(plan: Plan) -> Selection:
    """The selection of the events that the subscriptions of a plan read."""
    return selection_of_group(only_group(plan))


def selection_of_group(group: StreamGroup) -> Selection:
    """The selection of the events that a group reads."""
    order = group.plan.order
    stored = order is not None and order.ahead_us is not None
    return Selection(tuple(each.types for each in group.parts), group.timed, group.plan.catalogue, order is not None, stored)


def only_group(plan: Plan) -> StreamGroup:
    groups = groups_of(plan)
    if not groups:
        raise UsageError("A252", "the rules have no subscription", "add SUBSCRIPTION … MATCH …")
    if len(groups) == 1:
        return groups[0]
    if plan.order is not None:
        return StreamGroup(plan, parts_of(plan), timed=True)
    one_order = any(needs_one_stream(plan, each) for each in plan.subscriptions)
    if len(together(groups)) == 1 and (not one_order or len({each.sources for each in groups}) == 1):
        return StreamGroup(plan, parts_of(plan), any(each.timed for each in groups))
    told = "; ".join(f"{', '.join(each.names)} from {' and '.join(each.types)}" for each in groups)
    problem = f"the rules form {len(groups)} groups that read different streams: {told}"
    raise UsageError("A260", problem, "read one group at a time (fairlead export: --subscription NAME)")


def only_stream(selection: Selection) -> tuple[str, ...]:
    """The types of the selection's single stream."""
    if len(selection.parts) > 1:
        told = "; ".join(map(" and ".join, selection.parts))
        problem = f"the rules read {len(selection.parts)} streams, one per pattern between ORs: {told}"
        raise UsageError("A260", problem, "read each separately, by its types")
    return selection.parts[0]


class EventTable:
    """The table of a selection. `report` is called with rejected events. `position` is the name of its column, `origin` those
    of source, sequence and the time of storage. `topic`: the name of a column that says the topic of an ordered event.
    `pulses`: with the heartbeats that waiting readers store. They are no events: they tell no time, and each topic numbers its
    own, so as rows of one order they would take positions and repeat one another. Only a reader that puts the rows into the
    order of the log needs them: a later block is not before them, whatever the server's clock says."""

    def __init__(
        self,
        selection: Selection,
        report: Report,
        position: str = "position",
        *,
        origin: Sequence[str] = (),
        topic: str | None = None,
        pulses: bool = False,
    ) -> None:
        self._report, self._pulses = report, pulses
        stream = STREAM if len(selection.parts) > 1 and not selection.ordered else topic
        self._streams = [] if stream is None else [" ".join(topics) for topics in selection.topics]
        self._wanted = [
            {*types, HEARTBEAT.name} if selection.timed or len(selection.types) > 1 else {*types} for types in selection.parts
        ]
        self._types = {name: selection.catalogue[name] for name in selection.comes}
        fields: dict[str, pa.Field] = {}
        for name, each in self._types.items():
            for field in arrow_schema(each):
                known = fields.setdefault(field.name, field)
                fields[field.name] = _common(known, field, name)
        if position in fields or position in ("type", "", *([] if stream is None else [stream])):
            raise UsageError(
                "A262",
                f"the column of positions is called '{position}', like an attribute",
                "use another name for the column of positions",
            )
        if stream is not None and stream in fields:
            problem = f"the column that names the stream is called '{stream}', like an attribute"
            fix = "write each pattern between ORs as its own subscription" if stream == STREAM else "rename the attribute"
            raise UsageError("A262", problem, fix)
        kinds = zip(origin, (pa.string(), pa.int64(), pa.timestamp("us", "UTC")), strict=False)
        self._origin = {name: kind for name, kind in kinds if name not in fields and name != position}
        before = [(position, pa.int64()), ("type", pa.string()), *self._origin.items()]
        before += [] if stream is None else [(stream, pa.string())]
        self.schema = pa.schema([*before, *fields.values()])
        self._attributes = list(fields.values())

    def batches(self, blocks: Iterable[Stored], first: int = 0, part: int = 0) -> Iterator[pa.RecordBatch]:
        """The events of one stream from position `first`."""
        held: list[pa.RecordBatch] = []
        rows = 0
        for each in blocks:
            if each.block.source == PULSE and not self._pulses:
                continue
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
        require_position(stored.sequence)
        block = stored.block
        found = wanted_events(block, {name: self._types[name] for name in self._wanted[part]})
        self._report(stored, found.rejected)
        at, events = found.indices, found.events
        if not len(at):
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        columns = [
            pa.array((stored.sequence << INDEX_BITS) + at),
            pa.array(events.types, pa.string()).take(pa.array(events.codes)),
        ]
        for kind in self._origin.values():
            if pa.types.is_int64(kind):
                columns.append(pa.array(block.sequence + at))
            else:
                columns.append(pa.repeat(pa.scalar(block.source if pa.types.is_string(kind) else stored.time, kind), len(at)))
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


def _common(known: pa.Field, field: pa.Field, name: str) -> pa.Field:
    """INT and BIGINT combine to BIGINT; other types with the same name do not combine."""
    if known.type.equals(field.type):
        return known
    if {str(known.type), str(field.type)} == {"int32", "int64"}:
        return pa.field(known.name, pa.int64())
    problem = f"'{field.name}' is {field.type} in '{name}' and {known.type} in another type: they need different columns"
    raise UsageError("A263", problem, "read these types separately, or rename the attribute")
