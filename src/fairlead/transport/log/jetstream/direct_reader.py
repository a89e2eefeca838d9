"""Reads a stream of a NATS server without a consumer: by requests for the blocks from a sequence on.

A client that may make a consumer may have the server send stored messages to any subject of the account, its API included. So
users with rights of their own (runtime/rights/) make none. They ask for blocks directly; the server answers with all that it
has, up to a size, and says that this was all.

    1. ask for the blocks after the last one, and receive them up to the end of the answer
    2. the stream is still the one that was opened, and no block is missing: it was not deleted and created again in between
    3. ask for the next ones at once if there are more, before these are handed over
    4. no more: the server announces each stored block (names.wake_subjects). Streams of earlier releases are not announced, and
       a server of a cluster may announce a block that another has not yet: look again, after pauses that grow

All blocks of the stream are sent, and filtered here: the server filters such requests by one subject only.

Takes: a connection, a stream and a sequence. Gives: lists of stored blocks. Never: skips, repeats or reorders; makes a
consumer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from nats.aio.msg import Msg
from nats.js.api import RawStreamMsg

from fairlead.model.events.values import microseconds
from fairlead.transport.log.jetstream.connection import AnswerHeaders
from fairlead.transport.log.jetstream.reader import (
    ASK,
    SILENCE_SECONDS,
    Again,
    Connection,
    Item,
    StreamReading,
)
from fairlead.transport.log.jetstream.reports import made_of
from fairlead.transport.log.names import wake_subjects
from fairlead.transport.log.protocol import Trimmed

DIRECT = "$JS.API.DIRECT.GET"
ANSWER_SECONDS = 5.0
PAUSE_SECONDS, UNANNOUNCED_SECONDS_MAX, ANNOUNCED_SECONDS_MAX = 0.005, 0.1, 2.0
"""Between two looks at a stream without new blocks: the first pause, and the longest, if blocks are announced and if not."""
CHECK_SECONDS = 1.0
"""How often a quiet stream is checked."""
END, NOTHING = "204", "404"


class DirectReading(StreamReading[Item]):
    """Direct requests, one after the other."""

    async def open(self) -> None:
        self._readers.active.add(self)
        self._wanted = None if self._subjects is None else subject_pattern(self._subjects)
        self._number = self._asked = 0
        self._pause, self._is_announced, self._checked = PAUSE_SECONDS, False, 0.0
        self._announced = asyncio.Event()
        self._inbox = self._client.new_inbox()
        self._subscriptions = [
            await self._client.subscribe(f"{self._inbox}.*", cb=self._take, pending_msgs_limit=-1, pending_bytes_limit=-1)
        ]
        await self._ask()
        await self._refusals.heeded(self._arrived(), f"{DIRECT}.{self._stream.name}")
        self._subscriptions.append(await self._client.subscribe(wake_subjects(self._stream.name), cb=self._wake))

    async def close(self) -> None:
        self._readers.active.discard(self)
        if self._inbox and self._client.is_connected:
            for each in self._subscriptions:
                await each.unsubscribe()

    def begin_again(self) -> None:
        super().begin_again()
        self._announced.set()

    async def _take(self, message: Msg) -> None:
        if message.subject.endswith(f".{self._number}"):  # others answer a request that was given up
            self._came.append(message)
            self._event.set()

    async def _wake(self, _: Msg) -> None:
        self._is_announced, self._pause = True, PAUSE_SECONDS
        self._announced.set()

    async def _ask(self) -> None:
        self._announced.clear()
        self._number, self._asked = self._number + 1, self.after + 1
        wanted = {"seq": self._asked, "batch": ASK, "max_bytes": self._readers.bytes_each}
        body, reply = json.dumps(wanted).encode(), f"{self._inbox}.{self._number}"
        await self._client.publish(f"{DIRECT}.{self._stream.name}", body, reply=reply)

    async def _arrived(self) -> None:
        while not self._came:
            self._event.clear()
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    await self._event.wait()
            except TimeoutError:
                raise Again("silence") from None
            if self._lost:
                raise Again("a new connection")

    async def blocks(self) -> list[Item]:
        while True:
            if self._asked != self.after + 1:
                await self._ask()
            found, has_more = await self._answer()  # 1
            if not found:
                await self._quiet()
                self._asked = 0
                continue
            before = self.after
            self.after, self.time, self._pause = found[-1][1], found[-1][2], PAUSE_SECONDS
            await self._check(before, [sequence for _, sequence, _ in found])  # 2
            if has_more:
                await self._ask()  # 3
            taken = [self._take_one(*each) for each in found if self._wanted is None or self._wanted.fullmatch(each[0].subject)]
            if taken:
                return taken

    async def _answer(self) -> tuple[list[tuple[Msg, int, int]], bool]:
        """The messages of an answer, and whether there are more."""
        found: list[tuple[Msg, int, int]] = []
        while True:
            await self._arrived()
            while self._came:
                message = self._came.popleft()
                told = message.headers or {}
                if isinstance(told, AnswerHeaders):
                    data = b"" if self._headers_only else message.data
                    stored = Msg(self._client, told.subject, "", data, told.stored)
                    found.append((stored, told.sequence, microseconds_of(told.time)))
                elif told.get("Status") == END:
                    if found and int(told.get("Nats-Last-Sequence", 0)) != found[-1][1]:
                        raise Again("a block did not come")
                    return found, int(told.get("Nats-Num-Pending", 0)) > 0
                elif told.get("Status") == NOTHING:
                    return [], False
                else:
                    raise Again(told.get("Status", "no answer"))

    async def _check(self, after: int, sequences: Sequence[int]) -> None:
        """Raises Trimmed; Again if something else is wrong, which is then looked for before the stream is read again."""
        told = await self._js.stream_info(self._stream.name)
        self._checked = asyncio.get_running_loop().time()
        if (self._stream.made and made_of(told) != self._stream.made) or told.state.last_seq < self.after:
            raise Again("another stream")
        if list(sequences) != list(range(after + 1, after + 1 + len(sequences))) or (
            not sequences and told.state.first_seq > after + 1
        ):
            self.after = after
            if told.state.first_seq > after + 1:
                raise Trimmed(self._stream, after, told.state.first_seq)
            raise Again("blocks are missing")

    async def _quiet(self) -> None:
        """Returns when there may be a new block."""
        if asyncio.get_running_loop().time() > self._checked + CHECK_SECONDS:
            await self._check(self.after, ())
        pause = self._pause
        self._pause = min(2 * pause, ANNOUNCED_SECONDS_MAX if self._is_announced else UNANNOUNCED_SECONDS_MAX)
        try:
            async with asyncio.timeout(pause):
                await self._announced.wait()  # 4
        except TimeoutError:
            return
        if self._lost:
            raise Again("a new connection")


def subject_pattern(subjects: Sequence[str]) -> re.Pattern[str]:
    """Of subjects with `*` for one word and `>` for all that follow."""
    words = {"*": r"[^.]+", ">": r".+"}
    return re.compile("|".join(r"\.".join(words.get(word, re.escape(word)) for word in each.split(".")) for each in subjects))


def microseconds_of(text: str) -> int:
    return microseconds(datetime.fromisoformat(text))


async def last_direct(way: Connection, stream: str, subjects: str) -> RawStreamMsg | None:
    """The last message under some subjects, for a client that may ask for these only."""
    asked = way.client.request(f"{DIRECT}.{stream}.{subjects}", b"", timeout=ANSWER_SECONDS)
    answer = await way.refusals.heeded(asked, f"{DIRECT}.{stream}")
    told = answer.headers or {}
    if not isinstance(told, AnswerHeaders):
        return None
    at = datetime.fromisoformat(told.time)
    return RawStreamMsg(told.subject, told.sequence, answer.data, headers=told.stored, stream=stream, time=at)


async def first_since(way: Connection, stream: str, time: int) -> int | None:
    """The sequence of the first message that was stored at that time (microseconds) or later, if there is one."""
    at = datetime.fromtimestamp(time // 1_000_000, UTC).replace(microsecond=time % 1_000_000)
    body = json.dumps({"start_time": at.isoformat(), "next_by_subj": ">"}).encode()
    answer = await way.refusals.heeded(
        way.client.request(f"{DIRECT}.{stream}", body, timeout=ANSWER_SECONDS), f"{DIRECT}.{stream}"
    )
    told = answer.headers or {}
    return told.sequence if isinstance(told, AnswerHeaders) else None
