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
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from fairlead.errors import LogError, StateError
from fairlead.runtime.live.stream_removal import KEY as REMOVAL
from fairlead.runtime.live.stream_removal import (
    StreamRemoval,
    begin_removal,
    current_removal,
    end_removal,
    plan_removal,
    require_no_removal,
)
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.subscriber.record import groups_of_name
from fairlead.transport.log.entry_values import entry_value
from fairlead.transport.log.names import LEASES, MERGED, TOPICS, TRIMS, lease_key, merged_streams_of
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Conflict, Log, MergeLag, Stream, Unavailable
from fairlead.transport.log.signed_log import ignored
from fairlead.transport.log.tasks import ended
from fairlead.transport.log.trims import first_kept

TABLE = LEASES
PROVIDED = "=merged"
"""A key of the table of topics; none of them has such a name."""
RENEW_SECONDS = 30.0
GIVE_UP_SECONDS = 1.0
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
    """A lease on the merged streams of some sets of topics, for as long as it is held. Take it before you open them: then none
    of them is removed until you give it back."""

    def __init__(self, log: Log, topic_sets: Iterable[tuple[str, ...]] = ()) -> None:
        self._log, self._sets = log, sorted(topic_sets)
        self._key = lease_key(log.owner, uuid.uuid4().hex)
        self._since = 0
        self._task: asyncio.Task[None] | None = None

    async def take(self, topic_sets: Iterable[tuple[str, ...]] | None = None, patience: float = 0.0) -> None:
        """`topic_sets`: other ones than before. `patience`: the seconds to wait for the end of a sweep. Raises LogError."""
        self._sets = self._sets if topic_sets is None else sorted(topic_sets)
        self._since = 0
        self._since = await self._renew()
        if self._task is None:
            self._task = asyncio.create_task(self._renewing())
        await require_no_removal(self._log, streams_with_sources(self._sets), patience)

    async def give_back(self) -> None:
        if self._task is not None:
            await ended(self._task)
            self._task = None
            await self._log.remove(TABLE, self._key)

    async def give_up(self) -> None:
        """Give it back if the log answers at once; otherwise it ends by itself."""
        if self._task is not None:
            await ended(self._task)
            self._task = None
            with suppress(LogError, Unavailable, TimeoutError):
                async with asyncio.timeout(GIVE_UP_SECONDS):
                    await self._log.remove(TABLE, self._key)

    async def _renew(self) -> int:
        return await self._log.put(TABLE, self._key, lease_value(self._sets, LEASE_SECONDS, self._since))

    async def _renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(LogError):  # the next renewal will do
                await self._renew()


async def needed(log: Log) -> set[str]:
    """Names of merged streams: those in use, and their sources."""
    return streams_with_sources(await _in_use(log))


def streams_with_sources(topic_sets: Iterable[Sequence[str]]) -> set[str]:
    """The names of the merged streams of these sets, and of the merged streams that those copy."""
    return {name for topics in topic_sets for name in merged_streams_of(topics)}


async def merged_to_keep(log: Log) -> dict[tuple[str, ...], Stream]:
    """By topics, the merged streams that stay: those in use, those that users may not create, and their sources. Others may say
    that they use one that does not exist: none is created."""
    there = {each.name: each for each in await log.merged()}
    found = dict[tuple[str, ...], Stream]()
    for topics in [*await _in_use(log), *await _provided(log)] if there else ():
        for count, name in enumerate(merged_streams_of(topics), 2):
            if name in there:
                found[tuple(sorted(topics)[:count])] = there[name]
    return dict(sorted(found.items()))


async def _kept(log: Log, before: int | None = None) -> set[str]:
    """The names of those that stay. `before`: as far as they were in use before an entry of this revision was stored."""
    return streams_with_sources([*await _in_use(log, before), *await _provided(log)])


async def provide(log: Log, topic_sets: Iterable[Sequence[str]]) -> None:
    """Merged streams stay, of these sets of topics and of no others, also when nobody uses them: their users may not create
    them (runtime/rights/)."""
    wanted = sorted(sorted(each) for each in topic_sets if len(each) > 1)
    if wanted != await _provided(log):
        await log.put(TOPICS, PROVIDED, json.dumps({"topics": wanted}).encode())


async def _provided(log: Log) -> list[list[str]]:
    entry = await log.get(TOPICS, PROVIDED)
    return [] if entry is None else entry_value(entry.value, {"topics": [[str]]}, TOPICS, PROVIDED)["topics"]


