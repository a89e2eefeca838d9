"""Which merged streams are in use: those with a lease, and those of durable subscribers.

Takes: streams in use. Gives: `needed`, their names, and `sweep`, which removes the others. Never: removes a stream that a
durable subscriber reads, or a source of a stream in use.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from fairlead.errors import LogError
from fairlead.runtime.live.record import TABLE as SUBSCRIBERS
from fairlead.transport.log.names import merged_stream
from fairlead.transport.log.protocol import Log
from fairlead.transport.log.tasks import ended

TABLE = "FL_LEASES"
RENEW_SECONDS = 30.0
LEASE_SECONDS = 120.0


class Lease:
    """A lease on the merged streams of some sets of topics, for as long as it is held."""

    def __init__(self, log: Log, topic_sets: Iterable[tuple[str, ...]]) -> None:
        self._log, self._sets = log, sorted(topic_sets)
        self._key = uuid.uuid4().hex
        self._task: asyncio.Task[None] | None = None

    async def take(self) -> None:
        await self._renew()
        self._task = asyncio.create_task(self._renewing())

    async def give_back(self) -> None:
        if self._task is not None:
            await ended(self._task)
            self._task = None
            await self._log.remove(TABLE, self._key)

    async def _renew(self) -> None:
        told = {"topics": [list(each) for each in self._sets], "until": time.time() + LEASE_SECONDS}
        await self._log.put(TABLE, self._key, json.dumps(told).encode())

    async def _renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(LogError):  # the next renewal will do
                await self._renew()


async def needed(log: Log) -> set[str]:
    """Names of merged streams: those in use, and their sources."""
    return {merged_stream(topics[:count]) for topics in await _in_use(log) for count in range(2, len(topics) + 1)}


async def sweep(log: Log) -> list[str]:
    """Remove the merged streams that are not in use; returns their names."""
    for key, lease in (await _leases(log)).items():
        if lease["until"] <= time.time():
            await log.remove(TABLE, key)
    kept = await needed(log)
    removed = [each for each in await log.merged() if each.name not in kept]
    for each in removed:
        await log.remove_stream(each)
    return [each.name for each in removed]


async def _leases(log: Log) -> dict[str, dict[str, Any]]:
    entries = {key: await log.get(TABLE, key) for key in await log.keys(TABLE)}
    return {key: json.loads(each.value) for key, each in entries.items() if each is not None}


async def _in_use(log: Log) -> list[list[str]]:
    found: list[list[str]] = []
    for lease in (await _leases(log)).values():
        if lease["until"] > time.time():
            found += lease["topics"]
    for key in await log.keys(SUBSCRIBERS):
        entry = await log.get(SUBSCRIBERS, key)
        if entry is not None:
            groups = json.loads(entry.value)["groups"].values()
            found += [part["topics"] for each in groups for part in each["parts"]]
    return found
