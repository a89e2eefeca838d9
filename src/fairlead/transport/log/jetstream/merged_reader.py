"""Reads a merged stream, and rejects in it what readers of its topics reject.

The server copies the messages of the topics, without the condition by which a block is known (predecessor.py). So each topic is
read beside the merged stream, without payloads, filtered alike: the messages are the same, in the same order. Each message of
the merged stream is compared with the next one of its topic, so a reader also notices if the server has left out or repeated
one (N023). Where a topic begins, the first message says: the server has noted on it of which stream it is a copy.

    1. read the next messages of the merged stream
    2. of each, the next message of its topic, which says whether it is a block
    3. a message with an id may be missing in the merged stream, which drops repeated ids; it is no block anywhere
    4. the topic has been trimmed: what became of such messages is recorded (trims.py)

Takes: a connection, a merged stream and a sequence. Gives: lists of stored blocks. Never: accepts what a topic rejects.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol, TypeVar

from nats.aio.msg import Msg

from fairlead.dataclass import dataclass
from fairlead.errors import DataError, LogError
from fairlead.transport.log.blocks.block import block_of, rejected_block
from fairlead.transport.log.jetstream.predecessor import COPY_OF, MESSAGE_ID
from fairlead.transport.log.jetstream.reader import Connection, Parse
from fairlead.transport.log.jetstream.stream_reads import parsed, read
from fairlead.transport.log.names import stream_of_subject
from fairlead.transport.log.protocol import Stored, Stream, Trimmed
from fairlead.transport.log.stream_health import removed_blocks
from fairlead.transport.log.tasks import ended, unreported
from fairlead.transport.log.trims import TrimRecord

LOGGER = logging.getLogger("fairlead")
Answer = TypeVar("Answer")
QUEUED_MAX = 16
"""Answers of a topic that wait, of up to 512 messages each."""

UNNAMED = "D037"
"""The code of messages that are no blocks by the rule of topics."""
ABOUT = ("Fl-Number", "Fl-Sequence", "Fl-Count", "Fl-Writer")


@dataclass(frozen=True, eq=False)
class CopiedMessage:
    """A message of the merged stream. `origin`: the stream and the sequence of the message that was copied."""

    stored: Stored
    subject: str
    about: tuple[str | None, ...]
    origin: tuple[str, int]


@dataclass(frozen=True, eq=False)
class Original:
    """A message of a topic, without its payload. `code`: why it is not a block; empty if it is one. `begins`: its block, if
    that names none before it."""

    subject: str
    about: tuple[str | None, ...]
    code: str
    has_id: bool
    begins: Stored | None = None


class Originals:
    """The messages of one topic, from the one that the first copy names. They are received while none is asked for, so that the
    server does not forget the reader of a quiet topic."""

    def __init__(self, reading: AsyncGenerator[Sequence[Original], None], failed: asyncio.Future[None]) -> None:
        self._queue: asyncio.Queue[Sequence[Original] | Trimmed] = asyncio.Queue(QUEUED_MAX)
        self._task = asyncio.create_task(self._receive(reading))
        self._came, self._failed = deque[Original](), failed

    async def _receive(self, reading: AsyncGenerator[Sequence[Original], None]) -> None:
        async with aclosing(reading):
            try:
                async for some in reading:
                    await self._queue.put(some)
            except Trimmed as trimmed:
                await self._queue.put(trimmed)
            except Exception as error:
                if not self._failed.done():
                    self._failed.set_exception(error)

    async def next_of(self, copy: CopiedMessage) -> Original:
        while True:
            while not self._came:
                some = await unless_failed(self._queue.get(), self._failed)  # 2
                if isinstance(some, Trimmed):
                    raise some
                self._came.extend(some)
            found = self._came.popleft()
            if (found.subject, found.about) == (copy.subject, copy.about):
                return found
            if not found.has_id:  # 3
                raise unlike(copy)

    async def close(self) -> None:
        await ended(self._task)


class TopicStreams(Protocol):
    """What a reader of a merged stream asks of its log."""

    async def topic_of(self, name: str) -> tuple[Stream, Parse]:
        """The stream of a topic, and how its messages are read."""
        ...

    async def record_of(self, stream: str) -> TrimRecord:
        """What trimming has recorded of a merged stream."""
        ...

    async def judged(self, block: Stored) -> Stored:
        """A block of a topic that names none before it, or a rejected one in its place."""
        ...

    async def origin_of(self, stream: str, sequence: int) -> tuple[str, int]:
        """The stream and the sequence from which a message of a merged stream was copied."""
        ...


async def read_merged(
    way: Connection,
    topics: TopicStreams,
    stream: Stream,
    after: int,
    subjects: list[str] | None,
    *,
    headers_only: bool = False,
) -> AsyncGenerator[Sequence[Stored], None]:
    originals: dict[str, Originals] = {}
    record = await topics.record_of(stream.name)
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def beside(copy: CopiedMessage) -> Originals:
        origin = copy.origin
        while origin[0] != stream_of_subject(copy.subject):
            origin = await topics.origin_of(*origin)
        opened, parse = await topics.topic_of(origin[0])
        return Originals(read(way, opened, origin[1] - 1, judging(opened, parse), subjects, headers_only=True), failed)

    async def forget_originals() -> None:
        for one in originals.values():
            await one.close()
        originals.clear()

    async def code_of(copy: CopiedMessage) -> str:
        """Why a copied message is no block; empty if it is one."""
        nonlocal record
        for attempt in (1, 2, 3):
            if copy.stored.sequence <= record.judged:
                return UNNAMED if copy.stored.sequence in record.rejected else ""
            name = stream_of_subject(copy.subject)
            try:
                if name not in originals:
                    originals[name] = await beside(copy)
                found = await originals[name].next_of(copy)
                return found.code or ("" if found.begins is None else (await topics.judged(found.begins)).block.rejected)
            except Trimmed as trimmed:  # 4
                await forget_originals()
                record = await topics.record_of(stream.name)
                if attempt == 3:
                    raise removed_blocks(trimmed.stream, trimmed.after + 1, trimmed.first - 1) from None
        raise unlike(copy)

    try:
        async with aclosing(read(way, stream, after, copying(stream), subjects, headers_only=headers_only)) as reading:
            while True:
                found = []
                for each in await unless_failed(anext(reading), failed):  # 1
                    code = await code_of(each)
                    if code and not each.stored.block.rejected:
                        LOGGER.warning("%s %s %d: skipped by every reader", code, stream.name, each.stored.sequence)
                        found.append(each.stored._replace(block=rejected_block(code, each.subject)))
                    else:
                        found.append(each.stored)
                yield found
    finally:
        if not failed.cancel() and not failed.cancelled():
            failed.exception()  # it is raised already, or nobody waits for it any more
        await forget_originals()


async def unless_failed(wanted: Awaitable[Answer], failed: asyncio.Future[None]) -> Answer:
    """An answer; or the error of a topic, whose stream may be gone while the merged stream is quiet."""
    asked = asyncio.ensure_future(wanted)
    unreported(asked)  # both fail if the connection is closed
    try:
        await asyncio.wait((asked, failed), return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        return await asked
    finally:
        await ended(asked)


def copying(stream: Stream) -> Callable[[Msg, int, int], CopiedMessage]:
    def take(message: Msg, sequence: int, time: int) -> CopiedMessage:
        headers = message.headers or {}
        stored = Stored(sequence, time, parsed(block_of, message, f"{stream.name} {sequence}"))
        return CopiedMessage(stored, message.subject, about(headers), copied_from(headers))

    return take


def judging(stream: Stream, parse: Parse) -> Callable[[Msg, int, int], Original]:
    def take(message: Msg, sequence: int, time: int) -> Original:
        headers, code, begins = message.headers or {}, "", None
        try:
            block = parse(headers, b"", message.subject, f"{stream.name} {sequence}")
            begins = Stored(sequence, time, block) if block.begins else None
        except DataError as error:
            code = error.code
        return Original(message.subject, about(headers), code, MESSAGE_ID in headers, begins)

    return take


def about(headers: Mapping[str, str]) -> tuple[str | None, ...]:
    return tuple(headers.get(name) for name in ABOUT)


def copied_from(headers: Mapping[str, str] | None) -> tuple[str, int]:
    stream, sequence = (headers or {})[COPY_OF].split(" ")[:2]
    return stream, int(sequence)


def unlike(copy: CopiedMessage) -> LogError:
    problem = (
        f"the merged stream has a block of {copy.subject} at sequence {copy.stored.sequence:,} that its topic has not there"
    )
    return LogError("N023", problem, "remove the merged stream with its subscribers, and subscribe again: it is made anew")
