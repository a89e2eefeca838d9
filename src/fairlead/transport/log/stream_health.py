"""Whether a stream is still the one that was read, with all its blocks.

    made       another time of creation: the stream was deleted and created again, so its sequences mean other blocks
    last       before the last block that was read: the newest blocks are gone, and others will take their sequences
    time       the block at that sequence was stored later than the one that was read: this has happened
    removed    blocks after the one that was read that are gone, between others

That the first blocks are gone, up to some after the one that was read, is no problem of this kind: see `Trimmed`.

Takes: what the server reports of a stream, and how far it was read. Gives: an error, or none. Never: does I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fairlead.dataclass import dataclass
from fairlead.errors import LogError
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.protocol import Stream

RESTORE = "restore the log from a backup; to read the log as it is now, forget the subscriber and subscribe again"


@dataclass(frozen=True)
class StreamReport:
    """`first`, `last`: sequences; first is one more than last if the stream is empty. `removed`: sequences between them that
    are gone. `time`: when the last block that was read was stored, if it is known."""

    made: str
    first: int
    last: int
    removed: Sequence[int] = ()
    time: int | None = None


def problem_of(stream: Stream, after: int, time: int | None, report: StreamReport) -> LogError | None:
    """The error of a reader that has read `stream` up to the sequence `after`, whose block was stored at `time`."""
    if stream.made and report.made != stream.made:
        return LogError("N022", f"the stream {stream.name} was deleted and created again while it was read", RESTORE)
    if report.last < after:
        problem = f"blocks {report.last + 1:,} to {after:,} of the stream {stream.name} were read, and are gone"
        return LogError("N022", problem, RESTORE)
    if time is not None and report.time is not None and report.time > time:
        problem = f"block {after:,} of the stream {stream.name} was read, and another one is in its place now"
        return LogError("N022", problem, RESTORE)
    later = [each for each in report.removed if each > after]
    return removed_blocks(stream, later[0], _end_of_run(later)) if later else None


def _end_of_run(sequences: Sequence[int]) -> int:
    return next((each for each, after in pairwise(sequences) if after > each + 1), sequences[-1])


def removed_blocks(stream: Stream, first: int, last: int, merged: Stream | None = None) -> LogError:
    """`merged`: the stream that is read, if it is not the one that lacks the blocks; it begins after them."""
    problem = f"blocks {first:,} to {last:,} of the stream {stream.name} have been deleted: events are lost"
    start = (last + 1 if merged is None else 1) << INDEX_BITS
    return LogError("N020", problem, f"restore them from a backup, or start after them: start={start}")
