"""The contents of a log, and the progress of its durable subscribers, for operators.

A subscriber stores its acknowledgements, and periodically its state. Only its process knows its exact position between two
snapshots, so the lag is an upper bound: the blocks that it would read again if it resumed now.

Takes: a log. Gives: `Overview`. Never: changes anything but what is known of rejected blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field

from fairlead.dataclass import dataclass
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.runtime.live.core.stream_groups import places_from_json
from fairlead.runtime.live.rejections import Rejections, rejections_of
from fairlead.runtime.live.route_table import type_routes
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.subscriber.record import groups_of_name
from fairlead.runtime.live.subscriber.snapshots import snapshot_list, snapshot_lists
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.blocks.room import BLOCKS_MAX
from fairlead.transport.log.names import merged_stream, topic_stream
from fairlead.transport.log.protocol import Log, Stream, StreamState

TOGETHER = 64
"""Sources that are looked up at the same time."""


@dataclass(frozen=True)
class TopicLine:
    """One topic. `routes`: by type, the conditions for which publishers mark blocks that have matching events; an empty one is
    retired. `rejected`: blocks that every reader skips, and which (rejections.py). `used`: the share of its positions that
    are used up."""

    topic: str
    types: tuple[str, ...]
    stream: str
    sources: int
    blocks: int
    events: int
    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rejected: int = 0
    rejections: Rejections = field(default_factory=Rejections)
    used: float = 0.0


@dataclass(frozen=True)
class MergedLine:
    """One merged stream. `topics` is empty if no durable subscriber reads it. `behind`: blocks that it lacks. `used`: the
    share of its positions that are used up."""

    stream: str
    topics: tuple[str, ...]
    blocks: int
    behind: int
    used: float = 0.0


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
    names = [each.name for each in catalogue if not each.is_union]
    existing = there | {topic_stream(each): await log.open_topics([each]) for each in catalogue.topics_of(names)}
    subscribers = [line for name in await log.keys(SUBSCRIBERS) for line in await _subscriber(log, name, existing)]
    read = {name: topics for each in subscribers for name, topics in zip(each.streams, each.topics, strict=True)}
    topics = [await _topic(log, topic, names, catalogue) for topic in catalogue.topics_of(names)]
    behind = {each.stream: each.blocks for each in await log.behind()}
    merged = []
    for name, each in sorted(there.items()):
        last = await log.last(each)
        merged.append(MergedLine(name, read.get(name, ()), last, behind.get(name, 0), last / BLOCKS_MAX))
    return Overview(tuple(topics), tuple(merged), tuple(subscribers))


async def _topic(log: Log, topic: str, names: Sequence[str], catalogue: Catalogue) -> TopicLine:
    types = tuple(sorted(name for name in names if catalogue[name].topic == topic))
    sources, events = await log.sources(topic), 0
    for at in range(0, len(sources), TOGETHER):
        for last in await asyncio.gather(*(log.last_block_of(topic, each) for each in sources[at : at + TOGETHER])):
            events += 0 if last is None else last.block.sequence + last.block.count
    state = await log.state(await log.open_topics([topic])) if sources else StreamState(1, 0, 0)
    blocks = state.last - state.first + 1
    routes = {name: texts for name in types if any(texts := (await type_routes(log, name)).active)}
    found = await rejections_of(log, topic, catalogue) if blocks else Rejections()
    return TopicLine(
        topic, types, topic_stream(topic), len(sources), blocks, events, routes, found.count, found, state.last / BLOCKS_MAX
    )


async def _subscriber(log: Log, name: str, existing: Mapping[str, Stream]) -> list[SubscriberLine]:
    """Users write records: no stream is created because one names it."""
    told = await groups_of_name(log, name)
    lines = []
    for key, each in told.items():
        types, topics = (tuple(tuple(part[word]) for part in each["parts"]) for word in ("types", "topics"))
        names = tuple(topic_stream(one[0]) if len(one) == 1 else merged_stream(one) for one in topics)
        streams, count = [existing[one] for one in names if one in existing], each["count"] or 0
        origin, silent = places_from_json(each["origin"]), places_from_json(each["silent_until"] or 0)
        before = sum(max(0, (first >> INDEX_BITS) - 1) for first in origin)
        lists = snapshot_lists(key, origin, whole=bool(each.get("emits")))
        passed = max(*[await _passed(log, one, count) for one in lists], sum(silent), before)
        lag = max(0, sum([await log.last(stream) for stream in streams]) - passed)
        routes = each.get("routes", {})
        if (
            lag
            and len(names) == len(streams) == 1
            and await log.last(streams[0], Only((*types[0], HEARTBEAT.name), routes)) <= passed
        ):
            lag = 0  # none of its blocks are sent to this subscriber
        joined, verdicts = each.get("joined", 0), each.get("verdicts", {})
        lines.append(SubscriberLine(name, types, topics, names, count - joined, lag, routes, joined, verdicts))
    return lines


async def _passed(log: Log, lineage: str, count: int) -> int:
    """The steps of the newest snapshot with at most this many deliveries."""
    listed = (await snapshot_list(log, lineage)).snapshots
    return max((steps for steps, delivered in listed if delivered <= count), default=0)
