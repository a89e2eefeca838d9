"""Sources that number their events themselves, with gaps, repeats and out of order: what they are answered does not depend on
restarts of the sender or the log, nor on what was trimmed meanwhile.

Every seed is a series of requests. One log, that is never trimmed and whose sender never restarts, gives the answers that are
due; that log is compared with the plain set of stored numbers.
"""

from __future__ import annotations

import asyncio
import copy
import random
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pyarrow as pa
import pytest

from fairlead.errors import DataError, LogError
from fairlead.language.checking.topics import KeepPolicy
from fairlead.runtime.live.retention import put_keep, retain
from fairlead.runtime.numbered import Numbered
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.file_log import FileLog
from fairlead.transport.log.jetstream.log import connect
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Log, Stored
from fairlead.transport.log.trims import TrimmedHead, from_bytes, to_bytes
from tests.marks import sample_size
from tests.transport.log.logs import KINDS, run
from tests.transport.log.test_logs import taken

TOPIC, TYPES, SOURCES = "main", ("A", "B"), ("s", "t")
Requests = list[tuple[str, str, list[int]]]
Answers = list[int | str]
REFUSED = "D036"


def requests_of(rolls: random.Random) -> Requests:
    """Numbers that mostly rise, skip some, come again, and come out of order."""
    reached = {(type, source): 0 for type in TYPES for source in SOURCES}
    found: Requests = []
    for _ in range(rolls.randrange(4, 16)):
        lane = rolls.choice([*reached])
        low = max(0, reached[lane] + rolls.choice([0, 0, 0, 1, 5, -4, -12, -40]))
        numbers = sorted(rolls.sample(range(low, low + 30), rolls.randrange(1, 25)))
        reached[lane] = max(reached[lane], numbers[-1] + 1)
        found.append((*lane, numbers))
    return found


class Senders:
    """One for each type and source, as a gateway has."""

    def __init__(self, log: Log, patience: float = 10.0) -> None:
        self._each = {(type, source): Numbered(log, TOPIC, type, source, patience) for type in TYPES for source in SOURCES}

    async def answer(self, type: str, source: str, numbers: list[int]) -> int | str:
        batch = pa.record_batch({"x": pa.array(numbers, pa.int64())})
        try:
            return await self._each[type, source].store(batch, numbers, "schema")
        except DataError as error:
            return error.code


async def due(requests: Requests) -> Answers:
    senders, stored, answers = Senders(PatientLog(MemoryLog(), 10.0)), dict[tuple[str, str], set[int]](), Answers()
    for type, source, numbers in requests:
        known = stored.setdefault((type, source), set())
        answers.append(await senders.answer(type, source, numbers))
        if answers[-1] != REFUSED:
            assert answers[-1] == len({*numbers} - known)
            known |= {*numbers}
    return answers


class ReopenedLog:
    """A log whose connection, or file, is closed and opened again."""

    def __init__(self, kind: str, folder: str, url: str | None) -> None:
        self._kind, self._folder, self._url = kind, folder, url
        self._memory = MemoryLog()
        self._open: Any = None

    async def opened(self) -> PatientLog:
        await self.close()
        if self._kind == "memory":
            self._open = self._memory
        elif self._kind == "file":
            self._open = FileLog(self._folder)
        else:
            assert self._url is not None
            self._open = await connect(self._url, Credentials(), 1)
        return PatientLog(self._open, 10.0)

    async def close(self) -> None:
        if self._open is not None:
            await self._open.close()
            self._open = None


@asynccontextmanager
async def reopened_log(kind: str) -> AsyncIterator[ReopenedLog]:
    with tempfile.TemporaryDirectory(prefix="fairlead-log-") as folder:
        if kind != "server":
            log = ReopenedLog(kind, folder, None)
            yield log
            await log.close()
            return
        with Server(folder, durable=False) as server:
            log = ReopenedLog(kind, folder, server.url)
            yield log
            await log.close()


