"""Open streams: one per name. A listener that opens a name again takes it over, for instance after a lost connection.

Takes: the work of a stream. Gives: a return when it has ended, by itself, by a successor or because the gateway stops. Never:
lets two streams of one name run at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any
from weakref import WeakValueDictionary

from fairlead.dataclass import dataclass
from fairlead.errors import LogError, UsageError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.subscriber.match_threads import MatchThreads
from fairlead.runtime.live.subscriber.record import SubscriberRecord
from fairlead.runtime.live.subscriber.request import Early, Start
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.transport.log.tasks import ended
from fairlead.web.access.rates import SharedRoom
from fairlead.web.metrics import GatewayMetrics
from fairlead.web.streams.feed import Feed

THREADS_OF_USER = 2
"""In which all subscriptions of a user of the policy match: rules whose searches do not end take no more of the processor."""


@dataclass(eq=False)
class Session:
    name: str
    feed: Feed
    sub: LiveSubscription
    task: asyncio.Task[None] | None = None


class Sessions:
    def __init__(self, client: Client, metrics: GatewayMetrics, streams_max: int) -> None:
        self._client, self._metrics, self._streams_max = client, metrics, streams_max
        self._room = SharedRoom(streams_max)
        self._open: dict[str, Session] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._threads: WeakValueDictionary[str, MatchThreads] = WeakValueDictionary()

    def find(self, name: str) -> Session:
        known = self._open.get(name)
        if known is None:
            fix = "open a stream first, or send the id as Last-Event-ID when you do"
            raise UsageError("A277", f"no stream of '{name}' is open here", fix)
        return known

    def turn(self, name: str) -> asyncio.Lock:
        """Hold this lock while a name is opened."""
        return self._turns.setdefault(name, asyncio.Lock())

    def subscription(
        self, user: str | None, name: str, rules: str, start: Start = "new", *, verdicts: bool = False, early: Early = False
    ) -> LiveSubscription:
        """As of the client. `user`: of the policy, that asks, in whose threads it matches."""
        sub = self._client.subscribe(rules, name=name, start=start, verdicts=verdicts, early=early)
        if user is not None:
            sub.threads = self._threads.setdefault(user, MatchThreads(most=THREADS_OF_USER))
        return sub

    async def open(
        self,
        held: AsyncExitStack,
        name: str,
        kind: str,
        rules: str,
        after: str | None,
        early: Early = False,
        user: str | None = None,
    ) -> Session:
        """Opens and enters a subscription for a stream of a kind (sse, websocket); cleanup is registered with `held`. `user`:
        of the policy, that asks. Raises FairleadError."""
        async with self.turn(name):
            await self.end(name)
            if not self._room.take(1, user):  # before the subscription is entered, which takes its time
                problem = f"{self._streams_max:,} streams are open here, or a quarter of that of one user"
                raise LogError("N041", problem, "use another gateway, or try again later")
            held.callback(self._ended, name, kind, user)  # when the subscription is left
            self._metrics.add("streams_open", 1, kind=kind)
            made = self.subscription(user, name, rules, verdicts=True, early=early)
            sub = await held.enter_async_context(made)
            session = self._open[name] = Session(name, Feed(sub, after), sub)
            return session

    def _ended(self, name: str, kind: str, user: str | None) -> None:
        self._room.give_back(1, user)
        self._metrics.add("streams_open", -1, kind=kind)
        self._open.pop(name, None)

    async def run(self, session: Session, work: Coroutine[Any, Any, None]) -> None:
        """Runs the work to its end. Raises its error."""
        session.task = asyncio.create_task(work)
        try:
            await asyncio.wait({session.task})
        finally:
            await ended(session.task)
        if not session.task.cancelled():
            session.task.result()

    async def end(self, name: str) -> None:
        session = self._open.get(name)
        while session is not None and self._open.get(name) is session:  # until its handler has left the subscription
            await ended(session.task)
            await asyncio.sleep(0.01)

    async def up_to_date(self, *names: str) -> None:
        """Makes the receipts of these names as new as their acknowledgements."""
        for name in names:
            if name in self._open:
                await self._open[name].sub.write_receipts()

    async def close(self) -> None:
        await asyncio.gather(*(self.end(name) for name in list(self._open)))

    async def rules(self, name: str) -> str:
        """The rules to which the name is subscribed. Raises UsageError."""
        record = SubscriberRecord(self._client.log, name)
        if not await record.read():
            raise UsageError("A250", f"there is no subscriber '{name}'", "send its rules to create it")
        return record.rules
