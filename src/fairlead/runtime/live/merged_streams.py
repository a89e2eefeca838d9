"""Streams of several topics, which the server merges: which are in use, where they end now, and which publishers wait.

    Lease     a subscriber holds one on the merged streams that it reads; durable subscribers keep theirs without one
    Throttle  publishers wait for merged streams that are in use and lag behind, because they are slow or full
    end_of    the current end of a stream whose source streams still grow

A merged stream copies the blocks of each topic in their order, with a short delay. It contains everything that is stored now as
soon as it has the block that is the last of each topic now. (That it has as many blocks as the topics have now does not show
this: some of them may have been stored since.)

Takes: a log, topics. Gives: streams, the names of those in use, a return when a block may be stored. Never: removes a stream
that a durable subscriber reads, or a source of a stream in use; waits for events that are published later, or for a stream that
is not in use; drops a block.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from fairlead.errors import DataError, LogError
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.names import merged_stream
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Log, MergeLag, Stream
from fairlead.transport.log.tasks import ended

TABLE = "FL_LEASES"
RENEW_SECONDS = 30.0
LEASE_SECONDS = 120.0
BEHIND_MAX = 2_000
"""Blocks, 1 GB at most, which a merged stream copies in some seconds when it can."""
LOOK_BLOCKS = 250
LOOK_SECONDS = 0.5
BEHIND_SECONDS_MAX = 10.0
"""A merged stream that copies nothing for this long has stopped."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.01, 0.1


async def open_streams(log: Log, topic_sets: Iterable[Sequence[str]]) -> tuple[Stream, ...]:
    """The stream of each set of topics, created on first use."""
    return tuple([await log.open_topics(each) for each in topic_sets])


class Lease:
    """A lease on the merged streams of some sets of topics, for as long as it is held."""

    def __init__(self, log: Log, topic_sets: Iterable[tuple[str, ...]]) -> None:
        self._log, self._sets = log, sorted(topic_sets)
        self._key = uuid.uuid4().hex
        self._task: asyncio.Task[None] | None = None

    async def take(self) -> None:
        await self._renew()
        self._task = asyncio.create_task(self._renewing())

    async def give_back(self) -> None:
        if self._task is not None:
            await ended(self._task)
            self._task = None
            await self._log.remove(TABLE, self._key)

    async def _renew(self) -> None:
        told = {"topics": [list(each) for each in self._sets], "until": time.time() + LEASE_SECONDS}
        await self._log.put(TABLE, self._key, json.dumps(told).encode())

    async def _renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(LogError):  # the next renewal will do
                await self._renew()


async def needed(log: Log) -> set[str]:
    """Names of merged streams: those in use, and their sources."""
    return {merged_stream(topics[:count]) for topics in await _in_use(log) for count in range(2, len(topics) + 1)}


async def sweep(log: Log) -> list[str]:
    """Remove the merged streams that are not in use; returns their names."""
    for key, lease in (await _leases(log)).items():
        if lease["until"] <= time.time():
            await log.remove(TABLE, key)
    kept = await needed(log)
    removed = [each for each in await log.merged() if each.name not in kept]
    for each in removed:
        await log.remove_stream(each)
    return [each.name for each in removed]


async def _leases(log: Log) -> dict[str, dict[str, Any]]:
    entries = {key: await log.get(TABLE, key) for key in await log.keys(TABLE)}
    return {key: json.loads(each.value) for key, each in entries.items() if each is not None}


async def _in_use(log: Log) -> list[list[str]]:
    found: list[list[str]] = []
    for lease in (await _leases(log)).values():
        if lease["until"] > time.time():
            found += lease["topics"]
    for key in await log.keys(SUBSCRIBERS):
        entry = await log.get(SUBSCRIBERS, key)
        if entry is not None:
            groups = json.loads(entry.value)["groups"].values()
            found += [part["topics"] for each in groups for part in each["parts"]]
    return found


class Throttle:
    """For one publisher and one topic. `patience`: seconds after which waiting fails.

    1. every few blocks, look up how many blocks the merged streams of this topic lack
    2. while one that is in use lacks too many, wait and look again

    Between two lookups a publisher stores at most `LOOK_BLOCKS`, however fast it is; the server's answer is at most a second
    old. A publisher that may not look does not wait.
    """

    def __init__(self, log: Log, topic: str, patience: float) -> None:
        self._log, self._topic, self._patience = log, topic, patience
        self._free = 0
        self._looks = True

    async def take(self) -> None:
        """Returns when one more block may be stored. Raises LogError."""
        if self._looks:
            if not self._free:
                await self._wait()
                self._free = LOOK_BLOCKS
            self._free -= 1

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience
        while (late := await self._late()) is not None:
            if loop.time() > end:
                problem = f"the merged stream {late.stream} of {', '.join(late.topics)} is {late.blocks:,} blocks behind"
                raise LogError(
                    "N011",
                    problem,
                    "make room for it, or remove it with its subscribers if it is not needed: fairlead streams --forget",
                )
            await asyncio.sleep(LOOK_SECONDS)

    async def _late(self) -> MergeLag | None:
        try:
            late = [each for each in await self._log.behind() if self._topic in each.topics and each.blocks > BEHIND_MAX]  # 1
            wanted = await needed(self._log) if late else set[str]()  # 2
        except LogError as error:
            if error.code != "N003":
                raise
            self._looks = False
            return None
        return next((each for each in late if each.stream in wanted), None)


async def end_of(log: Log, stream: Stream, topics: Sequence[str]) -> int:
    """The sequence at which everything stored now is merged, once it is. Raises LogError if the merge makes no progress."""
    if len(topics) == 1:
        return await log.last(stream)
    left = [block for each in topics for block in await _newest(log, each)]
    patience, end, last = Patience(BEHIND_SECONDS_MAX, PAUSE_SECONDS, PAUSE_SECONDS_MAX), 0, -1
    while left:
        waiting = []
        for block in left:
            with suppress(DataError):  # a message that is no block is in its place: nobody waits for it
                copy = await log.last_of(block.topic, block.source, block.type, stream)
                if copy is None or copy.block.number < block.number:
                    waiting.append(block)
                else:
                    end = max(end, copy.sequence)
        left = waiting
        if left:
            before, last = last, await log.last(stream)
            if last > before:
                patience.renew()
            elif patience.is_over:
                problem = f"the stream of {', '.join(topics)} lacks blocks of {left[0].topic}, and does not advance"
                raise LogError("N021", problem, "see the server's log; try again when all servers run and have room")
            await patience.pause()
    return end


async def _newest(log: Log, topic: str) -> list[Block]:
    """The last block of a topic; if the last message is not a block, the last one of each source."""
    await log.open_topics([topic])
    try:
        found = await log.last_of(topic, None)
        return [] if found is None else [found.block]
    except DataError:
        every = []
        for source in await log.sources(topic):
            with suppress(DataError):
                found = await log.last_of(topic, source)
                every += [] if found is None else [found.block]
        return every


async def caught_up(log: Log, stream: Stream, topics: Sequence[str]) -> int:
    """The last sequence of the stream, once everything stored now is merged. Raises LogError if the merge makes no progress."""
    end = await end_of(log, stream, topics)
    return max(end, await log.last(stream))
