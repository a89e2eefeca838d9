"""The current end of a merged stream whose source streams still grow.

A merged stream copies the blocks of each topic in their order, with a short delay. It contains everything that is stored now as
soon as it has the block that is the last of each topic now. (That it has as many blocks as the topics have now does not show
this: some of them may have been stored since.)

Takes: a stream and its topics. Gives: the sequence of its end. Never: waits for events that are published later.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from fairlead.errors import DataError, LogError
from fairlead.transport.log.block import Block
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Log, Stream

BEHIND_SECONDS_MAX = 10.0
"""A merged stream that copies nothing for this long has stopped."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.01, 0.1


async def end_of(log: Log, stream: Stream, topics: Sequence[str]) -> int:
    """The sequence at which everything stored now is merged, once it is. Raises LogError if the merge makes no progress."""
    if len(topics) == 1:
        return await log.last(stream)
    left = [block for each in topics for block in await _newest(log, each)]
    patience, end, last = Patience(BEHIND_SECONDS_MAX, PAUSE_SECONDS, PAUSE_SECONDS_MAX), 0, -1
    while left:
        waiting = []
        for block in left:
            with suppress(DataError):  # a message that is no block is in its place: nobody waits for it
                copy = await log.last_of(block.topic, block.source, block.type, stream)
                if copy is None or copy.block.number < block.number:
                    waiting.append(block)
                else:
                    end = max(end, copy.sequence)
        left = waiting
        if left:
            before, last = last, await log.last(stream)
            if last > before:
                patience.renew()
            elif patience.is_over:
                problem = f"the stream of {', '.join(topics)} lacks blocks of {left[0].topic}, and does not advance"
                raise LogError("N021", problem, "see the server's log; try again when all servers run and have room")
            await patience.pause()
    return end


async def _newest(log: Log, topic: str) -> list[Block]:
    """The last block of a topic; if the last message is not a block, the last one of each source."""
    await log.open_topics([topic])
    try:
        found = await log.last_of(topic, None)
        return [] if found is None else [found.block]
    except DataError:
        every = []
        for source in await log.sources(topic):
            with suppress(DataError):
                found = await log.last_of(topic, source)
                every += [] if found is None else [found.block]
        return every


async def caught_up(log: Log, stream: Stream, topics: Sequence[str]) -> int:
    """The last sequence of the stream, once everything stored now is merged. Raises LogError if the merge makes no progress."""
    end = await end_of(log, stream, topics)
    return max(end, await log.last(stream))
