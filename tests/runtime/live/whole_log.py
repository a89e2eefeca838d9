"""A log in memory with an entry in every table, for those who forge or damage them."""

from __future__ import annotations

import asyncio
import copy
from contextlib import ExitStack

from fairlead.runtime.live.client import Client
from fairlead.runtime.live.merged_streams import Lease
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.log_place import LogPlace
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Log
from fairlead.transport.log.signed_log import SignedLog, SigningKeys
from tests.runtime.live.reading import ids, more

KEYS = SigningKeys((b"k" * 32,))
TYPES = "TOPIC a (A) KEEP 1000 GB; TOPIC b (B); TYPE A (k INT, x INT); TYPE B (k INT, x INT)"
RULES = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k AND a.x > 0 EMIT Pair (k = a.k)"
STATES = "FL_STATES"


class MemoryPlace(LogPlace):
    """A log in memory, with the keys of a client."""

    def __init__(self, log: MemoryLog, keys: SigningKeys) -> None:
        super().__init__("memory:", None, 1, Credentials())
        object.__setattr__(self, "_opened", SignedLog(log, keys))

    async def open(self, held: ExitStack) -> tuple[Log, str]:
        return self._opened, "memory:"  # type: ignore[attr-defined]


def client(log: MemoryLog, keys: SigningKeys = KEYS, source: str | None = "p") -> Client:
    return Client(MemoryPlace(log, keys), source, 0.001, 10.0, None)


async def publish(fl: Client, low: int, high: int) -> None:
    for k in range(low, high):
        await fl.publish("A", k=k, x=k, wait=True)
        await fl.publish("B", k=k, x=k, wait=True)


async def resumed(fl: Client) -> list[str]:
    async with fl.subscribe(RULES, name="desk") as sub:
        return ids(await more(sub))


async def begun(fl: Client) -> None:
    async with fl.subscribe("SUBSCRIPTION T MATCH B b", start="earliest") as sub:
        await more(sub)


async def built(keys: SigningKeys = KEYS) -> MemoryLog:
    """A log with an entry in every table, two of the same name in those that may be confused."""
    log = MemoryLog()
    async with client(log, keys) as fl:
        await fl.declare(TYPES)
        await publish(fl, 1, 6)
        for name in ("desk", "other"):
            async with fl.subscribe(RULES, name=name, start="earliest") as sub:
                await more(sub)
                await sub.ack()
        await publish(fl, 6, 9)
        await fl.overview()
        await fl.declare("TOPIC b KEEP 1 B")
        await fl.retain(apply=True)
        await Lease(fl.log, [("a", "b", "c")])._renew()
        await fl.log.put("FL_SINKS", "sink", b"{}")
    return log


def copied(log: MemoryLog) -> MemoryLog:
    made = copy.copy(log)
    for name, held in vars(log).items():
        if isinstance(held, dict):
            setattr(made, name, {key: copy.copy(each) for key, each in held.items()})
    made._more = asyncio.Event()
    return made
