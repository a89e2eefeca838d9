"""A log in the memory of one process: for tests, and as the state of a log in a file.

Merged streams copy a block the moment it is appended, so their order is that of the appends. A stream that is created later
begins with the blocks of its sources, source after source.

Takes: blocks, values. Gives: the protocol of a log. Never: writes to disk.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from fairlead.errors import LogError
from fairlead.transport.log import names
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.protocol import Conflict, MergeLag, Stored, Stream, StreamState, TableEntry, Trimmed
from fairlead.transport.log.stream_health import StreamReport, problem_of, removed_blocks

READ_MAX = 256
"""Blocks that a reader receives at a time."""


class MemoryLog:
    bytes_max = 1 << 20
    owner = ""

    def __init__(self, clock: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._clock = clock
        self._streams: dict[str, list[Stored]] = {}
        self._trimmed: dict[str, int] = {}
        """By stream, how many of its first blocks were trimmed."""
        self._removals: dict[str, int] = {}
        """By stream, how often it was removed: what is made again under the name is another one."""
        self._readers: dict[str, list[str]] = {}
        self._tails: dict[tuple[str, str, str | None], Stored] = {}
        """By topic, source and type; the last of any type under None."""
        self._tables: dict[str, dict[str, TableEntry]] = {}
        self._unset: dict[tuple[str, str], int] = {}
        """By table and key, the revision of its removal."""
        self._objects: dict[str, dict[str, bytes]] = {}
        self._revision = 0
        self._more = asyncio.Event()

    async def open_topics(self, topics: Sequence[str]) -> Stream:
        first, *others = sorted(topics)
        opened = self._opened(names.topic_stream(first), ())
        for at, name in enumerate(others, 2):
            self._opened(names.topic_stream(name), ())
            part = sorted(topics)[:at]
            opened = self._opened(names.merged_stream(part), names.merged_sources(part))
        return opened

    def _opened(self, name: str, sources: Sequence[str]) -> Stream:
        if name not in self._streams:
            self._made(name, sources)
        return self._stream(name)

    def _stream(self, name: str) -> Stream:
        removed = self._removals.get(name, 0)
        return Stream(name, f"memory-{removed}" if removed else "memory")

    def _made(self, name: str, sources: Sequence[str]) -> None:
        self._streams[name] = []
        for source in sources:
            self._readers.setdefault(source, []).append(name)
            for each in self._streams[source]:
                self._take(name, each.time, each.block)

    async def append(self, block: Block, after: int) -> int:
        last = self._tails.get((block.topic, block.source, None))
        if (last.sequence if last else 0) != after:
            raise Conflict(f"the last block of '{block.source}' is not {after}")
        return self._appended(block, self._clock())

    def _appended(self, block: Block, at: int) -> int:
        stored = self._take(names.topic_stream(block.topic), at, block)
        self._tails[block.topic, block.source, block.type] = self._tails[block.topic, block.source, None] = stored
        self._more.set()
        self._more = asyncio.Event()
        return stored.sequence

    def _take(self, name: str, at: int, block: Block) -> Stored:
        stream = self._streams[name]
        stored = Stored(self._end(name) + 1, max(at, stream[-1].time if stream else 0), block)
        stream.append(stored)
        for reader in self._readers.get(name, ()):
            self._take(reader, at, block)
        return stored

    def _end(self, name: str) -> int:
        """The sequence of the last block."""
        return self._trimmed.get(name, 0) + len(self._streams[name])

    async def last_of(self, topic: str, source: str | None, type: str | None = None) -> Stored | None:
        if source is not None:
            return self._tails.get((topic, source, type))
        held = self._streams.get(names.topic_stream(topic), [])
        return next((each for each in reversed(held) if type is None or each.block.type == type), None)

    async def last_block_of(self, topic: str, source: str, type: str | None = None) -> Stored | None:
        return self._tails.get((topic, source, type))  # every append names the block before it

    async def copied(self, stream: Stream, topic: str) -> int:
        last = next((each.block for each in reversed(self._streams[stream.name]) if each.block.topic == topic), None)
        held = self._streams[names.topic_stream(topic)]
        return next((each.sequence for each in reversed(held) if each.block is last), 0)

    async def check(self, stream: Stream, sequence: int, time: int) -> None:
        held = self._streams[stream.name]
        at = bisect_left(held, sequence, key=lambda each: each.sequence)
        there = at < len(held) and held[at].sequence == sequence
        first, last = (held[0].sequence, held[-1].sequence) if held else (self._end(stream.name) + 1, self._end(stream.name))
        found = problem_of(stream, sequence, time, StreamReport(stream.made, first, last, (), held[at].time if there else None))
        if found is not None:
            raise found

    async def sources(self, topic: str) -> list[str]:
        return sorted(source for name, source, type in self._tails if name == topic and type is None)

    async def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        while True:
            more = self._more
            while found := self._after(stream, after):
                for each in found:
                    if each.sequence != after + 1:
                        raise removed_blocks(stream, after + 1, each.sequence - 1)
                    after = each.sequence
                if wanted := found if only is None else [each for each in found if only.wants(each.block)]:
                    yield wanted
            await more.wait()

    def _after(self, stream: Stream, after: int) -> Sequence[Stored]:
        at = after - self._trimmed.get(stream.name, 0)
        if at < 0:
            raise Trimmed(stream, after, after - at + 1)
        return self._streams[stream.name][at : at + READ_MAX]

    async def heads(self, stream: Stream, after: int, last: int) -> AsyncIterator[Sequence[Stored]]:
        held = [each for each in self._streams[stream.name] if after < each.sequence <= last]
        if held:
            yield [each._replace(block=replace(each.block, payload=b"")) for each in held]

    async def state(self, stream: Stream) -> StreamState:
        size = sum(len(each.block.payload) for each in self._streams[stream.name])
        return StreamState(self._trimmed.get(stream.name, 0) + 1, self._end(stream.name), size)

    async def count(self, stream: Stream, after: int, topic: str) -> int:
        return sum(each.sequence > after and each.block.topic == topic for each in self._streams[stream.name])

    async def trim(self, stream: Stream, first: int) -> None:
        self._trim(stream.name, first)

    def _trim(self, name: str, first: int) -> None:
        count = max(0, min(first - 1, self._end(name)) - self._trimmed.get(name, 0))
        del self._streams[name][:count]
        self._trimmed[name] = self._trimmed.get(name, 0) + count
        for key, tail in list(self._tails.items()):
            if names.topic_stream(key[0]) == name and tail.sequence < first:
                del self._tails[key]

    async def last(self, stream: Stream, only: Only | None = None) -> int:
        if only is None:
            return self._end(stream.name)
        held = self._streams[stream.name]
        return next((each.sequence for each in reversed(held) if only.wants(each.block)), 0)

    async def before(self, stream: Stream, time: int) -> int:
        trimmed = self._trimmed.get(stream.name, 0)
        return trimmed + bisect_left(self._streams[stream.name], time, key=lambda each: each.time)

    async def get(self, table: str, key: str) -> TableEntry | None:
        return self._tables.get(table, {}).get(key)

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        last, fresh = await self.revision_of(table, key), key not in self._tables.get(table, {})
        if revision is not None and revision != last and not (fresh and revision == 0):
            raise Conflict(f"{key} has another revision than {revision}")
        if len(value) > self.bytes_max:
            raise LogError("N009", "the entry is larger than the log accepts", "store less in it")
        self._set(table, key, value, self._clock(), None if revision is None else last)
        return self._revision

    async def revision_of(self, table: str, key: str) -> int:
        found = self._tables.get(table, {}).get(key)
        return self._unset.get((table, key), 0) if found is None else found.revision

    def _set(self, table: str, key: str, value: bytes, at: int, after: int | None) -> None:
        self._revision += 1
        self._tables.setdefault(table, {})[key] = TableEntry(value, self._revision, at, after)

    async def remove(self, table: str, key: str, revision: int | None = None) -> None:
        if revision is not None and revision != await self.revision_of(table, key):
            raise Conflict(f"{key} has another revision than {revision}")
        self._remove(table, key)

    def _remove(self, table: str, key: str) -> None:
        if self._tables.get(table, {}).pop(key, None) is not None:
            self._revision += 1
            self._unset[table, key] = self._revision

    async def keys(self, table: str) -> list[str]:
        return sorted(self._tables.get(table, {}))

    async def put_object(self, store: str, name: str, value: bytes) -> None:
        self._objects.setdefault(store, {})[name] = value

    async def get_object(self, store: str, name: str) -> bytes | None:
        return self._objects.get(store, {}).get(name)

    async def remove_object(self, store: str, name: str) -> None:
        self._objects.get(store, {}).pop(name, None)

    async def objects(self, store: str) -> list[str]:
        return sorted(self._objects.get(store, {}))

    async def now(self, table: str) -> int:
        return self._clock()

    async def merged(self) -> list[Stream]:
        return [self._stream(name) for name in sorted(self._streams) if name.startswith("FL_M_")]

    async def behind(self) -> list[MergeLag]:
        return []

    async def remove_stream(self, stream: Stream) -> None:
        self._removed(stream.name)

    def _removed(self, name: str) -> None:
        if self._streams.pop(name, None) is not None:
            self._removals[name] = self._removals.get(name, 0) + 1
        self._trimmed.pop(name, None)
        for readers in self._readers.values():
            if name in readers:
                readers.remove(name)

    async def close(self) -> None:
        """Nothing is open."""
