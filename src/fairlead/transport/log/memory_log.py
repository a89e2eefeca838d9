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

from fairlead.transport.log import names
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.protocol import Conflict, MergeLag, Stored, Stream, TableEntry

READ_MAX = 256
"""Blocks that a reader receives at a time."""


class MemoryLog:
    bytes_max = 1 << 20

    def __init__(self, clock: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._clock = clock
        self._streams: dict[str, list[Stored]] = {}
        self._readers: dict[str, list[str]] = {}
        self._tails: dict[tuple[str, str, str | None], Stored] = {}
        """By topic, source and type; the last of any type under None."""
        self._tables: dict[str, dict[str, TableEntry]] = {}
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
        return Stream(name, "memory")

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
        stored = Stored(len(stream) + 1, max(at, stream[-1].time if stream else 0), block)
        stream.append(stored)
        for reader in self._readers.get(name, ()):
            self._take(reader, at, block)
        return stored

    async def last_of(
        self, topic: str, source: str | None, type: str | None = None, merged: Stream | None = None
    ) -> Stored | None:
        if source is not None and merged is None:
            return self._tails.get((topic, source, type))
        wanted = {"topic": topic, "source": source, "type": type}
        asked = [(name, value) for name, value in wanted.items() if value is not None]
        held = self._streams.get(names.topic_stream(topic) if merged is None else merged.name, [])
        return next((each for each in reversed(held) if all(getattr(each.block, name) == value for name, value in asked)), None)

    async def sources(self, topic: str) -> list[str]:
        return sorted(source for name, source, type in self._tails if name == topic and type is None)

    async def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        while True:
            more = self._more
            while found := self._streams[stream.name][after : after + READ_MAX]:
                after = found[-1].sequence
                if wanted := found if only is None else [each for each in found if only.wants(each.block)]:
                    yield wanted
            await more.wait()

    async def last(self, stream: Stream, only: Only | None = None) -> int:
        held = self._streams[stream.name]
        return next((each.sequence for each in reversed(held) if only is None or only.wants(each.block)), 0)

    async def before(self, stream: Stream, time: int) -> int:
        return bisect_left(self._streams[stream.name], time, key=lambda each: each.time)

    async def get(self, table: str, key: str) -> TableEntry | None:
        return self._tables.get(table, {}).get(key)

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        present = self._tables.setdefault(table, {}).get(key)
        if revision is not None and (present.revision if present else 0) != revision:
            raise Conflict(f"{key} has another revision than {revision}")
        self._set(table, key, value)
        return self._revision

    def _set(self, table: str, key: str, value: bytes) -> None:
        self._revision += 1
        self._tables.setdefault(table, {})[key] = TableEntry(value, self._revision)

    async def remove(self, table: str, key: str) -> None:
        self._tables.get(table, {}).pop(key, None)

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

    async def merged(self) -> list[Stream]:
        return [Stream(name, "memory") for name in sorted(self._streams) if name.startswith("FL_M_")]

    async def behind(self) -> list[MergeLag]:
        return []

    async def remove_stream(self, stream: Stream) -> None:
        self._removed(stream.name)

    def _removed(self, name: str) -> None:
        self._streams.pop(name, None)
        for readers in self._readers.values():
            if name in readers:
                readers.remove(name)

    async def close(self) -> None:
        """Nothing is open."""
