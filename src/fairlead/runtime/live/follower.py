"""A lineage that is followed together with others: which blocks belong to it, and which of its relations are silent.

Other lineages may start earlier, so the lineage skips blocks that it has already read; they may also read streams that it does
not.

Takes: a lineage, and the streams that are read. Gives: the relations that it finds in new blocks. Never: feeds a block twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.matching.results.chunk import Numbers
from fairlead.runtime.live.gathering import Gathering
from fairlead.runtime.live.interleaving import Reached, Stretch
from fairlead.runtime.live.keeping import Keeping
from fairlead.runtime.live.lineage import FoundRelations, Lineage
from fairlead.runtime.live.snapshots import Snapshots
from fairlead.transport.log.block_filter import MIXED
from fairlead.transport.log.protocol import Stored, Stream


@dataclass(frozen=True, eq=False)
class Share:
    """The blocks of some stretches that belong to one lineage, by its own parts. `turns`: the number of each among all
    stretches."""

    stretches: Sequence[Stretch]
    turns: Numbers


@dataclass(frozen=True, eq=False)
class Heard:
    """The relations that a lineage found. `turns`: for each relation, the number of the stretch that completed it, among all
    stretches. `silent`: the relations are from before the subscriber joined."""

    key: str
    found: FoundRelations
    turns: Numbers
    silent: bool


class Follower:
    """`border`: by part, the last block from before the subscriber joined. Relations are silent until a block after the border
    arrives in any part."""

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
        """The lineage's progress in a stream; None if it does not read the stream."""
        part = self._part.get(stream.name)
        return None if part is None else self.lineage.strands[part].reached

    def border(self, stream: Stream) -> int:
        """The last block of the stream that may be silent; 0 if the lineage is not silent or does not read the stream."""
        part = self._part.get(stream.name)
        return 0 if part is None or not self.silent else self._border[part]

    def wakes(self, stream: Stream, blocks: Sequence[Stored]) -> bool:
        """Whether the lineage is silent now, and these blocks end the silence."""
        part = self._part.get(stream.name)
        return self.silent and part is not None and blocks[-1].sequence > self._border[part]

    def share(self, stretches: Sequence[Stretch], streams: Sequence[Stream]) -> Share:
        """The blocks of these stretches that belong to the lineage. `streams`: the streams that are read together."""
        mine, turns = list[Stretch](), list[int]()
        for turn, each in enumerate(stretches):
            part = self._part.get(streams[each.part].name)
            if part is not None and (blocks := self._own(part, each.blocks)):
                mine.append(Stretch(part, blocks))
                turns.append(turn)
        return Share(mine, np.array(turns, dtype=np.int64))

    def _own(self, part: int, blocks: Sequence[Stored]) -> Sequence[Stored]:
        """The blocks after the last one read that may have events of its types."""
        strand = self.lineage.strands[part]
        after, own = strand.reached.sequence, {*strand.types, MIXED}
        if blocks[0].sequence > after and all(each.block.type in own for each in blocks):
            return blocks
        return [each for each in blocks if each.sequence > after and each.block.type in own]

    def feed(self, share: Share) -> Heard:
        """Feed the lineage its share of the next stretches."""
        found = self.lineage.feed(share.stretches, self.streams, self._gathering)
        for each in share.stretches:
            self.silent = self.silent and each.blocks[-1].sequence <= self._border[each.part]
        return Heard(self.key, found, share.turns[found.turns], self.silent)
