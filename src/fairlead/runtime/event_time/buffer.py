"""Events of a sequence, released in an order by value once the frontier has passed them (ORDER BY … DELAY).

Every event has a verdict by itself and the events before it in the sequence (order/frontier.py):

    rejected    it has no value for an order key, and so no place
    ahead       its time is after that of its storage by more than AHEAD: it does not move the frontier
    late        the frontier has passed it
    revising    the frontier has passed it by no more than LATE REVISE allows (reviser.py)

All others are held until the frontier has passed their place, and then released in the total order. So equal sequences release
the same events in the same order with the same positions, however they are cut into batches; and if none is late or ahead,
those of the sorted sequence.

Takes: batches in the order of a log or of a file. Gives: batches in the order of the rules, and the verdicts on all others.
Never: reads a clock, drops an event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.dataclass import dataclass
from fairlead.errors import DataError, StateError
from fairlead.matching.state.canonical_columns import canonical
from fairlead.model.blobs import packed, validated
from fairlead.model.events.columns import Columns, arrow_schema, record_batch
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.model.events.values import TIMESTAMP_RANGE
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.relations.identity import MASK, mix_all
from fairlead.order.frontier import NOWHERE, SequenceFrontier
from fairlead.order.held_events import NOTHING_HELD, HeldEvents, taken_table
from fairlead.order.holdback import head_and_rest, state_number, with_head
from fairlead.order.total import SOURCE, Arrivals, RowOrder, in_order, order_column, sortable
from fairlead.runtime.sorting import arrivals_of, fitted, in_their_places

VERSION = 2
EVERYTHING = int(np.iinfo(np.int64).max)
Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EventVerdicts:
    """Events that do not take part, in the order of arrival, at the positions of the sequence; and why each does not.
    `subscriptions`: for which, if the rules have several frontiers."""

    columns: Columns
    verdicts: tuple[EventVerdict, ...] = ()
    subscriptions: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.verdicts)


NO_EVENTS = Columns((), np.zeros(0, dtype=np.int8), range(0), {})
NO_VERDICTS = EventVerdicts(NO_EVENTS)


@dataclass(frozen=True, eq=False)
class ReleasedEvents:
    """`columns`: in the order of the rules. `by`: for each of their positions, that of the event in the sequence by which the
    frontier passed it. `verdicts`: on those that arrived and are not held."""

    columns: Columns
    by: Numbers
    verdicts: EventVerdicts


@dataclass(frozen=True, eq=False)
class JudgedEvents:
    """A batch with the verdicts on its rows. `values`: the first order key of each; `after`: the frontier after each. A row is
    in order, ahead, late or revising, or a heartbeat that says nothing. `whole`: with the rows that are rejected, if there are
    any; `kept`: which of them are the others."""

    columns: Columns
    arrivals: Arrivals
    values: Numbers
    after: Numbers
    held: Mask
    ahead: Mask
    late: Mask
    revising: Mask
    whole: Columns | None = None
    kept: Numbers | None = None

    @cached_property
    def positions(self) -> Numbers:
        return self.columns.position_array


@dataclass(frozen=True)
class BufferState:
    """The state of a buffer as a value, which others of the same sequence may take over (shared_steps.py)."""

    at: int
    ends: Mapping[str | None, int]
    held: HeldEvents = field(compare=False)
    waiting: int
    counts: tuple[int, ...]
    given: int
    loaded: bool = field(compare=False)


class EventTimeBuffer:
    """Holds the events of one sequence. `next`: the position of the next released event; `last`: the
    last position of the sequence; `floor`: where the past that can be revised begins. `given`: the sum of the mixed
    positions of all events, which distinguishes sequences; after `load` it begins with a digest of the state. `rejects`:
    whether an event without a place in the order is rejected; otherwise it is an error (D019)."""

    def __init__(self, order: EventOrder, catalogue: Catalogue, *, rejects: bool = False) -> None:
        self.order, self.catalogue, self.rejects = order, catalogue, rejects
        self.frontier = SequenceFrontier(order.delay_us or 0, order.idle_us, NOWHERE, {})
        self.held = NOTHING_HELD
        self.next, self.last = 0, -1
        self.floor = NOWHERE
        self.given, self.loaded = 0, False

    @property
    def state(self) -> BufferState:
        """Equal for buffers of one sequence that were given the same events of it."""
        counts = self.next, self.last, self.floor
        ends = dict(self.frontier.ends)
        return BufferState(self.frontier.at, ends, self.held, len(self.held), counts, self.given, self.loaded)

    @state.setter
    def state(self, state: BufferState) -> None:
        self.frontier.at, self.frontier.ends, self.held = state.at, dict(state.ends), state.held
        self.next, self.last, self.floor = state.counts
        self.given, self.loaded = state.given, state.loaded

    def step(self, columns: Columns, stored: npt.ArrayLike | None = None) -> ReleasedEvents:
        """The next events of a sequence without revisions. `stored`: when the log stored each (microseconds), if AHEAD is
        about that."""
        judged = self.judge(columns, stored)
        count = len(judged.columns)
        self.hold(judged, 0, count)
        made, by = self.release(judged, 0, count)
        given = {EventVerdict.LATE: judged.late, EventVerdict.AHEAD: judged.ahead}
        return ReleasedEvents(made, by, self.verdicts(judged, given))

    def judge(self, columns: Columns, stored: npt.ArrayLike | None = None) -> JudgedEvents:
        """The verdicts on the next events of the sequence; the frontier follows them."""
        self.last = columns.last_after(self.last)
        self.given = (self.given + int(mix_all(columns.position_array.astype(np.uint64)).sum())) & MASK
        whole, kept = None, None
        if self.rejects and (without := without_place(columns, self.order, self.catalogue)) is not None:
            whole, kept = columns, np.flatnonzero(~without)
            columns = rows_of(columns, kept, self.catalogue)
            stored = None if stored is None else np.asarray(stored)[kept]
        arrivals = arrivals_of(columns, self.order, self.catalogue)
        values, heartbeats = np.zeros(len(columns), dtype=np.int64), np.zeros(len(columns), dtype=bool)
        for name, table in arrivals.items():
            values[columns.places[name]] = first_values(table)
            heartbeats[columns.places[name]] = name == HEARTBEAT.name
        ahead = _ahead(values, stored, self.order)
        counted = ~ahead & ~(heartbeats & (values == TIMESTAMP_RANGE[0]))  # readers that wait for a quiet topic store these
        sources = None if columns.sources is None else columns.source_column
        before, after = self.frontier.follow_some(values, heartbeats, sources, counted)
        behind = counted & (values < before)
        revised = self.order.revise_us
        if revised is None:
            revising = np.zeros(len(columns), dtype=bool)
        else:
            revising = behind & (values >= np.maximum(_less(before, revised), self.floor)) & ~heartbeats
        # a heartbeat that says nothing new is no loss
        late = behind & ~revising & ~heartbeats
        held = counted & ~behind
        return JudgedEvents(columns, arrivals, values, after, held, ahead & ~heartbeats, late, revising, whole, kept)

    def hold(self, judged: JudgedEvents, low: int, high: int) -> None:
        """Holds the rows from `low` to before `high` that are in order."""
        mine = judged.held
        if (low, high) != (0, len(mine)):
            mine = mine.copy()
            mine[:low] = mine[high:] = False
        for name, table in judged.arrivals.items():
            places = judged.columns.places[name]
            chosen = mine[places]
            if not chosen.all():
                table, places = taken_table(table, np.flatnonzero(chosen)), places[chosen]
            self.held = self.held.with_arrivals(name, table, judged.values[places])

    def release(self, judged: JudgedEvents, low: int, high: int) -> tuple[Columns, Numbers]:
        """What stands before the frontier after the row before `high`; and by which row from `low` on the frontier passed
        each."""
        if high <= low:
            return NO_EVENTS, np.zeros(0, dtype=np.int64)
        after = judged.after[low:high]
        first, order, found = self._released(int(after[-1]))
        by = judged.positions[low:high][np.searchsorted(after, _first_keys(order, found), "right")]
        return in_their_places(order, found, self.order, self.catalogue, first), by

    def verdicts(self, judged: JudgedEvents, given: Mapping[EventVerdict, Mask]) -> EventVerdicts:
        """Rows with a verdict, in the order of arrival."""
        columns = judged.columns
        if judged.whole is not None and judged.kept is not None:
            columns, rejected = judged.whole, np.ones(len(judged.whole), dtype=bool)
            rejected[judged.kept] = False
            given = {verdict: _spread(mask, judged.kept, len(columns)) for verdict, mask in given.items()}
            given[EventVerdict.REJECTED] = rejected
        rows = np.flatnonzero(np.logical_or.reduce(list(given.values())))
        if not len(rows):
            return NO_VERDICTS
        verdicts = tuple(next(verdict for verdict, mask in given.items() if mask[row]) for row in rows.tolist())
        return EventVerdicts(rows_of(columns, rows, self.catalogue), verdicts)

    def finish(self) -> Columns:
        """The rest: the sequence has ended."""
        first, order, found = self._released(EVERYTHING)
        return in_their_places(order, found, self.order, self.catalogue, first)

    def _released(self, frontier: int) -> tuple[int, RowOrder, Arrivals]:
        """What stands before the frontier: the position of the first, their order, and the rows."""
        found, self.held = self.held.cut(frontier)
        order = in_order(found, len(self.order.keys), self.order.descending)
        self.next += len(order)
        return self.next - len(order), order, found

    def __len__(self) -> int:
        """The number of held events."""
        return len(self.held)

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories, however they were cut into batches."""
        tables = {}
        for name, table in self.held.tables():
            order = in_order({name: table}, len(self.order.keys), self.order.descending)
            tables[name] = canonical_blob(taken_table(table, order.rows_of(name)))
        ends = sorted(self.frontier.ends.items(), key=lambda each: (each[0] is not None, each[0] or ""))
        head = {"version": VERSION, "frontier": self.frontier.at, "ends": ends, "next": self.next}
        head |= {"last": self.last, "floor": self.floor}
        head["held"] = {name: len(blob) for name, blob in tables.items()}
        return b"".join([with_head(head, b""), *tables.values()])

    def load(self, state: bytes | memoryview) -> None:
        """The inverse of `dump`. Raises StateError."""
        try:
            head, rest = head_and_rest(state)
            if head["version"] != VERSION:
                problem = f"the held-back events were written in version {head['version']}, this release reads {VERSION}"
                raise StateError("S110", problem, "run the release that wrote the state, or start again")
            self.frontier.at = state_number(head["frontier"])
            self.frontier.ends = {name: state_number(end) for name, end in head["ends"]}
            self.next, self.last, self.floor = (state_number(head[name]) for name in ("next", "last", "floor"))
            self.held = self._tables(head["held"], rest)
            self.given, self.loaded = int.from_bytes(blake2b(state, digest_size=8).digest()), True
        except (ValueError, KeyError, TypeError, json.JSONDecodeError, pa.ArrowException, OSError, DataError):
            raise StateError("S119", "the held-back events in the state are damaged", "use an earlier dump") from None

    def begin(self, position: int) -> None:
        """A sequence that continues another, of which nothing is held: this is the position of its first event."""
        self.next, self.last = position, position - 1

    def _tables(self, sizes: Mapping[str, int], rest: memoryview) -> HeldEvents:
        held, at = NOTHING_HELD, 0
        for name, size in sizes.items():
            if name in self.catalogue:  # nothing reads events of a type that was removed since
                table = fitted(validated(rest[at : at + size]), self.catalogue[name], self.order)
                held = held.with_arrivals(name, table, first_values(table))
            at += size
        return held


