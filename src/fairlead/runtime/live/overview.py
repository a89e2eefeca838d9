"""What a log has, and how far its durable subscribers are: for people who look after it.

A subscriber stores what it has acknowledged, and now and then its state. Where it stands between two states only its process
knows, so the lag is an upper bound: the blocks that it would read again if it came back now.

Takes: a log. Gives: `Overview`. Never: reads a block of events, or changes anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.model.types import HEARTBEAT, Catalogue
from fairlead.runtime.live.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.route_table import texts_of
from fairlead.runtime.live.snapshots import TABLE as LINEAGES
from fairlead.transport.log.block import INDEX_BITS
from fairlead.transport.log.names import type_stream
from fairlead.transport.log.only import Only
from fairlead.transport.log.protocol import Log, Stream


@dataclass(frozen=True)
class TypeLine:
    """Of a type's stream. `routes`: conditions of which publishers say whether a block has events that satisfy them."""

    type: str
    stream: str
    sources: int
    blocks: int
    events: int
    routes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MergedLine:
    """Of a merged stream; `types` are empty where no durable subscriber reads it."""

    stream: str
    types: tuple[str, ...]
    blocks: int


@dataclass(frozen=True)
class SubscriberLine:
    """Of one group of a durable subscriber. `lag`: blocks behind its last state, at most what it has to read. `routes`: by
    type, the number of the one that it reads."""

    name: str
    types: tuple[str, ...]
    stream: str
    acknowledged: int
    lag: int
    routes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Overview:
    types: tuple[TypeLine, ...]
    merged: tuple[MergedLine, ...]
    subscribers: tuple[SubscriberLine, ...]


async def overview_of(log: Log, catalogue: Catalogue) -> Overview:
    there = {each.name: each for each in await log.merged()}
    subscribers = [line for name in await log.keys(SUBSCRIBERS) for line in await _subscriber(log, name, there)]
    read = {each.stream: each.types for each in subscribers}
    names = [*(each.name for each in catalogue if not each.is_union), HEARTBEAT.name]
    types = [await _type(log, name) for name in dict.fromkeys(names)]
    merged = [MergedLine(name, read.get(name, ()), await log.last(each)) for name, each in sorted(there.items())]
    return Overview(tuple(types), tuple(merged), tuple(subscribers))


async def _type(log: Log, name: str) -> TypeLine:
    sources, events = await log.sources(name), 0
    for source in sources:
        last = await log.last_of(name, source)
        events += 0 if last is None else last.block.sequence + last.block.count
    blocks = await log.last(await log.open_type(name)) if sources else 0
    routes, _ = await texts_of(log, name)
    return TypeLine(name, type_stream(name), len(sources), blocks, events, tuple(routes))


async def _subscriber(log: Log, name: str, merged: dict[str, Stream]) -> list[SubscriberLine]:
    entry = await log.get(SUBSCRIBERS, name)
    told: dict[str, dict[str, Any]] = {} if entry is None else json.loads(entry.value)["groups"]
    lines = []
    for key, each in told.items():
        types, count = tuple(each["types"]), each["count"] or 0
        stream = merged.get(each["stream"]) or await log.open_type(types[0])
        passed = max(await _passed(log, f"{key}-{each['origin']:x}", count), each["silent_until"])
        passed = max(passed, (each["origin"] >> INDEX_BITS) - 1)
        lag, routes = max(0, await log.last(stream) - passed), each.get("routes", {})
        if lag and routes and await log.last(stream, Only((*types, HEARTBEAT.name), routes)) <= passed:
            lag = 0  # nothing of it is sent to this one
        lines.append(SubscriberLine(name, types, stream.name, count, lag, routes))
    return lines


async def _passed(log: Log, lineage: str, count: int) -> int:
    """The sequence of the newest state at or before so many deliveries."""
    entry = await log.get(LINEAGES, lineage)
    listed = [] if entry is None else json.loads(entry.value)
    return max((sequence for sequence, delivered in listed if delivered <= count), default=0)
