"""A log that retries when there was no answer, up to a time limit.

Every operation except `append` may be repeated. When a value replaces a known one, a repeat detects whether the first attempt
did it. Readers of the same stream read it together (shared_reader.py).

Takes: a log. Gives: the same, which raises LogError instead of Unavailable. Never: sends a block again (block_store.py does).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.patience import PAUSE_SECONDS, Patience
from fairlead.transport.log.protocol import (
    Conflict,
    Log,
    MergeLag,
    Stored,
    Stream,
    StreamState,
    TableEntry,
    Unavailable,
    no_answer,
)
from fairlead.transport.log.shared_reader import Sharing
from fairlead.transport.log.trims import trimmed_last

Answer = TypeVar("Answer")


class PatientLog:
    def __init__(self, log: Log, patience: float, pause: float = PAUSE_SECONDS) -> None:
        self._log, self.patience, self._pause = log, patience, pause
        self.bytes_max, self.owner = log.bytes_max, log.owner
        self.read = Sharing(log).read
        self.heads = log.heads

    async def _asked(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        trying = Patience(self.patience, self._pause)
        while True:
            try:
                return await ask()
            except Unavailable as error:
                if trying.is_over:
                    raise no_answer(error, "start it again, or wait longer") from None
            await trying.pause()

    async def open_topics(self, topics: Sequence[str]) -> Stream:
        return await self._asked(lambda: self._log.open_topics(topics))

    async def append(self, block: Block, after: int) -> int:
        return await self._log.append(block, after)

    async def last_of(self, topic: str, source: str | None, type: str | None = None) -> Stored | None:
        return await self._asked(lambda: self._log.last_of(topic, source, type))

    async def last_block_of(self, topic: str, source: str, type: str | None = None) -> Stored | None:
        """Also if that block has been trimmed (trims.py)."""
        found = await self._asked(lambda: self._log.last_block_of(topic, source, type))
        return found if found is not None else await trimmed_last(self, topic, source, type)

    async def copied(self, stream: Stream, topic: str) -> int:
        return await self._asked(lambda: self._log.copied(stream, topic))

    async def check(self, stream: Stream, sequence: int, time: int) -> None:
        await self._asked(lambda: self._log.check(stream, sequence, time))

    async def sources(self, topic: str) -> list[str]:
        return await self._asked(lambda: self._log.sources(topic))

    async def last(self, stream: Stream, only: Only | None = None) -> int:
        return await self._asked(lambda: self._log.last(stream, only))

    async def state(self, stream: Stream) -> StreamState:
        return await self._asked(lambda: self._log.state(stream))

    async def count(self, stream: Stream, after: int, topic: str) -> int:
        return await self._asked(lambda: self._log.count(stream, after, topic))

    async def trim(self, stream: Stream, first: int) -> None:
        await self._asked(lambda: self._log.trim(stream, first))

    async def before(self, stream: Stream, time: int) -> int:
        return await self._asked(lambda: self._log.before(stream, time))

    async def get(self, table: str, key: str) -> TableEntry | None:
        return await self._asked(lambda: self._log.get(table, key))

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        asked = 0

        async def ask() -> int:
            nonlocal asked
            asked += 1
            try:
                return await self._log.put(table, key, value, revision)
            except Conflict:
                found = await self._log.get(table, key)
                if found is not None and asked > 1 and found.value == value:
                    return found.revision
                if (0 if found is None else found.revision) == revision:  # rejected, and yet nothing has changed
                    raise Unavailable("another attempt is under way") from None
                if found is not None and revision is not None and found.revision < revision:
                    raise Unavailable("a leader that is cut off answers from the past") from None
                raise

        return await self._asked(ask)

    async def revision_of(self, table: str, key: str) -> int:
        return await self._asked(lambda: self._log.revision_of(table, key))

    async def remove(self, table: str, key: str, revision: int | None = None) -> None:
        await self._asked(lambda: self._log.remove(table, key, revision))

    async def keys(self, table: str) -> list[str]:
        return await self._asked(lambda: self._log.keys(table))

    async def put_object(self, store: str, name: str, value: bytes) -> None:
        await self._asked(lambda: self._log.put_object(store, name, value))

    async def get_object(self, store: str, name: str) -> bytes | None:
        return await self._asked(lambda: self._log.get_object(store, name))

    async def remove_object(self, store: str, name: str) -> None:
        await self._asked(lambda: self._log.remove_object(store, name))

    async def objects(self, store: str) -> list[str]:
        return await self._asked(lambda: self._log.objects(store))

    async def now(self, table: str) -> int:
        return await self._asked(lambda: self._log.now(table))

    async def merged(self) -> list[Stream]:
        return await self._asked(self._log.merged)

    async def behind(self) -> list[MergeLag]:
        return await self._asked(self._log.behind)

    async def remove_stream(self, stream: Stream) -> None:
        await self._asked(lambda: self._log.remove_stream(stream))

    async def close(self) -> None:
        await self._log.close()
