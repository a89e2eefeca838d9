"""The live part, simulated: real clients on an event loop with simulated time, over a log that is reached by a faulty network.

    1. declare the types; start publishers, and subscribers when they join; clients fail by the case
    2. when all publishers are done, nothing fails any more: wait until every subscriber has received everything
    3. subscribers leave; what happened is a history, which a checker judges (testing/history/)

Takes: a case. Gives: an outcome. Never: waits for real time; depends on anything but the case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from fairlead.errors import FairleadError
from fairlead.model.events.event import Event
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.declarations import compiled_types
from fairlead.runtime.live.subscriber.leading_lineage import leading_origin
from fairlead.runtime.live.subscriber.record import group_names, receipts_of
from fairlead.testing.history.checker import check
from fairlead.testing.history.values import (
    History,
    Joining,
    NotedReceipt,
    PublisherHistory,
    ReceivedDelivery,
    SubscriberHistory,
)
from fairlead.testing.live.verdict.log_copy import first_of_each, logged_events
from fairlead.testing.simulator.live.actors import (
    Actor,
    RetainingActor,
    SimulatedPlace,
    SubscribingActor,
    SweepingActor,
    stream_of,
)
from fairlead.testing.simulator.live.cases import MISSING, STREAMS, TOPICS, TYPES, LiveCase, live_case, smaller_cases
from fairlead.testing.simulator.live.event_loop import SimulatedLoop, SimulatedNode
from fairlead.testing.simulator.live.network import Network, RemoteLog, done
from fairlead.testing.simulator.live.publishing_actor import PublishingActor
from fairlead.testing.simulator.live.servers import SimulatedServers
from fairlead.testing.simulator.outcome import Outcome
from fairlead.transport.log.names import merged_stream, topic_stream

FAULTY_SECONDS_MAX = 600.0
"""By then all failures of a case are over, and publishers are done."""
DRAIN_SECONDS_MAX = 60.0
LOOK_SECONDS = 0.5


class LiveSimulation:
    """The simulation of the live part, by name: `live`."""

    name = "live"

    def case(self, seed: int) -> LiveCase:
        return live_case(seed)

    def run(self, case: LiveCase) -> Outcome:
        return LiveRun(case).outcome()

    def smaller(self, case: LiveCase) -> Iterator[LiveCase]:
        return smaller_cases(case)

    def size(self, case: LiveCase) -> int:
        return case.size


class LiveRun:
    """`history`: what happened, if nobody was stuck."""

    def __init__(self, case: LiveCase) -> None:
        self._loop, self._case = SimulatedLoop(case.seed), case
        self.history: History | None = None
        self._publishers: list[PublishingActor] = []
        self._subscribers: list[SubscribingActor] = []
        self._keepers: list[RetainingActor | SweepingActor] = []
        self._problems: list[str] = []
        self._over = False

    def outcome(self) -> Outcome:
        self._loop.simulate(self._run())
        problems = self._problems + self._loop.trouble
        return Outcome(tuple(problems), tuple(self._lines()))

    async def _run(self) -> None:
        case = self._case
        self._servers = servers = SimulatedServers(self._loop, case.seed)
        self._network = network = Network(self._loop, servers, case.network)
        servers.later = network.later
        await self._declare()
        for topic in sorted({*TOPICS.values()}):
            done(servers.open_topics([topic]))
        if case.sweeps is not None and case.sweeps.left:
            done(servers.open_topics(STREAMS["Wide"]))
        self._publishers = [PublishingActor(each, network, case.seed) for each in case.publishers]
        trims = case.retention is not None
        self._subscribers = [
            SubscribingActor(each, network, case.seed, lambda: self._over, case.snapshots, trims) for each in case.subscribers
        ]
        self._keepers = [] if case.retention is None else [RetainingActor(case.retention, network, case.seed)]
        self._keepers += [] if case.sweeps is None else [SweepingActor(case.sweeps, network, case.seed)]
        for election in case.elections:
            network.later(election.at_ms / 1000, self._elect, election.ms / 1000)
        for each in (*self._publishers, *self._keepers):
            each.begin()
        for one in self._subscribers:
            network.later(one.plan.joins_ms / 1000, one.begin)
        timed = any(MISSING in each.all_rules for each in case.subscribers)
        beats = SimulatedNode("beats", self._loop).start(self._beat()) if timed else None  # 1
        workers: list[Actor] = [*self._publishers, *self._keepers]
        if not await self._until(lambda: all(each.done for each in workers), FAULTY_SECONDS_MAX):
            self._waiting("is not done", workers)
        await self._until(lambda: all(one.idle for one in self._subscribers), FAULTY_SECONDS_MAX)
        if beats is not None:
            beats.cancel()
        for actor in self._actors:
            actor.calm()
        await self._until(lambda: not any(actor.failing for actor in self._actors), FAULTY_SECONDS_MAX)
        for one in self._subscribers:
            one.idle = False
        await self._drain()  # 2
        self._over = True
        if not await self._until(lambda: all(one.done for one in self._subscribers), DRAIN_SECONDS_MAX):
            self._waiting("does not leave", self._subscribers)
        self._problems += [actor.died for actor in self._actors if actor.died]
        if not self._problems:
            self.history = self._history()
            self._problems += check(self.history)  # 3

    @property
    def _actors(self) -> list[Actor]:
        return [*self._publishers, *self._keepers, *self._subscribers]

    async def _declare(self) -> None:
        async with Client(SimulatedPlace(_reliable(self._servers)), "setup", 0.0, 1.0, None) as fl:
            await fl.declare(TYPES)

    async def _beat(self) -> None:
        """Heartbeats decide absences; this client does not fail."""
        seconds = self._case.heartbeat_ms / 1000
        async with Client(SimulatedPlace(_reliable(self._servers)), "beats", 0.005, 10.0, seconds):
            await asyncio.Event().wait()

    def _elect(self, seconds: float) -> None:
        self._network.leaderless = True
        self._network.later(seconds, self._elected)

    def _elected(self) -> None:
        self._network.leaderless = False

    async def _until(self, reached: Callable[[], bool], seconds: float) -> bool:
        end = self._loop.time() + seconds
        while self._loop.time() < end:
            if reached():
                return True
            if any(actor.died for actor in self._actors):
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return reached()

    async def _drain(self) -> None:
        """Until every subscriber is idle, and the log has not grown since it was."""
        end = self._loop.time() + DRAIN_SECONDS_MAX
        before, quiet = -1, 0
        while quiet < 2:
            await asyncio.sleep(LOOK_SECONDS)
            size = sum(self._servers.end(topic_stream(topic)) for topic in {*TOPICS.values()})
            idle = all(one.idle for one in self._subscribers)
            quiet = quiet + 1 if idle and size == before else 0
            before = size
            if self._loop.time() > end:
                self._waiting("has not received everything", [one for one in self._subscribers if not one.idle])
                return
            if any(one.died for one in self._subscribers):
                return

    def _waiting(self, what: str, actors: Sequence[Actor]) -> None:
        """If an error has ended one of them, that error says enough."""
        if any(each.died for each in self._actors):
            return
        self._problems += [f"{each.name} {what}" for each in actors if not each.done and not each.died]

    def _history(self) -> History:
        catalogue = {each.name: each for each in compiled_types(TYPES).catalogue}
        streams = {topic_stream(topic): self._servers.stored(topic_stream(topic)) for topic in sorted({*TOPICS.values()})}
        merged = {merged_stream(topics): topics for topics in STREAMS.values() if len(topics) > 1}
        read = {stream_of(each.split()[1], who.plan.order) for who in self._subscribers for each in who.rules}
        used = {name: topics for name, topics in merged.items() if name in read}
        streams |= {name: first_of_each(self._servers.stored(name)) for name in used}
        events = {name: logged_events(blocks, catalogue, _token) for name, blocks in streams.items()}
        topics = {topic: events[topic_stream(topic)] for topic in sorted({*TOPICS.values()})}
        return History(
            topics,
            events,
            used,
            [PublisherHistory(each.name, each.steps) for each in self._publishers],
            [*map(self._subscriber, self._subscribers), *(self._beside(each) for each in self._subscribers if each.beside)],
        )

    def _beside(self, who: SubscribingActor) -> SubscriberHistory:
        """Without a name nothing is acknowledged: every process receives everything."""
        groups = {step.group for step in who.beside if isinstance(step, ReceivedDelivery)}
        names = [each.split()[1] for each in who.rules]
        return SubscriberHistory(
            f"the one beside {who.name}",
            f"{TYPES}\n{who.text}",
            {name: stream_of(name, who.plan.order) for name in names},
            tuple(who.beside),
            dict.fromkeys(names, Joining()),
            dict.fromkeys(groups, NotedReceipt(0, "0" * 32)),
            is_done=False,
        )

    def _leading(self, key: str) -> int | None:
        origin = done(leading_origin(self._servers, key))
        return origin[0] if origin is not None and len(origin) == 1 else None

    def _subscriber(self, who: SubscribingActor) -> SubscriberHistory:
        rules = who.rules
        try:
            found = done(receipts_of(self._servers, who.name))
        except FairleadError as error:
            self._problems.append(f"{who.name} has no receipts: {error}")
            found = {}
        named = done(group_names(self._servers, who.name))
        receipts = {
            key: NotedReceipt(
                each.count, each.digest, each.joined, who.origins.get(key, 0), named.get(key, ""), self._leading(key)
            )
            for key, each in found.items()
        }
        names = [each.split()[1] for each in rules]
        return SubscriberHistory(
            who.name,
            f"{TYPES}\n{who.text}",
            {name: stream_of(name, who.plan.order) for name in names},
            tuple(who.steps),
            who.joined,
            receipts,
        )

    def _lines(self) -> Iterator[str]:
        said = [line for actor in self._actors for line in actor.said]
        for at, what in sorted(said, key=lambda each: each[0]):
            yield f"{at:9.3f}  {what}"


def _token(event: Event) -> str | None:
    return event.raw("token") if "token" in event.schema.index else None


def _reliable(servers: SimulatedServers) -> RemoteLog:
    return servers  # type: ignore[return-value]