async def answers_of(kind: str, requests: Requests, rolls: random.Random) -> Answers:
    """With restarts, and trimmed in between: nothing, some or all blocks."""
    answers = Answers()
    async with reopened_log(kind) as again:
        log = await again.opened()
        senders = Senders(log)
        for each in requests:
            if rolls.random() < 0.4:
                await put_keep(log, TOPIC, KeepPolicy(None, rolls.choice([0, 0, 2_000, 6_000])))
                await retain(log, [TOPIC], apply=True, read=False)
            if rolls.random() < 0.5:
                log = await again.opened()
                senders = Senders(log)
            answers.append(await senders.answer(*each))
    return answers


@pytest.mark.parametrize("kind", KINDS)
def test_answers_depend_on_what_was_sent_alone(kind: str) -> None:
    async def work() -> None:
        for seed in range(6 if kind == "server" else sample_size(120)):
            requests = requests_of(random.Random(seed))
            assert await answers_of(kind, requests, random.Random(seed)) == await due(requests), f"seed {seed}"

    run(work)


class RestoredLog:
    """A log that is replaced by a copy of what it was, while its clients run."""

    def __init__(self) -> None:
        self.now = MemoryLog()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)


async def acknowledged(senders: Senders, request: tuple[str, str, list[int]]) -> int | str:
    """The answer, after the error that says that blocks are gone: once."""
    with suppress(LogError):
        return await senders.answer(*request)
    return await senders.answer(*request)


@pytest.mark.parametrize("emptied", [False, True], ids=["an older copy", "an empty log"])
def test_what_a_restored_log_lacks_is_not_said_to_be_stored(emptied: bool) -> None:
    """Its clients send again what they have sent since the backup; the senders have run all the time."""

    async def work() -> None:
        lacked = 0
        for seed in range(sample_size(120)):
            rolls, log = random.Random(seed), RestoredLog()
            requests = requests_of(rolls)
            senders, half = Senders(log, patience=0.0), 0 if emptied else len(requests) // 2
            for each in requests[:half]:
                await senders.answer(*each)
            backup = copy.deepcopy(log.now)
            first = [await senders.answer(*each) for each in requests[half:]]
            log.now = MemoryLog() if emptied else backup
            again = [await acknowledged(senders, each) for each in requests[half:]]
            assert again == first, f"seed {seed}"
            lacked += sum(each for each in again if isinstance(each, int))
        assert lacked > 100

    run(work)


def test_the_requests_have_repeats_gaps_and_refusals() -> None:
    answers = [each for seed in range(120) for each in asyncio.run(due(requests_of(random.Random(seed))))]
    assert answers.count(REFUSED) > 5
    assert answers.count(0) > 3


def test_heads_of_earlier_releases_are_read() -> None:
    """They did not say which numbers were stored."""
    head = TrimmedHead("A", 3, 17, 5, "", 9, 1_000, (9, 9, 9, 9))
    assert b'"A": ["A", 3, 17, 5, "", 9, 1000, [9, 9, 9, 9]]' in to_bytes({"A": head})
    assert from_bytes(to_bytes({"A": head})) == {"A": head}


class Overtaken(MemoryLog):
    """Between two requests of whoever asks, `other` stores what it has to."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left, self.other = at, list[Any]()

    async def _between(self) -> None:
        self.left -= 1
        if self.left == 0 and self.other:
            await self.other.pop()

    async def last_of(self, topic: str, source: str | None, type: str | None = None) -> Stored | None:
        await self._between()
        return await super().last_of(topic, source, type)

    async def last_block_of(self, topic: str, source: str, type: str | None = None) -> Stored | None:
        await self._between()
        return await super().last_block_of(topic, source, type)

    async def append(self, block: Block, after: int) -> int:
        await self._between()
        return await super().append(block, after)


@pytest.mark.parametrize("at", range(1, 6))
def test_events_are_stored_once_whenever_another_process_stores_them_meanwhile(at: int) -> None:
    async def work() -> None:
        log, batch = Overtaken(at), pa.record_batch({"x": pa.array([1, 2], pa.int64())})
        one, two = (Numbered(PatientLog(log, 10.0), TOPIC, "A", "s", 10.0) for _ in range(2))
        log.other.append(two.store(batch, [1, 2], "schema"))
        await one.store(batch, [1, 2], "schema")
        for each in log.other:
            each.close()
        stream = await log.open_topics([TOPIC])
        stored = await taken(log, stream, await log.last(stream))
        assert [(each.block.number, each.block.count) for each in stored] == [(0, 2)]

    run(work)
