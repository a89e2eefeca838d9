"""A stretch of released events that are still kept: the engine's state before them, the events, and the ids of the relations
that they completed.

The first event of a segment has another first order key than the last one before it. So events with equal keys are in one
segment, and so are equal events, whose numbers among each other are part of their identities.

Takes: batches in the order of the rules. Gives: the same batches at other positions; bytes. Never: matches anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import DataError, StateError
from fairlead.model.blobs import validated
from fairlead.model.events.columns import Columns, code_type, record_batch
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.relations.identity import Words, to_bytes
from fairlead.order.holdback import state_number
from fairlead.order.total import Arrivals, in_order, order_column, sortable
from fairlead.runtime.event_time.buffer import canonical_blob
from fairlead.runtime.sorting import arrivals_of, fitted, in_their_places

Numbers = npt.NDArray[np.int64]
TOGETHER = 64
"""Batches that become one: a subscriber's batches are a few events, and a batch costs some 50 microseconds to feed again."""


@dataclass(frozen=True, eq=False)
class KeptBatch:
    """Events in the order of the rules, and the first order key of each."""

    columns: Columns
    keys: Numbers

    def __len__(self) -> int:
        return len(self.keys)


class KeptSegment:
    """`after`: the first order key of the last event before it. `first`: the position of its first event. `state`: the dump of
    the engine before it."""

    def __init__(self, after: int, first: int, state: bytes) -> None:
        self.after, self.first, self.state = after, first, state
        self.size = 0
        self._batches: list[KeptBatch] = []
        self._joined = 0
        self._ids: list[Words] = []
        self._unread: UnreadSegment | None = None

    def __len__(self) -> int:
        """The number of its events."""
        return self.size

    def add(self, batch: KeptBatch, ids: Words) -> None:
        """The next events, and the ids of the relations that they complete."""
        self.batches.append(batch)
        self.size += len(batch)
        if len(ids):
            self._ids.append(ids)
        if len(self._batches) - self._joined >= TOGETHER:
            self._join(self._joined)

    def _join(self, start: int) -> None:
        self._batches[start:] = [joined(self._batches[start:])] if len(self._batches) > start else []
        self._joined = len(self._batches)

    def absorb(self, later: KeptSegment) -> None:
        """The events of the next segment, too."""
        self.batches.extend(later.batches)
        self._ids += later._ids
        self.size += later.size
        self._join(0)

    def close(self) -> None:
        """There are no more events to come, except late ones."""
        self._join(0)

    @property
    def batches(self) -> list[KeptBatch]:
        """Its events, in order; those of a loaded segment are read when they are needed first."""
        if self._unread is not None:
            unread, self._unread = self._unread, None
            self._batches, self._joined = [unread.read()], 1
        return self._batches

    @property
    def ids(self) -> Words:
        """The ids of its relations, in the order of delivery."""
        if len(self._ids) != 1:
            self._ids = [np.concatenate([NO_IDS, *self._ids])]
        return self._ids[0]

    @property
    def positions(self) -> Numbers:
        """Those of its events."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *(each.columns.position_array for each in self.batches)])

    def holds(self, key: int, identity: Words) -> bool:
        """Whether an event with this first order key and identity is among its events."""
        for each in self.batches:
            low, high = np.searchsorted(each.keys, key, "left"), np.searchsorted(each.keys, key, "right")
            known = each.columns.identities
            if low < high and known is not None and bool((known[low:high] == identity).all(axis=1).any()):
                return True
        return False

    def dump(self, order: EventOrder, catalogue: Catalogue) -> tuple[dict[str, Any], list[bytes]]:
        """What describes it, and its parts: the state, the ids, and the events by type."""
        if self._unread is not None:
            return self._unread.head, self._unread.parts
        self._join(0)
        arrivals = arrivals_of(self.batches[0].columns, order, catalogue) if self.batches else {}
        reserved = [order_column(number) for number in range(len(order.keys))]
        tables = {name: canonical_blob(arrivals[name].drop_columns(reserved)) for name in sorted(arrivals)}
        parts = [self.state, to_bytes(self.ids), *tables.values()]
        head = {"after": self.after, "first": self.first, "size": self.size, "types": list(tables)}
        positions = self.positions
        if not np.array_equal(positions, np.arange(self.first, self.first + self.size)):
            head, parts = head | {"positions": True}, [*parts, positions.astype("<i8").tobytes()]
        return head | {"bytes": [len(each) for each in parts]}, parts

    @classmethod
    def load(cls, head: Mapping[str, Any], rest: memoryview, order: EventOrder, catalogue: Catalogue) -> KeptSegment:
        """The inverse of `dump`; its events are read when they are needed first."""
        ends = np.cumsum([0, *head["bytes"]]).tolist()
        parts = [bytes(rest[low:high]) for low, high in pairwise(ends)]
        made = cls(state_number(head["after"]), state_number(head["first"]), parts[0])
        made._ids = [np.frombuffer(parts[1], dtype=">u8").astype(np.uint64).reshape(-1, 2)]
        made.size = state_number(head["size"])
        if made.size:
            made._unread = UnreadSegment(dict(head), parts, order, catalogue)
        return made


NO_IDS = np.zeros((0, 2), dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class UnreadSegment:
    """A segment as it was dumped: most are dropped before a late event needs them."""

    head: dict[str, Any]
    parts: list[bytes]
    order: EventOrder
    catalogue: Catalogue

    def read(self) -> KeptBatch:
        names, given = self.head["types"], self.parts[2:]
        try:
            tables = {name: validated(blob) for name, blob in zip(names, given[: len(names)], strict=True)}
            arrivals = {name: fitted(each, self.catalogue[name], self.order) for name, each in tables.items()}
        except (ValueError, KeyError, OSError, pa.ArrowException, DataError):
            raise StateError("S119", "the kept events in the state are damaged", "use an earlier dump") from None
        columns = _in_their_places(arrivals, self.order, self.catalogue, int(self.head["first"]))
        if "positions" in self.head:
            columns = at_positions(columns, np.frombuffer(given[-1], dtype="<i8").astype(np.int64))
        return KeptBatch(columns, first_keys(columns, self.order, self.catalogue))


def _in_their_places(arrivals: Arrivals, order: EventOrder, catalogue: Catalogue, first: int) -> Columns:
    return in_their_places(in_order(arrivals, len(order.keys), order.descending), arrivals, order, catalogue, first)


def at_positions(columns: Columns, positions: range | Numbers) -> Columns:
    """The batch at other positions."""
    last = int(positions[-1]) if len(positions) else None
    return replace(columns, positions=positions, last_position=last, known_places=columns.places)  # type: ignore[arg-type]


def first_keys(columns: Columns, order: EventOrder, catalogue: Catalogue) -> Numbers:
    """The first order key of each event: a time, in microseconds."""
    made = np.zeros(len(columns), dtype=np.int64)
    for name, places in columns.places.items():
        at = 0 if name == HEARTBEAT.name else order.keys[0].column(catalogue[name])
        made[places] = sortable(columns.tables[name].column(at)).to_numpy()
    return made


def with_late(columns: Columns, late: Columns, order: EventOrder, catalogue: Catalogue, first: int) -> Columns:
    """The events of a segment and late ones among them, in the total order, at positions from `first`."""
    both = [arrivals_of(each, order, catalogue) for each in (columns, late) if len(each)]
    arrivals = {name: pa.concat_tables([each[name] for each in both if name in each]) for name in sorted({*both[0], *both[-1]})}
    return _in_their_places(arrivals, order, catalogue, first)


def joined(batches: Sequence[KeptBatch]) -> KeptBatch:
    """Consecutive batches as one."""
    if len(batches) == 1:
        return batches[0]
    return KeptBatch(joined_columns([each.columns for each in batches]), np.concatenate([each.keys for each in batches]))


def joined_columns(batches: Sequence[Columns]) -> Columns:
    """Consecutive batches as one."""
    types = tuple(dict.fromkeys(name for each in batches for name in each.types))
    numbers = {name: number for number, name in enumerate(types)}
    mapped = [np.array([numbers[name] for name in each.types], dtype=np.int64) for each in batches]
    codes = np.concatenate([codes[each.code_array] for codes, each in zip(mapped, batches, strict=True)])
    tables = {name: _joined_tables([each.tables[name] for each in batches if name in each.tables]) for name in types}
    identities = [each.identities for each in batches if each.identities is not None]
    return Columns(
        types,
        codes.astype(code_type(len(types))),
        _joined_positions(batches),  # type: ignore[arg-type]
        {name: table for name, table in tables.items() if table is not None},
        _joined_lists([each.sources for each in batches], batches),
        _joined_lists([each.sequences for each in batches], batches),
        identities=None if len(identities) < len(batches) else np.concatenate(identities),
    )


def _joined_positions(batches: Sequence[Columns]) -> range | Numbers:
    whole = np.concatenate([each.position_array for each in batches])
    if not len(whole) or whole[-1] - whole[0] != len(whole) - 1:
        return whole
    return range(int(whole[0]), int(whole[-1]) + 1)


def _joined_tables(tables: Sequence[pa.RecordBatch]) -> pa.RecordBatch | None:
    if not tables:
        return None
    if not len(tables[0].schema):
        return record_batch([], tables[0].schema, sum(each.num_rows for each in tables))
    whole = pa.Table.from_batches(tables).combine_chunks()
    return record_batch(
        [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in whole.columns],
        whole.schema,
        len(whole),
    )


def _joined_lists(given: Sequence[Sequence[Any] | None], batches: Sequence[Columns]) -> list[Any] | None:
    if all(each is None for each in given):
        return None
    return [
        value
        for each, columns in zip(given, batches, strict=True)
        for value in ([None] * len(columns) if each is None else each)
    ]