def canonical_blob(table: pa.Table) -> bytes:
    """Equal bytes for equal tables."""
    if SOURCE in table.column_names:
        table = table.set_column(table.column_names.index(SOURCE), SOURCE, table.column(SOURCE).cast(pa.string()))
    columns = [canonical(column) for column in table.combine_chunks().to_batches()[0].columns] if len(table) else table.columns
    return packed(pa.table(columns, schema=table.schema))


def without_ahead(columns: Columns, order: EventOrder, catalogue: Catalogue) -> tuple[Columns, EventVerdicts]:
    """The events of a batch that are not ahead of the time at which they were stored; and those that are. Heartbeats that are
    ahead are in neither."""
    if order.ahead_us is None or columns.stored is None:
        return columns, NO_VERDICTS
    values, heartbeats = np.zeros(len(columns), dtype=np.int64), np.zeros(len(columns), dtype=bool)
    for name, table in arrivals_of(columns, order, catalogue).items():
        values[columns.places[name]] = first_values(table)
        heartbeats[columns.places[name]] = name == HEARTBEAT.name
    ahead = _ahead(values, columns.stored, order)
    if not ahead.any():
        return columns, NO_VERDICTS
    told = rows_of(columns, np.flatnonzero(ahead & ~heartbeats), catalogue)
    return rows_of(columns, np.flatnonzero(~ahead), catalogue), EventVerdicts(told, (EventVerdict.AHEAD,) * len(told))


