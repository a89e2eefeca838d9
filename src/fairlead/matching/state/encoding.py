"""Matcher state as bytes: versioned, checked against damage, equal bytes for equal states.

    fairlead-state <version> <sha256>     a line, then a body: an Arrow IPC stream of one record batch of one row, so any
                                          Arrow reader can read it:
    major, minor                          the last position
    subscriptions                         whose state it is: by digest, frame and since (model/plans/partition.py), in which
                                          unit it ran, and the latest time that it has seen; unit by unit
    types u, events u, rows u 0, ...      of the u-th unit (see content.py): the events, their order, a table for each type
    instances u n, queued u n, waiting u n   of the u-th unit, for the n-th form of its branches, if there is something:
                                          `queued` has numbers of events, each less its own place among the queued
                                          a branch with a folded run has columns `folded n` of its instances, for the
                                          numbers that are kept of it, and has queued the events that stand for it
    counts u s                            of the u-th unit, for its s-th subscription: the relations that its LIMIT has counted,
                                          by key (delivery_counts.py), if there is something
    idle u n                              of the instances without queued events: key and clock; of others, events imply
                                          them (implied_values.py), but for how far the clock is `ahead` of the newest

Columns of whole numbers and of times are packed if that saves room (packed_columns.py). In version 4 nothing was packed, all
instances had key and clock, and `queued` had the words of events.

The state of a subscription is identified by its digest, frame and since, so any equal subscription can resume from it: under
another name, from another file, beside other rules. Attributes that its types had at that time are known; others are NULL.

The digest detects accidental damage; soundness.py checks that the content makes sense.

A change of the format raises VERSION and keeps a fixture of the old one, with a reader for it or a reason to reject it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.state.canonical_columns import canonical, small
from fairlead.matching.state.content import (
    NEVER,
    Content,
    Events,
    InstanceTable,
    forms_of,
)
from fairlead.matching.state.delivery_counts import columns_of_counts, small_key
from fairlead.matching.state.implied_values import has_events, newest_times, rows_of
from fairlead.matching.state.packed_columns import packed
from fairlead.model.events.columns import arrow_schema
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.partition import Unit

MAGIC = b"fairlead-state"
IDENTITY = ("identity 0", "identity 1")
"""The two words of an event's identity, if the events are in an order by value (order/event_identity.py)."""
VERSION = 5


@dataclass(frozen=True)
class Change:
    """What happened to the subscriptions of a plan that resumed from a state: by name those that were resumed and those that
    were started; and those that were dropped, which are in the state and not in the plan, by digest, or by name if that is
    known.
    """

    resumed: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def names(self) -> dict[str, tuple[str, ...]]:
        """The names, by what happened to them."""
        return {"resumed": self.resumed, "started": self.started, "dropped": self.dropped}

    def summary(self) -> str:
        """In one line: `resumed: Y; started: Z; dropped: X`."""
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in self.names().items() if names)

    def __str__(self) -> str:
        """The summary; empty if all were resumed, or all were started: then no rules have changed."""
        return self.summary() if self.dropped or (self.resumed and self.started) else ""


ENTRY = pa.struct(
    [
        ("digest", pa.string()),
        ("frame", pa.string()),
        ("since", pa.int64()),
        ("unit", pa.int32()),
        ("silent", pa.bool_()),
        ("seen", pa.int64()),
    ]
)


def encode(last: Position, units: Sequence[tuple[Unit, Content]]) -> bytes:
    body = _body(last, units)
    return b"%s %d %s\n%s" % (MAGIC, VERSION, hashlib.sha256(body).hexdigest().encode(), body)


def _body(last: Position, units: Sequence[tuple[Unit, Content]]) -> bytes:
    columns: dict[str, pa.Array] = {"major": _numbers([last.major]), "minor": _numbers([last.minor])}
    columns["subscriptions"] = _entries_column(units)
    for at, (unit, content) in enumerate(units):
        columns |= _events_columns(content.events, unit.plan.catalogue, at)
        for number, form in enumerate(forms_of(unit.plan)):
            if form in content.groups:
                columns |= _group_columns(content.groups[form], f"{at} {number}", content.events, unit.plan.catalogue)
        for number, counted in sorted(content.counts.items()):
            columns[f"counts {at} {number}"] = _table(columns_of_counts(counted), len(counted))
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V5, compression=None, use_threads=False)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _entries_column(units: Sequence[tuple[Unit, Content]]) -> pa.Array:
    told = [
        (each.digest, unit.frame_of(each), unit.begun(each), at, each.name in unit.plan.silent, seen)
        for at, (unit, content) in enumerate(units)
        for each, seen in zip(unit.plan.subscriptions, content.seen, strict=True)
    ]
    columns = zip(*told, strict=True) if told else ((),) * len(ENTRY)
    return _table({field.name: pa.array(each, field.type) for field, each in zip(ENTRY, columns, strict=True)}, len(told))


