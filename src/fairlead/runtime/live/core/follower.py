"""Lineages that are followed together: what is read for all of them, and which blocks belong to each.

Lineages may have different positions. Reading begins at the earliest, and each lineage skips the blocks that it has read, and
the streams that it does not read. So lineages that are ahead wait for the others, and all deliveries are in one order.

Takes: lineages and their streams; stretches of blocks. Gives: where reading begins; the relations of each lineage in new
blocks. Never: feeds a block twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.matching.results.chunk import Numbers
from fairlead.runtime.live.core.block_columns import EVENTS_TOGETHER, ColumnCache, portions
from fairlead.runtime.live.core.deliveries import FoundVerdicts, GroupFindings
from fairlead.runtime.live.core.lineage import Lineage
from fairlead.runtime.live.core.strand import PlacedRelations, StreamPlace
from fairlead.runtime.live.core.stream_merge import Reached, Stretch
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.protocol import Stored, Stream


@dataclass(frozen=True, eq=False)
class Share:
    """The blocks of some stretches that belong to one lineage, by its own parts. `turns`: the number of each among all
    stretches."""

    stretches: Sequence[Stretch]
    turns: Numbers


class Follower:
    """One lineage. `border`: by part, the last block from before the subscriber joined. Relations are silent until a block
    after the border arrives in any part. `cache`: see ColumnCache. `early_from`: find early deliveries after so many others,
    which are known; None: find none."""

    def __init__(
        self,
        key: str,
        streams: Sequence[Stream],
        lineage: Lineage,
        border: Sequence[int] | None,
        cache: ColumnCache,
        early_from: int | None = None,
    ) -> None:
        self.early_from = early_from
        self.key, self.streams, self.lineage = key, streams, lineage
        self._part = {each.name: at for at, each in enumerate(streams)}
        self._border = border or (0,) * len(streams)
        self.silent = all(mine <= theirs for mine, theirs in zip(lineage.after, self._border, strict=True))
        self._cache = cache

    def reached(self, stream: Stream) -> Reached | None:
        """The lineage's progress in a stream; None if it does not read the stream."""
        place = self.place(stream)
        return None if place is None else place.reached

    def place(self, stream: Stream) -> StreamPlace | None:
        part = self._part.get(stream.name)
        return None if part is None else self.lineage.places[part]

    @property
    def reads_heartbeats(self) -> bool:
        return len(self.streams) == 1 or self.lineage.group.plan.order is not None

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
        place = self.lineage.places[part]
        after, own = place.reached.sequence, {*place.types, MIXED}
        if blocks[0].sequence > after and all(each.block.type in own for each in blocks):
            return blocks
        return [each for each in blocks if each.sequence > after and each.block.type in own]

    def feed(self, share: Share) -> GroupFindings:
        """Feed the lineage its share of the next stretches."""
        for each in share.stretches:
            self.silent = self.silent and each.blocks[-1].sequence <= self._border[each.part]
        if not self.silent:
            self.begin_early()
        found = self.lineage.feed(share.stretches, self.streams, self._cache)
        told, early = found.verdicts, found.early
        verdicts = None if told is None else FoundVerdicts(told.found, share.turns[told.turns], told.at)
        ahead = None if early is None else replace(early, runs=share.turns[early.runs])
        return GroupFindings(self.key, found, share.turns[found.turns], self.silent, verdicts, ahead)

    @property
    def awaits_early(self) -> bool:
        """Whether early deliveries are wanted, and have not begun."""
        return self.early_from is not None

    def skip_early(self, count: int) -> None:
        """So many deliveries are known: nothing is early before the rest. Without effect once early deliveries have begun."""
        if self.early_from is not None:
            self.early_from = max(self.early_from, count)

    def begin_early(self) -> None:
        """Find early deliveries from here on, if they are wanted."""
        if self.early_from is not None:
            self.lineage.begin_early(self._cache.runs, self.key, self.early_from)
            self.early_from = None

    @property
    def is_settled(self) -> bool:
        """Whether all early deliveries are found."""
        return self.lineage.is_settled

    def settle(self) -> PlacedRelations:
        """The early deliveries, after all blocks so far."""
        found = self.lineage.settle()
        nowhere = np.zeros(len(found), dtype=np.int64)
        return PlacedRelations(found, nowhere, nowhere)


class JointReading:
    """What is read for followers together. `streams`: all that they read, each once, with their `topics`."""

    def __init__(self, followers: Sequence[Follower]) -> None:
        self.followers = followers
        self.streams = tuple({stream.name: stream for each in followers for stream in each.streams}.values())
        topics = {
            stream.name: read.topics
            for each in followers
            for stream, read in zip(each.streams, each.lineage.group.inputs, strict=True)
        }
        self.topics = [topics[each.name] for each in self.streams]

    def begin(self) -> list[Reached]:
        """By stream, the position of the follower that has read least."""
        return [self._least(each) for each in self.streams]

    def _least(self, stream: Stream) -> Reached:
        least = min(place.sequence for each in self.followers if (place := each.reached(stream)) is not None)
        times = [each.time for each in self._merged(stream) if each.sequence == least and each.time is not None]
        return Reached(least, max(times, default=None))

    def beats(self) -> Mapping[int, bool]:
        """By stream, whether a heartbeat in it may decide something; without the streams whose heartbeats no follower reads:
        disjunctions do not. A follower that does counts heartbeats in its state."""
        told = [
            [each.lineage.group.timed for each in self.followers if each.reads_heartbeats and each.reached(stream) is not None]
            for stream in self.streams
        ]
        return {at: any(some) for at, some in enumerate(told) if some}

    def further(self) -> Mapping[int, Sequence[Reached]]:
        """By stream, the progress of the followers that read several streams: their order depends on the times that they have
        seen, even if a clock was set back since and other followers have not seen it."""
        return {at: self._merged(each) for at, each in enumerate(self.streams)}

    def _merged(self, stream: Stream) -> list[Reached]:
        return [place for each in self.followers if len(each.streams) > 1 and (place := each.reached(stream)) is not None]

    @property
    def events(self) -> int:
        """Events read since the origins, in the lineage that has read most."""
        return max(each.lineage.events for each in self.followers)

    def shares(self, stretches: Sequence[Stretch]) -> list[tuple[Follower, Share]]:
        """The followers to which some of these blocks belong, each with its share."""
        return [(each, share) for each in self.followers if (share := each.share(stretches, self.streams)).stretches]

    def portions(self, stretches: Sequence[Stretch]) -> Iterator[list[Stretch]]:
        """Stretches that go to the engines together: at most `EVENTS_TOGETHER` events, and silent ones separately."""
        together, events = list[Stretch](), 0
        for each in stretches:
            stream = self.streams[each.part]
            for blocks in portions(each.blocks, {one.border(stream) for one in self.followers}):
                count = sum(stored.block.count for stored in blocks)
                wakes = any(one.wakes(stream, blocks) for one in self.followers)
                if together and (events + count > EVENTS_TOGETHER or wakes):
                    yield together
                    together, events = [], 0
                together.append(Stretch(each.part, blocks))
                events += count
        if together:
            yield together
