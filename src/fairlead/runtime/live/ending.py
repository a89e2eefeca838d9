"""The current end of a merged stream whose source streams still grow.

A merged stream copies the blocks of its sources with a short delay. It contains everything that is stored now as soon as it has
as many blocks as its sources have together.

Takes: a stream and its topics. Gives: the sequence of its end. Never: waits for events that are published later.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.errors import LogError
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Log, Stream

BEHIND_SECONDS_MAX = 10.0
"""A merged stream that copies nothing for this long has stopped."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.01, 0.1


async def end_of(log: Log, stream: Stream, topics: Sequence[str]) -> int:
    """The sequence at which everything stored now is merged."""
    return sum([await log.last(await log.open_topics([each])) for each in topics])


async def caught_up(log: Log, stream: Stream, topics: Sequence[str]) -> int:
    """The last sequence of the stream, once everything stored now is merged. Raises LogError if the merge makes no progress."""
    end, last = await end_of(log, stream, topics), await log.last(stream)
    patience = Patience(BEHIND_SECONDS_MAX, PAUSE_SECONDS, PAUSE_SECONDS_MAX)
    while last < end:
        if patience.is_over:
            problem = f"the stream of {', '.join(topics)} lags its topics by {end - last:,} blocks, and does not advance"
            raise LogError("N021", problem, "see the server's log; try again when all servers run and have room")
        await patience.pause()
        before, last = last, await log.last(stream)
        if last > before:
            patience.renew()
    return last
