"""Holds back arrivals that say where in a log they are: the frontier follows them one by one, as live subscribers do.

A micro-batch has no order of its own, so elsewhere the frontier moves between micro-batches (holdback.py). Here the rows are
put into the order of the log first (`LogOrder`): by the time at which a block was stored, made monotone within its topic, then
by the stream of the topic, then by position (merging.py). Every row is judged by the frontier of those before it, so what is
late does not depend on micro-batches. They must be consecutive stretches of that order.

Subscriptions that read different types have different frontiers: each has its own `LogHoldBack`, with its rows only. The order
of the log is that of all rows.

With LATE REVISE, a round is a block that has late rows. A micro-batch is cut after each of them:

    1. Rows up to the end of the block are held, or are late.
    2. Rows before the frontier at its end are released.
    3. Its late rows that are accepted take the next positions.

Takes: arrivals with TOPIC, OFFSET and STORED; then those with PLACE and BLOCK. Gives: released rows, round by round. Never:
reads a clock; depends on how the log is divided into micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.model.events.origin_columns import SourceColumn
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.events.values import TIMESTAMP_RANGE
from fairlead.order.frontier import NOWHERE, SequenceFrontier
from fairlead.order.holdback import Bound, Frontier, HoldBack, ReleasedRows
from fairlead.order.total import order_column, sortable, sources_of

TOPIC, OFFSET, STORED = "_topic", "_offset", "_stored"
LOGGED = (TOPIC, OFFSET, STORED)
"""Where in a log a row is: the topic, the position in the stream of the topic, and when that stored it, in microseconds."""
PLACE, BLOCK = "_place", "_block"
"""Where in a micro-batch a row is: its number in the order of the log, and the number of its block."""
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LoggedRows:
    """Rows of a micro-batch in the order of the log. `table`, `row`: which one each is. `rounds`: where blocks begin. A row is
    held, late or revising; a heartbeat that says nothing is none of these. `after`: the frontier after each row."""

    table: Numbers
    row: Numbers
    rounds: Mask
    held: Mask
    late: Mask
    revising: Mask
    after: Numbers


class LogOrder:
    """The order of the rows of a log. `stream`: the name of a topic's stream. `index_bits`: how many last bits of a position do
    not count for its block. `times`: by topic, the time of its last row."""

    def __init__(self, stream: Callable[[str], str], index_bits: int) -> None:
        self._stream, self._bits = stream, index_bits
        self.times: dict[str, int] = {}

    def placed(self, arrivals: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The rows of a micro-batch, with PLACE and BLOCK instead of LOGGED."""
        tables = [each for each in arrivals.values() if len(each)]
        topics = _names([SourceColumn.of(each.column(TOPIC), len(each)) for each in tables])
        offsets, stored = (_joined([_numbers(each, column) for each in tables]) for column in (OFFSET, STORED))
        order, rank = self._sorted(topics, offsets, stored)
        blocks, streams = offsets[order] >> self._bits, rank[order]
        begins = np.zeros(len(order), dtype=np.int64)
        begins[1:] = (blocks[1:] != blocks[:-1]) | (streams[1:] != streams[:-1])
        place, block = np.empty_like(order), np.empty_like(order)
        place[order], block[order] = np.arange(len(order)), np.cumsum(begins)
        made, low = {}, 0
        for name, table in arrivals.items():
            high = low + len(table)
            plain = table.drop_columns(list(LOGGED)).append_column(PLACE, pa.array(place[low:high]))
            made[name] = plain.append_column(BLOCK, pa.array(block[low:high]))
            low = high
        return made

    def _sorted(self, topics: SourceColumn, offsets: Numbers, stored: Numbers) -> tuple[Numbers, Numbers]:
        """The rows in the order of the log, and the number of the stream of each."""
        names = [str(name) for name in topics.names]
        ranks = np.argsort(np.argsort(np.array([self._stream(name) for name in names], dtype=object)))
        times = np.empty_like(stored)
        for code, name in enumerate(names):
            mine = np.flatnonzero(topics.codes == code)
            mine = mine[np.argsort(offsets[mine], kind="stable")]
            if len(mine):
                times[mine] = np.maximum(np.maximum.accumulate(stored[mine]), self.times.get(name, NOWHERE))
                self.times[name] = int(times[mine[-1]])
        rank = ranks[topics.codes] if len(names) else np.zeros(0, dtype=np.int64)
        return np.lexsort((offsets, rank, times)), rank


