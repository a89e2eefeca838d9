"""Stores the events of a request in the log: all of them, or none.

    1. every record is checked against its type, in the order of the request; the first error is reported
    2. every event is checked to fit into a block, and every number to be in order
    3. they are stored, and only then the response is sent

Events of a topic are stored in the order of the request, those of each source and those without one.

Records with `_source` and `_sequence` are numbered by their source: those that are stored already are not stored again, so a
client can repeat a request that got no response. The others are published under the gateway's own name; after an error of the
log (3) some of them may be stored.

Takes: records with their places. Gives: how many were stored and how many existed. Never: keeps records in memory; if the log
is slow, requests wait.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import DataError, LogError
from fairlead.model.events.types import EventType
from fairlead.runtime.live.publisher.event_check import EventCheck
from fairlead.runtime.live.publisher.outbox import Outbox, Unsent
from fairlead.runtime.live.publisher.publisher import Publisher
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.numbered import Numbered, source_name
from fairlead.transport.admission.problems import at, quoted
from fairlead.transport.log.blocks.block import BYTES_MAX
from fairlead.transport.log.blocks.mixed_block import MixedEvents, joined, of_one_type
from fairlead.transport.log.protocol import Log

SOURCES_MAX = 10_000
"""Sources whose last number is cached, half a kilobyte each; for others it is looked up in the log."""
TYPES_MAX = 16
"""Types of a request whose declarations are looked up again if an event does not fit."""
MAYBE_NEWER = {"D001", "D002"}
"""Problems that another client's declaration may have solved."""


class Counts(NamedTuple):
    stored: int
    repeated: int


@dataclass(eq=False)
class PublishedPart:
    """Events of one request of one type, and of one source that numbers them (`numbers`), or of none. `places`: of each, its
    index in the request."""

    check: EventCheck
    source: str | None
    records: list[Any]
    places: list[int]
    numbers: list[int]

    def batch(self) -> pa.RecordBatch:
        """Checks by columns. Raises DataError, not always for the first bad record."""
        return joined(self.check.batches(self.records))


CheckedPart = tuple[PublishedPart, pa.RecordBatch]


