"""The publisher of a simulated run.

Started again after a crash, it asks the log how many events of its source each topic has, and continues from there: what it
sends again is another publication, with a token of its own.

Takes: its plan, a network. Gives: its steps, for a history. Never: learns of a failure but by what its client raises.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from fairlead.errors import LogError
from fairlead.runtime.live.client import Client
from fairlead.testing.history.values import Confirmed, LifeBegun, NotAccepted, Sent
from fairlead.testing.simulator.live.actors import AGAIN_SECONDS, Actor
from fairlead.testing.simulator.live.cases import TOPICS, Item, PublisherPlan, types_with
from fairlead.testing.simulator.live.network import Network
from fairlead.transport.clocks import clocks

PUBLISHED, ATTRIBUTES = "ABC", 3
"""The types that are published, and how many attributes each has at first. A declaration may be stored in part."""


class PublishingActor(Actor):
    def __init__(self, plan: PublisherPlan, network: Network, seed: int) -> None:
        super().__init__(plan.name, plan.faults, network, seed)
        self._items = _numbered(plan.items)
        self.steps: list[LifeBegun | Sent | NotAccepted | Confirmed] = []
        self._tries = self._notes = 0

    async def work(self) -> None:
        self.steps.append(LifeBegun())
        async with self.connect() as fl:
            types = await fl.types()
            self._notes = min(len(types[name].attributes) for name in PUBLISHED) - ATTRIBUTES
            counts = {topic: await _stored_count(fl, topic, self.name) for topic in {*map(_topic, self._items)}}
            for number, item in self._items:
                if number >= counts[TOPICS[item.type]]:
                    await self._publish(fl, item)
            await self._until_stored(fl)
            self._confirm({*TOPICS.values()})
            self.done = True
            self.say("has published everything")

    def _of_this_life(self) -> list[LifeBegun | Sent | NotAccepted | Confirmed]:
        last = max(at for at, each in enumerate(self.steps) if isinstance(each, LifeBegun))
        return self.steps[last:]

    def _confirm(self, topics: set[str]) -> None:
        """Everything that this process sent to these topics, and that was accepted, is stored."""
        mine = self._of_this_life()
        refused = {step.token for step in mine if isinstance(step, NotAccepted)}
        sent = (step.token for step in mine if isinstance(step, Sent) and step.topic in topics)
        self.steps.append(Confirmed(tuple(token for token in sent if token not in refused)))

    async def _publish(self, fl: Client, item: Item) -> None:
        while True:
            if item.notes > self._notes:
                await fl.declare(types_with(item.notes))
                self._notes = item.notes
            self._tries += 1
            token = f"{self.name}.{item.type}{self._tries}"
            self.steps.append(Sent(token, TOPICS[item.type]))
            self.at_moment("send")
            try:
                at = datetime.fromtimestamp(clocks().wall() - item.lag_ms / 1000, UTC)
                notes = {f"note{at}": token for at in range(item.notes)}
                await fl.publish(item.type, {"k": item.key, "token": token, "at": at} | notes, wait=item.wait)
            except LogError as error:
                if not error.accepted:
                    self.steps.append(NotAccepted(token))
                    await asyncio.sleep(AGAIN_SECONDS)
                    continue
                await self._until_stored(fl)
            if item.wait:
                self._confirm({TOPICS[item.type]})
            self.say(f"publishes {token}, k = {item.key}{', stored' if item.wait else ''}")
            break
        if item.gap_ms:
            await asyncio.sleep(item.gap_ms / 1000)

    async def _until_stored(self, fl: Client) -> None:
        while True:
            try:
                return await fl.flush()
            except LogError:
                await asyncio.sleep(AGAIN_SECONDS)


def _numbered(items: tuple[Item, ...]) -> list[tuple[int, Item]]:
    """Each with its number in its topic."""
    counts: dict[str, int] = {}
    found = []
    for item in items:
        topic = TOPICS[item.type]
        found.append((counts.get(topic, 0), item))
        counts[topic] = counts.get(topic, 0) + 1
    return found


def _topic(numbered: tuple[int, Item]) -> str:
    return TOPICS[numbered[1].type]


async def _stored_count(fl: Client, topic: str, source: str) -> int:
    last = await fl.log.last_block_of(topic, source)
    return 0 if last is None else last.block.sequence + last.block.count
