"""A lineage that is followed together with others: which of the blocks are its own, and from where on it is not silent.

The others may begin elsewhere, so blocks come that it has passed already; and they may read streams that it does not.

Takes: a lineage, and the streams that are read. Gives: what it finds in what comes. Never: is given a block twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.matching.results.chunk import Numbers
from fairlead.model.types import HEARTBEAT
from fairlead.runtime.live.gathering import Gathering
from fairlead.runtime.live.interleaving import Reached, Stretch
from fairlead.runtime.live.keeping import Keeping
from fairlead.runtime.live.lineage import FoundRelations, Lineage
from fairlead.runtime.live.snapshots import Snapshots
from fairlead.transport.log.protocol import Stored, Stream


@dataclass(frozen=True, eq=False)
class Share:
    """What of some stretches is one lineage's, by its own parts. `turns`: the number that each has among all of them."""

    stretches: Sequence[Stretch]
    turns: Numbers


@dataclass(frozen=True, eq=False)
class Heard:
    """What a lineage found. `turns`: by relation, the number of the stretch in which it was completed, among those of all.
    `silent`: it is from before the subscriber joined."""

    key: str
    found: FoundRelations
    turns: Numbers
    silent: bool


class Follower:
    """`border`: by part, the last block from before the subscriber joined. What is found up to there is silent: as long as no
    block behind it has come, in any part."""

    def __init__(
        self,
        key: str,
        streams: Sequence[Stream],
        lineage: Lineage,
        snapshots: Snapshots,
        border: Sequence[int] | None,
        gathering: Gathering,
    ) -> None:
        self.key, self.streams, self.lineage = key, streams, lineage
        self._part = {each.name: at for at, each in enumerate(streams)}
        self._border = border or (0,) * len(streams)
        self.silent = all(mine <= theirs for mine, theirs in zip(lineage.after, self._border, strict=True))
        self.keeping = Keeping(lineage, snapshots, gathering.kept, gathering.every_events)
        self._gathering = gathering

    def reached(self, stream: Stream) -> Reached | None:
        """How far it is done with a stream; None where it does not read it."""
        part = self._part.get(stream.name)
        return None if part is None else self.lineage.strands[part].reached

    def border(self, stream: Stream) -> int:
        """The last block of the stream that may be silent; 0 where it does not matter."""
        part = self._part.get(stream.name)
        return 0 if part is None or not self.silent else self._border[part]

    def wakes(self, stream: Stream, blocks: Sequence[Stored]) -> bool:
        """Whether it is silent, and not from these on."""
        part = self._part.get(stream.name)
        return self.silent and part is not None and blocks[-1].sequence > self._border[part]

    def share(self, stretches: Sequence[Stretch], streams: Sequence[Stream]) -> Share:
        """What of these is its own; `streams`: those that are read together."""
        mine, turns = list[Stretch](), list[int]()
        for turn, each in enumerate(stretches):
            part = self._part.get(streams[each.part].name)
            if part is not None and (blocks := self._own(part, each.blocks)):
                mine.append(Stretch(part, blocks))
                turns.append(turn)
        return Share(mine, np.array(turns, dtype=np.int64))

    def _own(self, part: int, blocks: Sequence[Stored]) -> Sequence[Stored]:
        """Behind what it has read; and where it reads several streams, no heartbeats: those of the group have no absences."""
        after, several = self.lineage.strands[part].reached.sequence, len(self.streams) > 1
        if blocks[0].sequence <= after:
            blocks = [each for each in blocks if each.sequence > after]
        if several and any(each.block.type == HEARTBEAT.name for each in blocks):
            blocks = [each for each in blocks if each.block.type != HEARTBEAT.name]
        return blocks

    def feed(self, share: Share) -> Heard:
        """Its share of the next stretches."""
        found = self.lineage.feed(share.stretches, self.streams, self._gathering)
        for each in share.stretches:
            self.silent = self.silent and each.blocks[-1].sequence <= self._border[each.part]
        return Heard(self.key, found, share.turns[found.turns], self.silent)
