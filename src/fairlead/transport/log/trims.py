"""What is known of trimmed blocks: the last one of each source and type, without its events.

Trimming removes the first blocks of a stream (runtime/live/retention.py). Numbers continue: a publisher that returns under its
name continues after its last block, whether the log still has it or not, and a reader that meets a source for the first time
knows with which number it has to begin. So before blocks are removed, the heads of the last ones are written to a table, one
entry for each stream and source, and then the first sequence that is left. Blocks that are missing without that were removed
by somebody else, or lost.

The same heads tell a block that comes a second time after all blocks of its source were trimmed (repeats.py).

A merged stream may keep blocks that their topics lose, if another of its topics has older ones. Its readers ask the topics
which messages are blocks (jetstream/merged_reader.py), so that is recorded, too, before the topics are trimmed.

Takes: heads of blocks, in the order of the log. Gives: entries of the table, and blocks without a payload. Never: trims; keeps
more than one head for each type of a source in a stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields, replace
from typing import Protocol

from fairlead.dataclass import dataclass
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import ROUTES, is_marks
from fairlead.transport.log.entry_values import entry_bytes, entry_value, fits, unreadable
from fairlead.transport.log.names import TRIMS, topic_stream
from fairlead.transport.log.protocol import Conflict, Log, Stored, TableEntry

TABLE = TRIMS
REPEATS_MAX = 1_000
"""Repeated blocks that are remembered after they were trimmed: a reader that met one before asks for it soon."""
GENERATED = re.compile(r"s-[0-9a-f]{32}")
"""Sources whose name nobody chose: no publisher returns under it."""


@dataclass(frozen=True)
class TrimmedHead:
    """The head of the last trimmed block of a type. `at`: its sequence in the stream. `time`: when it was stored there.
    `routes`: by route, the sequence of the last one that had events on it, or whose publisher did not know; 0: none.
    `numbers`: which numbers of its source were stored with it, if the source numbers its events itself. `writer`: of the
    block, by which a publisher knows its own."""

    type: str
    number: int
    sequence: int
    count: int
    marks: str
    at: int
    time: int
    routes: tuple[int, ...]
    numbers: str = ""
    writer: str = ""

    def block(self, topic: str, source: str) -> Block:
        about = (self.number, self.sequence, self.count, "", b"", self.writer)
        return Block(self.type, source, *about, marks=self.marks, topic=topic, numbers=self.numbers)

    def after(self, earlier: TrimmedHead | None) -> TrimmedHead:
        """The head of both, of which this is the later one."""
        if earlier is None:
            return self
        if earlier.at >= self.at:
            return earlier
        return replace(self, routes=tuple(map(max, self.routes, earlier.routes)))


class TableReader(Protocol):
    """The part of a log that is asked here."""

    async def get(self, table: str, key: str) -> TableEntry | None: ...


Heads = Mapping[str, TrimmedHead]
"""Of one source in a stream, by lane (Block.lane)."""


def key_of(stream: str, source: str) -> str:
    return f"{stream}.{source}"


def add_heads(found: dict[str, dict[str, TrimmedHead]], blocks: Iterable[Stored]) -> None:
    """By source and lane, the heads of the last of these blocks, too. Messages that are not blocks have none."""
    for at, time, block, _ in blocks:
        if block.count:
            routes = tuple(0 if letter == "n" else at for letter in block.letters)
            about = (block.type, block.number, block.sequence, block.count, block.marks, at, time, routes)
            head = TrimmedHead(*about, block.numbers, block.writer)
            mine = found.setdefault(block.source, {})
            mine[block.lane] = head.after(mine.get(block.lane))


def to_bytes(heads: Heads) -> bytes:
    return entry_bytes({name: _told(head) for name, head in sorted(heads.items())})


def _told(head: TrimmedHead) -> list[object]:
    """Without the last fields that are empty."""
    found = [getattr(head, each.name) for each in fields(TrimmedHead)]
    while not found[-1]:
        found.pop()
    return found


HEAD = (str, int, int, int, str, int, int, [int], str, str)
"""The shapes of the fields of a head, of which the last two may be missing."""


def from_bytes(value: bytes, key: str = "") -> dict[str, TrimmedHead]:
    """Raises StateError (S147)."""
    found = entry_value(value, {str: [(str, int, [int])]}, TABLE, key)
    for told in found.values():
        whole = len(HEAD) - 2 <= len(told) <= len(HEAD) and all(map(fits, told, HEAD))
        if not whole or len(told[7]) != ROUTES or not is_marks(told[4]):
            raise unreadable(TABLE, key)
    return {name: TrimmedHead(*(*told[:7], tuple(told[7]), *told[8:])) for name, told in found.items()}


async def trimmed_heads(log: TableReader, stream: str, source: str) -> Heads:
    entry = await log.get(TABLE, key_of(stream, source))
    return {} if entry is None else from_bytes(entry.value, key_of(stream, source))


async def trimmed_sources(log: Log, stream: str) -> list[str]:
    """The sources of which blocks were trimmed."""
    return [key.removeprefix(f"{stream}.") for key in await log.keys(TABLE) if key.startswith(f"{stream}.")]


@dataclass(frozen=True)
class TrimRecord:
    """Of a stream: `first` is the first sequence that trimming leaves; `planned`, the one that it may leave soon. Of a topic:
    `repeats` are trimmed blocks that repeated earlier ones (repeats.py). Of a merged stream: blocks up to the sequence `judged`
    may have no original in their topics any more; those in `rejected` are no blocks."""

    first: int = 1
    judged: int = 0
    rejected: tuple[int, ...] = ()
    planned: int = 1
    repeats: tuple[int, ...] = ()

    def after(self, earlier: TrimRecord) -> TrimRecord:
        """What is known of both, of which this one is recorded later."""
        first = max(earlier.first, self.first)
        return TrimRecord(
            first,
            max(earlier.judged, self.judged),
            tuple(sorted({each for each in (*earlier.rejected, *self.rejected) if each >= first})),
            max(earlier.planned, self.planned),
            tuple(sorted({*earlier.repeats, *self.repeats}))[-REPEATS_MAX:],
        )


NOTHING_TRIMMED = TrimRecord()


async def trim_record(log: TableReader, stream: str) -> TrimRecord:
    entry = await log.get(TABLE, stream)
    return TrimRecord() if entry is None else _record_of(entry, stream)


def _record_of(entry: TableEntry, stream: str) -> TrimRecord:
    shape = {"first?": int, "judged?": int, "rejected?": [int], "planned?": int, "repeats?": [int]}
    told = entry_value(entry.value, shape, TABLE, stream)
    rejected, repeats = (tuple(told.get(name, ())) for name in ("rejected", "repeats"))
    return TrimRecord(told.get("first", 1), told.get("judged", 0), rejected, told.get("planned", 1), repeats)


async def first_kept(log: TableReader, stream: str) -> int:
    """The first sequence that trimming has left, by its own record."""
    return (await trim_record(log, stream)).first


async def note_record(log: Log, stream: str, record: TrimRecord) -> None:
    """Adds to the record of a stream."""
    await _changed(log, stream, record.after)


async def begin_trim(log: Log, stream: str, first: int, *, planned: bool) -> bool:
    """Records that the blocks before `first`, whose heads are noted, are about to be removed. With `planned`, only if that is
    still the plan; returns whether it is."""
    wanted = TrimRecord(first)

    def newer(known: TrimRecord) -> TrimRecord | None:
        return None if planned and max(known.planned, known.first) < first else wanted.after(known)

    return await _changed(log, stream, newer)


async def end_plan(log: Log, stream: str) -> None:
    """Nothing more is planned. Another client that planned as much has to plan again."""
    await _changed(log, stream, lambda known: replace(known, planned=1))


async def _changed(log: Log, stream: str, change: Callable[[TrimRecord], TrimRecord | None]) -> bool:
    """Replaces the record of a stream, unless the change of it is None."""
    while True:
        entry = await log.get(TABLE, stream)
        known = TrimRecord() if entry is None else _record_of(entry, stream)
        newer = change(known)
        if newer is None or newer == known:
            return newer is not None
        value = entry_bytes({name: each for name, each in asdict(newer).items() if each != getattr(NOTHING_TRIMMED, name)})
        try:
            await log.put(TABLE, stream, value, 0 if entry is None else entry.revision)
            return True
        except Conflict:
            continue  # another client trims too


async def note_trimmed(log: Log, stream: str, source: str, heads: Heads) -> None:
    """Records the heads of blocks that are about to be removed."""
    while True:
        entry = await log.get(TABLE, key_of(stream, source))
        known = {} if entry is None else from_bytes(entry.value, key_of(stream, source))
        newer = known | {name: head.after(known.get(name)) for name, head in heads.items()}
        if newer == known:
            return
        try:
            revision = 0 if entry is None else entry.revision
            await log.put(TABLE, key_of(stream, source), to_bytes(newer), revision)
            return
        except Conflict:
            continue  # another client trims too


async def trimmed_last(log: Log, topic: str, source: str | None, type: str | None) -> Stored | None:
    """The last block of a source, of a type or of any, if it was trimmed; its sequence is 0, since nothing of it is left."""
    if source is None:
        return None
    if (await log.state(await log.open_topics([topic]))).first <= 1:
        return None
    heads = (await trimmed_heads(log, topic_stream(topic), source)).values()
    chosen = [head for head in heads if type is None or head.type == type]
    if not chosen:
        return None
    last = max(chosen, key=lambda head: head.at)
    return Stored(0, last.time, last.block(topic, source))
