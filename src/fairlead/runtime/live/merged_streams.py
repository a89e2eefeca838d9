"""Streams of several topics, which the server merges: which are in use, where they end now, and which publishers wait.

    Lease     a subscriber holds one on the merged streams that it reads; durable subscribers keep theirs without one. It ends
              some time after the log has stored it, by the clock of the log: those of clients do not count
    Throttle  publishers wait for merged streams that are in use and lag behind, because they are slow or full
    end_of    the current end of a stream whose source streams still grow

A merged stream copies the blocks of each topic in their order, with a short delay. It contains everything that is stored now as
soon as it has copied the message that is the last of each topic now. (That it has as many blocks as the topics have now does
not show this: some of them may have been stored since.)

Takes: a log, topics. Gives: streams, the names of those in use, a return when a block may be stored. Never: removes a stream
that a durable subscriber reads, or a source of a stream in use; waits for events that are published later, or for a stream that
is not in use; drops a block.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress

from fairlead.errors import LogError, StateError
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.subscriber.record import groups_of_name
from fairlead.transport.log.entry_values import entry_value
from fairlead.transport.log.names import LEASES, MERGED, TRIMS, merged_stream
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Log, MergeLag, Stream
from fairlead.transport.log.signed_log import ignored
from fairlead.transport.log.tasks import ended

TABLE = LEASES
RENEW_SECONDS = 30.0
LEASE_SECONDS, LEASE_SECONDS_MAX = 120.0, 7 * 24 * 3600.0
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
        await self._log.put(TABLE, self._key, lease_value(self._sets, LEASE_SECONDS))

    async def _renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(LogError):  # the next renewal will do
                await self._renew()


async def needed(log: Log) -> set[str]:
    """Names of merged streams: those in use, and their sources."""
    return {merged_stream(topics) for topics in await topics_merged(log)}


async def topics_merged(log: Log) -> set[tuple[str, ...]]:
    """The topics of the merged streams in use, and of their sources."""
    return {tuple(sorted(topics)[:count]) for topics in await _in_use(log) for count in range(2, len(topics) + 1)}


async def sweep(log: Log) -> list[str]:
    """Remove the merged streams that are not in use; returns their names."""
    for key, lease in (await _leases(log)).items():
        if lease is None:
            await log.remove(TABLE, key)
    kept = await needed(log)
    removed = [each for each in await log.merged() if each.name not in kept]
    for each in removed:
        await log.remove_stream(each)
    await _forget_removed(log)
    return [each.name for each in removed]


async def _forget_removed(log: Log) -> None:
    """What is recorded of trimmed blocks of merged streams that are gone: a stream that is created again under the name begins
    anew. The keys are read first, so that nothing of a new one is removed."""
    keys = [each for each in await log.keys(TRIMS) if each.startswith(MERGED)]
    there = {each.name for each in await log.merged()} if keys else set[str]()
    for key in keys:
        if key.partition(".")[0] not in there and await log.get(TRIMS, key) is not None:
            try:
                await log.remove(TRIMS, key)
            except LogError as error:
                if error.code != "N003":  # a client that may remove streams only
                    raise
                return


def lease_value(topic_sets: Iterable[Sequence[str]], seconds: float) -> bytes:
    """A lease that ends so many seconds after the log has stored it."""
    return json.dumps({"topics": [sorted(each) for each in topic_sets], "seconds": seconds}).encode()


async def _leases(log: Log) -> dict[str, list[list[str]] | None]:
    """By key, the topics of a lease; None if its time is over, by the clock of the log, or it is no lease."""
    found: dict[str, list[list[str]] | None] = {}
    keys = await log.keys(TABLE)
    now = await log.now(TABLE) if keys else 0
    for key in keys:
        try:
            entry = await log.get(TABLE, key)
        except StateError as error:
            ignored(error)
            continue
        if entry is not None:
            found[key] = None if now > entry.time + _length(entry.value) else _leased(entry.value)
    return found


def _length(value: bytes) -> int:
    """In microseconds. Leases of earlier releases do not say it: some were that long."""
    try:
        return int(min(json.loads(value).get("seconds", LEASE_SECONDS_MAX), LEASE_SECONDS_MAX) * 1_000_000)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return 0


def _leased(value: bytes) -> list[list[str]] | None:
    try:
        found: list[list[str]] = entry_value(value, {"topics": [[str]]}, TABLE, "")["topics"]
    except StateError:
        return None
    return found


async def _in_use(log: Log) -> list[list[str]]:
    found = [topics for lease in (await _leases(log)).values() for topics in lease or ()]
    for key in await log.keys(SUBSCRIBERS):
        for told in (await groups_of_name(log, key)).values():
            found += [part["topics"] for part in told["parts"]]
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
        except StateError as error:  # nobody waits for what an unknown client has recorded
            ignored(error)
            return None
        return next((each for each in late if each.stream in wanted), None)


async def end_of(log: Log, stream: Stream, topics: Sequence[str]) -> int:
    """The sequence at which everything stored now is merged, once it is. Raises LogError if the merge makes no progress."""
    if len(topics) == 1:
        return await log.last(stream)
    left = {each: await _end(log, each) for each in topics}
    patience, last = Patience(BEHIND_SECONDS_MAX, PAUSE_SECONDS, PAUSE_SECONDS_MAX), -1
    while True:
        left = {each: end for each, end in left.items() if end > await log.copied(stream, each)}
        before, last = last, await log.last(stream)
        if not left:
            return last
        if last > before:
            patience.renew()
        elif patience.is_over:
            problem = f"the stream of {', '.join(topics)} lacks blocks of {min(left)}, and does not advance"
            raise LogError("N021", problem, "see the server's log; try again when all servers run and have room")
        await patience.pause()


async def _end(log: Log, topic: str) -> int:
    """The sequence of the last message of a topic; 0 if there is none."""
    await log.open_topics([topic])
    found = await log.last_of(topic, None)
    return 0 if found is None else found.sequence


async def caught_up(log: Log, stream: Stream, topics: Sequence[str]) -> int:
    """The last sequence of the stream, once everything stored now is merged. Raises LogError if the merge makes no progress."""
    end = await end_of(log, stream, topics)
    return max(end, await log.last(stream))
