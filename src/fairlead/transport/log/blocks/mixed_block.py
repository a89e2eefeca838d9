"""Blocks with events of several types, in the order in which their source published them.

The payload is one Arrow IPC stream for each type, with all its events, then a byte for each event of the block: the number of
its type (`Block.types`).

Takes: record batches by type, and the type of each event. Gives: payloads, and back. Never: does I/O; changes the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import DataError
from fairlead.model.blobs import packed
from fairlead.model.events.types import EventType
from fairlead.transport.log.blocks.block import BYTES_MAX, EVENTS_MAX, Block, damaged, fitted
from fairlead.transport.log.blocks.payload import Damaged, read_batches

TYPES_MAX = 256
"""Types of one block."""
Codes = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class MixedEvents:
    """`codes`: for each event, the index of its type in `types`. `batches`: the events of each type, in their order."""

    types: tuple[str, ...]
    codes: Codes
    batches: Sequence[pa.RecordBatch]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        return len(self.codes) + sum(int(each.nbytes) for each in self.batches)

    def only(self, kept: Sequence[int]) -> tuple[npt.NDArray[np.intp], MixedEvents]:
        """The events of the types with these codes, and the index of each."""
        chosen = np.flatnonzero(np.isin(self.codes, kept))
        number = np.zeros(len(self.types), dtype=np.uint16)
        number[kept] = np.arange(len(kept), dtype=np.uint16)
        types, batches = tuple(self.types[at] for at in kept), [self.batches[at] for at in kept]
        return chosen, MixedEvents(types, number[self.codes[chosen]], batches)

    def slice(self, low: int, high: int) -> MixedEvents:
        """The events from `low` up to `high`, with the types that they have."""
        firsts = np.bincount(self.codes[:low], minlength=len(self.types)) if len(self.types) > 1 else np.array([low])
        return self.cut(low, high, firsts)[0]

    def cut(self, low: int, high: int, firsts: npt.NDArray[np.intp]) -> tuple[MixedEvents, npt.NDArray[np.intp]]:
        """The same. `firsts`: of each type, the number of events before `low`; those before `high` are returned too."""
        counts = np.bincount(self.codes[low:high], minlength=len(self.types))
        kept = np.flatnonzero(counts).tolist()
        number = np.zeros(len(self.types), dtype=np.uint16)
        number[kept] = np.arange(len(kept), dtype=np.uint16)
        batches = [self.batches[at].slice(int(firsts[at]), int(counts[at])) for at in kept]
        return MixedEvents(tuple(self.types[at] for at in kept), number[self.codes[low:high]], batches), firsts + counts


def joined_events(parts: Sequence[MixedEvents]) -> MixedEvents:
    """One after the other."""
    if len(parts) == 1:
        return parts[0]
    types = tuple(dict.fromkeys(name for each in parts for name in each.types))
    number = {name: at for at, name in enumerate(types)}
    codes = [np.array([number[name] for name in each.types], dtype=np.uint16)[each.codes] for each in parts]
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in types}
    for each in parts:
        for name, batch in zip(each.types, each.batches, strict=True):
            batches[name].append(batch)
    return MixedEvents(types, np.concatenate(codes), [joined(mine) for mine in batches.values()])


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One after the other; also batches without columns."""
    if len(batches) == 1:
        return batches[0]
    if not len(batches[0].schema):
        rows = sum(each.num_rows for each in batches)
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, type=pa.struct([])))
    return pa.concat_batches(batches)


def of_one_type(name: str, batch: pa.RecordBatch) -> MixedEvents:
    return MixedEvents((name,), np.zeros(batch.num_rows, dtype=np.uint16), [batch])


