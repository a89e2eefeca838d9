"""Matcher state as bytes: versioned, checked against damage, equal bytes for equal states.

    fairlead-state <version> <sha256>     a line, then a body: an Arrow IPC stream of one record batch of one row, so any
                                          Arrow reader can read it:
    major, minor                          the last position
    subscriptions                         whose state it is: by digest, frame and since (model/partition.py), in which unit it
                                          ran, and the latest time that it has seen; unit by unit
    types u, events u, rows u 0, ...      of the u-th unit (see content.py): the events, their order, a table for each type
    instances u n, queued u n, waiting u n   of the u-th unit, for the n-th form of its branches, if there is something

The state of a subscription is identified by its digest, frame and since, so any equal subscription can resume from it: under
another name, from another file, beside other rules. Attributes that its types had at that time are known; others are NULL.

The digest detects accidental damage; soundness.py checks that the content makes sense.

A change of the format raises VERSION and keeps a fixture of the old one, with a reader for it or a reason to reject it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import StateError
from fairlead.matching.results.event_store import View, distinct
from fairlead.matching.state.body import distrusted, fields, flags, or_nothing, plain, read_batch, typed, unsound
from fairlead.matching.state.canonical_columns import canonical, large, small
from fairlead.matching.state.content import (
    NEVER,
    NO_EVENTS,
    NO_NUMBERS,
    Content,
    Events,
    Form,
    InstanceTable,
    events_of_chunk,
    form_of,
    forms_of,
    joined,
)
from fairlead.matching.state.soundness import require_agreement, require_sound
from fairlead.model.columns import arrow_schema, record_batch
from fairlead.model.partition import START, Unit, partition
from fairlead.model.plan import Plan
from fairlead.model.position import Position
from fairlead.model.types import Catalogue

MAGIC = b"fairlead-state"
VERSION = 4
OTHER_IDENTITY = (b"1", b"2", b"3")
"""Versions in which relations had other ids or derived events other places, so their counts cannot be continued: before a
subscription had its own identity (1, 2), and while the order of WITHOUT clauses and the joins of other subscriptions affected
it (3)."""


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


@dataclass(frozen=True)
class StateEntry:
    """The place of a subscription's state: its number in a unit. `silent`: it was not delivered there."""

    digest: str
    frame: str
    since: int
    unit: int
    number: int
    silent: bool
    seen: int | None


def encode(last: Position, units: Sequence[tuple[Unit, Content]]) -> bytes:
    body = _body(last, units)
    return b"%s %d %s\n%s" % (MAGIC, VERSION, hashlib.sha256(body).hexdigest().encode(), body)


def decode(dumped: bytes, without: Collection[str] = ()) -> State:
    """`without`: digests of subscriptions whose state is ignored. Raises StateError."""
    header, _, body = dumped.partition(b"\n")
    words = header.split(b" ")
    if len(words) != 3 or words[0] != MAGIC:
        raise StateError("S001", "these bytes are not a Fairlead state", fix="pass the result of Engine.dump()")
    if words[1] in OTHER_IDENTITY:
        problem = f"the state has version {words[1].decode()}, and subscriptions and relations have other ids since then"
        raise StateError("S006", problem, fix="start again from the events, or load it with the release that wrote it")
    if words[1] != b"%d" % VERSION:
        problem = f"the state has version {words[1].decode(errors='replace')}, this release reads version {VERSION}"
        raise StateError("S002", problem, fix="load it with the release that wrote it")
    if words[2] != hashlib.sha256(body).hexdigest().encode():
        raise StateError("S003", "the state is damaged: its digest does not match", fix="use an earlier dump")
    with distrusted():
        batch = read_batch(body)
        return State({name: batch.column(at) for at, name in enumerate(batch.schema.names)}, without)


# Written


def _body(last: Position, units: Sequence[tuple[Unit, Content]]) -> bytes:
    columns: dict[str, pa.Array] = {"major": _numbers([last.major]), "minor": _numbers([last.minor])}
    columns["subscriptions"] = _entries_column(units)
    for at, (unit, content) in enumerate(units):
        columns |= _events_columns(content.events, unit.plan.catalogue, at)
        for number, form in enumerate(forms_of(unit.plan)):
            if form in content.groups:
                columns |= _group_columns(content.groups[form], f"{at} {number}")
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
    made = {f"types {unit}": _listed(pa.array(events.types, type=pa.string())), f"events {unit}": _table(found, len(events))}
    for number, name in enumerate(events.types):
        table, schema = events.tables[name], arrow_schema(catalogue[name])
        cast = (column.cast(field.type) for column, field in zip(table.columns, schema, strict=True))
        made[f"rows {unit} {number}"] = _table(dict(zip(schema.names, cast, strict=True)), table.num_rows)
    return made


