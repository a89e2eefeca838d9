"""A client's publishing: one outbox per type, and optional periodic heartbeats.

Takes: events by type. Gives: a return when they are accepted or stored. Never: accepts a part of a call.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from fairlead.errors import DataError, LogError
from fairlead.model.types import HEARTBEAT, EventType
from fairlead.runtime.live.checking import Checking
from fairlead.runtime.live.publishing import Outbox
from fairlead.runtime.live.registry import Registry
from fairlead.transport.admission.problems import not_published, unknown_type
from fairlead.transport.log.block import BYTES_MAX, EVENTS_MAX
from fairlead.transport.log.names import checked
from fairlead.transport.log.protocol import Log
from fairlead.transport.log.tasks import ended

LARGE = 200_000
"""Bytes from which one event is encoded separately to see whether the log accepts it."""


class Publisher:
    def __init__(self, log: Log, registry: Registry, source: str | None, linger: float, patience: float) -> None:
        self.source = checked(source, "source") if source is not None else f"s-{uuid.uuid4().hex}"
        self._log, self._registry = log, registry
        self._linger, self._patience = linger, patience
        self._writer = uuid.uuid4().hex[:16]
        self._outboxes: dict[str, Outbox] = {}
        self._beating: asyncio.Task[None] | None = None

    async def publish(self, type: str, values: Mapping[str, Any], wait: bool) -> None:
        outbox = self._outboxes.get(type) or await self.outbox(type)
        row = outbox.checking.row(values)
        if outbox.checking.size(row) > LARGE:
            outbox.sized([outbox.checking.batch([row])])
        await outbox.put(row)
        if wait:
            await outbox.stored()

    async def publish_many(self, type: str, events: Any, wait: bool) -> int:
        """1. checks all events, 2. sends all events: a few together with other incoming events, many in their own blocks."""
        outbox = self._outboxes.get(type) or await self.outbox(type)
        tables = outbox.checking.batches(events)  # 1
        count = sum(int(each.num_rows) for each in tables)
        if count < EVENTS_MAX and sum(each.nbytes for each in tables) < BYTES_MAX:
            await outbox.put_tables(tables)  # 2
        else:
            await outbox.put_blocks(outbox.sized(tables))  # 1, 2
        if wait:
            await outbox.stored()
        return count

    async def flush(self) -> None:
        found = await asyncio.gather(*(each.stored() for each in self._outboxes.values()), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each

    async def outbox(self, name: str) -> Outbox:
        """The outbox of a type. Raises DataError if the type cannot be published."""
        if name in self._outboxes:
            return self._outboxes[name]
        known = await self._registry.find(name) if isinstance(name, str) else None
        if known is None:
            raise unknown_type(name, (each.name for each in self._registry.catalogue))
        if known.is_union:
            raise not_published(known)
        if self._registry.is_derived(name):
            problem = f"'{name}' is derived: only its subscription publishes such events"
            raise DataError("D008", problem, "publish a declared type")
        optional = self._registry.optional(name) if name != HEARTBEAT.name else frozenset[str]()
        return self._outboxes.setdefault(name, self._made(known, optional))

    def _made(self, known: EventType, optional: frozenset[str]) -> Outbox:
        return Outbox(self._log, Checking(known, optional), self.source, self._writer, self._linger, self._patience)

    async def renew(self) -> None:
        """After a declaration: types may have more attributes."""
        for name, outbox in self._outboxes.items():
            known = self._registry.catalogue[name]
            if known != outbox.checking.type and name != HEARTBEAT.name:
                outbox.change(Checking(known, self._registry.optional(name)))

    def beat(self, seconds: float) -> None:
        """Publish a heartbeat with the time of the local clock, periodically."""

        async def beating() -> None:
            while True:
                with suppress(LogError):  # the next one will do
                    await self.publish(HEARTBEAT.name, {"at": datetime.now(UTC)}, wait=True)
                await asyncio.sleep(seconds)

        self._beating = asyncio.create_task(beating())

    async def close(self, *, flush: bool) -> None:
        await ended(self._beating)
        try:
            if flush:
                await self.flush()
        finally:
            for each in self._outboxes.values():
                await each.close()
