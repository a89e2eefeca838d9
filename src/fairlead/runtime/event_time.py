"""Events of a sequence, released in an order by value once the frontier has passed them (ORDER BY … DELAY).

Every event is late or not by the events before it in the sequence (order/frontier.py). What is not late is held until the
frontier has passed its place, and then released in the total order. So equal sequences release the same events in the same
order with the same positions, however they are cut into batches; and if none is late, those of the sorted sequence.

Takes: batches in the order of a log or of a file. Gives: batches in the order of the rules, and late events. Never: reads a
clock, drops an event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import StateError
from fairlead.model.blobs import buffer_of, unpacked
from fairlead.model.columns import Columns, arrow_schema, record_batch
from fairlead.model.event_order import EventOrder
from fairlead.model.identity import MASK, mix_all
from fairlead.model.types import HEARTBEAT, Catalogue
from fairlead.model.values import TIMESTAMP_RANGE
from fairlead.order.frontier import NOWHERE, SequenceFrontier
from fairlead.order.held_events import NOTHING_HELD, HeldEvents, taken_table
from fairlead.order.holdback import head_and_rest, with_head
from fairlead.order.total import SOURCE, Arrivals, RowOrder, in_order, order_column, sortable, sources_of
from fairlead.runtime.sorting import arrivals_of, in_their_places

VERSION = 1


@dataclass(frozen=True, eq=False)
class ReleasedEvents:
    """`columns`: in the order of the rules. `by`: for each of their positions, that of the event in the sequence by which the
    frontier passed it. `late`: in the order of arrival, at the positions of the sequence."""

    columns: Columns
    by: npt.NDArray[np.int64]
    late: Columns


@dataclass(frozen=True, eq=False)
class BufferState:
    """A value: a step makes another one. `at`, `ends`: of the frontier (order/frontier.py); `next`: the position of the next
    released event; `late`: how many were late. `given`: the sum of the mixed positions of all events so far, which tells
    different sequences apart; None if it was loaded."""

    at: int
    ends: Mapping[str | None, int]
    held: HeldEvents
    next: int
    late: int
    given: int | None = None

    def count_given(self, positions: npt.NDArray[np.int64]) -> int | None:
        """`given` with these positions."""
        if self.given is None:
            return None
        return (self.given + int(mix_all(positions.astype(np.uint64)).sum())) & MASK


BEGINNING = BufferState(NOWHERE, {}, NOTHING_HELD, 0, 0, 0)


class EventTimeBuffer:
    """Holds the events of one sequence. What a step releases depends on `state` and on the events, on nothing else."""

    def __init__(self, order: EventOrder, catalogue: Catalogue) -> None:
        self.order, self.catalogue, self.state = order, catalogue, BEGINNING

    @property
    def next(self) -> int:
        """The position of the next released event."""
        return self.state.next

    @property
    def late(self) -> int:
        """How many events were late."""
        return self.state.late

    def step(self, columns: Columns) -> ReleasedEvents:
        """The next events of the sequence."""
        arrivals = arrivals_of(columns, self.order, self.catalogue)
        values = np.zeros(len(columns), dtype=np.int64)
        heartbeats = np.zeros(len(columns), dtype=bool)
        for name, table in arrivals.items():
            values[columns.places[name]] = _values(table)
            heartbeats[columns.places[name]] = name == HEARTBEAT.name
        says_nothing = heartbeats & (values == TIMESTAMP_RANGE[0])  # readers that wait for a quiet topic store these
        if says_nothing.any():
            columns = rows_of(columns, np.flatnonzero(~says_nothing), self.catalogue)
            return self.step(columns)
        state, held = self.state, self.state.held
        frontier = SequenceFrontier(self.order.delay_us or 0, self.order.idle_us, state.at, {**state.ends})
        before = frontier.follow(values, heartbeats, columns.sources)
        late = values < before
        for name, table in arrivals.items():
            mine, places = late[columns.places[name]], columns.places[name]
            if mine.any():
                table, places = taken_table(table, np.flatnonzero(~mine)), places[~mine]
            held = held.with_arrivals(name, table, values[places])
        late &= ~heartbeats  # a heartbeat that says nothing new is no loss
        found, held = held.cut(frontier.at)
        order = self._in_order(found)
        given = state.count_given(columns.position_array)
        released, missed = state.next + len(order), state.late + int(late.sum())
        self.state = BufferState(frontier.at, frontier.ends, held, released, missed, given)
        by = columns.position_array[np.searchsorted(np.append(before[1:], frontier.at), _first_keys(order, found), "right")]
        made = in_their_places(order, found, self.order, self.catalogue, state.next)
        return ReleasedEvents(made, by, rows_of(columns, np.flatnonzero(late), self.catalogue))

    def finish(self) -> Columns:
        """The rest: the sequence has ended."""
        state, found = self.state, dict(self.state.held.tables())
        order = self._in_order(found)
        self.state = BufferState(state.at, state.ends, NOTHING_HELD, state.next + len(order), state.late)
        return in_their_places(order, found, self.order, self.catalogue, state.next)

    def _in_order(self, found: Arrivals) -> RowOrder:
        return in_order(found, len(self.order.keys), self.order.descending)

    def stands_at(self, state: BufferState) -> bool:
        """Whether its own state has the same value, so that it may take over the other. Both are of one sequence."""
        mine = self.state
        alike = (mine.at, mine.next, mine.late, mine.ends) == (state.at, state.next, state.late, state.ends)
        if not alike or len(mine.held) != len(state.held):
            return False
        if mine.given is not None and state.given is not None:
            return mine.given == state.given
        return self._dumped(mine) == self._dumped(state)

    def __len__(self) -> int:
        """The number of held events."""
        return len(self.state.held)

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories, however they were cut into batches."""
        return self._dumped(self.state)

    def _dumped(self, state: BufferState) -> bytes:
        tables = {}
        for name, table in state.held.tables():
            order = self._in_order({name: table})
            at, ordered = table.column_names.index(SOURCE), taken_table(table, order.rows_of(name))
            tables[name] = buffer_of(ordered.set_column(at, SOURCE, ordered.column(SOURCE).cast(pa.string())))
        ends = sorted(state.ends.items(), key=lambda each: (each[0] is not None, each[0] or ""))
        head = {"version": VERSION, "frontier": state.at, "ends": ends, "next": state.next, "late": state.late}
        head["held"] = {name: blob.size for name, blob in tables.items()}
        return b"".join([with_head(head, b""), *tables.values()])

    def load(self, state: bytes | memoryview) -> None:
        """The inverse of `dump`. Raises StateError."""
        try:
            head, rest = head_and_rest(state)
            if head["version"] != VERSION:
                problem = f"the held-back events were written in version {head['version']}, this release reads {VERSION}"
                raise StateError("S110", problem, "run the release that wrote the state, or start again")
            ends = {name: int(end) for name, end in head["ends"]}
            held = self._tables(head["held"], rest)
            self.state = BufferState(int(head["frontier"]), ends, held, int(head["next"]), int(head["late"]))
        except (ValueError, KeyError, TypeError, json.JSONDecodeError, pa.ArrowException):
            raise StateError("S119", "the held-back events in the state are damaged", "use an earlier dump") from None

    def _tables(self, sizes: Mapping[str, int], rest: memoryview) -> HeldEvents:
        held, at = NOTHING_HELD, 0
        for name, size in sizes.items():
            table = unpacked(rest[at : at + size])
            coded = sources_of(table).to_arrow()
            table = table.set_column(table.column_names.index(SOURCE), SOURCE, coded)
            held = held.with_arrivals(name, table, _values(table))
            at += size
        return held


def _values(table: pa.Table) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = sortable(table.column(order_column(0)).combine_chunks()).to_numpy()
    return values


def _first_keys(order: RowOrder, arrivals: Arrivals) -> npt.NDArray[np.int64]:
    """The first order key of each row, in the order."""
    made = np.zeros(len(order), dtype=np.int64)
    for name in order.types:
        made[order.places[name]] = _values(arrivals[name])[order.rows_of(name)]
    return made


def rows_of(columns: Columns, rows: npt.NDArray[np.int64], catalogue: Catalogue) -> Columns:
    """Some rows of a batch."""
    chosen = np.zeros(len(columns), dtype=bool)
    chosen[rows] = True
    tables = {}
    for name, places in columns.places.items():
        mine = np.flatnonzero(chosen[places])
        if len(mine):
            taken = columns.tables[name].take(pa.array(mine))
            tables[name] = record_batch(taken.columns, arrow_schema(catalogue[name]), len(mine))

    sources, sequences = columns.source_column.taken(rows), columns.sequence_column.taken(rows)
    origin = None if columns.sources is None else sources, None if columns.sequences is None else sequences
    return Columns(columns.types, columns.code_array[rows], columns.position_array[rows].tolist(), tables, *origin)