def _group_columns(group: InstanceTable, number: str) -> dict[str, pa.Array]:
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


class State:
    """An engine between two events."""

    def __init__(self, found: Mapping[str, pa.Array], without: Collection[str] = ()) -> None:
        self._found, self._without, self._agreed = found, without, False
        self.last = Position(*(typed(found[name], pa.int64())[0].as_py() for name in ("major", "minor")))
        self.entries: list[StateEntry] = []
        counts: dict[int, int] = {}
        typed(found["subscriptions"].values, ENTRY)
        for each in found["subscriptions"].values.to_pylist():
            number = counts[each["unit"]] = counts.get(each["unit"], -1) + 1
            self.entries.append(StateEntry(number=number, **each))
        if not all(START <= each.since <= self.last.major for each in self.entries):
            raise unsound("a subscription began after the last position")

    @cached_property
    def _at(self) -> Mapping[tuple[str, str, int], StateEntry]:
        return {(each.digest, each.frame, each.since): each for each in reversed(self.entries)}

    def since(self, plan: Plan) -> dict[str, int]:
        """Where each subscription of a plan began: the earliest equal one in this state, or now."""
        known: dict[tuple[str, str], int] = {}
        for each in (one for one in self.entries if one.digest not in self._without):
            key = each.digest, each.frame
            known[key] = min(each.since, known.get(key, each.since))
        return {
            each.name: known.get((each.digest, unit.frame_of(each)), self.last.major)
            for unit in partition(plan)
            for each in unit.delivered
        }

    def change(self, plan: Plan) -> Change:
        since, digests = self.since(plan), {each.digest for each in plan.subscriptions}
        frames = {each.name: unit.frame_of(each) for unit in partition(plan, since) for each in unit.delivered}
        mine = [each for each in plan.subscriptions if each.name in frames]
        goes_on = {each.name: (each.digest, frames[each.name], since[each.name]) in self._at for each in mine}
        gone = dict.fromkeys(each.digest for each in self.entries if not each.silent and each.digest not in digests)
        resumed, started = ([each.name for each in mine if goes_on[each.name] is kept] for kept in (True, False))
        return Change(tuple(resumed), tuple(started), tuple(gone))

    def content(self, unit: Unit) -> Content:
        """The state of the subscriptions of a unit; empty if this state does not have them. Raises StateError."""
        with distrusted():
            if not self._agreed:
                units = sorted({each.unit for each in self.entries})
                require_agreement([_events(self._found, at, unit.plan.catalogue) for at in units])
                self._agreed = True
            found = self._content(unit)
        require_sound(found, self.last, unit.plan)
        return found

    def _content(self, unit: Unit) -> Content:
        plan, wanted = unit.plan, dict[int, list[tuple[int, int]]]()
        seen: list[int | None] = [None] * len(plan.subscriptions)
        for number, each in enumerate(plan.subscriptions):
            entry = self._at.get((each.digest, unit.frame_of(each), unit.begun(each)))
            if entry is not None:
                wanted.setdefault(entry.unit, []).append((entry.number, number))
                seen[number] = entry.seen
        parts: dict[Form, list[InstanceTable]] = {}
        events: list[Events] = []
        for at, pairs in wanted.items():
            groups = list(self._groups(at, pairs, plan))
            for group in groups:
                parts.setdefault(group.form, []).append(group)
            needed = [word for group in groups for word in (group.words, group.members.reshape(-1))]
            if needed:
                events.append(self._events(at, distinct(np.concatenate(needed)), plan.catalogue))
        groups_of_forms = {form: joined(each).ordered() for form, each in parts.items()}
        return Content(seen, groups_of_forms, _together(events, plan.catalogue))

    def _groups(self, unit: int, pairs: Sequence[tuple[int, int]], plan: Plan) -> Iterable[InstanceTable]:
        """The instances of some subscriptions of a unit, with their current numbers."""
        number = 0
        for name in self._found:
            if not name.startswith(f"instances {unit} "):
                continue
            number = int(name.rpartition(" ")[2])
            owners = large(fields(self._found[name])["subscription"])
            whole: InstanceTable | None = None
            for old, new in pairs:
                rows = np.flatnonzero(owners == old)
                if not len(rows):
                    continue
                if whole is None:
                    branch = int(large(fields(self._found[name])["branch"])[rows[0]])
                    form = form_of(plan.subscriptions[new].branches[branch], plan.catalogue)
                    whole = _group(form, self._found, f"{unit} {number}")
                chosen = whole if len(rows) == len(whole) else whole.taken(rows)
                yield replace(chosen, subscription=np.full(len(chosen), new, dtype=np.int64))

    def _events(self, unit: int, words: npt.NDArray[np.int64], catalogue: Catalogue) -> Events:
        """The events with these words."""
        whole = _events(self._found, unit, catalogue)
        if not (np.diff(whole.words) > 0).all() or not np.isin(words, whole.words).all():
            raise unsound("its events do not rise, or one that is referred to is missing")
        if len(words) == len(whole):
            return whole
        return events_of_chunk(View([[whole.chunk()]]).take(words).chunk(), catalogue) if len(words) else NO_EVENTS


