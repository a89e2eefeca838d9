"""The log after a run: the blocks of every stream, in order.

Takes: a client, types, sets of types that are merged. Gives: a copy of the streams. Never: returns before the merged streams
have everything that the streams of the types have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import groupby
from operator import itemgetter

from fairlead.dataclass import dataclass
from fairlead.model.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.transport.log.names import merged_stream
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Stored, Stream

TypeSet = tuple[str, ...]
Name = tuple[str, str, int]
"""The identity of a block: type, source, number."""


def name_of(stored: Stored) -> Name:
    return stored.block.type, stored.block.source, stored.block.number


@dataclass(frozen=True, eq=False)
class Copy:
    """`types`: by type, its own stream; `merged`: by the types, their merged stream."""

    types: dict[str, list[Stored]]
    merged: dict[TypeSet, list[Stored]]
    matched: dict[tuple[TypeSet, str], Sequence[Relation]] = field(default_factory=dict)
    """The relations found in a merged stream, by the digest of a plan (checks.py)."""

    @property
    def count(self) -> int:
        """Blocks of all types."""
        return sum(map(len, self.types.values()))

    def missing(self) -> list[Name]:
        """The blocks of its types that a merged stream lacks."""
        found = []
        for types, blocks in self.merged.items():
            have = {name_of(each) for each in blocks}
            found += [name_of(each) for name in types for each in self.types[name] if name_of(each) not in have]
        return found


async def copied(fl: Client, types: Iterable[str], merged: Iterable[TypeSet], seconds: float) -> Copy:
    """After `seconds` the merged streams are copied, complete or not."""
    own = {name: await _taken(fl, await fl.log.open_type(name)) for name in types}
    patience = Patience(seconds, pause=0.5)
    while True:
        copy = Copy(own, {each: await _taken(fl, await fl.log.open_merged(each)) for each in merged})
        if not copy.missing() or patience.is_over:
            return copy
        await patience.pause()


async def _taken(fl: Client, stream: Stream) -> list[Stored]:
    found: list[Stored] = []
    last = await fl.log.last(stream)
    if last:
        async for some in fl.log.read(stream, 0):
            found += some
            if found[-1].sequence >= last:
                break
    return found


def in_one_order(copy: Copy, parts: Sequence[TypeSet]) -> Iterator[tuple[int, list[Stored]]]:
    """The blocks of some merged streams, by the times at which they were stored, then the names of the streams; consecutive
    blocks of one stream together."""
    placed: list[tuple[int, str, int, int, Stored]] = []
    for part, types in enumerate(parts):
        latest, fresh = 0, {each.sequence for each in first_of_each(copy.merged[types])}
        for each in copy.merged[types]:
            latest = max(latest, each.time)
            if each.sequence in fresh:
                placed.append((latest, merged_stream(types), each.sequence, part, each))
    for part, run in groupby(sorted(placed, key=itemgetter(0, 1, 2)), key=itemgetter(3)):
        yield part, [each[4] for each in run]


def first_of_each(blocks: Sequence[Stored]) -> list[Stored]:
    """The blocks without repeats."""
    seen: set[Name] = set()
    return [each for each in blocks if not (name_of(each) in seen or seen.add(name_of(each)))]  # type: ignore[func-returns-value]
