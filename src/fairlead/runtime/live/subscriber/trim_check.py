"""Readers of streams that are trimmed: where a stream begins, and whether a reader lost something.

A reader that finds blocks trimmed which it has not read has lost something if it would have read one of them. The heads of
trimmed blocks tell (transport/log/trims.py): a subscriber of a rare type may have read its last block long before the first
one that is left, and lack nothing. Blocks that are missing at the beginning of a stream and were not trimmed by Fairlead are
lost (N020). A merged stream that was created after that has no gap: its topics tell.

Takes: a log, progress in its streams. Gives: a return if nothing is lost, an error otherwise. Never: changes the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum

from fairlead.errors import LogError, StateError
from fairlead.runtime.live.core.strand import StreamPlace
from fairlead.runtime.live.core.stream_merge import PULSE
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.protocol import Log, Stream, StreamState, Trimmed
from fairlead.transport.log.stream_health import removed_blocks
from fairlead.transport.log.trims import first_kept, trim_record, trimmed_heads, trimmed_sources


async def first_of(log: Log, stream: Stream) -> int:
    """The position at which the stream begins: 0, or that of the first block that trimming has left."""
    after = await after_trim(log, stream)
    return (after + 1) << INDEX_BITS if after else 0


async def after_trim(log: Log, stream: Stream) -> int:
    """The sequence of the last block that was trimmed; 0 if there is none, or if blocks were removed otherwise."""
    first, kept = (await log.state(stream)).first, await first_kept(log, stream.name)
    return kept - 1 if kept >= first else 0  # what is about to be removed counts


async def require_beginning(log: Log, stream: Stream, topics: Sequence[str]) -> None:
    """Raises LogError if the merged stream of these topics begins after blocks that were removed otherwise. (A reader of one
    topic finds that out itself.)"""
    for topic, state in await _cut_topics(log, topics):
        part = await log.open_topics([topic])
        raise removed_blocks(part, await first_kept(log, part.name), state.first - 1, stream)


async def _cut_topics(log: Log, topics: Sequence[str]) -> list[tuple[str, StreamState]]:
    """Of several topics that are merged, those whose first blocks were removed otherwise."""
    found = []
    for topic in topics if len(topics) > 1 else ():
        part = await log.open_topics([topic])
        state = await log.state(part)
        if state.first > 1 and await first_kept(log, part.name) < state.first:
            found.append((topic, state))
    return found


def begins(place: StreamPlace) -> bool:
    """Whether a reader at this place needs the beginning of its stream."""
    return place.reached.time is None and place.origin < 1 << INDEX_BITS


async def lost_types(log: Log, stream: Stream, place: StreamPlace, routes: Mapping[str, int]) -> list[str]:
    """The types of trimmed blocks that a reader at this place needs. `routes`: by type, the one by which it reads."""
    found = set[str]()
    for source in await trimmed_sources(log, stream.name):
        for head in (await trimmed_heads(log, stream.name, source)).values() if source != PULSE else ():
            last = head.routes[routes[head.type]] if head.type in routes else head.at
            if last > place.reached.sequence and head.type in (MIXED, *place.types):
                found |= {*place.types} if head.type == MIXED else {head.type}
    return sorted(found)


async def has_lost(
    log: Log, stream: Stream, topics: Sequence[str], place: StreamPlace, routes: Mapping[str, int] | None = None
) -> bool:
    """Whether a reader that resumes at this place lacks trimmed or removed blocks, or will soon. `routes`: by type, the one by
    which it reads, if it does."""
    for part, state in await _cut_topics(log, topics):
        # readers look up in the topics which messages are blocks: of a merged stream that was there before, too
        if begins(place) or await log.count(stream, place.reached.sequence, part) > state.last - state.first + 1:
            return True
    first, kept = (await log.state(stream)).first, await first_kept(log, stream.name)
    if place.reached.sequence + 1 >= max(first, kept):
        return False
    return kept < first or bool(await lost_types(log, stream, place, routes or {}))


LOST = "S144"


class TrimRisk(IntEnum):
    NONE = 0
    PLANNED = 1
    """What is needed may be trimmed soon: retention plans it, and may not have seen that the reader is recorded."""
    TRIMMED = 2


async def trim_risk(log: Log, stream: Stream, place: StreamPlace) -> TrimRisk:
    """What becomes of the blocks that a reader at this place needs. If they are trimmed while this looks at what is planned, it
    looks again."""
    record, at = await trim_record(log, stream.name), place.reached.sequence
    while max(record.first, record.planned) > at + 1:
        with suppress(Trimmed):
            async for some in log.heads(stream, max(at, record.first - 1), min(record.planned - 1, await log.last(stream))):
                if any(each.block.type in (MIXED, *place.types) for each in some):
                    return TrimRisk.PLANNED
        before, record = record, await trim_record(log, stream.name)
        if record == before:
            lost = record.first > at + 1 and await lost_types(log, stream, place, {})
            return TrimRisk.TRIMMED if lost else TrimRisk.NONE
    return TrimRisk.NONE


def about_to_be_trimmed(names: Iterable[str]) -> StateError:
    problem = f"events that {', '.join(names)} needs are about to be trimmed, and trimming does not end"
    return StateError(LOST, problem, "run `fairlead retain --apply --read` again, then subscribe")


async def require_kept(log: Log, trimmed: Trimmed, places: Iterable[StreamPlace], routes: Mapping[str, int]) -> None:
    """Raises StateError if one of these places lacks trimmed blocks, LogError if the blocks were removed otherwise."""
    if await first_kept(log, trimmed.stream.name) < trimmed.first:
        raise removed_blocks(trimmed.stream, trimmed.after + 1, trimmed.first - 1)
    for place in places:
        if place.reached.sequence + 1 < trimmed.first and (lost := await lost_types(log, trimmed.stream, place, routes)):
            first, last = (place.reached.sequence + 1) << INDEX_BITS, (trimmed.first << INDEX_BITS) - 1
            problem = (
                f"events of {', '.join(lost)} that were not read have been trimmed: "
                f"positions {max(first, place.origin)} to {last} of {trimmed.stream.name}"
            )
            fix = "forget the subscriber, then subscribe with start='snapshot', 'new' or 'earliest' to continue without them"
            raise StateError(LOST, problem, fix)


def passed_over(lost: StateError) -> LogError:
    """For a durable subscriber that lacks nothing when it resumes."""
    return LogError("N024", f"{lost.problem}; a saved state has them", "subscribe again under the same name: it resumes")


async def require_untrimmed(log: Log, stream: Stream, place: StreamPlace) -> None:
    """Raises StateError if a reader that begins at this place lacks trimmed blocks, or will soon."""
    first = await first_kept(log, stream.name)
    if place.reached.sequence + 1 < first:
        await require_kept(log, Trimmed(stream, place.reached.sequence, first), [place], {})


async def behind(log: Log, trimmed: Trimmed) -> LogError:
    if await first_kept(log, trimmed.stream.name) < trimmed.first:
        return removed_blocks(trimmed.stream, trimmed.after + 1, trimmed.first - 1)
    problem = f"blocks {trimmed.after + 1:,} to {trimmed.first - 1:,} of the stream {trimmed.stream.name} have been trimmed"
    return LogError("N024", problem, f"start with what is left: start={trimmed.first << INDEX_BITS}")
