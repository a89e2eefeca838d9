"""Bytes to the state of a plan's subscriptions (encoding.py has the format): checked, and refused with a code.

Takes: bytes of Engine.dump(), of this version or an earlier one that can be continued. Gives: what became of the rules, and a
Content for each unit of a plan. Never: trusts the bytes (body.py, soundness.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import StateError
from fairlead.matching.results.event_store import View, distinct
from fairlead.matching.state.body import distrusted, flags, or_nothing, plain, read_batch, typed, unsound
from fairlead.matching.state.canonical_columns import large
from fairlead.matching.state.content import (
    NEVER,
    NO_EVENTS,
    NO_NUMBERS,
    Content,
    CountTable,
    Events,
    Form,
    InstanceTable,
    counted_keys,
    events_of_chunk,
    form_of,
    joined,
)
from fairlead.matching.state.delivery_counts import counts_of_columns, large_key
from fairlead.matching.state.encoding import ENTRY, IDENTITY, MAGIC, VERSION, Change
from fairlead.matching.state.event_soundness import require_agreement
from fairlead.matching.state.implied_values import has_events, keys_of_events, newest_times, put_together, rows_of
from fairlead.matching.state.packed_columns import unpacked
from fairlead.matching.state.soundness import require_sound
from fairlead.model.events.columns import arrow_schema, record_batch
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.partition import START, Unit, partition
from fairlead.model.plans.plan import Plan

READ = (b"4", b"%d" % VERSION)
OTHER_IDENTITY = (b"1", b"2", b"3")
"""Versions in which relations had other ids or derived events other places, so their counts cannot be continued: before a
subscription had its own identity (1, 2), and while the order of WITHOUT clauses and the joins of other subscriptions affected
it (3)."""


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


def decode(dumped: bytes, without: Collection[str] = ()) -> State:
    """`without`: digests of subscriptions whose state is ignored. Raises StateError."""
    header, _, body = dumped.partition(b"\n")
    words = header.split(b" ")
    if len(words) != 3 or words[0] != MAGIC:
        raise StateError("S001", "these bytes are not a Fairlead state", fix="pass the result of Engine.dump()")
    if words[1] in OTHER_IDENTITY:
        problem = f"the state has version {words[1].decode()}, and subscriptions and relations have other ids since then"
        raise StateError("S006", problem, fix="start again from the events, or load it with the release that wrote it")
    if words[1] not in READ:
        readable = " and ".join(each.decode() for each in READ)
        problem = f"the state has version {words[1].decode(errors='replace')}, this release reads versions {readable}"
        raise StateError("S002", problem, fix="load it with the release that wrote it")
    if words[2] != hashlib.sha256(body).hexdigest().encode():
        raise StateError("S003", "the state is damaged: its digest does not match", fix="use an earlier dump")
    with distrusted():
        batch = read_batch(body)
        return State({name: batch.column(at) for at, name in enumerate(batch.schema.names)}, without, words[1] == READ[0])


class State:
    """An engine between two events."""

    def __init__(self, found: Mapping[str, pa.Array], without: Collection[str] = (), is_version_4: bool = False) -> None:
        self._found, self._without, self._agreed, self._is_version_4 = found, without, False, is_version_4
        self._read: dict[int, tuple[Catalogue, Events]] = {}
        self.last = Position(*(typed(found[name], pa.int64())[0].as_py() for name in ("major", "minor")))
        self.entries: list[StateEntry] = []
        counts: dict[int, int] = {}
        told = _fields(found["subscriptions"])
        for each in pa.table([typed(column, ENTRY.field(name).type) for name, column in told.items()], list(told)).to_pylist():
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
                require_agreement([self._all_events(at, unit.plan.catalogue) for at in units])
                self._agreed = True
            found = self._content(unit)
        require_sound(found, self.last, unit.plan)
        return found

    def _content(self, unit: Unit) -> Content:
        plan, wanted = unit.plan, dict[int, list[tuple[int, int]]]()
        seen: list[int | None] = [None] * len(plan.subscriptions)
        counts: dict[int, CountTable] = {}
        for number, each in enumerate(plan.subscriptions):
            entry = self._at.get((each.digest, unit.frame_of(each), unit.begun(each)))
            if entry is not None:
                wanted.setdefault(entry.unit, []).append((entry.number, number))
                seen[number] = entry.seen
                stored = self._found.get(f"counts {entry.unit} {entry.number}")
                if stored is not None:
                    counts[number] = counts_of_columns(_fields(stored), counted_keys(each, plan.catalogue))
        parts: dict[Form, list[InstanceTable]] = {}
        events: list[Events] = []
        for at, pairs in wanted.items():
            groups = list(self._groups(at, pairs, plan))
            for group in groups:
                parts.setdefault(group.form, []).append(group)
            needed = [word for group in groups for word in (group.words, group.members.reshape(-1))]
            if needed:
                some = self._events(at, distinct(np.concatenate(needed)), plan.catalogue)
                if len(some) and (some.identities is None) is not (plan.order is None):
                    raise unsound("events have identities where they are ordered by their positions, or the reverse")
                events.append(some)
        groups_of_forms = {form: joined(each).ordered() for form, each in parts.items()}
        return Content(seen, groups_of_forms, _together(events, plan.catalogue), counts)

    def _groups(self, unit: int, pairs: Sequence[tuple[int, int]], plan: Plan) -> Iterable[InstanceTable]:
        """The instances of some subscriptions of a unit, with their current numbers."""
        number = 0
        for name in self._found:
            if not name.startswith(f"instances {unit} "):
                continue
            number = int(name.rpartition(" ")[2])
            owners = large(_fields(self._found[name])["subscription"])
            whole: InstanceTable | None = None
            for old, new in pairs:
                rows = np.flatnonzero(owners == old)
                if not len(rows):
                    continue
                if whole is None:
                    branch = int(large(_fields(self._found[name])["branch"])[rows[0]])
                    form = form_of(plan.subscriptions[new].branches[branch], plan.catalogue)
                    whole = _group(form, self._found, f"{unit} {number}", self._words(unit))
                chosen = whole if len(rows) == len(whole) else whole.taken(rows)
                chosen = replace(chosen, subscription=np.full(len(chosen), new, dtype=np.int64))
                if not self._is_version_4:
                    idle = (np.cumsum(~has_events(whole)) - 1)[rows]
                    chosen = self._completed(chosen, f"idle {unit} {number}", idle, unit, plan)
                yield chosen

    def _words(self, unit: int) -> npt.NDArray[np.int64] | None:
        """The words that queued events are counted in."""
        return None if self._is_version_4 else plain(_fields(self._found[f"events {unit}"])["word"])

    def _completed(self, group: InstanceTable, name: str, idle: npt.NDArray[np.int64], unit: int, plan: Plan) -> InstanceTable:
        """Instances of one subscription with their keys and clocks. `idle`: by instance the row of the table of that name."""
        subscription, events = plan.subscriptions[int(group.subscription[0])], self._all_events(unit, plan.catalogue)
        queued, rows, clock = has_events(group), rows_of(group.words, events), np.full(len(group), NEVER, dtype=np.int64)
        if subscription.is_clocked:
            clocked = queued & np.array([each.sequence is None for each in subscription.branches])[group.branch]
            clock[clocked] = (newest_times(group, rows, events, plan.catalogue) + group.clock)[clocked]
        parts = keys_of_events(group, rows, subscription.branches, events)
        if not queued.all():
            stored, rest = _fields(self._found[name]), np.flatnonzero(~queued)
            mine = pa.array(idle[rest])
            kinds = enumerate(group.form.keys)
            parts.append((rest, tuple(large_key(stored[f"key {at}"], kind).take(mine) for at, kind in kinds)))
            clock[rest] = plain(or_nothing(stored["clock"], pa.int64()).fill_null(NEVER).take(mine))
        return replace(group, keys=put_together(parts), clock=clock)

    def _all_events(self, unit: int, catalogue: Catalogue) -> Events:
        """Those of a unit, read once for all that refer to them."""
        if unit not in self._read or self._read[unit][0] is not catalogue:
            self._read[unit] = catalogue, _events(self._found, unit, catalogue)
        return self._read[unit][1]

    def _events(self, unit: int, words: npt.NDArray[np.int64], catalogue: Catalogue) -> Events:
        """The events with these words."""
        whole = self._all_events(unit, catalogue)
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
    table = _fields(found[f"events {unit}"])
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
    identities = np.stack([plain(table[name]) for name in IDENTITY], axis=1).view(np.uint64) if IDENTITY[0] in table else None
    if len(tables) < len(types):
        kept = np.flatnonzero(np.isin(codes, [at for at, name in enumerate(types) if name in tables]))
        numbers = np.cumsum([name in tables for name in types]) - 1
        words, codes, times, timed = words[kept], numbers[codes[kept]], times[kept], timed[kept]
        sources, sequences = (None if each is None else [each[at] for at in kept.tolist()] for each in (sources, sequences))
        identities = None if identities is None else identities[kept]
    known = tuple(name for name in types if name in tables)
    return Events(known, words, codes, tables, times, timed, sources, sequences, identities)


def _rows(rows: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
    """The rows as the type is declared now: attributes that did not exist then, or had another type, are NULL."""
    known = _fields_of(rows)
    columns = []
    for each in schema:
        column = known.get(each.name)
        columns.append(column if column is not None and column.type == each.type else pa.nulls(len(rows), each.type))
    return record_batch(columns, schema, len(rows))


def _group(form: Form, found: Mapping[str, pa.Array], number: str, words: npt.NDArray[np.int64] | None) -> InstanceTable:
    """`words`: of all events, where instances have their numbers; keys are then not known yet, and the clock is how far it is
    ahead. Version 4 has all of it."""
    table = _fields(found[f"instances {number}"])
    waiting = _fields(found[f"waiting {number}"]) if f"waiting {number}" in found else {}
    members = [plain(waiting[f"member {at}"]) for at in range(form.members)] if waiting else [NO_NUMBERS] * form.members
    keys: tuple[pa.Array, ...] = ()
    if words is None:
        keys = tuple(large_key(table[f"key {at}"], kind) for at, kind in enumerate(form.keys))
        clock, queued = plain(or_nothing(table["clock"], pa.int64()).fill_null(NEVER)), plain(found[f"queued {number}"].values)
    else:
        clock, entries = large(table["ahead"]), large(_fields(found[f"queued {number}"])["event"])
        entries = entries + np.arange(len(entries))
        if len(entries) and not (int(entries.min()) >= 0 and int(entries.max()) < len(words)):
            raise unsound("an event is missing")
        queued = words[entries]
    group = InstanceTable(
        form,
        large(table["subscription"]),
        large(table["branch"]),
        keys,
        clock,
        flags(table["loose"]),
        np.stack([large(table[f"queue {at}"]) for at in range(form.queues)], axis=1),
        queued,
        plain(waiting["instance"]) if waiting else NO_NUMBERS,
        plain(waiting["deadline"]) if waiting else NO_NUMBERS,
        typed(waiting["cancelled"], pa.bool_()).to_numpy(zero_copy_only=False) if waiting else np.zeros(0, dtype=bool),
        np.stack(members, axis=1),
        np.stack([plain(table[f"folded {at}"]) for at in range(form.folded)], axis=1)
        if form.folded
        else np.zeros((len(table["subscription"]), 0), dtype=np.int64),
    )
    lengths = group.lengths
    fits = int(lengths.min(initial=0)) >= 0 and int(lengths.max(initial=0)) <= len(queued)
    if not fits or int(lengths.sum()) != len(queued):
        raise unsound("its queues hold more or less than they say")
    return group


def _fields(column: pa.Array) -> dict[str, pa.Array]:
    return _fields_of(column.values)


def _fields_of(rows: pa.StructArray) -> dict[str, pa.Array]:
    return {rows.type.field(at).name: unpacked(rows.type.field(at), rows.field(at)) for at in range(rows.type.num_fields)}
