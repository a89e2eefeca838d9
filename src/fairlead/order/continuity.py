"""Checks that the log of an earlier release is complete: the blocks of each type and source are numbered without a gap, and
each counts once.

A source numbered the blocks of a type from 0, and kept the number of a block that it stored again because an answer was lost.
So a block is

    the next one   number is one more                     it is accepted
    a repeat       number is not above the last           it is dropped, whenever it arrives
    a gap          number is further ahead                S120: blocks were lost, nothing after them may be read

Two publishers with the same name would give different blocks the same number, and the later block would be dropped silently. A
repeated number with a different count of events shows this (S121).

Takes: type, source, number and count of blocks, as the log has them. Gives: whether to read each. Never: reads events or a
clock; depends on how types and sources interleave.
"""

from __future__ import annotations

from fairlead.errors import StateError, require


class Continuity:
    """The last block of every type and source."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[int, int]] = {}

    def check(self, type: str, source: str, number: int, count: int) -> bool:
        """Whether to read the block; False for a repeat. `count`: the events in it. Raises StateError; then nothing has
        changed, and the same block is rejected again."""
        require(number >= 0 and count >= 0, "blocks are numbered from 0", type=type, source=source, number=number, count=count)
        last, last_count = self._last.get((type, source), (-1, 0))
        if number == last and count != last_count:
            raise _two_publishers(type, source, number, last_count, count)
        if number <= last:
            return False
        if number > last + 1:
            raise _gap(type, source, number, last)
        self._last[type, source] = number, count
        return True


def _gap(type: str, source: str, number: int, last: int) -> StateError:
    what = f"continue with block {number:,} after block {last:,}" if last >= 0 else f"start with block {number:,}, not with 0"
    problem = f"blocks of '{type}' from source '{source}' are missing: they {what}"
    return StateError("S120", problem, "restore the log from a replica or a backup")


def _two_publishers(type: str, source: str, number: int, first: int, second: int) -> StateError:
    problem = (
        f"block {number:,} of '{type}' from source '{source}' is stored twice, once with {first:,} events, once with {second:,}"
    )
    return StateError("S121", problem, "give every concurrent publisher its own source name")