class LogHoldBack(HoldBack):
    """All arrivals are of the frontier's types, or heartbeats."""

    def __init__(self, frontier: Frontier, keys: int, descending: Sequence[bool] = ()) -> None:
        super().__init__(frontier, keys, descending)
        self.followed = SequenceFrontier(max(frontier.delay.values(), default=0), frontier.idle, NOWHERE, {})
        self._at = NOWHERE

    def steps(self, arrivals: Mapping[str, pa.Table]) -> Iterator[ReleasedRows]:
        names = [name for name in sorted(arrivals) if len(arrivals[name])]
        rows = self._judged(names, arrivals)
        plain = [arrivals[name].drop_columns([PLACE, BLOCK]) for name in names]
        low = 0
        for high in self._ends(rows):
            self._hold(names, plain, rows, low, high)  # 1
            late, revising = (_chosen(names, plain, rows, mask, low, high) for mask in (rows.late, rows.revising))
            self._at = int(rows.after[high - 1]) if high else self._at
            yield self._round(late, revising)  # 2, 3
            low = high

    def _judged(self, names: Sequence[str], arrivals: Mapping[str, pa.Table]) -> LoggedRows:
        tables = [arrivals[name] for name in names]
        sizes = [len(each) for each in tables]
        table = np.repeat(np.arange(len(names)), sizes)
        row = np.concatenate([np.zeros(0, dtype=np.int64), *map(np.arange, sizes)])
        order, blocks = (_joined([_numbers(each, column) for each in tables]) for column in (PLACE, BLOCK))
        order = np.argsort(order)
        values = _joined([sortable(each.column(order_column(0)).combine_chunks()).to_numpy() for each in tables])[order]
        heartbeats = np.array([name == HEARTBEAT.name for name in names], dtype=bool)[table[order]]
        silent = heartbeats & (values == TIMESTAMP_RANGE[0])  # readers that wait for a quiet topic store these
        sources = None
        if self.frontier.idle is not None:
            sources = _names(list(map(sources_of, tables))).taken(order)
        before, after = self.followed.follow_some(values, heartbeats, sources, ~silent)
        behind = (values < before) & ~silent
        revising = np.zeros(len(row), dtype=bool)
        if self.frontier.revise is not None:
            oldest = np.where(before < NOWHERE + self.frontier.revise, NOWHERE, before - self.frontier.revise)
            oldest = oldest if self.floor is None else np.maximum(oldest, self.floor)
            revising = behind & ~heartbeats & (values >= oldest)
        rounds = np.ones(len(row), dtype=bool)
        rounds[1:] = np.diff(blocks[order]) != 0
        return LoggedRows(table[order], row[order], rounds, ~behind & ~silent, behind & ~revising, revising, after)

    def _ends(self, rows: LoggedRows) -> list[int]:
        """Where rounds with late rows end, and the micro-batch."""
        size = len(rows.row)
        begins = np.flatnonzero(rows.rounds)
        late = np.unique(np.searchsorted(begins, np.flatnonzero(rows.revising), "right"))
        ends = np.append(begins, size)[late].tolist()
        return ends if ends and ends[-1] == size else [*ends, size]

    def _hold(self, names: Sequence[str], tables: Sequence[pa.Table], rows: LoggedRows, low: int, high: int) -> None:
        for name, table in _chosen(names, tables, rows, rows.held, low, high).items():
            self.held[name] = pa.concat_tables([self.held[name], table]) if name in self.held else table

    def _complete(self) -> Bound | None:
        return None if self._at == NOWHERE else (self._at, False)

    def _more(self) -> dict[str, Any]:
        ends = sorted(self.followed.ends.items(), key=lambda each: (each[0] is not None, each[0] or ""))
        return {"followed": self.followed.at, "sources": ends}

    def _load_more(self, head: Mapping[str, Any]) -> None:
        self._at = self.followed.at = int(head["followed"])
        self.followed.ends = {name: int(end) for name, end in head["sources"]}


def _chosen(
    names: Sequence[str], tables: Sequence[pa.Table], rows: LoggedRows, mask: Mask, low: int, high: int
) -> dict[str, pa.Table]:
    """The rows of a stretch that a mask has, by type."""
    at = low + np.flatnonzero(mask[low:high])
    table, row = rows.table[at], rows.row[at]
    found = {}
    for number, (name, whole) in enumerate(zip(names, tables, strict=True)):
        mine = np.sort(row[table == number])
        if len(mine):
            found[name] = whole if len(mine) == len(whole) else whole.take(pa.array(mine))
    return found


def _names(parts: Sequence[SourceColumn]) -> SourceColumn:
    """Columns one after the other."""
    ends = np.cumsum([0, *map(len, parts)])
    return SourceColumn.joined(parts, [np.arange(low, high) for low, high in pairwise(ends.tolist())])


def _numbers(table: pa.Table, name: str) -> Numbers:
    found: Numbers = table.column(name).combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False)
    return found


def _joined(parts: Sequence[Numbers]) -> Numbers:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])
