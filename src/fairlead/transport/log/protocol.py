"""What a log is, whoever keeps it.

A stream holds blocks in one order, numbered from 1. There is one for each type, which publishers append to, and merged ones,
which take up what their sources hold as it comes; the order of a merged stream is fixed by the log, once. Beside the streams a
log has tables (small values under a key, with a revision to compare) and objects (large values under a name).

Implementations promise: what `append` and `put` have returned is not lost; readers of a stream see the same blocks under the
same sequences. They do not promise that an append whose answer was lost was not stored: see `Conflict`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from fairlead.transport.log.block import Block
from fairlead.transport.log.block_filter import Only


class Conflict(Exception):
    """What was to be changed is not as it was expected to be: another has changed it, or an attempt before did."""


class Unavailable(Exception):
    """No answer in time: it may have been done or not. Asking again is safe, and may help."""


class Stored(NamedTuple):
    """A block in a stream. `time`: when it was stored there, in microseconds since 1970."""

    sequence: int
    time: int
    block: Block


class TableEntry(NamedTuple):
    value: bytes
    revision: int


class Stream(NamedTuple):
    """`made` tells a stream from another one of the same name that was there before, whose sequences mean nothing here."""

    name: str
    made: str


class MergeLag(NamedTuple):
    """A merged stream, its types, and how many blocks its sources hold that it has not taken up."""

    stream: str
    types: tuple[str, ...]
    blocks: int


class Log(Protocol):
    bytes_max: int
    """The largest payload of a block."""

    async def open_type(self, name: str) -> Stream:
        """The stream of a type, made if it is not there."""
        ...

    async def open_merged(self, types: Sequence[str]) -> Stream:
        """The stream of several types and heartbeats, made if it is not there."""
        ...

    async def append(self, block: Block, after: int) -> int:
        """Store a block in the stream of its type, if `after` is the sequence of the last one of its source there (0: none).
        Raises Conflict, Unavailable, LogError."""
        ...

    async def last_of(self, type: str, source: str) -> Stored | None:
        """The last block of a source in the stream of a type."""
        ...

    async def sources(self, type: str) -> list[str]:
        """Who has published events of a type, in the order of names."""
        ...

    def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        """What stands behind the sequence `after`, and what comes, for ever; several blocks at a time where there are. With
        `only`, what that wants."""
        ...

    async def last(self, stream: Stream, only: Only | None = None) -> int:
        """The last sequence of the stream, or the last one that `only` wants; 0 if there is none."""
        ...

    async def before(self, stream: Stream, time: int) -> int:
        """The sequence of the last block that was stored before that time (microseconds)."""
        ...

    async def get(self, table: str, key: str) -> TableEntry | None: ...

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        """Gives the new revision. With `revision`, only if that is the present one (0: there is none). Raises Conflict."""
        ...

    async def remove(self, table: str, key: str) -> None: ...

    async def keys(self, table: str) -> list[str]:
        """In the order of names; those of removed values may be among them."""
        ...

    async def put_object(self, store: str, name: str, value: bytes) -> None: ...
    async def get_object(self, store: str, name: str) -> bytes | None: ...
    async def remove_object(self, store: str, name: str) -> None: ...

    async def objects(self, store: str) -> list[str]:
        """In the order of names."""
        ...

    async def merged(self) -> list[Stream]:
        """The merged streams that there are."""
        ...

    async def behind(self) -> list[MergeLag]:
        """How far the merged streams are behind what they are merged of; those that are not may be left out."""
        ...

    async def remove_stream(self, stream: Stream) -> None: ...
    async def close(self) -> None: ...
