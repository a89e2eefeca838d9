"""The processes of a simulated run: they use the real client, and record what they do. Publishers: publishing_actor.py.

A process that crashes is started again under its name after a while, as a new process. It connects again when the log does not
answer in time, as applications should.

Takes: plans, a network. Gives: the steps of each, for a history. Never: learns of a failure but by what its client raises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import Any

from fairlead.errors import FairleadError, LogError, StateError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.deliveries import Batch
from fairlead.runtime.live.subscriber.record import receipts_of
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.testing.history.values import (
    Acknowledged,
    Acknowledging,
    Joining,
    LifeBegun,
    ReceivedDelivery,
    SeenReceipt,
    SubscriberStep,
)
from fairlead.testing.simulator.live.cases import (
    STREAMS,
    ActorFault,
    RetentionPlan,
    SubscriberPlan,
    SweepPlan,
)
from fairlead.testing.simulator.live.event_loop import SimulatedNode
from fairlead.testing.simulator.live.network import Network, RemoteLog, done
from fairlead.transport.clocks import clocks
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.log_place import LogPlace
from fairlead.transport.log.names import merged_stream, topic_stream
from fairlead.transport.log.protocol import Log

PATIENCE_SECONDS = 4.0
AGAIN_SECONDS = 0.3
IDLE_SECONDS, IDLE_SECONDS_MAX = 1.0, 8.0
"""A subscriber that receives nothing for so long looks whether it has everything; the longer it does, the less often."""
EXPECTED = {"S131", "N001", "N024", "N027"}
"""What an application meets with while parts fail: an event of a former process that arrived late, no answer, events that were
trimmed before a process that stood still had read them, and a sweep that was interrupted."""


class SimulatedPlace(LogPlace):
    """A log that is reached through the simulated network."""

    def __init__(self, log: RemoteLog) -> None:
        super().__init__("simulated:", None, 1, Credentials())
        object.__setattr__(self, "remote", log)

    async def open(self, held: ExitStack) -> tuple[Log, str]:
        return self.remote, "simulated:"  # type: ignore[attr-defined]


def stream_of(subscription: str, order: str = "") -> str:
    """With an order by value, the streams of its topics."""
    topics = STREAMS[subscription]
    if order:
        return " ".join(map(topic_stream, topics))
    return topic_stream(topics[0]) if len(topics) == 1 else merged_stream(topics)


class Actor:
    """`said`: what happened to it, for the printed run. `died`: the error that ended it, which none should."""

    def __init__(self, name: str, faults: tuple[ActorFault, ...], network: Network, seed: int) -> None:
        self.name, self.network, self._seed = name, network, seed
        self._faults = list(faults)
        self._lives = 0
        self.done = False
        self.died: str | None = None
        self.said: list[tuple[float, str]] = []
        self.node = network.loop.world
        self.failing = self._turns = 0
        """Failures that last."""

    def say(self, what: str) -> None:
        self.said.append((self.network.loop.time(), f"{self.name:6} {what}"))

    def connect(self) -> Client:
        log = RemoteLog(
            self.network,
            self.name,
            f"{self._seed} {self.name} {self.network.link(self.name).connections}",
            lambda: self.at_moment("write"),
        )
        return Client(SimulatedPlace(log), self.name, 0.005, PATIENCE_SECONDS, None)

    def begin(self) -> None:
        """A new process, whose failures wait for it."""
        self._lives += 1
        skew = self.node.skew if self._lives > 1 else 0.0
        self.node = SimulatedNode(f"{self.name}.{self._lives}", self.network.loop)
        self.node.skew = skew
        self._next_trap()
        self.node.start(self._living(self.node))

    def calm(self) -> None:
        """Nothing fails any more."""
        self._faults.clear()
        self.node.trap = None

    def _next_trap(self) -> None:
        self._turns = 0
        self.at_moment("begin")

    def at_moment(self, moment: str) -> None:
        """The process does this now: the next failure may be waiting for it."""
        if self._faults and self._faults[0].moment == moment and self.node.trap is None:
            self._turns += 1
            if moment == "begin" or self._turns >= self._faults[0].turn:
                fault = self._faults.pop(0)
                self.node.trap = self.node.steps + fault.after, lambda: self._happens(fault)

    def _happens(self, fault: ActorFault) -> None:
        if self.done:
            return
        seconds, link, node = fault.ms / 1000, self.network.link(self.name), self.node
        self.say(f"{fault.kind} of {seconds:g} s")
        match fault.kind:
            case "crash":
                node.crash()
                self._for(seconds, self._again)
                return
            case "pause":
                node.paused = True
                self._for(seconds, lambda: setattr(node, "paused", False))
            case "cut":
                link.cut = True
                self._for(seconds, link.heal)
            case "stale":
                link.past = self.network.servers.past()
                self._for(seconds, link.heal)
            case "skew":
                node.skew = seconds
        self._next_trap()

    def _for(self, seconds: float, repair: Callable[[], None]) -> None:
        """A failure lasts so long, and is repaired."""

        def over() -> None:
            self.failing -= 1
            repair()

        self.failing += 1
        self.network.later(seconds, over)

    def _again(self) -> None:
        self.say("is started again")
        self.begin()

    async def _living(self, node: SimulatedNode) -> None:
        try:
            while not await self._connected():
                await asyncio.sleep(AGAIN_SECONDS)
        except Exception as error:
            self.died = f"{self.name} ended with {type(error).__name__}: {error}"
            self.say(self.died)

    async def _connected(self) -> bool:
        """One connection; whether everything is done."""
        try:
            await self.work()
        except FairleadError as error:
            if error.code not in EXPECTED:
                raise
            self.say(f"connects again after {error.code}")
            return False
        return True

    def work(self) -> Coroutine[Any, Any, None]:
        raise NotImplementedError


class RetainingActor(Actor):
    """Trims what all durable subscribers have read, some times."""

    def __init__(self, plan: RetentionPlan, network: Network, seed: int) -> None:
        super().__init__("keeper", plan.faults, network, seed)
        self._waits = list(plan.waits_ms)

    async def work(self) -> None:
        async with self.connect() as fl:
            while self._waits:
                await asyncio.sleep(self._waits[0] / 1000)
                for each in await fl.retain(apply=True, read=True):
                    if each.trimmed:
                        self.say(f"has trimmed {each.trimmed} blocks of {each.topic}")
                self._waits.pop(0)
        self.done = True


class SweepingActor(Actor):
    """Removes what no subscriber uses, some times, also while others subscribe."""

    def __init__(self, plan: SweepPlan, network: Network, seed: int) -> None:
        super().__init__("broom", plan.faults, network, seed)
        self._waits = list(plan.waits_ms)

    async def work(self) -> None:
        async with self.connect() as fl:
            while self._waits:
                await asyncio.sleep(self._waits[0] / 1000)
                for name in await fl.sweep():
                    self.say(f"has removed {name}")
                self._waits.pop(0)
        self.done = True


class SubscribingActor(Actor):
    """`over`: says whether to leave. `idle`: it has passed the end of its streams, and acknowledged everything."""

    def __init__(
        self, plan: SubscriberPlan, network: Network, seed: int, over: Callable[[], bool], snapshots: int, trims: bool = False
    ) -> None:
        super().__init__(plan.name, plan.faults, network, seed)
        self.plan, self._over, self._snapshots, self._trims = plan, over, snapshots, trims
        self.steps: list[SubscriberStep] = []
        self.beside: list[SubscriberStep] = []
        """Of the subscriber beside it."""
        self.joined: dict[str, Joining] = {}
        self._asked: dict[str, int] = {}
        self.origins: dict[str, int] = {}
        self.idle = False

    @property
    def rules(self) -> tuple[str, ...]:
        return self.plan.rules if self._lives == 1 else self.plan.all_rules

    async def _connected(self) -> bool:
        """If events are about to be trimmed that it needs when it subscribes for the first time, and the one that trims has
        crashed, it is forgotten and subscribes again. Later, retention knows what it needs."""
        try:
            return await super()._connected()
        except StateError as error:
            if error.code != "S144" or any(isinstance(each, LifeBegun) for each in self.steps):
                raise
        self.say("subscribes anew after S144")
        async with self.connect() as fl:
            await fl.forget(self.name)
        for told in (self.steps, self.joined, self._asked):
            told.clear()
        return False

    @property
    def text(self) -> str:
        return "\n".join((self.plan.order, *self.rules))

    async def work(self) -> None:
        self.idle = False
        names = [each.split()[1] for each in self.rules]
        for name in names:
            self._asked.setdefault(name, self._end(name))
        start = self._start()
        async with self.connect() as fl:
            fl._shared.times.every_events = self._snapshots
            async with fl.subscribe(self.text, name=self.name, start=start) as sub:
                for name in names:
                    self.joined.setdefault(name, self._joining(name, start))
                self.steps.append(LifeBegun())
                self._see_receipts()
                self.say(f"is subscribed, start = {self.plan.start}")
                if self.plan.beside:
                    async with fl.subscribe(self.text, start="earliest") as other:
                        looking = asyncio.create_task(self._look(other))
                        await self._follow(sub)
                        looking.cancel()
                else:
                    await self._follow(sub)
                self.origins |= {key: _origin(each.plan) for key, each in sub.receipts.items()}
        self.done = True

    def _end(self, subscription: str) -> int:
        return self.network.servers.end(stream_of(subscription))

    def _start(self) -> str | int | datetime:
        match self.plan.start:
            case "position":
                return 2 << INDEX_BITS
            case "datetime":
                return datetime.fromtimestamp(clocks().wall() - 1.0, UTC)
            case named:
                return named

    def _joining(self, name: str, start: str | int | datetime) -> Joining:
        """Positions of events in the blocks up to some sequence are smaller than that of the next block."""
        asked, now = (each + 1 << INDEX_BITS for each in (self._asked[name], self._end(name)))
        match start:
            case "new":
                return Joining(asked - 1, now - 1, now)
            case "snapshot":
                return Joining(-1, now - 1, now)
            case "earliest":
                return Joining(by=now - 1, origin_max=now) if self._trims else Joining()
            case int():
                return Joining(origin_max=start)
        return Joining(origin_max=now)

    async def _follow(self, sub: LiveSubscription) -> None:
        left, seconds = list[Batch](), IDLE_SECONDS
        while True:
            batch = await self._next(sub, seconds)
            seconds = IDLE_SECONDS if batch is not None or not self.idle else min(2 * seconds, IDLE_SECONDS_MAX)
            if batch is not None:
                self._note(batch)
                self.at_moment("receive")
                self.idle = False
                left.append(batch)
                await asyncio.sleep(self.plan.slow_ms / 1000)
                if len(left) < self.plan.ack_every:
                    continue
            if left:
                await self._acknowledge(sub, left)
                left.clear()
            if batch is None:
                self.idle = await sub.has_passed(await sub.ends())
                if self._over():
                    return

    async def _look(self, other: LiveSubscription) -> None:
        self.beside.append(LifeBegun())
        with suppress(LogError):  # the one beside it meets with the same
            async for batch in other.batches():
                self.beside += _received(batch)

    async def _next(self, sub: LiveSubscription, seconds: float) -> Batch | None:
        try:
            async with asyncio.timeout(seconds):
                return await sub.next_batch()
        except TimeoutError:
            return None

    def _see_receipts(self) -> None:
        """As the log has them now."""
        for key, each in done(receipts_of(self.network.servers, self.name)).items():
            self.steps.append(SeenReceipt(key, each.count, each.joined))

    def _note(self, batch: Batch) -> None:
        self._see_receipts()
        for each in _received(batch):
            self.steps.append(each)
            told = ", ".join(str(token or position) for position, token in each.members)
            back = " taken back" if each.sign < 0 else ""
            self.say(f"receives {each.subscription} {each.number}{back}: {told}")

    async def _acknowledge(self, sub: LiveSubscription, batches: Sequence[Batch]) -> None:
        """One batch by itself; several as everything that was delivered."""
        self.at_moment("acknowledge")
        lasts = {key: last for each in batches for key, last in each.lasts.items()}
        self.steps += [Acknowledging(key, last) for key, last in lasts.items()]
        await (sub.ack(batches[0]) if len(batches) == 1 else sub.ack())
        for key, last in lasts.items():
            self.steps.append(Acknowledged(key, last))
            self.say(f"has acknowledged up to {last}")


def _received(batch: Batch) -> Iterator[ReceivedDelivery]:
    for key, number, each in batch.numbered():
        members = tuple((member.position.shown, member.values.get("token")) for member in each.members)
        yield ReceivedDelivery(key, number, each.id, each.sign, each.subscription, members)


def _origin(plan: str) -> int:
    """Of the name of a receipt's plan."""
    return int(plan.partition("@")[2] or 0)
