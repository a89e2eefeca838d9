"""A client's publishing: one outbox per topic, and optional periodic heartbeats.

Takes: events by type. Gives: a return when they are accepted or stored. Never: accepts a part of a call.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np

from fairlead.errors import DataError, LogError
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import HEARTBEAT, EventType
from fairlead.runtime.live.publisher.event_check import EventCheck
from fairlead.runtime.live.publisher.outbox import Outbox
from fairlead.runtime.live.registry import Registry
from fairlead.transport.admission.problems import not_published, unknown_type
from fairlead.transport.clocks import clocks
from fairlead.transport.log.blocks.block import BYTES_MAX, EVENTS_MAX
from fairlead.transport.log.blocks.mixed_block import MixedEvents, joined, joined_events, of_one_type
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
        self._checks: dict[str, EventCheck] = {}
        self._beating: asyncio.Task[None] | None = None

    async def publish(self, type: str, values: Mapping[str, Any], wait: bool) -> None:
        check = self._checks.get(type) or await self.check_of(type)
        row = check.row(values)
        if type == HEARTBEAT.name:
            await self.publish_events(of_one_type(type, check.batch([row])), wait)
            return
        outbox = self.outbox(check.type.topic)
        if check.size(row) > LARGE:
            outbox.sized(of_one_type(type, check.batch([row])))
        await outbox.put(check, row)
        if wait:
            await outbox.stored()

    async def publish_many(self, type: str, events: Any, wait: bool) -> int:
        check = self._checks.get(type) or await self.check_of(type)
        batches = check.batches(events)
        return await self.publish_events(of_one_type(type, joined(batches)), wait) if batches else 0

    async def publish_all(self, batches: Iterable[Columns], wait: bool) -> int:
        """Checked events of any types, in their order."""
        found = [_events(each) for each in batches if len(each)]
        return await self.publish_events(joined_events(found), wait) if found else 0

    async def publish_events(self, events: MixedEvents, wait: bool) -> int:
        """Checked events of any types. 1. finds out that all fit, and that there is room for them, 2. accepts them all: a few
        together with others that are published now, many in blocks of their own."""
        mine = {self.outbox(topic): some for topic, some in (await self.by_topic(events)).items()}
        sized = [None if _few(some) else outbox.sized(some) for outbox, some in mine.items()]  # 1
        for outbox in mine:
            await outbox.room()
        full = [
            outbox.add_events(some) if blocks is None else outbox.add_blocks(blocks)
            for (outbox, some), blocks in zip(mine.items(), sized, strict=True)
        ]  # 2
        if any(full):
            await asyncio.sleep(0)  # so that a loop that only publishes lets the senders run
        if wait:
            for outbox in mine:
                await outbox.stored()
        return len(events)

    async def by_topic(self, events: MixedEvents) -> dict[str, MixedEvents]:
        """By topic, its events, in their order. Heartbeats belong to every topic."""
        for name in events.types:
            self._checks.get(name) or await self.check_of(name)
        topics = [await self.topics_of(self._checks[name].type) for name in events.types]
        found = {}
        for topic in dict.fromkeys(each for some in topics for each in some):
            kept = [at for at, some in enumerate(topics) if topic in some]
            found[topic] = events if len(kept) == len(topics) else events.only(kept)[1]
        return found

    async def topics_of(self, event_type: EventType) -> Sequence[str]:
        return await self._registry.all_topics() if event_type.name == HEARTBEAT.name else (event_type.topic,)

    async def flush(self) -> None:
        found = await asyncio.gather(*(each.stored() for each in self._outboxes.values()), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each

    async def check_of(self, name: str) -> EventCheck:
        """Of a type. Raises DataError if the type cannot be published."""
        if name in self._checks:
            return self._checks[name]
        known = await self._registry.find(name) if isinstance(name, str) else None
        if known is None:
            raise unknown_type(name, (each.name for each in self._registry.catalogue))
        if known.is_union:
            raise not_published(known)
        if self._registry.is_derived(name):
            problem = f"'{name}' is derived: only its subscription publishes such events"
            raise DataError("D008", problem, "publish a declared type")
        return self._use(known)

    def _use(self, known: EventType) -> EventCheck:
        made = EventCheck(known, self._registry.optional(known.name) if known.name != HEARTBEAT.name else frozenset())
        self._checks[known.name] = made
        outboxes = list(self._outboxes.values()) if known.name == HEARTBEAT.name else [self.outbox(known.topic)]
        for outbox in outboxes:
            outbox.use(made)
        return made

    def outbox(self, topic: str) -> Outbox:
        if topic not in self._outboxes:
            made = Outbox(self._log, topic, self.source, self._writer, self._linger, self._patience)
            self._outboxes[topic] = made
            if HEARTBEAT.name in self._checks:
                made.use(self._checks[HEARTBEAT.name])
        return self._outboxes[topic]

    async def renew(self) -> None:
        """After a declaration: types may have more attributes."""
        for name, check in list(self._checks.items()):
            known = self._registry.catalogue[name]
            if known != check.type and name != HEARTBEAT.name:
                self._use(known)

    def beat(self, seconds: float) -> None:
        """Publish a heartbeat with the time of the local clock, periodically."""

        async def beating() -> None:
            while True:
                with suppress(LogError):  # the next one will do
                    await self.publish(HEARTBEAT.name, {"at": datetime.fromtimestamp(clocks().wall(), UTC)}, wait=True)
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


def _events(columns: Columns) -> MixedEvents:
    names = tuple(columns.tables)
    code = np.zeros(len(columns.types), dtype=np.uint16)
    code[[columns.types.index(name) for name in names]] = range(len(names))
    return MixedEvents(names, code[np.asarray(columns.codes)], list(columns.tables.values()))


def _few(events: MixedEvents) -> bool:
    return len(events) < EVENTS_MAX and events.nbytes < BYTES_MAX
