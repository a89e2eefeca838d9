"""A range of one or several streams: all of it, or an error that says what is missing.

Takes: a stream, the sequence after which to begin, the last one. Gives: blocks, without repeats. Never: waits for later events;
skips blocks that retention or an administrator has removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from fairlead.errors import LogError
from fairlead.order.continuity import Continuity
from fairlead.runtime.live.interleaving import Interleaving, Reached
from fairlead.transport.log.block import INDEX_BITS
from fairlead.transport.log.protocol import Log, Stored, Stream

SILENCE_SECONDS_MAX = 60.0
"""A stored block arrives in milliseconds, or after a cluster has elected a leader."""


async def blocks_between(log: Log, stream: Stream, after: int, last: int) -> AsyncIterator[Sequence[Stored]]:
    """The blocks after `after`, up to and including `last`. Raises LogError if one was removed, StateError if the numbers of a
    source have a gap."""
    continuity = Continuity(from_beginning=after == 0)
    reading = log.read(stream, after).__aiter__()
    try:
        while after < last:
            found = []
            for each in await _next(reading, stream, after, last):
                if after == last:
                    break
                if each.sequence != after + 1:
                    raise _lost(stream, after, min(each.sequence, last + 1))
                after = each.sequence
                if continuity.check(each.block.lane, each.block.source, each.block.number, each.block.count):
                    found.append(each)
            if found:
                yield found
    finally:
        await reading.aclose()  # type: ignore[attr-defined]


async def blocks_until(
    log: Log, streams: Sequence[Stream], topics: Sequence[Sequence[str]], ends: Sequence[int]
) -> AsyncIterator[tuple[int, Sequence[Stored]]]:
    """The blocks of several streams from their beginnings, in their one order, by part; at least up to these ends."""
    if len(streams) == 1:
        async for blocks in blocks_between(log, streams[0], 0, ends[0]):
            yield 0, blocks
        return
    reading = Interleaving(log, streams, topics, [Reached(0)] * len(streams))
    checks = [Continuity(from_beginning=True) for _ in streams]
    if not any(ends):
        return
    async with aclosing(reading.read()) as stretches:
        async for some in stretches:
            for each in some:
                check = checks[each.part].check
                fresh = [
                    stored
                    for stored in each.blocks
                    if check(stored.block.lane, stored.block.source, stored.block.number, stored.block.count)
                ]
                if fresh:
                    yield each.part, fresh
            if reading.has_given(ends):
                return


async def _next(reading: AsyncIterator[Sequence[Stored]], stream: Stream, after: int, last: int) -> Sequence[Stored]:
    try:
        async with asyncio.timeout(SILENCE_SECONDS_MAX):
            return await anext(reading)
    except TimeoutError:
        raise _lost(stream, after, last + 1) from None


def _lost(stream: Stream, after: int, found: int) -> LogError:
    problem = f"blocks {after + 1:,} to {found - 1:,} of the stream {stream.name} have been deleted: events are lost"
    return LogError("N020", problem, f"restore them from a backup, or start after them: start={found << INDEX_BITS}")
