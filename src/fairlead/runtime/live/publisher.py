"""A client's publishing: one outbox per topic, and optional periodic heartbeats.

Takes: events by type. Gives: a return when they are accepted or stored. Never: accepts a part of a call.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np

from fairlead.errors import DataError, LogError
from fairlead.model.columns import Columns
from fairlead.model.types import HEARTBEAT, EventType
from fairlead.runtime.live.checking import Checking
from fairlead.runtime.live.publishing import Outbox, Unsent
from fairlead.runtime.live.registry import Registry
from fairlead.transport.admission.problems import not_published, unknown_type
from fairlead.transport.log.block import BYTES_MAX, EVENTS_MAX
from fairlead.transport.log.mixed_block import MixedEvents, joined_events, of_one_type
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
        self._checkings: dict[str, Checking] = {}
        self._beating: asyncio.Task[None] | None = None

    async def publish(self, type: str, values: Mapping[str, Any], wait: bool) -> None:
        """A heartbeat goes to every topic."""
        checking = self._checkings.get(type) or await self.checking(type)
        row = checking.row(values)
        outboxes = [self.outbox(each) for each in self._topics(checking.type)]
        for outbox in outboxes:
            if checking.size(row) > LARGE:
                outbox.sized([of_one_type(type, checking.batch([row]))])
            await outbox.put(checking, row)
        if wait:
            for outbox in outboxes:
                await outbox.stored()

    async def publish_many(self, type: str, events: Any, wait: bool) -> int:
        """1. checks all events, 2. sends all events: a few together with other incoming events, many in their own blocks."""
        checking = self._checkings.get(type) or await self.checking(type)
        return await self._put([of_one_type(type, each) for each in checking.batches(events)], wait)  # 1, 2

    async def publish_all(self, batches: Iterable[Columns], wait: bool) -> int:
        """Checked events of any types, in their order."""
        found: list[MixedEvents] = []
        for each in batches:
            for name in each.tables:
                self._checkings.get(name) or await self.checking(name)
            found += self._by_topic(each)
        return await self._put(found, wait)

    def _by_topic(self, columns: Columns) -> Iterator[MixedEvents]:
        """Columns as events of one topic each."""
        topics = dict.fromkeys(self._checkings[name].type.topic for name in columns.tables)
        for topic in topics:
            names = [name for name in columns.tables if self._checkings[name].type.topic == topic]
            code = np.full(len(columns.types), -1, dtype=np.int64)
            code[[columns.types.index(name) for name in names]] = range(len(names))
            codes = code[np.asarray(columns.codes)]
            yield MixedEvents(tuple(names), codes[codes >= 0].astype(np.uint16), [columns.tables[name] for name in names])

    async def _put(self, events: Sequence[MixedEvents], wait: bool) -> int:
        by_topic: dict[str, list[MixedEvents]] = {}
        for each in events:
            for topic in self._topics(self._checkings[each.types[0]].type):
                by_topic.setdefault(topic, []).append(each)
        sized = {topic: self._sized(topic, mine) for topic, mine in by_topic.items()}  # 1
        for topic, blocks in sized.items():
            if blocks is None:
                for each in by_topic[topic]:
                    await self.outbox(topic).put_events(each)  # 2
            else:
                await self.outbox(topic).put_blocks(blocks)
        if wait:
            for topic in by_topic:
                await self.outbox(topic).stored()
        return sum(map(len, events))

    def _sized(self, topic: str, events: Sequence[MixedEvents]) -> list[Unsent] | None:
        """The events in blocks of their own; None if they are too few for that."""
        few = sum(map(len, events)) < EVENTS_MAX and sum(each.nbytes for each in events) < BYTES_MAX
        return None if few else self.outbox(topic).sized([joined_events(events)])

    def _topics(self, event_type: EventType) -> Sequence[str]:
        return self._registry.topics if event_type.name == HEARTBEAT.name else (event_type.topic,)

    async def flush(self) -> None:
        found = await asyncio.gather(*(each.stored() for each in self._outboxes.values()), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each

    async def checking(self, name: str) -> Checking:
        """Of a type. Raises DataError if the type cannot be published."""
        if name in self._checkings:
            return self._checkings[name]
        known = await self._registry.find(name) if isinstance(name, str) else None
        if known is None:
            raise unknown_type(name, (each.name for each in self._registry.catalogue))
        if known.is_union:
            raise not_published(known)
        if self._registry.is_derived(name):
            problem = f"'{name}' is derived: only its subscription publishes such events"
            raise DataError("D008", problem, "publish a declared type")
        return self._use(known)

    def _use(self, known: EventType) -> Checking:
        made = Checking(known, self._registry.optional(known.name) if known.name != HEARTBEAT.name else frozenset())
        self._checkings[known.name] = made
        for topic in self._topics(known):
            self.outbox(topic).use(made)
        return made

    def outbox(self, topic: str) -> Outbox:
        if topic not in self._outboxes:
            made = Outbox(self._log, topic, self.source, self._writer, self._linger, self._patience)
            self._outboxes[topic] = made
            if HEARTBEAT.name in self._checkings:
                made.use(self._checkings[HEARTBEAT.name])
        return self._outboxes[topic]

    async def renew(self) -> None:
        """After a declaration: types may have more attributes."""
        for name, checking in list(self._checkings.items()):
            known = self._registry.catalogue[name]
            if known != checking.type and name != HEARTBEAT.name:
                self._use(known)

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
