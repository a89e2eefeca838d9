"""Arrivals are held back until nothing that belongs before them can come any more, and then released in their order.

What can still come is bounded by the **frontier**, a value of the first order column. Every type has a bound of its own: the
largest value seen of it, less the delay that is allowed for; a heartbeat moves all of them, and includes its own value. What lies
before the least bound is released. An arrival that lies before what was released is late: it is given apart, never slipped in.

The steps of one round, whose order is the proof that no order of arrival changes what is released:

    1. What lies before the frontier of the last round is late.
    2. The rest is held.
    3. Bounds move by everything that arrived.
    4. What lies before the new frontier is released, in the total order (total.py), and takes the next positions.

Where arrivals have positions, the position is the order: everything is released at once, and late is what lies at or before the
last one released.

Takes: arrivals, round after round. Gives: what is released, and what is late. Never: reads a clock; depends on how arrivals are
cut into rounds, as long as none is late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.errors import StateError
from fairlead.model.types import HEARTBEAT
from fairlead.order.total import Order, in_order, order_column, sortable

VERSION = 1
Value = int | str
"""A value of the first order column, as `sortable` has it."""
Bound = tuple[Value, bool]
"""What lies before the value is complete, and with True what lies at it, too."""


@dataclass(frozen=True)
class Frontier:
    """How far the order is complete. `types`: each has to come for anything to be released. `together`: they come as one stream
    in order, so the latest of any of them counts. `delay`: how far an arrival may lie behind the latest, by type."""

    types: tuple[str, ...]
    together: bool = False
    delay: Mapping[str, int] = field(default_factory=dict)
    positioned: bool = False


@dataclass(frozen=True, eq=False)
class Released:
    """`tables` and the order of their rows, which take the positions from `first` on; and what is late, by type."""

    order: Order
    tables: Mapping[str, pa.Table]
    first: int
    late: Mapping[str, pa.Table]


class HoldBack:
    def __init__(self, frontier: Frontier, keys: int) -> None:
        self.frontier, self.keys = frontier, keys
        self.bounds: dict[str, Bound] = {}
        self.released: Bound | None = None
        self.next = 0
        self.late = 0
        self.held: dict[str, pa.Table] = {}

    def step(self, arrivals: Mapping[str, pa.Table]) -> Released:
        late: dict[str, pa.Table] = {}
        moved: dict[str, Bound] = {}
        for name, table in arrivals.items():
            if not len(table):
                continue
            values = _values(table)
            behind = _before(values, self.released)  # 1
            if behind.any():
                late[name] = table.filter(pa.array(behind))
                table = table.filter(pa.array(~behind))
            if len(table):
                self.held[name] = pa.concat_tables([self.held[name], table]) if name in self.held else table  # 2
            moved[name] = (_plain(values.max()), name == HEARTBEAT.name)
        self._move(moved)  # 3
        given = self._released()  # 4
        order = in_order(given, self.keys)
        first = self.next
        self.next += len(order)
        self.late += sum(map(len, late.values()))
        return Released(order, given, first, late)

    def lag(self) -> int:
        """Rows that are held."""
        return sum(map(len, self.held.values()))

    def _move(self, moved: Mapping[str, Bound]) -> None:
        for name, bound in moved.items():
            delay = 0 if bound[1] else self.frontier.delay.get(name, 0)
            value = bound[0] - delay if isinstance(bound[0], int) else bound[0]
            self.bounds[name] = max(self.bounds.get(name, (value, False)), (value, bound[1]))

    def _complete(self) -> Bound | None:
        """The frontier; None as long as there is none."""
        beat = self.bounds.get(HEARTBEAT.name)
        if self.frontier.positioned or self.frontier.together:
            return max(self.bounds.values(), default=None)
        mine = [self.bounds.get(name) for name in self.frontier.types if name != HEARTBEAT.name]
        known = [each if beat is None else beat if each is None else max(each, beat) for each in mine]
        return None if not known or any(each is None for each in known) else min(each for each in known if each is not None)

    def _released(self) -> dict[str, pa.Table]:
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
            if ready.any():
                found[name] = table.filter(pa.array(ready))
            if not ready.all():
                self.held[name] = table.filter(pa.array(~ready))
        return found

    def dump(self) -> bytes:
        """The state as bytes; the same for the same history."""
        tables = {name: _packed(self.held[name].combine_chunks()) for name in sorted(self.held)}
        head = {
            "version": VERSION,
            "bounds": {name: list(self.bounds[name]) for name in sorted(self.bounds)},
            "released": None if self.released is None else list(self.released),
            "next": self.next,
            "late": self.late,
            "held": {name: len(blob) for name, blob in tables.items()},
        }
        text = json.dumps(head).encode()
        return b"".join([len(text).to_bytes(4, "big"), text, *tables.values()])

    def load(self, state: bytes) -> None:
        size = int.from_bytes(state[:4], "big")
        head: dict[str, Any] = json.loads(state[4 : 4 + size])
        if head["version"] != VERSION:
            problem = f"the state of the order is of version {head['version']}, this is version {VERSION}"
            raise StateError("S010", problem, "run the job with the release that wrote the checkpoint")
        self.bounds = {name: (value, bool(own)) for name, (value, own) in head["bounds"].items()}
        self.released = None if head["released"] is None else (head["released"][0], bool(head["released"][1]))
        self.next, self.late = head["next"], head["late"]
        self.held, at = {}, 4 + size
        for name, length in head["held"].items():
            self.held[name] = pa.ipc.open_stream(pa.py_buffer(state[at : at + length])).read_all()
            at += length


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _values(table: pa.Table) -> npt.NDArray[Any]:
    column = sortable(table.column(order_column(0)).combine_chunks())
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _before(values: npt.NDArray[Any], bound: Bound | None) -> npt.NDArray[np.bool_]:
    if bound is None:
        return np.zeros(len(values), dtype=bool)
    found: npt.NDArray[np.bool_] = values <= bound[0] if bound[1] else values < bound[0]
    return found


def _plain(value: Any) -> Value:
    return value if isinstance(value, str) else int(value)


__all__: Sequence[str] = ["Frontier", "HoldBack", "Released"]
