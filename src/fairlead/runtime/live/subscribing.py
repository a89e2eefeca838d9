"""A live subscription: delivers relations as they are completed, and records acknowledgements.

Groups that have a stream in common (grouping.py) share a task that follows them in one order (course.py), up to a few batches
ahead of the subscriber. Acknowledged relations are never delivered again under this name. Others are delivered again after a
restart, in the same order, starting with the first.

Takes: rules, a name, where to start. Gives: relations one by one, or in batches. Never: delivers a relation that another
subscriber with the same rules does not get.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Self

import pyarrow as pa

from fairlead.deliver.receipt import Receipt
from fairlead.engine import compile
from fairlead.errors import LogError, StateError, UsageError
from fairlead.matching.state.encoding import Change
from fairlead.model.partition import alone
from fairlead.model.plan import Plan
from fairlead.model.relation import Relation
from fairlead.runtime.live.batch import Batch
from fairlead.runtime.live.course import Course, Followed
from fairlead.runtime.live.ending import end_of
from fairlead.runtime.live.follower import Follower, Heard
from fairlead.runtime.live.following import Following
from fairlead.runtime.live.gathering import Gathering
from fairlead.runtime.live.grouping import StreamGroup, groups_of, together
from fairlead.runtime.live.leases import Lease
from fairlead.runtime.live.ledger import Ledger
from fairlead.runtime.live.lineage import copied
from fairlead.runtime.live.origin import from_json, to_json
from fairlead.runtime.live.record import Record
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.live.route_table import routes_for
from fairlead.runtime.live.snapshots import Snapshots
from fairlead.runtime.live.starting import Beginning, Start, beginning_of, check_start, is_leading
from fairlead.transport.log.block_filter import Only
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Stream
from fairlead.transport.log.tasks import ended

AHEAD = 4
"""Batches that are matched before the subscriber asks for them."""
RECEIPT_SECONDS = 1.0
Ends = Mapping[str, int]
EQUAL = "-"
"""Precedes the number in the keys of equal subscriptions, except the first."""


class LiveSubscription:
    """A live subscription. Create it with `Client.subscribe`, and use it in `async with`; iterate for the relations.

    `routed`: read only blocks that can matter. `change` reports which subscriptions resumed where this name left them, which
    started, and which were dropped.
    """

    routed = True
    change = Change()

    def __init__(
        self,
        log: PatientLog,
        registry: Registry,
        gathering: Gathering,
        rules: str,
        name: str | None,
        start: Start,
        emit: bool,
    ) -> None:
        check_start(start)
        self._log, self._registry, self._gathering = log, registry, gathering
        self._rules, self._start, self._emit = rules, start, emit
        self._record = Record(log, name) if name is not None else None
        self._followed: dict[str, Followed] = {}
        self._courses: list[Course] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._queue: asyncio.Queue[Batch | Exception] = asyncio.Queue(AHEAD)
        self._begun: Batch | None = None
        self._taken = 0
        self._receipts_at = 0.0

    @property
    def name(self) -> str | None:
        """The durable name, or None."""
        return self._record.name if self._record else None

    async def __aenter__(self) -> Self:
        known = self._record is not None and await self._record.read()
        self.plan = await self._planned(known)
        groups = [(group, await group.streams(self._log)) for group in groups_of(self.plan)]
        keys = self._keys(groups)
        self.change = self._changed(dict(zip(keys, (group for group, _ in groups), strict=True)))
        for (group, streams), key in zip(groups, keys, strict=True):
            another = self._record is not None and key not in self._record.groups and self._has_equal(group, streams)
            self._followed[key] = await self._opened(group, streams, key, known and not another)
        await self._gather_courses()
        if self._record is not None:
            self._record.groups = {key: self._record.groups[key] for key in self._followed}  # without dropped groups
            await self._record.write()
            await self.write_receipts()
        self._lease = Lease(self._log, {part.topics for each in self._followed.values() for part in each.group.parts})
        await self._lease.take()
        await asyncio.to_thread(pa.array, [0])  # Arrow searches for pandas once, for half a second: now, not at a relation
        self._tasks = [asyncio.create_task(self._follow(each)) for each in self._courses]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Acknowledgements are stored already; the remaining work is optional, and may fail."""
        await ended(*self._tasks)
        with suppress(LogError):
            for each in self._courses:
                await each.following.end()
            if self._record is not None:
                await self.write_receipts()
            await self._lease.give_back()

    async def _planned(self, known: bool) -> Plan:
        """A known subscriber continues with the types as they were when it began: it ignores attributes added since."""
        if known and self._record is not None and self._record.rules == self._rules:
            return compile(self._record.text)
        plan = await self._registry.plan(self._rules)
        if not plan.subscriptions:
            raise UsageError("A252", "the rules have no subscription", "add SUBSCRIPTION … MATCH …")
        if self._record is not None:
            if known:
                self._record.require({each.digest for each in plan.subscriptions})
            self._record.rules, self._record.text, self._record.digest = self._rules, plan.text, plan.digest
        return plan

    def _keys(self, groups: Sequence[tuple[StreamGroup, Sequence[Stream]]]) -> list[str]:
        """The keys of the records and states of each group. Each of several equal subscriptions has its own: the one it had
        under its name, else one that no name claims any more, else a new one."""
        saved = self._record.groups if self._record is not None else {}
        found: dict[int, str] = {}
        for by_name in (True, False):
            for number, (group, streams) in enumerate(groups):
                mine = (key for key, told in saved.items() if not by_name or told["names"] == [*group.names])
                free = [key for key in mine if _base(key) == group.key(streams) and key not in found.values()]
                if number not in found and free:
                    found[number] = free[0]
        for number, (group, streams) in enumerate(groups):
            if number not in found:
                numbered = (f"{group.key(streams)}{EQUAL}{at}" if at else group.key(streams) for at in count())
                found[number] = next(key for key in numbered if key not in saved and key not in found.values())
        return [found[number] for number in range(len(groups))]

    def _changed(self, now: Mapping[str, StreamGroup]) -> Change:
        """The changes to the subscriptions of this name, whatever they are called now."""
        saved = self._record.groups if self._record is not None else {}
        resumed, started = (
            [n for key, group in now.items() if (key in saved) is kept for n in group.names] for kept in (True, False)
        )
        dropped = [name for key, told in saved.items() if key not in now for name in told["names"]]
        return Change(tuple(resumed), tuple(started), tuple(dropped))

    def _has_equal(self, group: StreamGroup, streams: Sequence[Stream]) -> bool:
        return self._record is not None and any(_base(key) == group.key(streams) for key in self._record.groups)

    async def _opened(self, group: StreamGroup, streams: Sequence[Stream], key: str, known: bool) -> Followed:
        saved = self._record.groups.get(key) if self._record is not None and known else None
        if self._record is not None and known and saved is None and self._record.has_read(group.digest):
            raise StateError(
                "S136", f"the stream that '{self.name}' read has been removed", "forget the subscriber, and subscribe again"
            )
        if saved is None:
            begun = await beginning_of(self._log, group, streams, key, self._start)
            count = None if begun.at_newest else 0
        else:
            origin, silent = from_json(saved["origin"]), saved["silent_until"]
            leading = await is_leading(self._log, key, origin)
            begun = Beginning(origin, None if silent is None else from_json(silent), leading=leading)
            count = saved["count"]
        snapshots = Snapshots(self._log, group, key, begun.origin)
        border = begun.silent_until
        lineage = await snapshots.begin(count, border if count is None else None, emits=self._emit and begun.leading)
        follower = Follower(key, streams, lineage, snapshots, border, self._gathering)
        ledger = Ledger(copied(lineage.book), saved)
        if self._record is not None and saved is None:
            parts = zip(group.parts, streams, strict=True)
            told: dict[str, Any] = {
                "parts": [{"types": part.types, "topics": part.topics, "stream": stream.name} for part, stream in parts]
            }
            told |= {"origin": to_json(begun.origin), "silent_until": border and to_json(border), "subscription": group.digest}
            self._record.groups[key] = told | (ledger.acknowledged() if border is None else {"count": None, "digest": None})
        if self._record is not None:
            self._record.groups[key]["names"] = [*group.names]
        return Followed(group, streams, key, follower, ledger)

    async def _gather_courses(self) -> None:
        """Groups that share streams are followed together."""
        opened = list(self._followed.values())
        for numbers in together([each.group for each in opened]):
            mine = [opened[at] for at in numbers]
            plan = (
                mine[0].group.plan if len(mine) == 1 else alone(self.plan, [name for each in mine for name in each.group.names])
            )
            types = sorted({name for each in mine for name in each.group.types})
            beats = {name for each in mine for name in each.group.heartbeats}
            routes = dict[str, int]()
            only, (_, *others) = None, dict.fromkeys(stream for each in mine for stream in each.streams)
            if not others:  # several streams wait for each other: the more blocks of each, the sooner
                if self.routed:
                    routes = await routes_for(self._log, plan, types, durable=self._record is not None)
                only = Only((*types, *beats), routes)
            following = Following(self._log, [each.follower for each in mine], self._log.patience, only)
            self._courses.append(Course(plan, mine, following))
            if self._record is not None:
                for each in mine:
                    self._record.groups[each.key]["routes"] = routes

    async def _follow(self, course: Course) -> None:
        async def receive(heard: Sequence[Heard]) -> None:
            batch = course.batch_of(heard)
            if batch is not None:
                await self._queue.put(batch)

        try:
            await course.following.run(receive)
        except Exception as error:
            await self._queue.put(error)

    async def batches(self) -> AsyncIterator[Batch]:
        """Iterate over relations as they arrive, in batches where many arrive together."""
        while True:
            yield await self.next_batch()

    async def __aiter__(self) -> AsyncIterator[Relation]:
        while True:
            relation = await self.next_within(None)
            assert relation is not None
            yield relation

    async def next_within(self, seconds: float | None) -> Relation | None:
        """The next relation, or None if there is none within this time."""
        while True:
            relation = self.next_at_hand()
            if relation is not None:
                return relation
            try:
                async with asyncio.timeout(seconds):
                    self._begun, self._taken = await self._next(), 0
            except TimeoutError:
                return None

    async def next_batch(self) -> Batch:
        """Wait for the next relations, and return all that are ready."""
        batch, taken = (await self._next(), 0) if self._begun is None else (self._begun, self._taken)
        self._begun = None
        self._hand(batch, len(batch))
        return batch.behind(taken) if taken < len(batch) else await self.next_batch()

    def next_at_hand(self) -> Relation | None:
        """The next relation of a batch that has already arrived."""
        if self._begun is None or self._taken == len(self._begun):
            self._begun = None
            return None
        self._taken += 1
        if self._taken == len(self._begun):
            self._hand(self._begun, self._taken)
        return self._begun[self._taken - 1]

    def _hand(self, batch: Batch, count: int) -> None:
        """Record that the subscriber received this many relations of a batch. Without a name nothing can be resumed, so nothing
        is recorded."""
        for key, last in batch.numbering.lasts_of(count).items():
            ledger = self._followed[key].ledger
            ledger.handed = max(ledger.handed, last)
        if self._record is None and count == len(batch):
            self._acknowledge(batch.lasts)

    def _note_handed(self) -> None:
        """Record the received relations of the current batch."""
        if self._begun is not None and self._taken < len(self._begun):
            self._hand(self._begun, self._taken)

    async def _next(self) -> Batch:
        found = await self._queue.get()
        if isinstance(found, Exception):
            raise found
        return found

    async def ack(self, done: Relation | Batch | None = None) -> None:
        """Acknowledge everything up to this relation or batch, or everything delivered; returns when that is stored.

        It covers the subscriptions that share one order with it. Raises StateError if another process uses the name.
        """
        if isinstance(done, Batch):
            if len(done):
                key, number = done.numbering.last
                await self.acknowledge(self._course(key).up_to(key, number))
        elif done is not None:
            one = next((each for each in self._followed.values() if done.subscription in each.group.names), None)
            if one is None:
                raise UsageError(
                    "A249",
                    f"'{done.subscription}' is not a subscription of this subscriber",
                    "acknowledge a relation that this subscription delivered",
                )
            await self.acknowledge(self._course(one.key).up_to(one.key, one.ledger.number_of(done.id)))
        else:
            self._note_handed()
            await self.acknowledge({key: each.ledger.handed for key, each in self._followed.items()})

    async def acknowledge(self, numbers: Mapping[str, int]) -> None:
        """Acknowledge by group: everything up to this number of its deliveries."""
        self._acknowledge(numbers)
        if self._record is not None:
            for key, each in self._followed.items():
                if each.ledger.book.count and each.ledger.current:  # a replay must not overwrite the stored count
                    self._record.groups[key] |= each.ledger.acknowledged()
            await self._record.write()
            if asyncio.get_running_loop().time() - self._receipts_at > RECEIPT_SECONDS:
                await self.write_receipts()

    def _acknowledge(self, numbers: Mapping[str, int]) -> None:
        for each in self._courses:
            each.acknowledge({key: number for key, number in numbers.items() if key in each.followed})

    def _course(self, key: str) -> Course:
        return next(each for each in self._courses if key in each.followed)

    async def write_receipts(self) -> None:
        """Store the receipts of what is acknowledged, for others to compare. This also happens every second, and at the end."""
        if self._record is None or not all(each.ledger.current for each in self._followed.values()):
            return  # a known subscriber's receipts are stored; they do not go back
        self._receipts_at = asyncio.get_running_loop().time()
        await self._record.write_receipts({key: each.ledger.book.receipt() for key, each in self._followed.items()})

    @property
    def receipts(self) -> Mapping[str, Receipt]:
        """The receipts of what was delivered so far, by group."""
        self._note_handed()
        return {key: each.ledger.receipt() for key, each in self._followed.items()}

    @property
    def receipt(self) -> Receipt:
        """The receipt of what was delivered so far, where all subscriptions read the same types."""
        if len(self._followed) > 1:
            raise UsageError("A253", "the rules form several groups, with one receipt each", "use `receipts`")
        return next(iter(self.receipts.values()))

    @property
    def events_read(self) -> int:
        """The number of events read; subscriptions that are read together count once."""
        return sum(each.following.events for each in self._courses)

    async def ends(self) -> Ends:
        """For each stream, the sequence at which everything stored now is merged."""
        reads = {
            stream: part.topics
            for each in self._followed.values()
            for stream, part in zip(each.streams, each.group.parts, strict=True)
        }
        return {stream.name: await end_of(self._log, stream, topics) for stream, topics in reads.items()}

    async def has_passed(self, ends: Ends) -> bool:
        """Whether everything up to these ends was matched and delivered."""
        courses = [each.following for each in self._courses]
        passed = [await each.has_passed([ends[stream.name] for stream in each.streams]) for each in courses]
        waiting = self._queue.qsize() or (self._begun is not None and self._taken < len(self._begun))
        return not waiting and all(passed)

    async def lag(self) -> int:
        """The number of blocks that are stored and not yet read, over all streams."""
        return sum([await each.following.lag() for each in self._courses], start=0)


def _base(key: str) -> str:
    """The common prefix of the keys of equal subscriptions."""
    return key.partition(EQUAL)[0]
