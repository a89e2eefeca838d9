"""What a reader of a log checks: the blocks of every type and source are numbered without a gap, and each counts once.

A source numbers the blocks of a type from 0 on, and keeps the number of a block that it stores again because an answer was
lost. So of every type and source the reader knows the last number that it let in, and a block is

    the next one   number is one more                     it is let in
    a repeat       number is not above the last           it is dropped, whenever it comes
    a gap          number is further on                   S120: blocks were lost, nothing after them may be read
    the first      of a source that was not seen before   number 0, unless the reader began behind the log's first message

Two publishers under one name would number different blocks alike, and the later one would be dropped in silence. Where the last
number comes again with another count of events, that is what happened (S121).

A reader that begins behind the first message cannot tell a repeat from the first block of a source, unless it is told what was
stored before (`begin`), or has the state of a reader that was there.

Takes: type, source, number and count of blocks, as the log has them. Gives: whether to read each. Never: looks at events, reads
a clock; depends on how types and sources interleave.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.errors import StateError, require

VERSION = 1


class Continuity:
    """`from_beginning`: the reader has read the log from its first message, so that every source must begin with block 0."""

    def __init__(self, *, from_beginning: bool = True) -> None:
        self.from_beginning = from_beginning
        self.repeats = 0  # dropped by this reader; not part of the state
        self._last: dict[tuple[str, str], tuple[int, int]] = {}

    def check(self, type: str, source: str, number: int, count: int) -> bool:
        """Whether the block is to be read; False for a repeat. `count`: the events in it. Raises StateError; then nothing has
        changed, and the same block is refused again."""
        require(number >= 0 and count >= 0, "blocks are numbered from 0", type=type, source=source, number=number, count=count)
        last = self._last.get((type, source))
        if last is None:
            if number and self.from_beginning:
                raise _gap(type, source, f"begin with block {number:,}, not with block 0")
        else:
            if number == last[0] and count != last[1]:
                raise _two_publishers(type, source, number, last[1], count)
            if number <= last[0]:
                self.repeats += 1
                return False
            if number > last[0] + 1:
                raise _gap(type, source, f"go on with block {number:,} after block {last[0]:,}")
        self._last[type, source] = number, count
        return True

    def begin(self, type: str, source: str, number: int, count: int) -> None:
        """The last block of a source that the log had before the place at which the reader begins."""
        require((type, source) not in self._last, "what came before is told before reading", type=type, source=source)
        self._last[type, source] = number, count

    def last(self, type: str, source: str) -> int | None:
        """The number of the last block that was let in."""
        found = self._last.get((type, source))
        return None if found is None else found[0]

    def dump(self) -> dict[str, Any]:
        """The state; types and sources by name, so that equal states have equal bytes as JSON."""
        blocks: dict[str, dict[str, list[int]]] = {}
        for type, source in sorted(self._last):
            blocks.setdefault(type, {})[source] = list(self._last[type, source])
        return {"version": VERSION, "from_beginning": self.from_beginning, "blocks": blocks}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Continuity:
        """The inverse of `dump`. Raises StateError."""
        if state.get("version") != VERSION or not isinstance(state.get("blocks"), Mapping):
            problem = f"the state of block numbers has version {state.get('version')!r}, wanted {VERSION}"
            raise StateError("S122", problem, "load it with the Fairlead that wrote it, or read the log from its beginning")
        loaded = cls(from_beginning=bool(state["from_beginning"]))
        for type, sources in state["blocks"].items():
            for source, (number, count) in sources.items():
                loaded._last[type, source] = int(number), int(count)
        return loaded


def _gap(type: str, source: str, what: str) -> StateError:
    fix = "restore the log from a replica or a backup; to go on without the lost events, begin behind the gap"
    return StateError("S120", f"blocks of '{type}' from source '{source}' are missing: they {what}", fix)


def _two_publishers(type: str, source: str, number: int, first: int, second: int) -> StateError:
    problem = (
        f"block {number:,} of '{type}' from source '{source}' is there twice, once with {first:,} events, once with {second:,}"
    )
    return StateError("S121", problem, "give every publisher that runs at the same time a source name of its own")