def _ahead(values: Numbers, stored: npt.ArrayLike | None, order: EventOrder) -> Mask:
    if order.ahead_us is None or stored is None:
        return np.zeros(len(values), dtype=bool)
    found: Mask = values - order.ahead_us > np.asarray(stored, dtype=np.int64)
    return found


def _spread(mask: Mask, places: Numbers, size: int) -> Mask:
    made = np.zeros(size, dtype=bool)
    made[places] = mask
    return made


def without_place(columns: Columns, order: EventOrder, catalogue: Catalogue) -> Mask | None:
    """Which events have no value for an order key; None if all have one. A heartbeat has its time only."""
    found: Mask | None = None
    for name, places in columns.places.items():
        for key in order.keys if name != HEARTBEAT.name else ():
            at = key.column(catalogue[name])
            column = None if at is None else columns.tables[name].column(at)
            if column is not None and (column.null_count or pa.types.is_floating(column.type)):
                missing = pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
                if missing.any():
                    found = np.zeros(len(columns), dtype=bool) if found is None else found
                    found[places] |= missing
    return found


def _less(values: Numbers, amount: int) -> Numbers:
    """The values less an amount, but not less than nowhere."""
    return np.where(values < NOWHERE + amount, NOWHERE, values - amount)


def first_values(table: pa.Table) -> Numbers:
    """The first order key of each row."""
    values: Numbers = sortable(table.column(order_column(0)).combine_chunks()).to_numpy()
    return values


def _first_keys(order: RowOrder, arrivals: Arrivals) -> Numbers:
    """The first order key of each row, in the order."""
    made = np.zeros(len(order), dtype=np.int64)
    for name in order.types:
        made[order.places[name]] = first_values(arrivals[name])[order.rows_of(name)]
    return made


def rows_of(columns: Columns, rows: Numbers, catalogue: Catalogue) -> Columns:
    """Some rows of a batch."""
    chosen = np.zeros(len(columns), dtype=bool)
    chosen[rows] = True
    tables = {}
    for name, places in columns.places.items():
        mine = np.flatnonzero(chosen[places])
        if len(mine):
            taken = columns.tables[name].take(pa.array(mine))
            tables[name] = record_batch(taken.columns, arrow_schema(catalogue[name]), len(mine))
    origin = (
        None if columns.sources is None else columns.source_column.taken(rows),
        None if columns.sequences is None else columns.sequence_column.taken(rows),
    )
    stored = None if columns.stored is None else columns.stored[rows]
    positions = columns.position_array[rows].tolist()
    return Columns(columns.types, columns.code_array[rows], positions, tables, *origin, stored=stored)
