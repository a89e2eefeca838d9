"""Where a micro-batch of several topics ends: rules with ORDER BY read the stream of each topic, in their one order.

The one order is by stored time (order/merging.py). A cut is a beginning of it: a sequence for each stream, so that no block
before the cut comes after one that is not. A cut that is certain now ends with the last block of the stream that is furthest
behind: later blocks of all streams come after it. Cuts are found by asking for times, without reading the streams, and of two
cuts one contains the other.

A quiet topic delays the others. A reader that waits for it stores a heartbeat in it, as live subscribers do.

Takes: a log, the streams of topics. Gives: cuts, as sequences by stream. Never: reads events; changes the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import ge

from fairlead.errors import DataError, LogError
from fairlead.runtime.live.core.stream_merge import PULSE
from fairlead.runtime.live.subscriber.stream_reader import pulse
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Log, Stored, Stream

OrderPlace = tuple[int, str]
"""A place in the one order: a time of storage, and the name of a stream."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.005, 0.1
NEVER = -1
WAIT_SECONDS_MAX = 60.0
"""A heartbeat is stored in milliseconds, or after a cluster has elected a leader."""


async def certain_cut(log: Log, streams: Sequence[Stream], topics: Sequence[str]) -> list[int]:
    """The largest cut that is certain now."""
    last = [await _last_block(log, topic) for topic in topics]
    places = [(each.time, stream.name) for each, stream in zip(last, streams, strict=True) if each is not None]
    return [0] * len(streams) if len(places) < len(streams) else await _cut_at(log, streams, min(places))


async def advance(log: Log, streams: Sequence[Stream], topics: Sequence[str], cut: Sequence[int]) -> bool:
    """Store a heartbeat in the topics that delay blocks after this cut; returns whether there are any. No reader waits for
    heartbeats that waiting readers stored, or there would be no end of them."""
    if not any([await _holds(log, stream, low) for stream, low in zip(streams, cut, strict=True)]):
        return False
    last = [await _last_block(log, topic) for topic in topics]
    places = [(NEVER if each is None else each.time, stream.name) for each, stream in zip(last, streams, strict=True)]
    for topic, place in zip(topics, places, strict=True):
        if place < max(places):
            await pulse(log, topic)
    return True


async def complete_cut(
    log: Log, streams: Sequence[Stream], topics: Sequence[str], seconds_max: float = WAIT_SECONDS_MAX
) -> list[int]:
    """A cut with everything that is stored now; what may delay it is advanced. Raises LogError."""
    wanted = [await log.last(each) for each in streams]
    patience = Patience(seconds_max, PAUSE_SECONDS, PAUSE_SECONDS_MAX)
    while True:
        found = await certain_cut(log, streams, topics)
        if all(map(ge, found, wanted)) or not await advance(log, streams, topics, found):
            return found
        if patience.is_over:
            problem = f"the streams of {', '.join(topics)} have no common end: a heartbeat does not advance them"
            raise LogError("N025", problem, "see the server's log, and set its clocks; then start the stream again")
        await patience.pause()


async def limited_cut(
    log: Log, streams: Sequence[Stream], after: Sequence[int], end: Sequence[int], blocks: int
) -> Sequence[int]:
    """A cut of about so many blocks, between two others."""
    share = max(1, blocks // len(streams))
    places = [
        await _place_of(log, stream, low + share)
        for stream, low, high in zip(streams, after, end, strict=True)
        if high - low > share
    ]
    if not places:
        return end
    middle = [
        min(high, max(low, at)) for low, high, at in zip(after, end, await _cut_at(log, streams, min(places)), strict=True)
    ]
    return end if middle == list(after) else middle  # a clock that was set back says nothing about these blocks


async def _cut_at(log: Log, streams: Sequence[Stream], place: OrderPlace) -> list[int]:
    """All blocks up to a place, itself included."""
    time, name = place
    return [await log.before(each, time + (each.name <= name)) for each in streams]


async def _place_of(log: Log, stream: Stream, sequence: int) -> OrderPlace:
    reading = log.read(stream, sequence - 1)
    try:
        return (await anext(aiter(reading)))[0].time, stream.name
    finally:
        await reading.aclose()  # type: ignore[attr-defined]


async def _holds(log: Log, stream: Stream, after: int) -> bool:
    """Whether there are blocks after this one, apart from heartbeats of waiting readers."""
    last = await log.last(stream)
    if last <= after:
        return False
    reading = log.read(stream, after)
    try:
        async for some in reading:
            if any(each.block.source != PULSE for each in some):
                return True
            if some[-1].sequence >= last:
                return False
    finally:
        await reading.aclose()  # type: ignore[attr-defined]
    return False


async def _last_block(log: Log, topic: str) -> Stored | None:
    """The last block of a topic. After a message that is not a block a heartbeat is stored, since that has no time."""
    try:
        return await log.last_of(topic, None)
    except DataError:
        await pulse(log, topic)
        return await log.last_of(topic, None)
