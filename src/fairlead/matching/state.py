"""Matcher state as bytes: versioned, checked against damage, the same bytes for the same state.

    fairlead-state <version> <sha256>     a line, then a body: an Arrow IPC stream of one record batch
                                          of one row, so whatever reads Arrow reads it:
    plan, major, minor, relations         whose state it is, the last position, and how many relations were delivered
    seen                                  by subscription (see content.py for this and what follows)
    types, events, rows 0, rows 1, ...    the events: their types, their order, and a table for each type
    instances n, queued n, waiting n      for the n-th form of the plan's branches, where there is something

The digest tells damage by accident; that content makes sense is checked by soundness.py.

A change of the format raises VERSION and keeps a fixture of the old one, with a reader for it or a reason to refuse it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import StateError
from fairlead.matching.body import distrusted, read_batch
from fairlead.matching.canonical import canonical, large, small
from fairlead.matching.content import NEVER, NO_EVENTS, NO_NUMBERS, Content, Events, Form, Group, forms_of
from fairlead.matching.soundness import require_sound
from fairlead.model.columns import arrow_schema, record_batch
from fairlead.model.plan import Plan
from fairlead.model.position import Position
from fairlead.model.types import Catalogue

MAGIC = b"fairlead-state"
VERSION = 3
OTHER_IDENTITY = (b"1", b"2")
"""Versions from before a subscription had an identity of its own: relations had other ids and derived events other places, so
what they counted cannot be continued."""


@dataclass(frozen=True)
class State:
    """An engine between two events."""

    last: Position
    relations: int
    content: Content


def encode(state: State, plan: Plan) -> bytes:
    body = _body(state, plan)
    return b"%s %d %s\n%s" % (MAGIC, VERSION, hashlib.sha256(body).hexdigest().encode(), body)


def decode(dumped: bytes, plan: Plan) -> State:
    header, _, body = dumped.partition(b"\n")
    words = header.split(b" ")
    if len(words) != 3 or words[0] != MAGIC:
        raise StateError("S001", "these bytes are not a Fairlead state", fix="pass what Engine.dump() gave")
    if words[1] in OTHER_IDENTITY:
        problem = f"the state has version {words[1].decode()}, whose subscriptions and relations have other identities"
        raise StateError("S006", problem, fix="start anew from the events, or load it with the release that wrote it")
    reader = READERS.get(words[1])
    if reader is None:
        version = words[1].decode(errors="replace")
        raise StateError(
            "S002",
            f"the state has version {version}, this release reads up to {VERSION}",
            fix="load it with the release that wrote it",
        )
    if words[2] != hashlib.sha256(body).hexdigest().encode():
        raise StateError("S003", "the state is damaged: its digest does not fit", fix="take an earlier dump")
    with distrusted():
        found = reader(body, plan)
    require_sound(found.content, found.last, found.relations, plan)
    return found


def require_plan(found: str, plan: Plan) -> None:
    if found != plan.digest:
        raise StateError(
            "S004", "the state belongs to another plan", fix="compile the rule text it was made with, or start anew"
        )


# Written


def _body(state: State, plan: Plan) -> bytes:
    content = state.content
    columns: dict[str, pa.Array] = {
        "plan": pa.array([plan.digest]),
        "major": _numbers([state.last.major]),
        "minor": _numbers([state.last.minor]),
        "relations": _numbers([state.relations]),
        "seen": _listed(pa.array(content.seen, type=pa.int64())),
    }
    columns |= _events_columns(content.events, plan.catalogue)
    for number, form in enumerate(forms_of(plan)):
        if form in content.groups:
            columns |= _group_columns(content.groups[form], number)
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V5, compression=None, use_threads=False)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _events_columns(events: Events, catalogue: Catalogue) -> dict[str, pa.Array]:
    fields = {"word": _numbers(events.words), "type": small(events.codes)}
    if events.timed.any():
        fields["time"] = pa.array(events.times, mask=~events.timed)
    for name, given, kind in (("source", events.sources, pa.string()), ("sequence", events.sequences, pa.int64())):
        column = pa.array(given, type=kind) if given is not None else None
        if column is not None and column.null_count < len(column):
            fields[name] = column
    made = {"types": _listed(pa.array(events.types, type=pa.string())), "events": _table(fields, len(events))}
    for number, name in enumerate(events.types):
        table, schema = events.tables[name], arrow_schema(catalogue[name])
        cast = (column.cast(field.type) for column, field in zip(table.columns, schema, strict=True))
        made[f"rows {number}"] = _table(dict(zip(schema.names, cast, strict=True)), table.num_rows)
    return made


def _group_columns(group: Group, number: int) -> dict[str, pa.Array]:
    instances = {
        "subscription": small(group.subscription),
        "branch": small(group.branch),
        **{f"key {at}": _small_key(column) for at, column in enumerate(group.keys)},
        "clock": _clocks(group.clock),
        "loose": pa.array(group.loose) if group.loose.any() else pa.nulls(len(group)),
        **{f"queue {at}": small(group.lengths[:, at]) for at in range(group.form.queues)},
    }
    made = {f"instances {number}": _table(instances, len(group)), f"queued {number}": _listed(_numbers(group.words))}
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


def _small_key(column: pa.Array) -> pa.Array:
    return small(column.to_numpy()) if pa.types.is_int64(column.type) and len(column) else column


def _numbers(values: Any) -> pa.Array:
    return pa.array(np.ascontiguousarray(values, dtype=np.int64))


def _table(columns: Mapping[str, pa.Array], rows: int) -> pa.Array:
    kind = pa.struct([(name, column.type) for name, column in columns.items()])
    children = [canonical(column) for column in columns.values()]
    return _in_one_row(pa.StructArray.from_buffers(kind, rows, [None], children=children))


def _listed(column: pa.Array) -> pa.Array:
    return _in_one_row(canonical(column))


def _in_one_row(column: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(column)], type=pa.int32()), column)


# Read


def _read(body: bytes, plan: Plan) -> State:
    batch = read_batch(body)
    found = {name: batch.column(at) for at, name in enumerate(batch.schema.names)}
    require_plan(found["plan"][0].as_py(), plan)
    groups = {form: _group(form, found, number) for number, form in enumerate(forms_of(plan)) if f"instances {number}" in found}
    content = Content(found["seen"].values.to_pylist(), groups, _events(found, plan.catalogue))
    major, minor, relations = (found[name][0].as_py() for name in ("major", "minor", "relations"))
    return State(Position(major, minor), relations, content)


def _events(found: Mapping[str, pa.Array], catalogue: Catalogue) -> Events:
    types, table = tuple(found["types"].values.to_pylist()), _fields(found["events"])
    words = _plain(table["word"])
    if not len(words):
        return NO_EVENTS
    tables = {}
    for number, name in enumerate(types):
        rows, schema = found[f"rows {number}"].values, arrow_schema(catalogue[name])
        tables[name] = record_batch([rows.field(at) for at in range(len(schema))], schema, len(rows))
    times, timed = np.zeros(len(words), dtype=np.int64), np.zeros(len(words), dtype=bool)
    if "time" in table:
        times, timed = _plain(table["time"].fill_null(0)), table["time"].is_valid().to_numpy(zero_copy_only=False)
    sources, sequences = (table[name].to_pylist() if name in table else None for name in ("source", "sequence"))
    codes = large(table["type"])
    return Events(types, words, codes, tables, times, timed, sources, sequences)


def _group(form: Form, found: Mapping[str, pa.Array], number: int) -> Group:
    table = _fields(found[f"instances {number}"])
    waiting = _fields(found[f"waiting {number}"]) if f"waiting {number}" in found else {}
    members = [_plain(waiting[f"member {at}"]) for at in range(form.members)] if waiting else [NO_NUMBERS] * form.members
    return Group(
        form,
        large(table["subscription"]),
        large(table["branch"]),
        tuple(_large_key(table[f"key {at}"], kind) for at, kind in enumerate(form.keys)),
        _plain(table["clock"].cast(pa.int64()).fill_null(NEVER)),
        _flags(table["loose"]),
        np.stack([large(table[f"queue {at}"]) for at in range(form.queues)], axis=1),
        _plain(found[f"queued {number}"].values),
        _plain(waiting["instance"]) if waiting else NO_NUMBERS,
        _plain(waiting["deadline"]) if waiting else NO_NUMBERS,
        waiting["cancelled"].to_numpy(zero_copy_only=False) if waiting else np.zeros(0, dtype=bool),
        np.stack(members, axis=1),
    )


def _fields(column: pa.Array) -> dict[str, pa.Array]:
    rows = column.values
    return {rows.type.field(at).name: rows.field(at) for at in range(rows.type.num_fields)}


def _large_key(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.array(large(column)) if pa.types.is_int64(kind) else column


def _flags(column: pa.Array) -> npt.NDArray[np.bool_]:
    made: npt.NDArray[np.bool_] = column.cast(pa.bool_()).fill_null(False).to_numpy(zero_copy_only=False)
    return made


def _plain(column: pa.Array) -> npt.NDArray[np.int64]:
    made: npt.NDArray[np.int64] = column.to_numpy()
    return made


READERS: Mapping[bytes, Callable[[bytes, Plan], State]] = {b"3": _read}
