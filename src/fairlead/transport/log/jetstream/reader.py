"""Reads a stream of a NATS server by a consumer, in order, from a sequence, without end.

A consumer without acknowledgements sends blocks on request. The client keeps the position itself, so after any doubt about the
server (a restart, a new leader, a missing message) a new consumer begins after the last block received.

    1. request more when the received blocks are read and less than half of the last request is outstanding: a slow reader asks
       for less
    2. the server sends blocks, and a heartbeat every few seconds
    3. anything out of order, an ended request or silence: begin again, after the last block
    4. sequences that are missing are those of other subjects, or of blocks that were trimmed before they were sent. A reader
       that waits for new blocks is sent each at once; one that has not caught up compares with the first block that is left

Clients that may not make consumers read in another way (direct_reader.py); stream_reads.py chooses.

Takes: a connection, a stream and a sequence. Gives: lists of stored blocks. Never: skips, repeats or reorders.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from fairlead.dataclass import dataclass
from fairlead.errors import LogError
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.jetstream.failures import Refusals
from fairlead.transport.log.jetstream.reports import report_of
from fairlead.transport.log.protocol import Stream, Trimmed
from fairlead.transport.log.stream_health import problem_of

ASK = 512
BUDGET, ASK_BYTES_MIN, ASK_BYTES_MAX = 24_000_000, 1_100_000, 4_000_000
"""Blocks and bytes of a request; each reader may have two outstanding. A server closes a connection with 64 MB of pending data,
so the readers of a connection share less than that. One block has up to a megabyte."""
LIFE_SECONDS = 2.0
SILENCE_SECONDS = 5.0
ENDED = ("Batch Completed", "Message Size Exceeds MaxBytes")
"""The server's status of a completed request; with any other, the consumer is gone or has moved."""


Parse = Callable[[Mapping[str, str] | None, bytes, str, str], Block]
"""The block of a message, by its headers, its bytes, its subject and its place."""
Item = TypeVar("Item")
Take = Callable[[Msg, int, int], Item]
"""What is read of a message, with its sequence and the time at which it was stored (microseconds)."""


@dataclass(frozen=True, eq=False)
class Connection:
    """What readers of one connection share."""

    client: Client
    js: JetStreamContext
    readers: Readers
    refusals: Refusals


class Again(Exception):
    """The consumer is unusable; begin again."""


class Readers:
    """All readers of one connection."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self.active: set[StreamReading[Any]] = set()
        self.direct: set[str] = set()
        """The streams of which the client may make no consumers."""

    @property
    def bytes_each(self) -> int:
        return min(ASK_BYTES_MAX, max(ASK_BYTES_MIN, BUDGET // (2 * max(1, len(self.active)))))

    async def reconnected(self) -> None:
        """Their requests are lost: they begin again at once."""
        self._refusals.let_in()
        for each in self.active:
            each.begin_again()


class StreamReading(ABC, Generic[Item]):
    """A way to read a stream, from its opening to the first doubt. `after`, `time`: of the last block received."""

    def __init__(
        self,
        way: Connection,
        stream: Stream,
        after: int,
        time: int | None,
        subjects: list[str] | None,
        take: Take[Item],
        headers_only: bool,
    ) -> None:
        self._take_one, self._headers_only = take, headers_only
        self._client, self._js, self._readers, self._refusals = way.client, way.js, way.readers, way.refusals
        self._stream, self._subjects = stream, subjects
        self._lost = False
        self.after, self.time = after, time
        self._came: deque[Msg] = deque()
        self._event = asyncio.Event()
        self._inbox = ""

    def begin_again(self) -> None:
        self._lost = True
        self._event.set()

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def blocks(self) -> list[Item]:
        """The received blocks, at least one. Raises Again."""

    @abstractmethod
    async def close(self) -> None: ...

    async def problem(self) -> tuple[LogError | None, bool]:
        """Why the stream is not the one that was read, and whether the answer may be from the past."""
        report, clustered = await report_of(self._client, self._js, self._stream, self.after, self.time)
        if report.made == self._stream.made and report.first > self.after + 1:
            raise Trimmed(self._stream, self.after, report.first)
        return problem_of(self._stream, self.after, self.time, report), clustered


class StreamConsumer(StreamReading[Item]):
    """One consumer and the blocks received from it."""

    _delivered = _pending = _to_come = 0
    _next = ""

    async def open(self) -> None:
        self._readers.active.add(self)
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self.after + 1,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=30.0,
            mem_storage=True,
            num_replicas=1,
            filter_subjects=self._subjects,
            headers_only=self._headers_only or None,
        )
        asked = self._js.add_consumer(self._stream.name, config)
        made = await self._refusals.heeded(asked, f"$JS.API.CONSUMER.CREATE.{self._stream.name}")
        self._name = made.name
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream.name}.{made.name}"
        self._inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(
            self._inbox, cb=self._take, pending_msgs_limit=-1, pending_bytes_limit=-1
        )

    async def close(self) -> None:
        self._readers.active.discard(self)
        if self._inbox and self._client.is_connected:
            await self._subscription.unsubscribe()
            await self._client.publish(f"$JS.API.CONSUMER.DELETE.{self._stream.name}.{self._name}")

    async def _take(self, message: Msg) -> None:
        self._came.append(message)
        self._event.set()

    async def _ask(self) -> None:
        if self._to_come <= ASK // 2:  # 1
            wanted = {
                "batch": ASK,
                "max_bytes": self._readers.bytes_each,
                "expires": int(30e9),
                "idle_heartbeat": int(LIFE_SECONDS * 1e9),
            }
            await self._client.publish(self._next, json.dumps(wanted).encode(), reply=self._inbox)
            self._to_come += ASK

    async def blocks(self) -> list[Item]:
        while True:
            await self._ask()
            if not self._came:
                self._event.clear()
                try:
                    async with asyncio.timeout(SILENCE_SECONDS):
                        await self._event.wait()  # 2
                except TimeoutError:
                    raise Again("silence") from None
            if self._lost:
                raise Again("a new connection")  # 3
            found, before, lagged = [], self.after, self._pending > 0
            while self._came:
                message = self._came.popleft()
                if message.reply.startswith("$JS.ACK."):
                    found.append(self._stored(message))
                else:
                    self._status(message)
            if found:
                if (lagged or self._pending) and self.after - before > len(found):
                    await self._require_untrimmed(before)  # 4
                return found

    async def _require_untrimmed(self, after: int) -> None:
        first = (await self._js.stream_info(self._stream.name)).state.first_seq
        if first > after + 1:
            raise Trimmed(self._stream, after, first)

    def _stored(self, message: Msg) -> Item:
        words = message.reply.split(".")
        place = -5 if len(words) in (9, 11) else -6  # the newer form has one more word at its end
        sequence, number, nanoseconds, pending = (int(each) for each in words[place + 1 : place + 5 or None])
        if number != self._delivered + 1 or sequence <= self.after:
            raise Again("a block did not come")  # 3
        found = self._take_one(message, sequence, nanoseconds // 1000)
        self._delivered, self.after, self.time, self._pending = number, sequence, nanoseconds // 1000, pending
        self._to_come -= 1
        return found

    def _status(self, message: Msg) -> None:
        """A heartbeat, or the end of a request; what was not sent has to be requested again."""
        told = message.headers or {}
        status = told.get("Status", "")
        if status in ("100", ""):
            return
        if status not in ("404", "408") and told.get("Description") not in ENDED:
            raise Again(status)  # 3
        self._to_come = max(0, self._to_come - int(told.get("Nats-Pending-Messages", ASK)))
