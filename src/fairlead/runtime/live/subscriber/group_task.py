"""A task that follows groups with a stream in common: read once, match, store derived blocks, deliver, save snapshots.

The order of the steps ensures that each takes effect once:

    1. match: the relations and derived blocks are a function of the log
    2. store the derived blocks that the log does not have yet
    3. deliver the relations
    4. save snapshots periodically: all derived blocks up to a snapshot are stored (2), so a reader that starts from it need not
       store them again
    5. when all that was read is delivered: what can be delivered early (core/early.py)

A task that does not lag pauses, and continues together with the others of its process (wake_clock.py): so they receive the
same blocks, and share the work of preparing them (core/block_columns.py).

Takes: groups and their streams. Gives: batches, to a receiver. Never: reads faster than the receiver accepts.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from fairlead.dataclass import dataclass
from fairlead.errors import StateError
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.block_columns import Rejected
from fairlead.runtime.live.core.deliveries import Batch, GroupFindings, JointDeliveries
from fairlead.runtime.live.core.derived_blocks import HOPS_MAX
from fairlead.runtime.live.core.follower import Follower, JointReading
from fairlead.runtime.live.core.ledger import Ledger
from fairlead.runtime.live.core.stream_groups import StreamGroup
from fairlead.runtime.live.core.stream_merge import Stretch
from fairlead.runtime.live.subscriber.match_threads import MatchThreads
from fairlead.runtime.live.subscriber.snapshots import SnapshotWriter
from fairlead.runtime.live.subscriber.stream_reader import OrderedReader
from fairlead.runtime.live.subscriber.trim_check import require_kept
from fairlead.runtime.live.subscriber.wake_clock import WakeClock
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.blocks.block_store import Tails
from fairlead.transport.log.protocol import Log, Stream, Trimmed

LOGGER = logging.getLogger("fairlead")
Found = TypeVar("Found")


@dataclass(eq=False)
class SilentLineage:
    """A lineage that is followed for the events that it derives; nothing is delivered from it."""

    follower: Follower
    snapshots: SnapshotWriter


@dataclass(eq=False)
class OpenedGroup:
    """A group of a subscriber, ready to be followed. `beside`: the lineage that stores its derived events, if it is another."""

    group: StreamGroup
    streams: Sequence[Stream]
    key: str
    follower: Follower
    ledger: Ledger
    snapshots: SnapshotWriter
    beside: SilentLineage | None = None


def names_in(groups: Iterable[OpenedGroup]) -> list[str]:
    return [name for each in groups for name in each.group.names]


def looping(name: str, emits: Sequence[str]) -> StateError:
    problem = (
        f"'{name}' derives {', '.join(emits)} of events that were derived of it, {HOPS_MAX} times in a row: no more is stored"
    )
    return StateError("S145", problem, "change one of the rules of the loop; `emit=False` stores nothing")


class GroupTask:
    """`plan`: the plan of the relations that the groups deliver. `only`: the filter on the stream, if there is a single one.
    `rejected`: counts the rejected blocks of all tasks. `verdicts`: deliver reports on events that take no part. `clock`,
    `threads`: shared by the tasks of a client."""

    def __init__(
        self,
        log: Log,
        plan: Plan,
        groups: Sequence[OpenedGroup],
        patience: float,
        only: Only | None,
        rejected: Counter[str] | None = None,
        *,
        verdicts: bool = False,
        clock: WakeClock | None = None,
        threads: MatchThreads | None = None,
    ) -> None:
        self._log, self.groups, self.only = log, groups, only
        self._clock, self._threads = clock or WakeClock(), threads or MatchThreads()
        names = {each.key: each.group.names for each in groups} if verdicts else None
        self.deliveries = JointDeliveries(plan, {each.key: each.ledger for each in groups}, names)
        followed: list[OpenedGroup | SilentLineage] = [*groups, *(each.beside for each in groups if each.beside is not None)]
        self.reading = reading = JointReading([each.follower for each in followed])
        self._writers = [each.snapshots for each in followed]
        self._reader = OrderedReader(
            log, reading.streams, reading.topics, reading.begin(), only, reading.beats(), reading.further(), self._passes
        )
        self._tails = Tails(log, patience, "forget the subscriber, and subscribe again")
        self._settled = True
        self._begun = not any(each.awaits_early for each in reading.followers)
        self.rejected = Counter[str]()
        """The rejected blocks that were read, by the code of the error."""
        self._rejected_of_all = Counter[str]() if rejected is None else rejected

    def _count_rejected(self, some: Sequence[Stretch]) -> None:
        codes = [stored.block.rejected for each in some for stored in each.blocks if stored.block.rejected]
        partly: Rejected = {}
        for group in self.groups:
            partly |= group.follower.lineage.take_rejected()
        for counter in (self.rejected, self._rejected_of_all):
            counter.update([*codes, *partly.values()])

    async def run(self, receive: Callable[[Batch], Awaitable[None]]) -> None:
        clock = asyncio.get_running_loop().time
        await self._settle(receive)  # 5
        self._begun = True
        async for stretches in self._reader.read():
            begun, events = clock(), sum(stored.block.count for each in stretches for stored in each.blocks)
            for some in self.reading.portions(stretches):
                self._settled = False
                findings = await self._matched(some)  # 1
                self._count_rejected(some)
                for block in (block for each in findings for block in each.found.derived):
                    await self._tails.store(block)  # 2
                self._settled = True
                self._warn_of_loops()
                found = [each for each in findings if each.key in self.deliveries.ledgers]
                ahead = [each.early for each in found if each.early is not None and not each.silent]
                for batch in (self.deliveries.early_batch(ahead), self.deliveries.batch_of(found)):
                    if batch is not None:
                        await receive(batch)  # 3
                for writer in self._writers:
                    await writer.save_if_due()  # 4
            await self._settle(receive)  # 5
            if not self._clock.lags(events):
                await asyncio.sleep(self._clock.pause(clock(), clock() - begun))

    async def _settle(self, receive: Callable[[Batch], Awaitable[None]]) -> None:
        """Early deliveries begin with the first block that is delivered, or at once if there is nothing to read."""
        waiting = [each for each in self.reading.followers if each.awaits_early]
        if waiting and not await self.lag():
            for each in waiting:
                each.begin_early()
        unsettled = [each for each in self.reading.followers if not each.is_settled]
        if unsettled:
            settled = self.deliveries.early_batch(await self._done({each: each.settle for each in unsettled}))
            if settled is not None:
                await receive(settled)

    def _warn_of_loops(self) -> None:
        for lineage in (each.lineage for each in self.reading.followers if each.lineage.looped):
            lineage.looped = False
            LOGGER.warning("%s", looping(lineage.group.names[0], lineage.group.emits))

    async def _passes(self, trimmed: Trimmed) -> None:
        places = [place for each in self.reading.followers if (place := each.place(trimmed.stream)) is not None]
        await require_kept(self._log, trimmed, places, {} if self.only is None else self.only.routes)

    async def _matched(self, some: Sequence[Stretch]) -> list[GroupFindings]:
        return await self._done({each: partial(each.feed, share) for each, share in self.reading.shares(some)})

    async def _done(self, tasks: Mapping[Follower, Callable[[], Found]]) -> list[Found]:
        """Matches that may take long run in threads, so that the event loop stays responsive and can cancel them."""
        works = {each: self._threads.run(task) for each, task in tasks.items() if each.lineage.may_take_long}
        try:
            quick = {each: task() for each, task in tasks.items() if each not in works}
        finally:
            await self._ended(works)
        return [works[each].result() if each in works else quick[each] for each in tasks]

    async def _ended(self, works: Mapping[Follower, asyncio.Future[Found]]) -> None:
        """Waits until all threads end, also when cancelled: the threads are stopped first, and end soon."""
        try:
            if works:
                await asyncio.wait(works.values())
        except asyncio.CancelledError:
            for each in works:
                each.lineage.stop()
            while not all(work.done() for work in works.values()):
                with suppress(asyncio.CancelledError):
                    await asyncio.wait(works.values())
            for work in works.values():
                work.exception()
            raise

    async def has_passed(self, ends: Sequence[int]) -> bool:
        """Whether the relations up to these ends, in every stream, are stored and delivered."""
        if not self._begun:
            return False
        if self._reader.has_passed(ends):
            return True
        if self.only is None or await self._log.last(self.reading.streams[0]) < ends[0]:
            return False
        return self._reader.has_passed([await self._log.last(self.reading.streams[0], self.only)])

    async def lag(self) -> int:
        """Blocks of the streams that are not read yet; 0 if the filter leaves none to read."""
        streams = self.reading.streams
        if self.only is not None and await self._log.last(streams[0], self.only) <= self._reader.seen[0]:
            return 0
        return sum([await self._log.last(each) for each in streams]) - sum(self._reader.seen)

    async def end(self) -> None:
        """The subscriber leaves: save snapshots, unless a derived block of theirs is not stored."""
        for each in self._writers:
            await each.end(self._settled)
