"""Where a stream ends that others still flow into.

A merged stream takes up what its sources hold a moment later. All that is stored now is merged once it has as many blocks as
they have together.

Takes: a group and its stream. Gives: the sequence of its end. Never: waits for it.
"""

from __future__ import annotations

from fairlead.model.types import HEARTBEAT
from fairlead.runtime.live.grouping import Group
from fairlead.transport.log.protocol import Log, Stream


async def end_of(log: Log, group: Group, stream: Stream) -> int:
    own = await log.open_type(group.types[0]) if len(group.types) == 1 else None
    if own == stream:
        return await log.last(stream)
    names = (*group.types, HEARTBEAT.name)
    return sum([await log.last(await log.open_type(each)) for each in names])
