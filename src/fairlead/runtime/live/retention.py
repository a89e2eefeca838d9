"""Retention: how much of a log is kept, and trimming it.

A topic is trimmed by its policy (`TOPIC … KEEP 30 DAYS, 200 GB`), which the log has in a table, or as far as all durable
subscribers have read it. Policies win over subscribers: one that has not read what is trimmed gets an error when it resumes
(S144).
The age of an event is the time since it was stored, up to the newest event of any topic: no clock of a client counts, and a
log without new events is not trimmed.

    1. find the first block to keep, of those that all merged streams in use have copied
       With `read`: record the plan, and look again. A new subscriber is recorded, and then reads the plan
       (subscriber/trim_check.py): so this finds the subscriber, or the subscriber finds the plan and begins again
       Mark the saved states from which durable subscribers resume, so that they are kept (resume_points.py)
    2. note the heads of the last blocks before it, by source (transport/log/trims.py); before them, which blocks are repeats;
       after them, that they are trimmed
    3. trim the merged streams up to the first block that its topic keeps; of later ones that a topic is about to lose, note
       whether they are blocks: their readers look that up in the topics. Merged streams that nobody uses are removed
    4. trim the topics. If this is interrupted, the next call does it again from (1)
    5. forget the sources of which no stream has a block any more: those without a name of their own after an hour without
       events, others after a time that is given, up to the newest event (forgotten_sources.py)

Takes: a log. Gives: for each topic what is trimmed, and which subscribers have not read it. Never: trims a block whose head is
not noted, or from a merged stream what its topic keeps.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.language.checking.topics import KeepPolicy
from fairlead.runtime.live.core.derived_blocks import DERIVED
from fairlead.runtime.live.core.stream_merge import PULSE
from fairlead.runtime.live.forgotten_sources import FORGOTTEN, forget_source
from fairlead.runtime.live.merged_streams import caught_up, merged_to_keep, sweep
from fairlead.runtime.live.resume_points import ResumePoints, resume_points
from fairlead.transport.log.blocks.repeats import REPEATED
from fairlead.transport.log.entry_values import NOTHING, entry_value
from fairlead.transport.log.names import TOPICS, TRIMS, token, topic_stream
from fairlead.transport.log.protocol import Log, Stored, Stream, StreamState
from fairlead.transport.log.trims import (
    GENERATED,
    Heads,
    TrimmedHead,
    TrimRecord,
    add_heads,
    begin_trim,
    end_plan,
    note_record,
    note_trimmed,
    trimmed_heads,
)

TABLE = TOPICS
ATTEMPTS = 5
"""To mark the states from which subscribers resume, while others save states and remove older ones."""
UNNAMED_US = 3_600_000_000
"""After an hour without events, a source that has no name of its own and no block is forgotten: until then a copy of one of its
blocks that arrives late is recognised (blocks/repeats.py)."""


@dataclass(frozen=True)
class TopicRetention:
    """What is, or would be, trimmed of a topic. `keep`: its policy in words; empty if it has none. `first`, `last`, `bytes`: of
    its stream now. `trimmed`: how many blocks go, or have gone. `why`: the limit that decides it. `behind`: durable subscribers
    that have not read all of them."""

    topic: str
    keep: str
    first: int
    last: int
    bytes: int
    trimmed: int
    why: str
    behind: tuple[str, ...]

    @property
    def blocks(self) -> int:
        return self.last - self.first + 1


async def put_keep(log: Log, topic: str, keep: KeepPolicy) -> None:
    """Store how much of a topic is kept."""
    if keep == KeepPolicy():
        await log.remove(TABLE, token(topic))
        return
    told = {"topic": topic, "age_us": keep.age_us, "bytes": keep.bytes}
    await log.put(TABLE, token(topic), json.dumps(told).encode())


async def keep_of(log: Log, topic: str) -> KeepPolicy | None:
    entry = await log.get(TABLE, token(topic))
    if entry is None:
        return None
    told = entry_value(entry.value, {"age_us": (int, NOTHING), "bytes": (int, NOTHING)}, TABLE, token(topic))
    return KeepPolicy(told["age_us"], told["bytes"])


async def retain(
    log: Log, topics: Iterable[str], *, apply: bool, read: bool, sources_us: int | None = None
) -> tuple[TopicRetention, ...]:
    """What the policies of these topics trim; with `read`, topics without a policy are trimmed as far as all durable
    subscribers have read them. Nothing is removed unless `apply`. `sources_us`: the time after which a source without blocks
    is forgotten; None: never, if it has a name. Raises LogError if a merged stream has stopped."""
    streams = {name: await log.open_topics([name]) for name in sorted(topics)}
    states = {name: await log.state(each) for name, each in streams.items()}
    merged = await merged_to_keep(log)
    for parts, stream in merged.items():
        await caught_up(log, stream, parts)  # so each has what the topics had before
    newest = max([await _time_of(log, streams[name], state.last) for name, state in states.items()], default=0)
    found, points = await _found(log, streams, states, merged, newest, read=read)
    if apply and read and any(each.trimmed for each in found):
        for each in found:  # new subscribers see it from now on: look again
            await note_record(log, streams[each.topic].name, TrimRecord(planned=each.first + each.trimmed))
        found, points = _less(found, await _found(log, streams, states, merged, newest, read=read))
    if apply and any(each.trimmed for each in found):
        for _ in range(ATTEMPTS):
            if await points.hold(log):
                break  # from now on, these states are not thinned out
            found, points = _less(found, await _found(log, streams, states, merged, newest, read=read))
        else:
            found = [_kept(each) for each in found]
    if apply:
        found = [each for one in found if (each := await _begun(log, streams[one.topic], one, planned=read))]  # 2
    cuts = {each.topic: each.first + each.trimmed for each in found if each.trimmed}
    if apply and cuts:
        await sweep(log)
        left = set[tuple[str, str]]()
        for parts in sorted(merged, key=len, reverse=True):  # 3
            if not cuts.keys().isdisjoint(parts):
                left |= await _trim_merged(log, merged[parts], {*parts} & cuts.keys())
        for topic, cut in cuts.items():  # 4
            await log.trim(streams[topic], cut)
        await _forget_sources(log, cuts, merged, left, newest, sources_us)  # 5
    if apply and read:
        for stream in streams.values():
            await end_plan(log, stream.name)
    return tuple(found)


async def _begun(log: Log, stream: Stream, topic: TopicRetention, *, planned: bool) -> TopicRetention:
    """Notes what is trimmed; nothing is if another client has ended the plan."""
    if topic.trimmed:
        cut = topic.first + topic.trimmed
        await _note_heads(log, stream, topic.first, cut)
        if not await begin_trim(log, stream.name, cut, planned=planned):
            return _kept(topic)
    return topic


def _kept(topic: TopicRetention) -> TopicRetention:
    return replace(topic, trimmed=0, why="", behind=())


Found = tuple[list[TopicRetention], ResumePoints]


async def _found(
    log: Log,
    streams: Mapping[str, Stream],
    states: Mapping[str, StreamState],
    merged: Mapping[tuple[str, ...], Stream],
    newest: int,
    *,
    read: bool,
) -> Found:
    """Of each topic what can be trimmed, and where durable subscribers resume."""
    points = await resume_points(log, {(name,): each for name, each in streams.items()} | dict(merged))
    places = await _read_by(log, points, states, merged)
    return [
        await _planned(log, name, streams[name], state, newest, places[name], read) for name, state in states.items()
    ], points


def _less(found: Sequence[TopicRetention], again: Found) -> Found:
    """What both looks say can be trimmed, and the points of the second one."""
    return [min(one, other, key=lambda each: each.trimmed) for one, other in zip(found, again[0], strict=True)], again[1]


async def _forget_sources(
    log: Log,
    topics: Iterable[str],
    merged: Mapping[tuple[str, ...], Stream],
    left: Collection[tuple[str, str]],
    newest: int,
    sources_us: int | None,
) -> None:
    """`left`: the topics and sources of blocks that merged streams still have. `newest`: when the last block was stored. Heads
    of a merged stream only tell what its readers have lost, so those are forgotten alike."""
    streams = {topic_stream(topic): topic for topic in topics}
    held = {topic: {*await log.sources(topic)} for topic in streams.values()}
    names = {*streams, *(each.name for each in merged.values())}
    for stream, _, source in [key.partition(".") for key in await log.keys(TRIMS)]:
        named = not GENERATED.fullmatch(source)
        after_us = sources_us if named else min(UNNAMED_US, UNNAMED_US if sources_us is None else sources_us)
        if stream not in names or source in ("", FORGOTTEN, PULSE) or after_us is None:
            continue
        if source.startswith(DERIVED):
            continue  # their numbers follow from the relations; there is one for each subscription
        if stream in streams and (source in held[streams[stream]] or (streams[stream], source) in left):
            continue
        await forget_source(log, stream, source, newest - after_us)


async def _planned(
    log: Log, topic: str, stream: Stream, state: StreamState, newest: int, places: Mapping[str, int], read: bool
) -> TopicRetention:
    """`places`: by durable subscriber, the last sequence that it does not need."""
    keep, cuts = await keep_of(log, topic), {"": state.first}
    if keep is not None and keep.age_us is not None:
        cuts["age"] = await log.before(stream, newest - keep.age_us) + 1
    if keep is not None and keep.bytes is not None:
        cuts["size"] = _by_size(state, keep.bytes)
    if keep is None and read and places:
        cuts["read"] = min(places.values()) + 1
    why, cut = max(cuts.items(), key=lambda each: each[1])
    trimmed = max(state.first, min(cut, state.last + 1)) - state.first  # 1
    behind = tuple(sorted(name for name, at in places.items() if trimmed and at + 1 < state.first + trimmed))
    return TopicRetention(topic, str(keep or ""), *state, trimmed, why if trimmed else "", behind)


def _by_size(state: StreamState, limit: int) -> int:
    """The first block to keep so that about `limit` bytes are left, by the mean size of a block: the server tells no other."""
    blocks = state.last - state.first + 1
    if state.bytes <= limit or blocks <= 0:
        return state.first
    return state.first + -(-(state.bytes - limit) * blocks // state.bytes)


async def _note_heads(log: Log, stream: Stream, first: int, cut: int) -> None:
    heads, repeats = dict[str, dict[str, TrimmedHead]](), list[int]()
    async for some in log.heads(stream, first - 1, cut - 1):
        add_heads(heads, some)
        repeats += [each.sequence for each in some if each.block.rejected == REPEATED]
    await note_record(log, stream.name, TrimRecord(repeats=tuple(repeats)))
    for source, found in heads.items():
        await note_trimmed(log, stream.name, source, found)


async def _trim_merged(log: Log, stream: Stream, moved: set[str]) -> set[tuple[str, str]]:
    """Trims a merged stream up to the first block that its topic keeps. The blocks of a topic have their order here, too: after
    one that it keeps, it keeps all. `moved`: the topics that are trimmed. Returns the topics and sources of blocks that are
    left here, and not in their topics."""
    state, left, stale = await log.state(stream), set(moved), set[tuple[str, str]]()
    heads, cut, judged, rejected = dict[str, dict[str, TrimmedHead]](), 0, 0, list[int]()
    gone: dict[tuple[str, str], Heads] = {}
    if state.first > state.last:
        return stale
    async with aclosing(log.heads(stream, state.first - 1, state.last)) as reading:  # type: ignore[type-var]
        async for blocks in reading:
            for each in blocks:
                if not each.block.count:
                    rejected.append(each.sequence)
                elif await _is_trimmed(log, each, gone):
                    judged = each.sequence
                    if not cut:
                        add_heads(heads, [each])
                    else:
                        stale.add((each.block.topic, each.block.source))
                else:
                    left.discard(each.block.topic)
                    cut = cut or each.sequence
            if not left:
                break
    cut = cut or judged + 1
    for source, found in heads.items():
        await note_trimmed(log, stream.name, source, found)
    await note_record(log, stream.name, TrimRecord(max(cut, 1), judged, tuple(each for each in rejected if each <= judged)))
    if cut > state.first:
        await log.trim(stream, cut)
    return stale


async def _is_trimmed(log: Log, stored: Stored, gone: dict[tuple[str, str], Heads]) -> bool:
    """Whether the head of a block, or of a later one of its source, is noted for its topic."""
    block = stored.block
    key = topic_stream(block.topic), block.source
    if key not in gone:
        gone[key] = await trimmed_heads(log, *key)
    head = gone[key].get(block.lane)
    return head is not None and block.number <= head.number


async def _time_of(log: Log, stream: Stream, sequence: int) -> int:
    """When a block was stored; 0 if the stream does not have it."""
    if sequence < (await log.state(stream)).first:
        return 0
    return max([each.time async for some in log.heads(stream, sequence - 1, sequence) for each in some], default=0)


async def _read_by(
    log: Log, points: ResumePoints, states: Mapping[str, StreamState], merged: Mapping[tuple[str, ...], Stream]
) -> dict[str, dict[str, int]]:
    """By topic and durable subscriber, the sequence up to which it needs nothing. The blocks of a topic have their order in
    merged streams too: one that lacks the last n of them there has read all others in the topic. Of a merged stream that does
    not exist, nothing has been read."""
    found: dict[str, dict[str, int]] = {name: {} for name in states}
    for (parts, subscriber), at in points.places.items():
        for topic in (each for each in parts if each in found):
            last = states[topic].last
            done = at if parts not in merged else last - await log.count(merged[parts], at, topic)
            found[topic][subscriber] = min(done, last, found[topic].get(subscriber, last))
    return found