def _events_columns(events: Events, catalogue: Catalogue, unit: int) -> dict[str, pa.Array]:
    found = {"word": _numbers(events.words), "type": small(events.codes)}
    if events.timed.any():
        found["time"] = pa.array(events.times, mask=~events.timed)
    for name, given, kind in (("source", events.sources, pa.string()), ("sequence", events.sequences, pa.int64())):
        column = pa.array(given, type=kind) if given is not None else None
        if column is not None and column.null_count < len(column):
            found[name] = column
    if events.identities is not None:
        found |= {name: pa.array(part.view(np.int64)) for name, part in zip(IDENTITY, events.identities.T.copy(), strict=True)}
    made = {f"types {unit}": _listed(pa.array(events.types, type=pa.string())), f"events {unit}": _table(found, len(events))}
    for number, name in enumerate(events.types):
        table, schema = events.tables[name], arrow_schema(catalogue[name])
        cast = (column.cast(field.type) for column, field in zip(table.columns, schema, strict=True))
        made[f"rows {unit} {number}"] = _table(dict(zip(schema.names, cast, strict=True)), table.num_rows)
    return made


def _group_columns(group: InstanceTable, number: str, events: Events, catalogue: Catalogue) -> dict[str, pa.Array]:
    queued, rows, ahead = has_events(group), rows_of(group.words, events), np.zeros(len(group), dtype=np.int64)
    clocked = queued & (group.clock != NEVER)
    if clocked.any():
        ahead[clocked] = (group.clock - newest_times(group, rows, events, catalogue))[clocked]
    instances = {
        "subscription": small(group.subscription),
        "branch": small(group.branch),
        "ahead": small(ahead),
        "loose": pa.array(group.loose) if group.loose.any() else pa.nulls(len(group)),
        **{f"queue {at}": small(group.lengths[:, at]) for at in range(group.form.queues)},
        **{f"folded {at}": _numbers(group.folded[:, at]) for at in range(group.form.folded)},
    }
    entries = rows - np.arange(len(rows))
    made = {
        f"instances {number}": _table(instances, len(group)),
        f"queued {number}": _table({"event": small(entries)}, len(entries)),
    }
    idle = np.flatnonzero(~queued)
    if len(idle):
        keys = {f"key {at}": small_key(column.take(pa.array(idle))) for at, column in enumerate(group.keys)}
        made[f"idle {number}"] = _table({**keys, "clock": _clocks(group.clock[idle])}, len(idle))
    if len(group.owner):
        waiting = {
            "instance": _numbers(group.owner),
            "deadline": _numbers(group.deadline),
            "cancelled": pa.array(group.cancelled),
            **{f"member {at}": _numbers(group.members[:, at]) for at in range(group.form.members)},
        }
        made[f"waiting {number}"] = _table(waiting, len(group.owner))
    return made


def _clocks(clocks: npt.NDArray[np.int64]) -> pa.Array:
    never = clocks == NEVER
    return pa.nulls(len(clocks)) if never.all() else pa.array(clocks, mask=never)


def _numbers(values: Any) -> pa.Array:
    return pa.array(np.ascontiguousarray(values, dtype=np.int64))


def _table(columns: Mapping[str, pa.Array], rows: int) -> pa.Array:
    written = [packed(name, column) for name, column in columns.items()]
    children = [canonical(column) for _, column in written]
    kind = pa.struct([field for field, _ in written])
    return _in_one_row(pa.StructArray.from_buffers(kind, rows, [None], children=children))


def _listed(column: pa.Array) -> pa.Array:
    return _in_one_row(canonical(column))


def _in_one_row(column: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(column)], type=pa.int32()), column)
