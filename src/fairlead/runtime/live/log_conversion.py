"""Copies a log of the first edition (transport/log/first_edition.py) into a log with topics.

    1. read the declared types, and give each its topic
    2. read the blocks of all types, by the time at which they were stored, then by the names of types
    3. store each in the stream of its topic, unless it is there already; heartbeats in every topic
    4. declare the types: until now nobody can read the new log

It can be repeated after an interruption: the order is a function of the old log. What subscriptions derived is not copied, nor
are durable subscribers: positions are others in the new log, so they start again, and derive again.

Takes: both logs, open; TOPIC statements. Gives: how many events of each type. Never: writes to the old log.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.errors import LogError
from fairlead.language.compiler import compile_text
from fairlead.model.events.types import HEARTBEAT, MAIN
from fairlead.order.continuity import Continuity
from fairlead.runtime.live.core.declarations import Declared, declaration_text
from fairlead.runtime.live.core.stream_merge import PULSE
from fairlead.runtime.live.export import PATIENCE_SECONDS
from fairlead.runtime.live.registry import TABLE
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_store import require_ours, stored_once
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.first_edition import FirstFileLog, first_block_of, not_of_first_edition, type_stream
from fairlead.transport.log.log_place import place_of
from fairlead.transport.log.names import token
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Log, Stored, Stream


@dataclass(frozen=True)
class Converted:
    """By type, its events and its topic."""

    events: Mapping[str, int]
    topics: Mapping[str, str]


async def convert_log(old_url: str, new_url: str | None, topics: str = "", access: Credentials | None = None) -> Converted:
    """The same, by the addresses of the logs. Raises LanguageError, LogError, StateError, UsageError."""
    with ExitStack() as held:
        place = place_of(new_url, None, None, access or Credentials())
        old = await _first(old_url, place.access)
        try:
            new, _ = await place.open(held)
            try:
                return await convert(old, PatientLog(new, PATIENCE_SECONDS), topics)
            finally:
                await new.close()
        finally:
            await old.close()


async def _first(url: str, access: Credentials) -> Log:
    if url.startswith("file:"):
        return FirstFileLog(url.removeprefix("file:"))
    from fairlead.transport.log.jetstream.log import connect

    return await connect(url, access, 1, first_block_of)


async def convert(old: Log, new: Log, topics: str = "") -> Converted:
    declared = await _declared(old)
    catalogue = compile_text(f"{topics}\n{declaration_text(declared)}").catalogue  # 1
    names = [name for name, each in declared.items() if not each.derived and not catalogue[name].is_union]
    known = [await _stream(old, name) for name in (*names, HEARTBEAT.name)]
    storing = _Storing(new)
    every = catalogue.topics_of(names) or (MAIN,)
    events = dict.fromkeys(names, 0)
    async for block in _in_time([each for each in known if each is not None]):  # 2
        for topic in every if block.type == HEARTBEAT.name else (catalogue[block.type].topic,):
            await storing.store(replace(block, topic=topic))  # 3
        if block.type in events:
            events[block.type] += block.count
    for name, each in declared.items():  # 4
        if not each.derived:
            await new.open_topics([catalogue[name].topic])
            await new.put(TABLE, token(name), replace(each, topic=catalogue[name].topic).value())
    return Converted(events, {name: catalogue[name].topic for name in names})


async def _declared(old: Log) -> dict[str, Declared]:
    found = {}
    for key in await old.keys(TABLE):
        entry = await old.get(TABLE, key)
        if entry is not None:
            each = Declared(**json.loads(entry.value))
            if each.topic:
                raise not_of_first_edition()
            found[each.name] = each
    return found


async def _stream(old: Log, name: str) -> AsyncIterator[Stored] | None:
    """The blocks of a type; None if it has no stream."""
    stream = Stream(type_stream(name), "")
    try:
        last = await old.last(stream)
    except (LogError, KeyError):
        return None
    return _blocks(old, stream, last) if last else None


async def _blocks(old: Log, stream: Stream, last: int) -> AsyncIterator[Stored]:
    """Without repeats; a time is never before that of an earlier block."""
    continuity, latest = Continuity(), 0
    async with aclosing(old.read(stream, 0)) as reading:  # type: ignore[type-var]
        async for some in reading:
            for each in some:
                block, latest = each.block, max(latest, each.time)
                if not block.rejected and continuity.check(block.type, block.source, block.number, block.count):
                    yield each._replace(time=latest)
                if each.sequence >= last:
                    return


async def _in_time(streams: Sequence[AsyncIterator[Stored]]) -> AsyncIterator[Block]:
    """The blocks of all streams by time, then type."""
    heads = {stream: each async for stream, each in _first_of(streams)}
    while heads:
        stream = min(heads, key=lambda one: (heads[one].time, heads[one].block.type))
        block = heads[stream].block
        if block.source != PULSE:
            yield block
        following = await anext(stream, None)
        if following is None:
            del heads[stream]
        else:
            heads[stream] = following


async def _first_of(streams: Sequence[AsyncIterator[Stored]]) -> AsyncIterator[tuple[AsyncIterator[Stored], Stored]]:
    for each in streams:
        first = await anext(each, None)
        if first is not None:
            yield each, first


class _Storing:
    """Stores blocks that the new log does not have yet."""

    def __init__(self, new: Log) -> None:
        self._new = new
        self._after: dict[tuple[str, str], int] = {}
        self._number: dict[tuple[str, str, str], int] = {}

    async def store(self, block: Block) -> None:
        source, lane = (block.topic, block.source), (block.topic, block.source, block.type)
        if source not in self._after:
            await self._new.open_topics([block.topic])
            last = await self._new.last_of(*source)
            self._after[source] = 0 if last is None else last.sequence
        if lane not in self._number:
            last = await self._new.last_block_of(*lane)
            self._number[lane] = -1 if last is None else last.block.number
        if block.number > self._number[lane]:
            found = await stored_once(self._new, block, self._after[source], PATIENCE_SECONDS)
            require_ours(found, block)
            self._after[source], self._number[lane] = found.sequence, block.number
