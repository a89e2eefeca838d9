"""Holds arrivals back until no earlier ones can arrive, then releases them in order.

Later arrivals are bounded by the **frontier**, a value of the first order column. Every type has its own bound: its largest
value so far, less the allowed delay. A heartbeat moves all bounds, and includes its own value. Rows before the smallest bound
are released. An arrival before what was already released is late: it is returned separately, never inserted. Arrivals of other
names than the frontier's types (rejected rows) are ordered with the rest and bound nothing: a bad row says nothing about what
is complete.

The steps of one round. Their order proves that the order of arrival does not change what is released:

    1. Rows before the frontier of the last round are late.
    2. The rest is held.
    3. Bounds move by everything that arrived.
    4. Rows before the new frontier are released, in the total order (total.py), and take the next positions.

Rows with the same first order value are always released in the same round. So a round ends between two values, and the
concatenated rounds are the total order of all rows.

With `revise` (LATE REVISE), a late row whose place is before the frontier by no more than that is *revising*: it has a place
among released rows, and one of the positions after those of its round. Its place is found where the released rows are kept.

If arrivals have positions, the position is the order: everything is released at once, and rows are late at or before the last
position released, or with the position of another row of their round.

Takes: arrivals, round after round. Gives: released rows, revising and late rows. Never: reads a clock; depends on how arrivals
are split into rounds, as long as none is late.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.errors import StateError, require
from fairlead.model.blobs import buffer_of, unpacked
from fairlead.model.events.types import HEARTBEAT
from fairlead.order.total import SOURCE, RowOrder, in_order, one_zero, order_column, sortable

VERSION = 1
ALIGNED = 64
"""Tables in a state begin at a multiple of this, so that they can be read without a copy."""
Value = int | str | Decimal
"""A value of the first order column, as `sortable` returns it."""
Bounded = tuple[str, str]
"""A type, and what its arrivals bound: the type itself, or a source."""
Bound = tuple[Value, bool]
"""Everything before the value is complete; with True, everything at the value, too."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Frontier:
    """How far the order is complete. `types`: every one must have arrived before anything is released. `together`: they arrive
    as one ordered stream, so the latest value of any of them counts. `delay`: how far an arrival may lag behind the latest, by
    type, in the integers that `sortable` returns for the order column. `idle`: every source has its own bound, and the least
    counts, unless it is behind the largest by more than this. `revise`: how far before the frontier a late row is still
    accepted; None if no late row is."""

    types: tuple[str, ...]
    together: bool = False
    delay: Mapping[str, int] = field(default_factory=dict)
    positioned: bool = False
    idle: int | None = None
    revise: int | None = None


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """`tables` and the order of their rows, which take positions from `first`; and late rows, by type. `revising`: late rows
    that are accepted; they take the positions after those of the order."""

    order: RowOrder
    tables: Mapping[str, pa.Table]
    first: int
    late: Mapping[str, pa.Table]
    revising: Mapping[str, pa.Table] = field(default_factory=dict)


