"""The interface of a log, which every implementation provides.

A stream holds blocks in one order, numbered from 1. There is one stream per topic, to which publishers append, and there are
merged streams of several topics, which copy their blocks as they arrive; the log fixes the order of a merged stream, once.
Beside the streams a log has tables (small values under a key, with a revision to compare) and objects (large values under a
name).

Implementations guarantee: what `append` and `put` have returned is not lost; readers of a stream see the same blocks under the
same sequences. They do not guarantee that an append whose answer was lost was not stored: see `Conflict`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from fairlead.errors import LogError
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import Only


class Conflict(Exception):
    """The value to change is not the expected one: another client has changed it, or an earlier attempt did."""


class Unavailable(Exception):
    """No answer in time: the operation may have succeeded or not. Repeating it is safe, and may help. `refused`: why the server
    does not let this client in any more, if it does not."""

    def __init__(self, why: str, refused: str = "") -> None:
        super().__init__(why)
        self.refused = refused


def no_answer(error: Unavailable, fix: str) -> LogError:
    """After as many attempts as there is patience for."""
    if error.refused:
        problem = f"the server does not let this client in any more: {error.refused}"
        return LogError("N002", problem, "ask who changed the rights of this user, or connect as another one")
    return LogError("N001", f"the server does not answer: {error}", fix)


class Trimmed(Exception):
    """The blocks after `after` have been trimmed: the stream begins with the sequence `first` now."""

    def __init__(self, stream: Stream, after: int, first: int) -> None:
        super().__init__(f"{stream.name} begins with {first}")
        self.stream, self.after, self.first = stream, after, first


class Stored(NamedTuple):
    """A block in a stream. `time`: when it was stored there, in microseconds since 1970. `merged`: its time in the one order of
    several streams, if it is read so: no block after it in its stream has an earlier one."""

    sequence: int
    time: int
    block: Block
    merged: int | None = None

    @property
    def order_time(self) -> int:
        return self.time if self.merged is None else self.merged


class TableEntry(NamedTuple):
    """`time`: when it was stored, by the clock of the log, in microseconds since 1970. `after`: the revision that the log
    compared with the last one of the key before it stored this one; None if it compared none."""

    value: bytes
    revision: int
    time: int = 0
    after: int | None = None


class Stream(NamedTuple):
    """`made` distinguishes a stream from an earlier one of the same name, whose sequences mean nothing here."""

    name: str
    made: str


class StreamState(NamedTuple):
    """The extent of a stream: the sequences of its first and last block (if all were trimmed, `first` is one more than `last`),
    and the bytes that it takes."""

    first: int
    last: int
    bytes: int


class MergeLag(NamedTuple):
    """A merged stream, its topics, and how many blocks of its sources it has not copied yet."""

    stream: str
    topics: tuple[str, ...]
    blocks: int


class Log(Protocol):
    bytes_max: int
    """The largest payload of a block."""
    owner: str
    """The word for the user of this client in keys that only it may write; empty if it has none."""

    async def open_topics(self, topics: Sequence[str]) -> Stream:
        """The stream of a topic, or the merged stream of several, created on first use."""
        ...

    async def append(self, block: Block, after: int) -> int:
        """Store a block in the stream of its topic, if `after` is the sequence of the last block of its source there, of any
        type (0: none). Raises Conflict, Unavailable, LogError."""
        ...

    async def last_of(self, topic: str, source: str | None, type: str | None = None) -> Stored | None:
        """The last block of a source, or of any, in the stream of a topic: of a type, or of any. It may be a rejected one, in
        the place of a message that is no block: an append has to name that, too."""
        ...

    async def last_block_of(self, topic: str, source: str, type: str | None = None) -> Stored | None:
        """The same, without rejected blocks."""
        ...

    async def copied(self, stream: Stream, topic: str) -> int:
        """The sequence in a topic of the last block that a merged stream has copied from it; 0 if there is none."""
        ...

    async def sources(self, topic: str) -> list[str]:
        """The sources of a topic's events, sorted by name."""
        ...

    def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        """The blocks after the sequence `after`, and new blocks as they arrive, without end; several at a time if available.
        With `only`, the blocks that pass the filter. Raises LogError if the stream is not the one that was read any more, or
        blocks of it were removed (stream_health.py), Trimmed if its first blocks were."""
        ...

    def heads(self, stream: Stream, after: int, last: int) -> AsyncIterator[Sequence[Stored]]:
        """The blocks after `after`, up to and including `last`, without their payloads."""
        ...

    async def state(self, stream: Stream) -> StreamState: ...

    async def count(self, stream: Stream, after: int, topic: str) -> int:
        """The number of blocks of a topic after the sequence `after`."""
        ...

    async def trim(self, stream: Stream, first: int) -> None:
        """Removes all blocks before the sequence `first`. The sequences of the others, and of new blocks, do not change."""
        ...

    async def check(self, stream: Stream, sequence: int, time: int) -> None:
        """Raises LogError unless the stream still has the block that was read at this sequence, and stored at this time."""
        ...

    async def last(self, stream: Stream, only: Only | None = None) -> int:
        """The last sequence of the stream, or the last one that passes `only`; 0 if there is none."""
        ...

    async def before(self, stream: Stream, time: int) -> int:
        """The sequence of the last block that was stored before that time (microseconds)."""
        ...

    async def get(self, table: str, key: str) -> TableEntry | None: ...

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        """Returns the new revision. With `revision`, only if that is the current one (0: there is none). Raises Conflict."""
        ...

    async def revision_of(self, table: str, key: str) -> int:
        """The revision of the last change of a key, its removal included; 0 if there is none. `put` accepts it, too."""
        ...

    async def remove(self, table: str, key: str, revision: int | None = None) -> None:
        """With `revision`, only if that is the current one. Raises Conflict."""
        ...

    async def keys(self, table: str) -> list[str]:
        """Sorted by name; may include keys of removed values."""
        ...

    async def put_object(self, store: str, name: str, value: bytes) -> None: ...
    async def get_object(self, store: str, name: str) -> bytes | None: ...
    async def remove_object(self, store: str, name: str) -> None: ...

    async def objects(self, store: str) -> list[str]:
        """Sorted by name."""
        ...

    async def now(self, table: str) -> int:
        """The time by the clock that stamps the entries of a table, in microseconds since 1970."""
        ...

    async def merged(self) -> list[Stream]:
        """The existing merged streams."""
        ...

    async def behind(self) -> list[MergeLag]:
        """The lag of the merged streams; streams without lag may be omitted."""
        ...

    async def remove_stream(self, stream: Stream) -> None: ...
    async def close(self) -> None: ...
