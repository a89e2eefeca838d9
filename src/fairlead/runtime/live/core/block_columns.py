"""Blocks of a stream as the columns of an engine.

Subscribers of one client that read together (shared_reader.py) wake together (group_task.py), so they receive the same blocks
one after the other, and what the first makes of them serves the others.

Takes: blocks in the order of the stream. Gives: Columns with the positions of the log. Never: makes an object of an event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.errors import DataError
from fairlead.matching.compiled.running.batch import Prepared
from fairlead.matching.results.chunk import Numbers
from fairlead.model.events.columns import Columns, code_type
from fairlead.model.events.origin_columns import SequenceColumn, SourceColumn
from fairlead.model.events.types import HEARTBEAT, Catalogue, EventType
from fairlead.runtime.event_time.shared_steps import SharedSteps
from fairlead.runtime.live.core.early import SharedRuns
from fairlead.transport.log.blocks.block import EVENTS_MAX, INDEX_BITS
from fairlead.transport.log.blocks.mixed_block import joined, wanted_events
from fairlead.transport.log.blocks.room import require_position
from fairlead.transport.log.protocol import Stored, Stream

EVENTS_TOGETHER = 16_384
"""Events of one feed to an engine: preparing a batch costs about a millisecond, which small blocks share."""
REMEMBERED = 8
"""Cached stretches of blocks, some hundred kilobytes each."""
CacheKey = tuple[tuple[Stream, ...], bool, int | None, tuple[int, ...]]
"""Streams of blocks, whether sources are read, the number of the first block if that is not its sequence, and the sequences."""
Rejected = dict[tuple[str, int], str]
"""By topic and sequence of a block, the code of the error for which events of it are rejected."""
Report = Callable[[Stored, Iterable[DataError]], None]
"""Called with a block and why events of it are rejected. Every reader skips the same ones (mixed_block.py)."""


def portions(
    blocks: Sequence[Stored], borders: Collection[int], events_max: int = EVENTS_TOGETHER
) -> Iterator[Sequence[Stored]]:
    """Blocks that go to the engines together. No portion has blocks on both sides of a sequence in `borders`."""
    start = 0
    while start < len(blocks):
        end, is_full = _end(blocks, start, borders, events_max)
        end = _meeting(blocks, start, end) if is_full else end
        yield blocks[start:end] if end - start < len(blocks) else blocks
        start = end


def _end(blocks: Sequence[Stored], start: int, borders: Collection[int], events_max: int) -> tuple[int, bool]:
    """Where a portion that begins at `start` has to end at the latest, and whether that is because it is full."""
    events = 0
    for at in range(start, len(blocks)):
        events += blocks[at].block.count
        if at > start and events > events_max:
            return at, True
        if at > start and any(blocks[at - 1].sequence <= border < blocks[at].sequence for border in borders):
            return at, False
    return len(blocks), False


def _meeting(blocks: Sequence[Stored], start: int, end: int) -> int:
    """Where a full portion ends: before the last block whose sequence is a multiple of a power of two, the largest that fits.
    So subscribers that began at different blocks end their portions at the same one, and share them from there on."""
    power = 1 << (end - start).bit_length() - 1

    def shared(at: int) -> tuple[int, int]:
        sequence = blocks[at].sequence
        return min(power, sequence & -sequence), at

    return max(range(start + 1, end + 1), key=shared)


class ColumnCache:
    """The columns that the subscribers of one client share. `lock`: slow matches run in threads (group_task.py). `steps`: what
    they release in an order by value. `runs`: what they deliver early."""

    def __init__(self, report: Report, lock: AbstractContextManager[Any], runs: SharedRuns | None = None) -> None:
        self._report, self._lock, self.steps, self.runs = report, lock, SharedSteps(lock), runs or SharedRuns()
        self._made: dict[CacheKey, list[tuple[list[EventType], Prepared, Rejected]]] = {}

    def prepared(
        self,
        streams: tuple[Stream, ...],
        blocks: Sequence[Stored],
        catalogue: Catalogue,
        names: Sequence[str],
        first: int,
        *,
        sourced: bool = False,
        numbers: Numbers | None = None,
    ) -> tuple[Prepared, Rejected]:
        """The events of these types from position `first`, and what is rejected of them; shared by all subscribers that know
        the same definitions of them. `streams`: the one that is read, or that of each block. `sourced`, `numbers`: see
        columns_of."""
        wanted, rejected = {name: catalogue[name] for name in names}, Rejected()

        def report(stored: Stored, errors: Iterable[DataError]) -> None:
            self._report(stored, errors)
            for each in errors:
                rejected[stored.block.topic, stored.sequence] = each.code

        if blocks[0].sequence << INDEX_BITS < first:
            return Prepared(columns_of(blocks, wanted, first, sourced, report), catalogue), rejected
        key = streams, sourced, None if numbers is None else int(numbers[0]), tuple([each.sequence for each in blocks])
        there = {name for each in blocks for name in each.block.types or (each.block.type,)}
        types = [wanted[name] for name in sorted(there & wanted.keys())]
        with self._lock:
            if key not in self._made and len(self._made) >= REMEMBERED:
                del self._made[next(iter(self._made))]
            mine = self._made.setdefault(key, [])
            for known, made, reported in mine:
                if known == types:
                    return made, reported
            mine.append((types, Prepared(columns_of(blocks, wanted, first, sourced, report, numbers), catalogue), rejected))
            return mine[-1][1:]


def columns_of(
    blocks: Sequence[Stored],
    wanted: Mapping[str, EventType],
    first: int,
    sourced: bool = False,
    report: Report | None = None,
    numbers: Numbers | None = None,
) -> Columns:
    """The events of the wanted types, from position `first`. `sourced`: with their sources and sequences. `numbers`: of the
    blocks, if they are of several topics and so have others than their sequences; each topic has its own types."""
    code: dict[str, int] = {}
    batches: list[list[pa.RecordBatch]] = []
    places, codes, sources, sequences = [], [], list[tuple[str | None, int]](), []

    def code_of(name: str) -> int:
        if name not in code:
            code[name] = len(batches)
            batches.append([])
        return code[name]

    own = dict[str, Mapping[str, EventType]]()
    for place, each in enumerate(blocks):
        topic = each.block.topic
        if numbers is not None and topic not in own:
            own[topic] = {name: one for name, one in wanted.items() if one.topic == topic or name == HEARTBEAT.name}
        found = wanted_events(each.block, wanted if numbers is None else own[topic])
        if report is not None:
            report(each, found.rejected)
        number = each.sequence if numbers is None else int(numbers[place])
        require_position(number)
        at, events = (number << INDEX_BITS) + found.indices, found.events
        if not len(at):
            continue
        if at[0] < first:
            behind = int(np.searchsorted(at, first))
            at, events = at[behind:], events.slice(behind, len(events))
        mine = [code_of(name) for name in events.types]
        for one, batch in zip(mine, events.batches, strict=True):
            batches[one].append(batch)
        places.append(at)
        if sourced:
            sources.append((each.block.source, len(at)))
            sequences.append((at & (EVENTS_MAX - 1)) + each.block.sequence)
        codes.append(np.array(mine, dtype=np.int64)[events.codes])
    if not places:
        return Columns((), np.zeros(0, dtype=np.int8), range(0), {})
    types = tuple(code)
    tables = {name: joined(some) for name, some in zip(types, batches, strict=True)}
    of_type = np.concatenate(codes).astype(code_type(len(types)))
    origin = (SourceColumn.of_runs(sources), SequenceColumn(np.concatenate(sequences))) if sourced else (None, None)
    return Columns(types, of_type, np.concatenate(places), tables, *origin)  # type: ignore[arg-type]