class HoldBack:
    """`keys`: the number of order columns, some of them descending, but not the first. `next`: the position of the next
    released row. `late`: the number of late rows so far. `floor`: a value before which no late row is accepted; None if there
    is no such value. `ends`: of the rounds whose rows may still be revised, the frontier after each and its number of rows."""

    def __init__(self, frontier: Frontier, keys: int, descending: Sequence[bool] = ()) -> None:
        self.frontier, self.keys, self.descending = frontier, keys, descending
        self.bounds: dict[str, Bound] = {}
        self.released: Bound | None = None
        self.next = 0
        self.late = 0
        self.held: dict[str, pa.Table] = {}
        self.floor: int | None = None
        self.ends: list[tuple[int, int]] = []

    def steps(self, arrivals: Mapping[str, pa.Table]) -> Iterator[ReleasedRows]:
        """The rounds of a micro-batch: one."""
        yield self.step(arrivals)

    def step(self, arrivals: Mapping[str, pa.Table]) -> ReleasedRows:
        """One round. No order column has a null or a NaN."""
        late: dict[str, pa.Table] = {}
        revising: dict[str, pa.Table] = {}
        latest: dict[Bounded, Value] = {}
        for name, table in arrivals.items():
            if not len(table):
                continue
            values = _values(table)
            latest |= self._latest(name, table, values)
            behind = _before(values, self.released)  # 1
            if behind.any():
                accepted = behind & self._accepted(name, values)
                if accepted.any():
                    revising[name] = table.filter(pa.array(accepted))
                if not accepted[behind].all():
                    late[name] = table.filter(pa.array(behind & ~accepted))
                table = table.filter(pa.array(~behind))
            if len(table):
                self.held[name] = pa.concat_tables([self.held[name], table]) if name in self.held else table  # 2
        self._move(latest)  # 3
        return self._round(late, revising)  # 4

    def _round(self, late: dict[str, pa.Table], revising: dict[str, pa.Table]) -> ReleasedRows:
        """What is before the frontier now is released, and takes the next positions; then those that revise."""
        given = self._release()
        order = in_order(given, self.keys, self.descending)
        if self.frontier.positioned and order.ties:
            given = _without_repeats(order, given, late)
            order = in_order(given, self.keys, self.descending)
        first, more = self.next, sum(map(len, revising.values()))
        self.next += len(order) + more
        self.late += sum(map(len, late.values()))
        self._note(len(order) + more)
        return ReleasedRows(order, given, first, late, revising)

    def _accepted(self, name: str, values: pa.Array) -> Mask:
        """Which rows are not too late to be accepted. A heartbeat that says nothing new, or a bad row, changes nothing."""
        oldest = self.oldest
        if oldest is None or name == HEARTBEAT.name or name not in self.frontier.types:
            return np.zeros(len(values), dtype=bool)
        found: Mask = values.to_numpy() >= oldest
        return found

    @property
    def oldest(self) -> int | None:
        """The least value with which a late row is accepted; None if none is."""
        if self.frontier.revise is None or self.released is None:
            return None
        oldest = _end(self.released) - self.frontier.revise
        return oldest if self.floor is None else max(oldest, self.floor)

    def forget(self) -> None:
        """From now on, nothing that was released is revised."""
        if self.released is not None and self.frontier.revise is not None:
            self.floor, self.ends = _end(self.released), []

    def _note(self, rows: int) -> None:
        """That a round has so many rows which may be revised."""
        if self.released is None or self.oldest is None:
            return
        if rows:
            self.ends.append((_end(self.released), rows))
        oldest = self.oldest
        self.ends = [(end, count) for end, count in self.ends if end > oldest]

    def kept(self) -> int:
        """The number of released rows before which a late row may be accepted, to whole rounds."""
        return sum(count for _, count in self.ends)

    @property
    def next_position(self) -> int:
        """The smallest possible position of the next released row."""
        if not self.frontier.positioned:
            return self.next
        return 0 if self.released is None else int(self.released[0]) + 1

    def lag(self) -> int:
        """The number of held rows."""
        return sum(map(len, self.held.values()))

    def _latest(self, name: str, table: pa.Table, values: pa.Array) -> dict[Bounded, Value]:
        """The largest values of arrivals, by type, or by type and source if each source has its own bound."""
        if self.frontier.idle is None:
            return {(name, name): _largest(values)}
        sources = table.column(SOURCE).combine_chunks() if SOURCE in table.column_names else pa.nulls(len(table), pa.string())
        coded = sources.cast(pa.string()).fill_null("").dictionary_encode()
        codes, names = coded.indices.to_numpy(), coded.dictionary.to_pylist()
        return {(name, source): _largest(values.filter(pa.array(codes == at))) for at, source in enumerate(names)}

    def _move(self, latest: Mapping[Bounded, Value]) -> None:
        for (name, bounded), value in latest.items():
            is_heartbeat = name == HEARTBEAT.name
            if not (is_heartbeat or self.frontier.positioned or name in self.frontier.types):
                continue
            delay = self.frontier.delay.get(name, 0)
            bound = (value - delay if isinstance(value, int) else value, is_heartbeat)
            self.bounds[bounded] = max(self.bounds.get(bounded, bound), bound)

    def _complete(self) -> Bound | None:
        """The frontier; None while there is none."""
        if self.frontier.idle is not None and self.bounds:
            most, own = max(self.bounds.values())
            require(isinstance(most, int), "sources that may be idle are ordered by time", value=most)
            return max(min(self.bounds.values()), (int(most) - self.frontier.idle, own))
        if self.frontier.positioned or self.frontier.together:
            return max(self.bounds.values(), default=None)
        beat = self.bounds.get(HEARTBEAT.name)
        least: Bound | None = None
        for name in self.frontier.types:
            if name == HEARTBEAT.name:
                continue
            known = [bound for bound in (self.bounds.get(name), beat) if bound is not None]
            if not known:
                return None
            least = max(known) if least is None else min(least, max(known))
        return beat if least is None else least

    def _release(self) -> dict[str, pa.Table]:
        bound = self._complete()
        if bound is None:
            return {}
        if self.frontier.positioned:
            bound = (bound[0], True)
        self.released = bound if self.released is None else max(self.released, bound)
        found: dict[str, pa.Table] = {}
        for name in sorted(self.held):
            table = self.held.pop(name)
            ready = _before(_values(table), self.released)
            if ready.all():
                found[name] = table
                continue
            if ready.any():
                found[name] = table.filter(pa.array(ready))
                table = table.filter(pa.array(~ready))
            self.held[name] = table
        return found

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories."""
        tables = {name: buffer_of(self.held[name].combine_chunks()) for name in sorted(self.held)}
        head = {
            "version": VERSION,
            "bounds": {name: _written(self.bounds[name]) for name in sorted(self.bounds)},
            "released": None if self.released is None else _written(self.released),
            "next": self.next,
            "late": self.late,
            "held": {name: blob.size for name, blob in tables.items()},
        }
        if self.frontier.revise is not None:
            head |= {"floor": self.floor, "ends": self.ends}
        head |= self._more()
        return b"".join([with_head(head, b""), *tables.values()])

    def load(self, state: bytes | memoryview) -> None:
        """The inverse of `dump`. Raises StateError."""
        head, rest = head_and_rest(state)
        if head["version"] != VERSION:
            problem = f"the held-back rows were written in version {head['version']}, this release reads version {VERSION}"
            raise StateError("S110", problem, "run the release that wrote the checkpoint, or use a new checkpoint folder")
        self.bounds = {name: _read(bound) for name, bound in head["bounds"].items()}
        self.released = None if head["released"] is None else _read(head["released"])
        self.next, self.late = head["next"], head["late"]
        self.floor, self.ends = head.get("floor"), [(end, count) for end, count in head.get("ends", ())]
        self.held, at = {}, 0
        for name, length in head["held"].items():
            self.held[name] = unpacked(rest[at : at + length])
            at += length
        self._load_more(head)

    def _more(self) -> dict[str, Any]:
        """What the state has besides."""
        return {}

    def _load_more(self, head: Mapping[str, Any]) -> None:
        pass


def with_head(head: Mapping[str, Any], rest: bytes) -> bytes:
    """A state: the size of its head, the head as JSON, then the rest, aligned."""
    text = json.dumps(head).encode()
    text += b" " * (-(4 + len(text)) % ALIGNED)
    return b"".join([len(text).to_bytes(4, "big"), text, rest])


def head_and_rest(state: bytes | memoryview) -> tuple[dict[str, Any], memoryview]:
    """The inverse of `with_head`; nothing is copied."""
    whole = memoryview(state)
    size = int.from_bytes(whole[:4], "big")
    return json.loads(bytes(whole[4 : 4 + size])), whole[4 + size :]


def state_number(value: Any) -> int:
    """A number in the head of a state. Raises ValueError if it has more than 64 bits: no array could take it."""
    found = int(value)
    if not -(2**63) <= found < 2**63:
        raise ValueError(found)
    return found


def _values(table: pa.Table) -> pa.Array:
    return sortable(one_zero(table.column(order_column(0)).combine_chunks()))


def _end(bound: Bound) -> int:
    """The least value that a bound does not include, of values that are whole numbers."""
    value, own = bound
    require(isinstance(value, int), "late rows are accepted in an order by time", value=value)
    return int(value) + own


def _largest(values: pa.Array) -> Value:
    found: Value = int(values.to_numpy().max()) if pa.types.is_int64(values.type) else pc.max(values).as_py()
    return found


def _before(values: pa.Array, bound: Bound | None) -> Mask:
    found: Mask
    if bound is None:
        return np.zeros(len(values), dtype=bool)
    if pa.types.is_int64(values.type):
        numbers = values.to_numpy()
        found = numbers <= bound[0] if bound[1] else numbers < bound[0]
    else:
        value = pa.scalar(bound[0], values.type)
        compared = pc.less_equal(values, value) if bound[1] else pc.less(values, value)
        found = compared.to_numpy(zero_copy_only=False)
    return found


def _without_repeats(order: RowOrder, given: Mapping[str, pa.Table], late: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Of rows with the same position the first; the others are late."""
    positions = np.empty(len(order), dtype=np.int64)
    for name in order.types:
        positions[order.places[name]] = _values(given[name]).to_numpy()[order.rows_of(name)]
    again = np.concatenate([[False], positions[1:] == positions[:-1]])
    kept: dict[str, pa.Table] = {}
    for name in order.types:
        repeats = again[order.places[name]]
        rows = order.rows_of(name)
        kept[name] = given[name].take(pa.array(rows[~repeats]))
        if repeats.any():
            more = given[name].take(pa.array(rows[repeats]))
            late[name] = pa.concat_tables([late[name], more]) if name in late else more
    return kept


def _written(bound: Bound) -> list[Any]:
    value, own = bound
    return [{"decimal": str(value)} if isinstance(value, Decimal) else value, own]


def _read(written: list[Any]) -> Bound:
    value, own = written
    return Decimal(value["decimal"]) if isinstance(value, dict) else value, bool(own)
