"""The log after a run: the blocks of every stream, in order.

Takes: a client, the streams by their topics. Gives: a copy of the streams. Never: returns before the merged streams have
everything that their topics have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter

from fairlead.dataclass import dataclass
from fairlead.model.events.event import Event
from fairlead.model.events.types import HEARTBEAT, EventType
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.block_columns import columns_of
from fairlead.testing.history.values import LoggedEvent
from fairlead.transport.log.blocks.block import INDEX_BITS, Block
from fairlead.transport.log.blocks.mixed_block import events_of
from fairlead.transport.log.names import merged_stream, topic_stream
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Stored, Stream

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Topics = tuple[str, ...]
Name = tuple[str, str, str, int]
"""The identity of a block: topic, type, source, number."""
Identity = tuple[str, str, int]
"""The identity of an event: type, source, and its number among those."""


def name_of(stored: Stored) -> Name:
    return stored.block.topic, stored.block.type, stored.block.source, stored.block.number


@dataclass(frozen=True, eq=False)
class Copy:
    """`streams`: by the topics, the stream of a topic or a merged one."""

    streams: dict[Topics, list[Stored]]
    matched: dict[tuple[tuple[Topics, ...], tuple[int, ...], str], Sequence[Relation]] = field(default_factory=dict)
    """The relations found in some streams, by the first positions there and the digest of a plan (checks.py)."""
    ordered: dict[tuple[tuple[Topics, ...], str], tuple[Sequence[Relation], Sequence[int]]] = field(default_factory=dict)
    """The same in event time, with the places of reports (event_time.py)."""

    @property
    def topics(self) -> dict[str, list[Stored]]:
        return {topics[0]: blocks for topics, blocks in self.streams.items() if len(topics) == 1}

    @property
    def merged(self) -> dict[Topics, list[Stored]]:
        return {topics: blocks for topics, blocks in self.streams.items() if len(topics) > 1}

    @property
    def count(self) -> int:
        """Blocks of all topics."""
        return sum(map(len, self.topics.values()))

    def missing(self) -> list[Name]:
        """The blocks of its topics that a merged stream lacks."""
        found = []
        for topics, blocks in self.merged.items():
            have = {name_of(each) for each in blocks}
            found += [name_of(each) for topic in topics for each in self.topics[topic] if name_of(each) not in have]
        return found


async def copied(fl: Client, streams: Iterable[Topics], seconds: float) -> Copy:
    """After `seconds` the merged streams are copied, complete or not."""
    wanted = sorted(streams, key=len)
    own = {each: await _taken(fl, await fl.log.open_topics(each)) for each in wanted if len(each) == 1}
    patience = Patience(seconds, pause=0.5)
    while True:
        copy = Copy(own | {each: await _taken(fl, await fl.log.open_topics(each)) for each in wanted if len(each) > 1})
        if not copy.missing() or patience.is_over:
            return copy
        await patience.pause()


async def _taken(fl: Client, stream: Stream) -> list[Stored]:
    found: list[Stored] = []
    last = await fl.log.last(stream)
    if last:
        async for some in fl.log.read(stream, 0):
            found += some
            if found[-1].sequence >= last:
                break
    return found


def in_one_order(copy: Copy, parts: Sequence[Topics]) -> Iterator[tuple[int, list[Stored]]]:
    """The blocks of some streams, by the times at which they were stored, then the names of the streams; consecutive blocks
    of one stream together."""
    placed: list[tuple[int, str, int, int, Stored]] = []
    for part, topics in enumerate(parts):
        name = topic_stream(topics[0]) if len(topics) == 1 else merged_stream(topics)
        latest, fresh = 0, {each.sequence for each in first_of_each(copy.streams[topics])}
        for each in copy.streams[topics]:
            latest = max(latest, each.time)
            if each.sequence in fresh:
                placed.append((latest, name, each.sequence, part, each))
    for part, run in groupby(sorted(placed, key=itemgetter(0, 1, 2)), key=itemgetter(3)):
        yield part, [each[4] for each in run]


def first_positions(copy: Copy, parts: Sequence[Topics], start: int | datetime | None) -> tuple[int, ...]:
    """By stream, the position of the first event that a subscriber reads that starts there: a position, or a time at which
    blocks were stored. 0 is the beginning of the stream."""
    if start is None or isinstance(start, int):
        return (start or 0,) * len(parts)
    moment = (start - EPOCH) // timedelta(microseconds=1)
    found = [[each.sequence for each in copy.streams[topics] if each.time >= moment] for topics in parts]
    ends = [copy.streams[topics][-1].sequence + 1 for topics in parts]
    least = (min([*some, end]) for some, end in zip(found, ends, strict=True))
    return tuple(each << INDEX_BITS if each > 1 else 0 for each in least)


def first_of_each(blocks: Sequence[Stored]) -> list[Stored]:
    """The blocks without repeats."""
    seen: set[Name] = set()
    return [each for each in blocks if not (name_of(each) in seen or seen.add(name_of(each)))]  # type: ignore[func-returns-value]


def logged_events(
    blocks: Sequence[Stored], catalogue: Mapping[str, EventType], token_of: Callable[[Event], str | None]
) -> list[LoggedEvent]:
    """The events of a stream, for a history. `token_of`: of the publication of an event."""
    known = {**catalogue, HEARTBEAT.name: HEARTBEAT}
    stored = {each.sequence: each for each in blocks}
    found = []
    for event in columns_of(blocks, known, 0, sourced=True).events(known):  # type: ignore[arg-type]
        there, major = stored[event.position.major >> INDEX_BITS], event.position.major
        where = there.block.topic, event.type, there.block.source, token_of(event)
        found.append(LoggedEvent(major, *where, event.row, event.time, event.sequence, there.time))
    return found


def types_of(block: Block) -> list[str]:
    """The type of each event."""
    if not block.is_mixed:
        return [block.type] * block.count
    return [block.types[code] for code in events_of(block).codes]


def identities(blocks: Iterable[Stored]) -> dict[int, Identity]:
    """By position in the stream. `blocks`: all of a stream, without repeats."""
    counts: Counter[tuple[str, str]] = Counter()
    found = {}
    for each in blocks:
        for at, name in enumerate(types_of(each.block)):
            who = name, each.block.source
            found[(each.sequence << INDEX_BITS) + at] = (*who, counts[who])
            counts[who] += 1
    return found
