"""The contents of a log, and the progress of its durable subscribers, for operators.

A subscriber stores its acknowledgements, and periodically its state. Only its process knows its exact position between two
snapshots, so the lag is an upper bound: the blocks that it would read again if it resumed now.

Takes: a log. Gives: `Overview`. Never: reads a block of events, or changes anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.model.types import HEARTBEAT, Catalogue
from fairlead.runtime.live.origin import from_json, name_of
from fairlead.runtime.live.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.route_table import texts_of
from fairlead.runtime.live.snapshots import TABLE as LINEAGES
from fairlead.transport.log.block import INDEX_BITS
from fairlead.transport.log.block_filter import Only
from fairlead.transport.log.names import type_stream
from fairlead.transport.log.protocol import Log, Stream


@dataclass(frozen=True)
class TypeLine:
    """One type's stream. `routes`: the conditions for which publishers mark blocks that have matching events."""

    type: str
    stream: str
    sources: int
    blocks: int
    events: int
    routes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MergedLine:
    """One merged stream. `types` is empty if no durable subscriber reads it. `behind`: blocks that it lacks."""

    stream: str
    types: tuple[str, ...]
    blocks: int
    behind: int


@dataclass(frozen=True)
class SubscriberLine:
    """One group of a durable subscriber. `types`: the types of each stream that it reads. `lag`: blocks after its last
    snapshot, an upper bound of what it has to read. `routes`: by type, the number of the route that it reads."""

    name: str
    types: tuple[tuple[str, ...], ...]
    streams: tuple[str, ...]
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
    read = {name: types for each in subscribers for name, types in zip(each.streams, each.types, strict=True)}
    names = [*(each.name for each in catalogue if not each.is_union), HEARTBEAT.name]
    types = [await _type(log, name) for name in dict.fromkeys(names)]
    behind = {each.stream: each.blocks for each in await log.behind()}
    merged = [
        MergedLine(name, read.get(name, ()), await log.last(each), behind.get(name, 0)) for name, each in sorted(there.items())
    ]
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
        types, count = tuple(tuple(part["types"]) for part in each["parts"]), each["count"] or 0
        streams = [merged.get(part["stream"]) or await log.open_type(part["types"][0]) for part in each["parts"]]
        origin, silent = from_json(each["origin"]), from_json(each["silent_until"] or 0)
        before = sum(max(0, (first >> INDEX_BITS) - 1) for first in origin)
        passed = max(await _passed(log, f"{key}-{name_of(origin)}", count), sum(silent), before)
        lag = max(0, sum([await log.last(stream) for stream in streams]) - passed)
        routes = each.get("routes", {})
        if lag and routes and await log.last(streams[0], Only((*types[0], HEARTBEAT.name), routes)) <= passed:
            lag = 0  # none of its blocks are sent to this subscriber
        lines.append(SubscriberLine(name, types, tuple(stream.name for stream in streams), count, lag, routes))
    return lines


async def _passed(log: Log, lineage: str, count: int) -> int:
    """The steps of the newest snapshot with at most this many deliveries."""
    entry = await log.get(LINEAGES, lineage)
    listed = [] if entry is None else json.loads(entry.value)
    return max((steps for steps, delivered in listed if delivered <= count), default=0)
