"""The contents of a log, and the progress of its durable subscribers, for operators.

A subscriber stores its acknowledgements, and periodically its state. Only its process knows its exact position between two
snapshots, so the lag is an upper bound: the blocks that it would read again if it resumed now.

Takes: a log. Gives: `Overview`. Never: reads a block of events, or changes anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.runtime.live.core.stream_groups import origin_name, places_from_json
from fairlead.runtime.live.route_table import texts_of
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.subscriber.snapshots import TABLE as LINEAGES
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.names import topic_stream
from fairlead.transport.log.protocol import Log


@dataclass(frozen=True)
class TopicLine:
    """One topic. `routes`: by type, the conditions for which publishers mark blocks that have matching events."""

    topic: str
    types: tuple[str, ...]
    stream: str
    sources: int
    blocks: int
    events: int
    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class MergedLine:
    """One merged stream. `topics` is empty if no durable subscriber reads it. `behind`: blocks that it lacks."""

    stream: str
    topics: tuple[str, ...]
    blocks: int
    behind: int


@dataclass(frozen=True)
class SubscriberLine:
    """One group of a durable subscriber. `types`, `topics`: of each stream that it reads. `lag`: blocks after its last
    snapshot, an upper bound of what it has to read. `routes`: by type, the number of the route that it reads. `acknowledged`:
    relations that were delivered to it. `joined`: those that others had before it joined, which it did not get. `verdicts`:
    events that took no part in the order of its rules, by verdict, when it last acknowledged."""

    name: str
    types: tuple[tuple[str, ...], ...]
    topics: tuple[tuple[str, ...], ...]
    streams: tuple[str, ...]
    acknowledged: int
    lag: int
    routes: Mapping[str, int] = field(default_factory=dict)
    joined: int = 0
    verdicts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Overview:
    topics: tuple[TopicLine, ...]
    merged: tuple[MergedLine, ...]
    subscribers: tuple[SubscriberLine, ...]


async def overview_of(log: Log, catalogue: Catalogue) -> Overview:
    there = {each.name: each for each in await log.merged()}
    subscribers = [line for name in await log.keys(SUBSCRIBERS) for line in await _subscriber(log, name)]
    read = {name: topics for each in subscribers for name, topics in zip(each.streams, each.topics, strict=True)}
    names = [each.name for each in catalogue if not each.is_union]
    topics = [await _topic(log, topic, names, catalogue) for topic in catalogue.topics_of(names)]
    behind = {each.stream: each.blocks for each in await log.behind()}
    merged = [
        MergedLine(name, read.get(name, ()), await log.last(each), behind.get(name, 0)) for name, each in sorted(there.items())
    ]
    return Overview(tuple(topics), tuple(merged), tuple(subscribers))


async def _topic(log: Log, topic: str, names: Sequence[str], catalogue: Catalogue) -> TopicLine:
    types = tuple(sorted(name for name in names if catalogue[name].topic == topic))
    sources, events = await log.sources(topic), 0
    for source in sources:
        last = await log.last_of(topic, source)
        events += 0 if last is None else last.block.sequence + last.block.count
    blocks = await log.last(await log.open_topics([topic])) if sources else 0
    routes = {name: tuple(texts) for name in types if (texts := (await texts_of(log, name))[0])}
    return TopicLine(topic, types, topic_stream(topic), len(sources), blocks, events, routes)


async def _subscriber(log: Log, name: str) -> list[SubscriberLine]:
    entry = await log.get(SUBSCRIBERS, name)
    told: dict[str, dict[str, Any]] = {} if entry is None else json.loads(entry.value)["groups"]
    lines = []
    for key, each in told.items():
        types, topics = (tuple(tuple(part[word]) for part in each["parts"]) for word in ("types", "topics"))
        streams, count = [await log.open_topics(one) for one in topics], each["count"] or 0
        origin, silent = places_from_json(each["origin"]), places_from_json(each["silent_until"] or 0)
        before = sum(max(0, (first >> INDEX_BITS) - 1) for first in origin)
        passed = max(await _passed(log, f"{key}-{origin_name(origin)}", count), sum(silent), before)
        lag = max(0, sum([await log.last(stream) for stream in streams]) - passed)
        routes = each.get("routes", {})
        if lag and len(streams) == 1 and await log.last(streams[0], Only((*types[0], HEARTBEAT.name), routes)) <= passed:
            lag = 0  # none of its blocks are sent to this subscriber
        names, joined = tuple(stream.name for stream in streams), each.get("joined", 0)
        verdicts = each.get("verdicts", {})
        lines.append(SubscriberLine(name, types, topics, names, count - joined, lag, routes, joined, verdicts))
    return lines


async def _passed(log: Log, lineage: str, count: int) -> int:
    """The steps of the newest snapshot with at most this many deliveries."""
    entry = await log.get(LINEAGES, lineage)
    listed = [] if entry is None else json.loads(entry.value)
    return max((steps for steps, delivered in listed if delivered <= count), default=0)
