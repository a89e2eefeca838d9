"""Where a stream ends that others still flow into.

A merged stream takes up what its sources hold a moment later. All that is stored now is merged once it has as many blocks as
they have together.

Takes: a stream and the types that flow into it. Gives: the sequence of its end. Never: waits for what is published later.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.errors import LogError
from fairlead.model.types import HEARTBEAT
from fairlead.transport.log.names import type_stream
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Log, Stream

BEHIND_SECONDS_MAX = 10.0
"""A merged stream that takes up nothing for so long has stopped."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.01, 0.1


async def end_of(log: Log, stream: Stream, types: Sequence[str]) -> int:
    """Where everything is merged that is stored now."""
    if stream.name == type_stream(types[0]):
        return await log.last(stream)
    return sum([await log.last(await log.open_type(each)) for each in dict.fromkeys((*types, HEARTBEAT.name))])


async def caught_up(log: Log, stream: Stream, types: Sequence[str]) -> int:
    """The last sequence of the stream, once all that is stored now is merged. Raises LogError where that does not go on."""
    end, last = await end_of(log, stream, types), await log.last(stream)
    patience = Patience(BEHIND_SECONDS_MAX, PAUSE_SECONDS, PAUSE_SECONDS_MAX)
    while last < end:
        if patience.is_over:
            problem = f"the stream of {', '.join(types)} is {end - last:,} blocks behind its types, and does not advance"
            raise LogError("N021", problem, "see the server's log; try again when all servers run and have room")
        await patience.pause()
        before, last = last, await log.last(stream)
        if last > before:
            patience.renew()
    return last