async def sweep(log: Log) -> list[str]:
    """Remove the merged streams that nobody needs; returns their names. The steps are those of stream_removal.py."""
    await _remove_ended_leases(log)
    left = await current_removal(log)
    removed = list[str]()
    if left is not None and left.begun:
        removed += await _removed(log, left, await _kept(log, left.planned))
    plan = await plan_removal(log, unused) if (unused := await _unused(log)) else None  # 1, 2
    if plan is not None:
        knows = await current_removal(log) == plan  # a leader that does not is cut off
        if {*plan.streams} <= {*await _unused(log)} and knows:  # 3
            removed += await _removed(log, plan)
        else:
            await end_removal(log, plan)
    await _forget_removed(log)
    return sorted(removed)


async def _unused(log: Log) -> list[str]:
    there = [each.name for each in await log.merged()]
    kept = await _kept(log) if there else set[str]()
    return [each for each in there if each not in kept]


async def _removed(log: Log, removal: StreamRemoval, kept: Collection[str] = ()) -> list[str]:
    """Remove the streams of a removal that is planned, or was begun by another client, unless it has been changed since.
    `kept`: those that stay, whatever it says."""
    begun, done = await begin_removal(log, removal), list[str]()  # 4
    if begun is None:
        return done
    for each in await log.merged():  # 5
        if each.name in begun.streams and each.name not in kept:
            if await current_removal(log) != begun:
                return done
            try:
                await log.remove_stream(each)
            except LogError as error:
                if error.code != "N010":  # an attempt without an answer has removed it
                    raise
            done.append(each.name)
    await end_removal(log, begun)
    return done


async def _remove_ended_leases(log: Log) -> None:
    for key, lease in (await _leases(log)).items():
        if lease.topics is None:
            with suppress(Conflict):  # it was renewed
                await log.remove(TABLE, key, lease.revision)


async def _forget_removed(log: Log) -> None:
    """What is recorded of trimmed blocks of merged streams that are gone: a stream that is created again under the name begins
    anew. The entries are read first, so that nothing of a new one is removed."""
    entries = {each: await log.get(TRIMS, each) for each in await log.keys(TRIMS) if each.startswith(MERGED)}
    there = {each.name for each in await log.merged()} if entries else set[str]()
    for key, entry in entries.items():
        if key.partition(".")[0] not in there and entry is not None:
            try:
                await log.remove(TRIMS, key, entry.revision)
            except Conflict:
                continue
            except LogError as error:
                if error.code != "N003":  # a client that may remove streams only
                    raise
                return


def lease_value(topic_sets: Iterable[Sequence[str]], seconds: float, since: int = 0) -> bytes:
    """A lease that ends so many seconds after the log has stored it. `since`: the revision with which it was taken, if it is
    renewed."""
    told = {"topics": [sorted(each) for each in topic_sets], "seconds": seconds}
    return json.dumps(told | ({"since": since} if since else {})).encode()


class StoredLease(NamedTuple):
    """`topics`: None if its time is over, by the clock of the log, or it is no lease. `since`: the revision with which it was
    taken."""

    topics: list[list[str]] | None
    revision: int
    since: int


async def _leases(log: Log) -> dict[str, StoredLease]:
    """By key."""
    found: dict[str, StoredLease] = {}
    keys = [each for each in await log.keys(TABLE) if each != REMOVAL]
    now = await log.now(TABLE) if keys else 0
    for key in keys:
        try:
            entry = await log.get(TABLE, key)
        except StateError as error:
            ignored(error)
            continue
        if entry is not None:
            is_over = now > entry.time + _length(entry.value)
            told = {} if is_over else _leased(entry.value)
            found[key] = StoredLease(told.get("topics"), entry.revision, told.get("since", entry.revision))
    return found


def _length(value: bytes) -> int:
    """In microseconds. Leases of earlier releases do not say it: some were that long."""
    try:
        return int(min(json.loads(value).get("seconds", LEASE_SECONDS_MAX), LEASE_SECONDS_MAX) * 1_000_000)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return 0


def _leased(value: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = entry_value(value, {"topics": [[str]], "since?": int}, TABLE, "")
    except StateError:
        return {}
    return found


async def _in_use(log: Log, before: int | None = None) -> list[list[str]]:
    """`before`: without leases that were taken after this revision."""
    leases = [each for each in (await _leases(log)).values() if before is None or each.since < before]
    found = [topics for each in leases for topics in each.topics or ()]
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
    """The sequence of the last message of a topic; 0 if there is none, or if it is about to be trimmed: then the merged stream
    may not have it any more."""
    stream = await log.open_topics([topic])
    found = await log.last_of(topic, None)
    return 0 if found is None or found.sequence < await first_kept(log, stream.name) else found.sequence


async def caught_up(log: Log, stream: Stream, topics: Sequence[str]) -> int:
    """The last sequence of the stream, once everything stored now is merged. Raises LogError if the merge makes no progress."""
    end = await end_of(log, stream, topics)
    return max(end, await log.last(stream))