def runs(events: MixedEvents) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Stretches of one type, in the order of the events."""
    ends = [*(np.flatnonzero(np.diff(events.codes)) + 1).tolist(), len(events)]
    low, taken = 0, [0] * len(events.types)
    for high in ends:
        if high > low:
            code = int(events.codes[low])
            yield events.types[code], events.batches[code].slice(taken[code], high - low)
            taken[code] += high - low
            low = high


def in_order(codes: Codes) -> npt.NDArray[np.intp]:
    """For each event, its index among the events of all types, type after type."""
    found = np.empty(len(codes), dtype=np.intp)
    found[np.argsort(codes, kind="stable")] = np.arange(len(codes))
    return found


def mixed_pieces(events: MixedEvents) -> Iterator[tuple[MixedEvents, bytes]]:
    """The events as payloads of blocks, in order. A piece whose events are of one type is the payload of an ordinary block."""
    rows = min(EVENTS_MAX, max(1, BYTES_MAX * len(events) // max(1, events.nbytes)))
    firsts = np.zeros(len(events.types), dtype=np.intp)
    for low in range(0, len(events), rows):
        piece, firsts = events.cut(low, low + rows, firsts)
        yield from _fitting(piece)


def _fitting(events: MixedEvents) -> Iterator[tuple[MixedEvents, bytes]]:
    payload = payload_of(events)
    if len(payload) <= BYTES_MAX or len(events) == 1:
        yield events, payload
        return
    half = len(events) // 2
    yield from _fitting(events.slice(0, half))
    yield from _fitting(events.slice(half, len(events)))


def payload_of(events: MixedEvents) -> bytes:
    parts = [packed(each) for each in events.batches]
    return parts[0] if len(parts) == 1 else b"".join((*parts, events.codes.astype(np.uint8).tobytes()))


def events_of(block: Block) -> MixedEvents:
    """The stored events of a mixed block, of all its types. Raises DataError if it is damaged."""
    split = len(block.payload) - block.count
    if split < 0 or not 1 < len(block.types) <= TYPES_MAX or len(set(block.types)) != len(block.types):
        raise damaged(block)
    codes = np.frombuffer(block.payload, dtype=np.uint8, offset=split).astype(np.uint16)
    counts = np.bincount(codes, minlength=len(block.types))
    if len(counts) != len(block.types):
        raise damaged(block)
    try:
        batches = read_batches(pa.py_buffer(block.payload).slice(0, split), counts.tolist())
    except Damaged:
        raise damaged(block) from None
    return MixedEvents(block.types, codes, batches)


@dataclass(frozen=True, eq=False)
class WantedEvents:
    """`indices`: of each event in the block. `rejected`: why other events of the wanted types are not among them."""

    indices: npt.NDArray[np.intp]
    events: MixedEvents
    rejected: tuple[DataError, ...] = ()


def wanted_events(block: Block, wanted: Mapping[str, EventType]) -> WantedEvents:
    """The events of the wanted types, in the reader's definitions. What is rejected is a function of the log, so readers of
    different types agree on the events that they share:

        1. a damaged block has no events: of none of its types, whatever a reader wants
        2. a type has no events in a block if they do not fit its declaration, whatever other types the block has
    """
    if wanted.keys().isdisjoint(block.types or (block.type,)):
        return NOTHING
    try:
        whole = events_of(block) if block.is_mixed else of_one_type(block.type, block.batch)  # 1
    except DataError as error:
        return replace(NOTHING, rejected=(error,))
    rejected, kept, batches = [], [], []
    for at, (name, batch) in enumerate(zip(whole.types, whole.batches, strict=True)):
        if name in wanted:
            try:
                batches.append(fitted(batch, wanted[name], block))  # 2
                kept.append(at)
            except DataError as error:
                rejected.append(error)
    if len(kept) == len(whole.types):
        return WantedEvents(np.arange(block.count), MixedEvents(whole.types, whole.codes, batches))
    indices, events = whole.only(kept)
    return WantedEvents(indices, MixedEvents(events.types, events.codes, batches), tuple(rejected))


NOTHING = WantedEvents(np.zeros(0, dtype=np.intp), MixedEvents((), np.zeros(0, dtype=np.uint16), ()))
