"""The network between simulated clients and the servers of a simulated log.

A request travels to the servers, is executed there, and its answer travels back. Either can be lost or delayed; then the client
learns nothing in time (Unavailable). A write that nobody answered may still be executed, or executed again, long after the
client has given it up and has connected again: it was on its way, or at a leader that stood still. Blocks that a client reads
arrive in order, later, some at a time.

Takes: the servers, a plan of the network, a seed. Gives: a log for each client. Never: loses what the servers have confirmed;
reorders the blocks of a stream.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextvars import Context
from functools import partial
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.testing.simulator.live.event_loop import NODE, SimulatedLoop, SimulatedNode
from fairlead.testing.simulator.live.servers import SimulatedServers
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.protocol import Stored, Stream, Unavailable

ANSWER_SECONDS_MAX = 2.0
"""A client waits this long for an answer, as the client of NATS does by default."""
STRAY_SECONDS_MAX = 12.0
"""A write that was given up is executed within this time, or never: longer than the patience of the clients."""
STRAY_REQUESTS_MAX = 16
"""Or before one of so many requests of the client's next connection: opening a subscription takes about as many."""
WRITES = {"append", "put", "trim", "remove_stream"}
"""What may be executed late: blocks, values of tables, and what retention and sweeps remove."""
READS = {
    "last_of",
    "last_block_of",
    "sources",
    "last",
    "before",
    "state",
    "get",
    "revision_of",
    "now",
    "keys",
    "get_object",
    "objects",
    "merged",
    "behind",
}
"""What a leader that is cut off answers, from the past; it confirms nothing else."""


@dataclass(frozen=True)
class NetworkPlan:
    """`delay_ms`: of one way, on average. Shares: `loss`, of the requests that are lost, or whose answers are; `stray`, of the
    unanswered writes that are executed late, also those across a cut or without a leader; `again`, of the writes that are
    executed once more."""

    delay_ms: int = 2
    loss: float = 0.0
    stray: float = 0.0
    again: float = 0.0


class NetworkLink:
    """Between one client and the servers. `cut`: nothing passes. `past`: it leads to a leader that is cut off, whose log is as
    it was then."""

    def __init__(self) -> None:
        self.cut = False
        self.past: SimulatedServers | None = None
        self._healed = asyncio.Event()
        self.connections = 0
        self.late: list[tuple[int, int, Callable[[None], None]]] = []
        """Writes that are executed before a request of a later connection: later than which, after how many, the write."""

    def arrive(self, connection: int) -> None:
        """A request of this connection arrives."""
        waiting, self.late = self.late, []
        for number, left, execute in waiting:
            if connection <= number or left > 0:
                self.late.append((number, left - (connection > number), execute))
            else:
                execute(None)

    def heal(self) -> None:
        self.cut, self.past = False, None
        self._healed.set()
        self._healed = asyncio.Event()

    async def until_open(self) -> None:
        while self.cut or self.past is not None:
            await self._healed.wait()


class Network:
    """`leaderless`: the servers elect a leader, and lose the requests that reach them now."""

    def __init__(self, loop: SimulatedLoop, servers: SimulatedServers, plan: NetworkPlan) -> None:
        self.loop, self.servers, self.plan = loop, servers, plan
        self.leaderless = False
        self.links: dict[str, NetworkLink] = {}
        self.world = Context()
        self.world.run(NODE.set, loop.world)

    def link(self, name: str) -> NetworkLink:
        return self.links.setdefault(name, NetworkLink())

    def later(self, seconds: float, work: Callable[..., object], *given: Any) -> None:
        """The world does it, whatever becomes of the client."""
        self.loop.timer(self.loop.time() + seconds, work, given, self.world)


class RemoteLog:
    """The log as one client reaches it: every operation of the servers' log, by its name. `noted`: is called when a write is
    sent."""

    def __init__(self, network: Network, name: str, seed: str, noted: Callable[[], None]) -> None:
        self._network, self._rolls, self._noted = network, random.Random(seed), noted
        self._link = network.link(name)
        self._link.connections += 1
        self._connection = self._link.connections
        self.bytes_max, self.owner = network.servers.bytes_max, network.servers.owner

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if name.startswith("_") or not callable(getattr(self._network.servers, name, None)):
            raise AttributeError(name)
        return partial(self._request, name)

    async def close(self) -> None:
        """Nothing is open."""

    async def _request(self, name: str, *given: Any, **more: Any) -> Any:
        network, rolls, plan = self._network, self._rolls, self._network.plan
        answer = network.loop.create_future()
        lost = rolls.random() < plan.loss
        execute = partial(self._execute, NODE.get(network.loop.world), name, given, more)
        if lost and rolls.random() < 0.5:  # the request; otherwise the answer is
            self._strays(name, execute)
        else:
            network.later(self._delay(), execute, None if lost else answer)
            if name in WRITES and rolls.random() < plan.again:
                network.later(rolls.random() * STRAY_SECONDS_MAX, execute, None)
        if name in WRITES:
            self._noted()
        waited = network.loop.call_later(ANSWER_SECONDS_MAX, _tell, None, Unavailable("no answer in time"), answer)
        try:
            return await answer
        finally:
            waited.cancel()

    def _strays(self, name: str, execute: Callable[[None], None]) -> None:
        """A write that has not arrived in time may arrive later."""
        rolls = self._rolls
        if name in WRITES and rolls.random() < self._network.plan.stray:
            if rolls.random() < 0.3:
                self._network.later(rolls.random() * STRAY_SECONDS_MAX, execute, None)
            else:
                self._link.late.append((self._connection, int(rolls.random() * STRAY_REQUESTS_MAX), execute))

    def _delay(self) -> float:
        return self._rolls.expovariate(1000 / max(1, self._network.plan.delay_ms))

    def _execute(self, sender: SimulatedNode, name: str, given: Any, more: Any, answer: asyncio.Future[Any] | None) -> None:
        """At the servers, where the request arrives."""
        network, link = self._network, self._link
        if answer is not None:
            link.arrive(self._connection)
        silent = link.cut or network.leaderless or (link.past is not None and name not in READS)
        if silent or (sender.crashed and answer is not None and self._rolls.random() < network.plan.stray):
            if answer is not None:
                self._strays(name, partial(self._execute, sender, name, given, more))
            return
        log = network.servers if link.past is None else link.past
        try:
            tell = partial(_tell, done(getattr(log, name)(*given, **more)), None)
        except Exception as error:
            tell = partial(_tell, None, error)
        if answer is not None:
            network.later(self._delay(), self._return, tell, answer)

    def _return(self, tell: Callable[[asyncio.Future[Any]], None], answer: asyncio.Future[Any]) -> None:
        if not self._link.cut:
            tell(answer)

    async def heads(self, stream: Stream, after: int, last: int) -> AsyncIterator[Sequence[Stored]]:
        async for some in self._network.servers.heads(stream, after, last):
            await asyncio.sleep(self._delay())
            await self._link.until_open()
            yield some

    async def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        async for some in self._network.servers.read(stream, after, only):
            low = 0
            while low < len(some):
                high = low + 1 + int(self._rolls.random() * 4)
                await asyncio.sleep(self._delay())
                await self._link.until_open()
                yield some[low:high]
                low = high


def done(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of an operation that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("an operation of the servers waits")


def _tell(result: Any, error: Exception | None, answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)
