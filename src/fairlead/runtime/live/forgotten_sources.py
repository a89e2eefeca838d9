"""Sources that are forgotten: of a source of which the log has no block any more, nothing is kept but what all have in common.

The heads of trimmed blocks (transport/log/trims.py) are one entry for each stream and source. Every connection without a source
name is a source, so they would grow for ever. Of sources that are forgotten one entry of the stream is left, with the largest
of each number, by lane:

    at, routes         a reader that lags is still told that it has lost something (subscriber/trim_check.py)
    number, sequence   a publisher that returns under a forgotten name begins after all of them, so no block and no event has a
                       number that another one of its source had

Takes: a log, a stream, a source. Gives: the entry that is left. Never: forgets what another client has recorded meanwhile; is
asked for a source that has blocks in the log (retention.py decides).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fairlead.transport.log.names import topic_stream
from fairlead.transport.log.protocol import Conflict, Log
from fairlead.transport.log.trims import GENERATED, TABLE, Heads, TrimmedHead, from_bytes, key_of, to_bytes, trimmed_heads

FORGOTTEN = "=forgotten"
"""Instead of a source: no publisher can have this name."""


def joined_heads(one: Heads, other: Heads) -> dict[str, TrimmedHead]:
    """By lane, what two sources have in common."""
    return {**one, **{lane: _joined(one.get(lane), head) for lane, head in other.items()}}


def _joined(one: TrimmedHead | None, other: TrimmedHead) -> TrimmedHead:
    if one is None:
        return other
    end = max(one.sequence + one.count, other.sequence + other.count)
    later = max(one, other, key=lambda head: head.at)
    routes = tuple(map(max, one.routes, other.routes))
    return replace(later, number=max(one.number, other.number), sequence=end - 1, count=1, routes=routes)


async def add_forgotten(log: Log, stream: str, heads: Heads) -> None:
    key = key_of(stream, FORGOTTEN)
    while True:
        entry = await log.get(TABLE, key)
        known = {} if entry is None else from_bytes(entry.value, key)
        newer = joined_heads(known, heads)
        if newer == known:
            return
        try:
            await log.put(TABLE, key, to_bytes(newer), 0 if entry is None else entry.revision)
            return
        except Conflict:
            continue  # another client trims too


async def forget_source(log: Log, stream: str, source: str, before: int | None = None) -> bool:
    """Whether the source is forgotten: if `before` is given, only if all its heads are of blocks that were stored before that
    time. 1. what is left of it, 2. its own entry, unless another client has changed it."""
    key = key_of(stream, source)
    entry = await log.get(TABLE, key)
    if entry is None:
        return True
    heads = from_bytes(entry.value, key)
    if before is not None and any(head.time >= before for head in heads.values()):
        return False
    await add_forgotten(log, stream, heads)  # 1
    try:
        await log.remove(TABLE, key, entry.revision)  # 2
    except Conflict:
        return False
    return True


async def first_numbers(log: Log, topic: str, source: str) -> tuple[int, Mapping[str, int]]:
    """Where a publisher begins of which the log knows nothing: the sequence of its first event, and by type the number of its
    first block, if that is not 0."""
    if GENERATED.fullmatch(source) or (await log.state(await log.open_topics([topic]))).first <= 1:
        return 0, {}
    heads = (await trimmed_heads(log, topic_stream(topic), FORGOTTEN)).values()
    return max((head.sequence + head.count for head in heads), default=0), {head.type: head.number + 1 for head in heads}