def _together(events: Sequence[Events], catalogue: Catalogue) -> Events:
    """The events of several units with common places, each once."""
    some = [each for each in events if len(each)]
    if len(some) < 2:
        return some[0] if some else NO_EVENTS
    words = distinct(np.concatenate([each.words for each in some]))
    return events_of_chunk(View([[each.chunk()] for each in some]).take(words).chunk(), catalogue)


def _events(found: Mapping[str, pa.Array], unit: int, catalogue: Catalogue) -> Events:
    """The events of the types that are still known."""
    types = typed(found[f"types {unit}"].values, pa.string()).to_pylist()
    table = fields(found[f"events {unit}"])
    words, codes = plain(table["word"]), large(table["type"])
    if not len(words):
        return NO_EVENTS
    tables = {}
    for number, name in enumerate(types):
        if name in catalogue:
            tables[name] = _rows(found[f"rows {unit} {number}"].values, arrow_schema(catalogue[name]))
    times, timed = np.zeros(len(words), dtype=np.int64), np.zeros(len(words), dtype=bool)
    if "time" in table:
        times, timed = plain(table["time"].fill_null(0)), table["time"].is_valid().to_numpy(zero_copy_only=False)
    origin = (("source", pa.string()), ("sequence", pa.int64()))
    sources, sequences = (typed(table[name], kind).to_pylist() if name in table else None for name, kind in origin)
    if len(tables) < len(types):
        kept = np.flatnonzero(np.isin(codes, [at for at, name in enumerate(types) if name in tables]))
        numbers = np.cumsum([name in tables for name in types]) - 1
        words, codes, times, timed = words[kept], numbers[codes[kept]], times[kept], timed[kept]
        sources, sequences = (None if each is None else [each[at] for at in kept.tolist()] for each in (sources, sequences))
    return Events(tuple(name for name in types if name in tables), words, codes, tables, times, timed, sources, sequences)


def _rows(rows: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
    """The rows as the type is declared now: attributes that did not exist then, or had another type, are NULL."""
    known = {rows.type.field(at).name: rows.field(at) for at in range(rows.type.num_fields)}
    columns = []
    for each in schema:
        column = known.get(each.name)
        columns.append(column if column is not None and column.type == each.type else pa.nulls(len(rows), each.type))
    return record_batch(columns, schema, len(rows))


def _group(form: Form, found: Mapping[str, pa.Array], number: str) -> InstanceTable:
    table = fields(found[f"instances {number}"])
    waiting = fields(found[f"waiting {number}"]) if f"waiting {number}" in found else {}
    members = [plain(waiting[f"member {at}"]) for at in range(form.members)] if waiting else [NO_NUMBERS] * form.members
    return InstanceTable(
        form,
        large(table["subscription"]),
        large(table["branch"]),
        tuple(_large_key(table[f"key {at}"], kind) for at, kind in enumerate(form.keys)),
        plain(or_nothing(table["clock"], pa.int64()).fill_null(NEVER)),
        flags(table["loose"]),
        np.stack([large(table[f"queue {at}"]) for at in range(form.queues)], axis=1),
        plain(found[f"queued {number}"].values),
        plain(waiting["instance"]) if waiting else NO_NUMBERS,
        plain(waiting["deadline"]) if waiting else NO_NUMBERS,
        typed(waiting["cancelled"], pa.bool_()).to_numpy(zero_copy_only=False) if waiting else np.zeros(0, dtype=bool),
        np.stack(members, axis=1),
    )


def _large_key(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.array(large(column)) if pa.types.is_int64(kind) else column
