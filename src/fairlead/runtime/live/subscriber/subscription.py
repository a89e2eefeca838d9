"""A live subscription: delivers relations as they are completed, and records acknowledgements.

    1. compile the rules, or take those that are recorded under the name
    2. find the groups of their subscriptions, and the streams that each reads (core/stream_groups.py)
    3. open each group where it begins, or where the name left it (group_start.py)
    4. follow groups that have a stream in common in one task, in one order (group_task.py), up to a few batches ahead
    5. hand batches over, and record what is acknowledged (core/ledger.py, record.py)

Acknowledged relations are never delivered again under this name. Others are delivered again after a restart, in the same order,
starting with the first.

Takes: rules, a name, where to start. Gives: relations one by one, or in batches. Never: delivers a relation that another
subscriber with the same rules does not get.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import pyarrow as pa

from fairlead.deliver.receipt import Receipt
from fairlead.errors import LogError, StateError, UsageError
from fairlead.matching.state.encoding import Change
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.plans.partition import alone
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.core.declarations import compiled
from fairlead.runtime.live.core.deliveries import Batch, JointDeliveries
from fairlead.runtime.live.core.stream_groups import groups_of, together
from fairlead.runtime.live.merged_streams import Lease, end_of, open_streams
from fairlead.runtime.live.registry import Registry, off_loop
from fairlead.runtime.live.route_table import routes_for
from fairlead.runtime.live.subscriber.group_start import GroupOpening, SharedWork, changed
from fairlead.runtime.live.subscriber.group_task import GroupTask, OpenedGroup, names_in
from fairlead.runtime.live.subscriber.group_trims import group_places, group_risk, resumes
from fairlead.runtime.live.subscriber.record import SubscriberRecord, require_no_loop
from fairlead.runtime.live.subscriber.request import SubscriptionRequest
from fairlead.runtime.live.subscriber.trim_check import (
    LOST,
    TrimRisk,
    about_to_be_trimmed,
    passed_over,
    require_untrimmed,
)
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.tasks import ended

AHEAD = 4
"""Batches that are matched before the subscriber asks for them."""
RECEIPT_SECONDS = 1.0
Ends = Mapping[str, int]


class LiveSubscription:
    """A live subscription. Create it with `Client.subscribe`, and use it in `async with`; iterate for the relations.

    `routed`: read only blocks that can matter. `threads`: in which it matches; set them before you enter it. `change`: which
    subscriptions resumed where this name left them, started, or were dropped."""

    routed = True
    change = Change()

    def __init__(self, log: PatientLog, registry: Registry, shared: SharedWork, request: SubscriptionRequest) -> None:
        self._log, self._registry, self._shared, self._request = log, registry, shared, request
        self.threads = shared.threads
        self._record = SubscriberRecord(log, request.name) if request.name is not None else None
        self._lease = Lease(log)
        self._groups: dict[str, OpenedGroup] = {}
        self._tasks: list[GroupTask] = []
        self._running: list[asyncio.Task[None]] = []
        self._queue: asyncio.Queue[Batch | Exception] = asyncio.Queue(AHEAD)
        self._begun_at: list[tuple[int, ...]] = []
        self._begun: Batch | None = None
        self._taken = self._told = 0
        """Relations and reports of it that were handed over."""
        self._receipts_at = 0.0

    @property
    def name(self) -> str | None:
        """The durable name, or None."""
        return self._record.name if self._record else None

    async def __aenter__(self) -> Self:
        trying = Patience(self._log.patience)
        try:
            while not await self._opened():
                if trying.is_over:
                    raise about_to_be_trimmed(names_in([*self._groups.values()]))
                await trying.pause()
            if self._record is not None:
                await self.write_receipts()
        except BaseException:
            await self._lease.give_up()
            raise
        await asyncio.to_thread(pa.array, [0])  # Arrow searches for pandas once, for half a second: now, not at a relation
        self._running = [asyncio.create_task(self._run(each)) for each in self._tasks]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Acknowledgements are stored already; the rest is optional, and may fail."""
        await ended(*self._running)
        with suppress(LogError):
            for each in self._tasks:
                await each.end()
            if self._record is not None:
                await self.write_receipts()
            await self._lease.give_back()

    async def _opened(self) -> bool:
        """False if what a new group needs is trimmed in the meantime: then it has to begin again, later in the log. Raises
        StateError if it begins at the same place again, as it was asked to."""
        known = await self._planned()  # 1
        saved = self._record.drop_joining() if self._record is not None else set()
        self._groups, self._tasks = {}, []
        await self._open_groups(known)  # 2, 3
        for numbers in together([each.group for each in self._groups.values()]):
            opened = list(self._groups.values())
            self._tasks.append(await self._task([opened[at] for at in numbers]))  # 4
        if self._record is None:
            return True
        self._record.groups = {key: self._record.groups[key] for key in self._groups}  # without dropped groups
        await self._record.write()
        new = [each for key, each in self._groups.items() if key not in saved]
        risk = max([await group_risk(self._log, each) for each in new], default=TrimRisk.NONE)
        before, self._begun_at = self._begun_at, [each.follower.lineage.after for each in new]
        if risk is TrimRisk.NONE:
            if new:
                await self._record.end_joining()
            return True
        self._record.drop_joining()
        await self._record.write()
        if risk is TrimRisk.TRIMMED and before == self._begun_at:
            for stream, place in (pair for each in new for pair in group_places(each)):
                await require_untrimmed(self._log, stream, place)
        return False

    async def _planned(self) -> bool:
        """Read the rules, and take the name over; returns whether it is known."""
        while True:
            known = self._record is not None and await self._record.read()
            self.plan = await self._plan(known)
            if self._record is None or await self._record.take_over():
                return known

    async def _plan(self, known: bool) -> Plan:
        """A known subscriber continues with the types as they were when it began: it ignores attributes added since."""
        if known and self._record is not None and self._record.rules == self._request.rules:
            return await off_loop(compiled, self._record.text)
        plan = await self._registry.plan(self._request.rules)
        if not plan.subscriptions:
            raise UsageError("A252", "the rules have no subscription", "add SUBSCRIPTION … MATCH …")
        if self._record is not None:
            if known:
                self._record.require({each.digest for each in plan.subscriptions})
            self._record.rules, self._record.text, self._record.digest = self._request.rules, plan.text, plan.digest
        return plan

    async def _open_groups(self, known: bool) -> None:
        found = groups_of(self.plan)
        await self._lease.take({topics for group in found for topics in group.sources}, self._log.patience)
        groups = [(group, await open_streams(self._log, group.sources)) for group in found]  # 2
        if self._request.emit:
            await require_no_loop(self._log, self.name, [group for group, _ in groups])
        saved = self._record.groups if self._record is not None else {}
        opening = GroupOpening(self._log, self._shared, self._record, self._request, known=known)
        keyed = opening.keyed(groups, saved)
        self.change = changed({key: group for key, (group, _) in keyed.items()}, saved)
        for key, (group, streams) in keyed.items():
            self._groups[key] = await opening.open(group, streams, key)  # 3

    async def _task(self, groups: Sequence[OpenedGroup]) -> GroupTask:
        """The task of groups that share streams."""
        plan = groups[0].group.plan if len(groups) == 1 else alone(self.plan, names_in(groups))
        routes, only = dict[str, int](), None
        if len({stream for each in groups for stream in each.streams}) == 1:
            types = sorted({name for each in groups for name in each.group.types})
            if self.routed:
                routes = await routes_for(self._log, plan, types, durable=self._record is not None)
            only = Only((*types, *{name for each in groups for name in each.group.heartbeats}), routes)
        # several streams wait for each other: the more blocks of each, the sooner, so all of them are read
        if self._record is not None:
            for each in groups:
                self._record.groups[each.key]["routes"] = routes
        shared, verdicts = self._shared, self._request.verdicts
        return GroupTask(
            self._log,
            plan,
            groups,
            self._log.patience,
            only,
            shared.rejected,
            verdicts=verdicts,
            clock=shared.clock,
            threads=self.threads,
        )

    async def _run(self, task: GroupTask) -> None:
        try:
            await task.run(self._queue.put)
        except Exception as error:
            told, record = error, self._record
            if isinstance(error, StateError) and error.code == LOST and record is not None:
                told = passed_over(error) if await resumes(self._log, record, task.groups) else error
            await self._queue.put(told)

    def skip_early(self, key: str, number: int) -> None:
        """Nothing up to this delivery of a group is early again. To be called when it is entered, before anything else."""
        self._groups[key].follower.skip_early(number)

    async def batches(self) -> AsyncIterator[Batch]:
        """Iterate over relations as they arrive, in batches where many arrive together."""
        while True:
            yield await self.next_batch()

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Relations one by one; with `verdicts`, reports on events (EventReport) among them, in their places."""
        while True:
            delivered = await self.next_within(None)
            assert delivered is not None
            yield delivered

    async def next_within(self, seconds: float | None) -> Any:
        """The next relation (or report), or None if there is none within this time."""
        while True:
            delivered = self.next_at_hand()
            if delivered is not None:
                return delivered
            try:
                async with asyncio.timeout(seconds):
                    self._begun, self._taken, self._told = await self._next(), 0, 0
            except TimeoutError:
                return None

    async def next_batch(self) -> Batch:
        """Wait for the next relations, and return all that are ready."""
        if not self._is_begun:
            self._begun, self._taken, self._told = await self._next(), 0, 0
        assert self._begun is not None
        batch, self._begun = self._begun, None
        self._hand(batch, len(batch))
        return batch.left(self._taken, self._told) if self._taken or self._told else batch

    @property
    def _is_begun(self) -> bool:
        """Whether some of a batch has not been handed over."""
        return self._begun is not None and (self._taken < len(self._begun) or self._told < len(self._begun.reports))

    def next_at_hand(self) -> Any:
        """The next relation (or report) of a batch that has already arrived."""
        if self._begun is None or not self._is_begun:
            self._begun = None
            return None
        if self._told < len(self._begun.reports) and self._begun.before[self._told] <= self._taken:
            self._told += 1
            return self._begun.reports[self._told - 1]
        self._taken += 1
        if self._taken == len(self._begun):
            self._hand(self._begun, self._taken)
        return self._begun[self._taken - 1]

    def _hand(self, batch: Batch, count: int) -> None:
        """Record that the subscriber received this many relations of a batch. Without a name nothing can be resumed, so nothing
        is recorded."""
        for key, last in batch.numbering.lasts_of(count).items():
            ledger = self._groups[key].ledger
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

        It covers the subscriptions that share one order with it. Early deliveries need not be acknowledged, and are ignored
        here. Raises StateError if another process uses the name.
        """
        if done is not None and done.early:
            return
        if isinstance(done, Batch):
            if len(done):
                key, number = done.numbering.last
                await self.acknowledge(self._deliveries(key).up_to(key, number))
        elif done is not None:
            self._note_handed()
            one = next((each for each in self._groups.values() if done.subscription in each.group.names), None)
            if one is None:
                raise UsageError(
                    "A249",
                    f"'{done.subscription}' is not a subscription of this subscriber",
                    "acknowledge a relation that this subscription delivered",
                )
            await self.acknowledge(self._deliveries(one.key).up_to(one.key, one.ledger.number_of(done)))
        else:
            self._note_handed()
            await self.acknowledge({key: each.ledger.handed for key, each in self._groups.items()})

    async def acknowledge(self, numbers: Mapping[str, int]) -> None:
        """Acknowledge by group: everything up to this number of its deliveries."""
        self._acknowledge(numbers)
        if self._record is not None:
            news = {key: self._news_of(key, each) for key, each in self._groups.items()}
            await self._record.acknowledge({key: told for key, told in news.items() if told})
            if asyncio.get_running_loop().time() - self._receipts_at > RECEIPT_SECONDS:
                await self.write_receipts()

    def _news_of(self, key: str, opened: OpenedGroup) -> dict[str, Any]:
        """What is acknowledged of a group and not stored; empty if it is stored."""
        assert self._record is not None
        stored, ledger, found = self._record.groups[key], opened.ledger, dict[str, Any]()
        if ledger.book.count and ledger.current and ledger.book.count != stored["count"]:  # a replay does not overwrite it
            found |= ledger.acknowledged()
        verdicts = opened.follower.lineage.verdicts
        if verdicts and stored.get("verdicts") != verdicts:  # for `fairlead streams`
            found["verdicts"] = dict(verdicts)
        return found

    def _acknowledge(self, numbers: Mapping[str, int]) -> None:
        for each in self._tasks:
            each.deliveries.acknowledge({key: number for key, number in numbers.items() if key in each.deliveries.ledgers})

    def _deliveries(self, key: str) -> JointDeliveries:
        return next(each.deliveries for each in self._tasks if key in each.deliveries.ledgers)

    async def write_receipts(self) -> None:
        """Store the receipts of what is acknowledged, for others to compare. This also happens every second, and at the end."""
        if self._record is None or not self._record.is_stored or not all(each.ledger.current for each in self._groups.values()):
            return  # what is acknowledged may not be stored, or not be counted again yet; receipts do not go back
        self._receipts_at = asyncio.get_running_loop().time()
        await self._record.write_receipts({key: each.ledger.book.receipt() for key, each in self._groups.items()})

    @property
    def receipts(self) -> Mapping[str, Receipt]:
        """The receipts of what was delivered so far, by group."""
        self._note_handed()
        return {key: each.ledger.receipt() for key, each in self._groups.items()}

    @property
    def receipt(self) -> Receipt:
        """The receipt of what was delivered so far, where all subscriptions read the same types."""
        if len(self._groups) > 1:
            raise UsageError("A253", "the rules form several groups, with one receipt each", "use `receipts`")
        return next(iter(self.receipts.values()))

    @property
    def verdict_counts(self) -> Mapping[EventVerdict, int]:
        """How many events took no part, by the reason: since the origin, summed over the groups of subscriptions."""
        found = Counter[EventVerdict]()
        for each in self._groups.values():
            found.update({EventVerdict(name): count for name, count in each.follower.lineage.verdicts.items()})
        return dict(sorted(found.items()))

    @property
    def rejected(self) -> Mapping[str, int]:
        """How many blocks this subscriber has read and skipped, because they are forged or damaged, by the code of the error.
        Every reader skips the same ones; `fairlead streams` names them."""
        found = Counter[str]()
        for each in self._tasks:
            found.update(each.rejected)
        return dict(sorted(found.items()))

    @property
    def events_read(self) -> int:
        """The number of events read; subscriptions that are read together count once."""
        return sum(each.reading.events for each in self._tasks)

    async def ends(self) -> Ends:
        """For each stream, the sequence at which everything stored now is merged."""
        reads = {
            stream: topics
            for each in self._groups.values()
            for stream, topics in zip(each.streams, each.group.sources, strict=True)
        }
        return {stream.name: await end_of(self._log, stream, topics) for stream, topics in reads.items()}

    async def has_passed(self, ends: Ends) -> bool:
        """Whether everything up to these ends was matched and delivered."""
        passed = [await each.has_passed([ends[stream.name] for stream in each.reading.streams]) for each in self._tasks]
        return not self._queue.qsize() and not self._is_begun and all(passed)

    async def lag(self) -> int:
        """The number of blocks that are stored and not yet read, over all streams."""
        return sum([await each.lag() for each in self._tasks], start=0)
