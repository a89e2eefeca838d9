"""Blocks of a stream as the columns of an engine.

Takes: blocks in the order of the stream. Gives: Columns with the positions of the log. Never: makes an object of an event.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from threading import Lock

import numpy as np
import pyarrow as pa

from fairlead.matching.compiled.running.batch import Prepared
from fairlead.model.columns import Columns, arrow_schema, code_type
from fairlead.model.types import Catalogue, EventType
from fairlead.transport.log.block import INDEX_BITS, decode, positions
from fairlead.transport.log.protocol import Stored, Stream

EVENTS_TOGETHER = 16_384
"""Events of one feed to an engine: preparing a batch costs about a millisecond, which small blocks share."""
REMEMBERED = 8
"""Cached stretches of blocks, some hundred kilobytes each."""


def portions(blocks: Sequence[Stored], borders: Collection[int]) -> Iterator[Sequence[Stored]]:
    """Blocks that go to the engines together. No portion has blocks on both sides of a sequence in `borders`."""
    start = events = 0
    for at, each in enumerate(blocks):
        full = events + each.block.count > EVENTS_TOGETHER
        if at > start and (full or any(blocks[at - 1].sequence <= border < each.sequence for border in borders)):
            yield blocks[start:at]
            start, events = at, 0
        events += each.block.count
    if start < len(blocks):
        yield blocks[start:] if start else blocks


class Gathering:
    """What the subscribers of one client share. Subscribers that read together (shared_reader.py) wake together (rounds.py), so
    they receive the same blocks one after the other. `every_events`: a state is saved after so many events (keeping.py)."""

    every_events = 2_000_000

    def __init__(self) -> None:
        self.kept: dict[str, tuple[int, float]] = {}
        """By lineage, the newest snapshot that a subscriber of this client has saved: its events, and its time (keeping.py)."""
        self._lock = Lock()
        """Slow matches run in threads (following.py)."""
        self._made: dict[tuple[Stream, tuple[int, ...]], list[tuple[list[EventType], Prepared]]] = {}

    def prepared(self, stream: Stream, blocks: Sequence[Stored], catalogue: Catalogue, first: int) -> Prepared:
        """The events from position `first`; shared by all subscribers that know the same definitions of the types."""
        if blocks[0].sequence << INDEX_BITS < first:
            return Prepared(columns_of(blocks, catalogue, first), catalogue)
        with self._lock:
            return self._shared(stream, blocks, catalogue, first)

    def _shared(self, stream: Stream, blocks: Sequence[Stored], catalogue: Catalogue, first: int) -> Prepared:
        key = stream, tuple([each.sequence for each in blocks])
        if key not in self._made and len(self._made) >= REMEMBERED:
            del self._made[next(iter(self._made))]
        mine = self._made.setdefault(key, [])
        types = [catalogue[name] for name in sorted({each.block.type for each in blocks})]
        for known, made in mine:
            if known == types:
                return made
        mine.append((types, Prepared(columns_of(blocks, catalogue, first), catalogue)))
        return mine[-1][1]


def columns_of(blocks: Sequence[Stored], catalogue: Catalogue, first: int) -> Columns:
    """The events from position `first`."""
    types = tuple(dict.fromkeys(each.block.type for each in blocks))
    code = {name: at for at, name in enumerate(types)}
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in types}
    places, counts = [], []
    for each in blocks:
        batch, at = decode(each.block, catalogue[each.block.type]), positions(each.sequence, each.block.count)
        if at[0] < first:
            batch, at = batch.slice(int(np.searchsorted(at, first))), at[at >= first]
        batches[each.block.type].append(batch)
        places.append(at)
        counts.append(len(at))
    codes = np.repeat(np.array([code[each.block.type] for each in blocks], dtype=code_type(len(types))), counts)
    tables = {name: joined(mine, arrow_schema(catalogue[name])) for name, mine in batches.items()}
    return Columns(types, codes, np.concatenate(places), tables)  # type: ignore[arg-type]


def joined(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """The concatenation, also of batches without columns."""
    if len(batches) == 1:
        return batches[0]
    if not len(schema):
        rows = sum(each.num_rows for each in batches)
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, type=pa.struct([])))
    return pa.concat_batches(batches)
