"""The last block of a source, if messages after it are none.

Messages that are no blocks (predecessor.py) may stand at the end of a source, as many as somebody has written. They are skipped
without their payloads, from near the end to further back, so the cost grows with their number and not with the stream.

Takes: a connection, a stream, subjects. Gives: the last block under them. Never: reads the payloads of other messages.
"""

from __future__ import annotations

from contextlib import aclosing

from nats.aio.msg import Msg

from fairlead.errors import DataError
from fairlead.transport.log.jetstream.predecessor import headers_of
from fairlead.transport.log.jetstream.reader import Connection, Parse
from fairlead.transport.log.jetstream.stream_reads import read
from fairlead.transport.log.protocol import Stored, Stream, Trimmed

SPAN, WIDER = 256, 8
"""Sequences that are looked at first, and how many times as many next."""


async def last_block(way: Connection, stream: Stream, subjects: str, last: int, parse: Parse) -> Stored | None:
    """The last block under `subjects` up to the sequence `last`, which is that of the last message. None if there is none, or
    if it has been trimmed."""
    span, end, first = SPAN, last, 1
    while first <= last:
        start = max(first, last - span)
        try:
            found = await _last_between(way, stream, subjects, start, end, last, parse)
        except Trimmed as trimmed:
            first = trimmed.first
            continue
        if found:
            whole = await way.js.get_msg(stream.name, found)
            place = f"{stream.name} {found}"
            return Stored(found, 0, parse(headers_of(whole), whole.data or b"", whole.subject or "", place))
        if start <= first:
            return None
        span, end = span * WIDER, start
    return None


async def _last_between(way: Connection, stream: Stream, subjects: str, start: int, end: int, last: int, parse: Parse) -> int:
    """The sequence of the last block from `start` up to `end`; 0 if there is none. The message at `last` exists, so the reading
    ends."""

    def take(message: Msg, sequence: int, time: int) -> tuple[int, bool]:
        try:
            parse(message.headers, b"", message.subject, "")
            return sequence, True
        except DataError:
            return sequence, False

    found = 0
    async with aclosing(read(way, stream, start - 1, take, [subjects], headers_only=True)) as reading:
        async for some in reading:
            for sequence, is_block in some:
                if sequence <= end and is_block:
                    found = sequence
                if sequence >= min(end, last):
                    return found
    return found