class Publishing:
    def __init__(self, log: Log, registry: Registry, source: str | None, linger: float, patience: float) -> None:
        self._log, self._registry, self._patience = log, registry, patience
        self._publisher = Publisher(log, registry, source, linger, patience)
        self._numbered: OrderedDict[tuple[str, str, str], Numbered] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def close(self) -> None:
        await self._publisher.close(flush=True)

    async def renew(self) -> None:
        """Types may have been declared."""
        await self._registry.refresh()
        await self._publisher.renew()

    async def publish(self, records: Sequence[tuple[str, Any]], permit: Callable[[EventType], None]) -> Counts:
        """`permit` raises an error for a type that may not be published: types are looked up here, also those that were
        declared a moment ago."""
        try:
            checked = await self._checked(records)  # 1
        except DataError as error:
            names = {each["type"] for _, each in records if isinstance(each, dict) and isinstance(each.get("type"), str)}
            if error.code not in MAYBE_NEWER or not await self._registry.is_behind(sorted(names)[:TYPES_MAX]):
                raise
            await self.renew()
            checked = await self._checked(records)
        for part, _ in checked:
            permit(part.check.type)
        alone = [each for each in checked if each[0].source is None]
        sized = [(*each, each[0].sized(each[1])) for each in await self._by_topic(alone)]  # 2
        for part, batch in checked:
            if part.source is not None:
                self._publisher.outbox(part.check.type.topic).sized(of_one_type(part.check.type.name, batch))
                for topic in await self._publisher.topics_of(part.check.type):
                    await self._of(topic, part.check.type.name, part.source).new_of(part.numbers)
        numbered = _by_source(checked).items()
        stores = [*(self._store(*each) for each in sized), *(self._store_numbered(*each) for each in numbered)]
        new = await asyncio.gather(*stores, return_exceptions=True)  # 3
        for each in new:
            if isinstance(each, BaseException):
                raise each
        stored = sum(len(part.records) for part, _ in alone) + sum(each for each in new if isinstance(each, int))
        return Counts(stored, len(records) - stored)

    async def _by_topic(self, parts: Sequence[CheckedPart]) -> list[tuple[Outbox, MixedEvents]]:
        """The events of several parts by topic, in the order of the request."""
        if not parts:
            return []
        codes = np.repeat(np.arange(len(parts), dtype=np.uint16), [len(part.places) for part, _ in parts])
        order = np.argsort(np.concatenate([part.places for part, _ in parts]), kind="stable")
        names = tuple(part.check.type.name for part, _ in parts)
        events = MixedEvents(names, codes[order], [batch for _, batch in parts])
        return [(self._publisher.outbox(topic), mine) for topic, mine in (await self._publisher.by_topic(events)).items()]

    async def _checked(self, records: Sequence[tuple[str, Any]]) -> list[CheckedPart]:
        parts: dict[tuple[str, str | None], PublishedPart] = {}
        try:
            for place, (_, record) in enumerate(records):
                await self._add(record, place, parts)
            return [(each, each.batch()) for each in parts.values()]
        except DataError:
            await self._find_first(records)
            raise

    async def _find_first(self, records: Sequence[tuple[str, Any]]) -> None:
        """Raises the error of the first bad record, with its place."""
        parts: dict[tuple[str, str | None], PublishedPart] = {}
        for place, record in records:
            try:
                (await self._add(record, 0, parts)).check.row(record)
            except DataError as error:
                raise at(error, place) from None

    async def _add(self, record: Any, place: int, parts: dict[tuple[str, str | None], PublishedPart]) -> PublishedPart:
        name, source, number = _special(record)
        part = parts.get((name, source))
        if part is None:
            part = parts[name, source] = PublishedPart(await self._publisher.check_of(name), source, [], [], [])
        part.records.append(record)
        part.places.append(place)
        if number is not None:
            if part.numbers and number <= part.numbers[-1]:
                problem = f"`_sequence` is {number} after {part.numbers[-1]}, of the same source and type"
                raise DataError("D028", problem, "send the events of a source in the order of their numbers")
            part.numbers.append(number)
        return part

    async def _store(self, outbox: Outbox, events: MixedEvents, blocks: Sequence[Unsent]) -> int:
        """Returns 0: these events are counted by request, and heartbeats once."""
        try:
            async with asyncio.timeout(self._patience + 5):
                await outbox.room()
                if len(blocks) == 1 and events.nbytes < BYTES_MAX:
                    outbox.add_events(events)  # a block together with other requests
                else:
                    outbox.add_blocks(blocks)
                await outbox.stored()
        except TimeoutError:
            raise LogError("N001", "the server does not answer", "number the events of a source, and send them again") from None
        return 0

    async def _store_numbered(self, source: str, parts: Sequence[CheckedPart]) -> int:
        """Events of one source, stretch by stretch of one type, in the order of the request. Returns how many were new. One
        request of a source at a time: which of its events are new is decided for all of them."""
        async with self._turns.setdefault(source, asyncio.Lock()):
            new, places = 0, list[tuple[int, int, int]]()
            numbered: list[list[Numbered]] = []
            for at, (part, _) in enumerate(parts):
                topics = await self._publisher.topics_of(part.check.type)
                numbered.append([self._of(each, part.check.type.name, source) for each in topics])
                fresh = {row for each in numbered[-1] for row in await each.new_of(part.numbers)}
                places += [(place, at, row) for row, place in enumerate(part.places) if row in fresh]
            request = object()
            for at, run in groupby(sorted(places), key=lambda each: each[1]):
                (part, batch), rows = parts[at], [row for _, _, row in run]
                some = batch.take(pa.array(rows)), [part.numbers[row] for row in rows], part.check.schema
                for each in numbered[at]:
                    stored = await each.store(*some, request)
                new += stored
            return new

    def _of(self, topic: str, type: str, source: str) -> Numbered:
        key = topic, type, source
        known = self._numbered.get(key)
        if known is None:
            known = self._numbered[key] = Numbered(self._log, topic, type, source_name(source), self._patience)
            if len(self._numbered) > SOURCES_MAX:
                self._numbered.popitem(last=False)
        self._numbered.move_to_end(key)
        return known


def _by_source(parts: Sequence[CheckedPart]) -> dict[str, list[CheckedPart]]:
    found: dict[str, list[CheckedPart]] = {}
    for each in parts:
        if each[0].source is not None:
            found.setdefault(each[0].source, []).append(each)
    return found


def _special(record: Any) -> tuple[str, str | None, int | None]:
    """Type, source and number; both of the latter, or none."""
    if not isinstance(record, dict):
        fix = 'write {"type": …, attribute: value, …}'
        raise DataError("D009", f"expected an object, got {quoted(record)}", fix)
    name, source, number = record.get("type"), record.get("_source"), record.get("_sequence")
    if not isinstance(name, str):
        problem = "the record has no `type`" if name is None else f"expected text in `type`, got {quoted(name)}"
        raise DataError("D027", problem, "name the event type in the field `type`, or as ?type=")
    if source is not None and (not isinstance(source, str) or not source):
        raise DataError(
            "D010", f"expected text in `_source`, got {quoted(source)}", "name the publisher as text, or leave it out"
        )
    if number is None:
        return name, None, None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 62:
        raise DataError(
            "D010", f"expected a whole number from 0 on in `_sequence`, got {quoted(number)}", "number the records from 0 on"
        )
    if source is None:
        raise DataError("D010", "`_sequence` is set without `_source`", "set `_source` to the source that numbers its records")
    return name, source, number
