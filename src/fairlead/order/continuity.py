"""Checks that a log reader misses nothing: the blocks of every type and source are numbered without a gap, and each counts
once.

A source numbers the blocks of a type from 0, and keeps the number of a block that it stores again because an answer was lost.
The reader knows the last number that it accepted of every type and source, so a block is

    the next one   number is one more                     it is accepted
    a repeat       number is not above the last           it is dropped, whenever it arrives
    a gap          number is further ahead                S120: blocks were lost, nothing after them may be read
    the first      of a source that was not seen before   number 0, unless the reader began after the log's first message

Two publishers with the same name would give different blocks the same number, and the later block would be dropped silently. A
repeated number with a different count of events shows this (S121).

A reader of a route (`read_through`) receives only some of the blocks of a type. Each block contains, by route, the number of
the previous block on that route (`before`); there is a gap if that block was not accepted. A state records the route by which
each source was read, so that a reader of all blocks can continue from the state of a route's reader, and vice versa: the first
block of each source is then compared with what the earlier reader received, and the blocks after that with what this one
receives.

A reader that begins after the first message cannot distinguish a repeat from the first block of a source, unless it knows what
was stored before (`begin`), or has the state of a reader that began earlier.

Takes: type, source, number and count of blocks, as the log has them, and the previous blocks on routes. Gives: whether to read
each. Never: reads events or a clock; depends on how types and sources interleave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.errors import StateError, require

VERSION = 1


WHOLE, SEVERAL = -1, 1 << 30
"""Instead of a route: all blocks were read; or several routes were used, one after the other, so that nothing is known."""


class Continuity:
    """`from_beginning`: the reader has read the log from its first message, so every source must begin with block 0."""

    def __init__(self, *, from_beginning: bool = True) -> None:
        self.from_beginning = from_beginning
        self.repeats = 0  # dropped by this reader; not part of the state
        self._through: Mapping[str, int] = {}
        self._last: dict[tuple[str, str], tuple[int, int]] = {}
        self._by: dict[tuple[str, str], int] = {}
        """The route by which a source was read since its last block, inclusive, if it was a single one."""
        self._unseen: dict[str, int] = {}
        """By type, the route on which unseen sources were not seen, if it was a single one."""

    def read_through(self, routes: Mapping[str, int]) -> None:
        """From here on, only the blocks of a route arrive of these types."""
        self._through = dict(routes)
        for type, route in self._through.items():
            self._unseen[type] = _joined(self._unseen.get(type, WHOLE), route)
        for type, source in self._last:
            if type in self._through:
                self._by[type, source] = _joined(self._by.get((type, source), WHOLE), self._through[type])

    def check(self, type: str, source: str, number: int, count: int, before: Sequence[int] = ()) -> bool:
        """Whether to read the block; False for a repeat. `count`: the events in it. `before`: by route, the number of the
        previous block, unless that is the previous block of the source on all routes. Raises StateError; then nothing has
        changed, and the same block is rejected again."""
        require(number >= 0 and count >= 0, "blocks are numbered from 0", type=type, source=source, number=number, count=count)
        last, through = self._last.get((type, source)), self._through.get(type, WHOLE)
        if last is None:
            expected = _before(_joined(self._unseen.get(type, WHOLE), through), number, before)
            if expected >= 0 and self.from_beginning:
                raise _gap(type, source, f"start with block {number:,}, not with block 0")
        else:
            if number == last[0] and count != last[1]:
                raise _two_publishers(type, source, number, last[1], count)
            if number <= last[0]:
                self.repeats += 1
                return False
            if _before(_joined(self._by.get((type, source), WHOLE), through), number, before) > last[0]:
                raise _gap(type, source, f"continue with block {number:,} after block {last[0]:,}")
        self._last[type, source] = number, count
        if through != WHOLE:
            self._by[type, source] = through
        else:
            self._by.pop((type, source), None)
        return True

    def begin(self, type: str, source: str, number: int, count: int) -> None:
        """The last block of a source that the log had before the reader's first position."""
        require((type, source) not in self._last, "earlier blocks are set before reading", type=type, source=source)
        self._last[type, source] = number, count

    def last(self, type: str, source: str) -> int | None:
        """The number of the last block that was accepted."""
        found = self._last.get((type, source))
        return None if found is None else found[0]

    def dump(self) -> dict[str, Any]:
        """The state; types and sources by name, so that equal states have equal bytes as JSON."""
        blocks: dict[str, dict[str, list[int]]] = {}
        for type, source in sorted(self._last):
            blocks.setdefault(type, {})[source] = list(self._last[type, source])
        routes: dict[str, dict[str, int]] = {}
        for type, source in sorted(self._by):
            routes.setdefault(type, {})[source] = self._by[type, source]
        read = {"routes": routes, "unseen": dict(sorted(self._unseen.items()))} if self._unseen else {}
        return {"version": VERSION, "from_beginning": self.from_beginning, "blocks": blocks} | read

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Continuity:
        """The inverse of `dump`. Raises StateError."""
        if state.get("version") != VERSION or not isinstance(state.get("blocks"), Mapping):
            problem = f"the state of block numbers has version {state.get('version')!r}, wanted {VERSION}"
            raise StateError("S122", problem, "load it with the release that wrote it, or read the log from its beginning")
        loaded = cls(from_beginning=bool(state["from_beginning"]))
        for type, sources in state["blocks"].items():
            for source, (number, count) in sources.items():
                loaded._last[type, source] = int(number), int(count)
        for type, sources in state.get("routes", {}).items():
            for source, route in sources.items():
                loaded._by[type, source] = int(route)
        loaded._unseen = {type: int(route) for type, route in state.get("unseen", {}).items()}
        return loaded


def _joined(first: int, second: int) -> int:
    """Read by one route, then by another."""
    return max(first, second) if first == second or WHOLE in (first, second) else SEVERAL


def _before(route: int, number: int, before: Sequence[int]) -> int:
    """The number of the block that must have preceded this one; -1 if none must."""
    if route == SEVERAL:
        return -1
    return number - 1 if route == WHOLE or not before else before[route]


def _gap(type: str, source: str, what: str) -> StateError:
    fix = "restore the log from a replica or a backup; to continue without the lost events, start after the gap"
    return StateError("S120", f"blocks of '{type}' from source '{source}' are missing: they {what}", fix)


def _two_publishers(type: str, source: str, number: int, first: int, second: int) -> StateError:
    problem = (
        f"block {number:,} of '{type}' from source '{source}' is stored twice, once with {first:,} events, once with {second:,}"
    )
    return StateError("S121", problem, "give every concurrent publisher its own source name")
