"""The lineage of a subscription of rules with ORDER BY, in a task of Spark.

What such rules emit is stored when it is final, in blocks that follow from the order in which the log stored the events. This
is decided by the same code as for live subscribers (runtime/live/core/lineage.py), with the same blocks of the log: a task
reads its stretch of the topics itself. So what a job stores is what live subscribers store, byte for byte. A subscription is
one task: its frontier follows all of its events one by one.

    1. the blocks of each topic after those that were read, up to the end of the stretch
    2. in their one order, by stored time (order/merging.py); a stretch is a beginning of what is left of it (cuts.py)
    3. matched; what is final now, and all deliveries if they are stored as well, become numbered blocks

The state is that of the lineage, and where it is in the topics. A lineage without a state begins at its origin, also in a
stream that is resumed: so a subscription that was added since stores what it would have stored from there on.

Takes: a setup, a state, the ends of a stretch. Gives: blocks, and the next state. Never: depends on how the log is divided;
stores anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from heapq import merge
from itertools import groupby, islice
from threading import Lock
from typing import Any, NamedTuple

from fairlead.dataclass import dataclass
from fairlead.errors import StateError
from fairlead.model.events.types import EventType
from fairlead.order.holdback import head_and_rest, with_head
from fairlead.runtime.live.core.block_columns import ColumnCache
from fairlead.runtime.live.core.follower import Follower, JointReading
from fairlead.runtime.live.core.lineage import Lineage
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup
from fairlead.runtime.live.core.stream_merge import Reached, Stretch
from fairlead.runtime.live.subscriber.stream_reader import report
from fairlead.runtime.spark.log.block_rows import MadeBlock
from fairlead.runtime.spark.log.delivery_blocks import DeliveryBlocks
from fairlead.runtime.spark.log.link import gone
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.protocol import Stored, Stream

VERSION = 1
TOGETHER = 1024
"""Blocks of several topics that are put into one order at a time."""
BlockReader = Callable[[Stream, int, int], Iterator[Sequence[Stored]]]
"""Reads the blocks of a stream after a sequence, up to another one."""


@dataclass(frozen=True)
class LineageSetup:
    """`key`: of the group on its streams. `at`: the numbers of its streams among those of the job. `into`: the type as which
    its deliveries are stored too."""

    key: str
    group: StreamGroup
    streams: tuple[Stream, ...]
    at: tuple[int, ...]
    origin: Origin
    into: EventType | None

    def begun(self) -> LineageTask:
        return LineageTask(self, self.origin)


class PlacedBlock(NamedTuple):
    """A block with its place in the one order: its time, and the name of its stream."""

    time: int
    stream: str
    part: int
    stored: Stored


class LineageTask:
    """`reached`: the last block of each stream that was read, whether it is of use or not."""

    def __init__(self, setup: LineageSetup, origin: Origin, lineage: Lineage | None = None) -> None:
        self.setup, self.origin = setup, origin
        self.lineage = Lineage(setup.group, origin, emits=bool(setup.group.emits)) if lineage is None else lineage
        self.reached = [Reached(max(0, (each >> INDEX_BITS) - 1)) for each in origin]
        self.deliveries = None if setup.into is None else DeliveryBlocks(setup.group, origin, setup.into)
        follower = Follower(setup.key, setup.streams, self.lineage, None, ColumnCache(report, Lock()))
        self._reading = JointReading([follower])

    def feed(self, read: BlockReader, ends: Sequence[int]) -> Iterator[MadeBlock]:
        """The next stretch. `ends`: the last sequence of every stream of the job."""
        for stretches in self._stretches(read, [ends[at] for at in self.setup.at]):
            for some in self._reading.portions(stretches):
                for follower, share in self._reading.shares(some):
                    found = follower.feed(share).found  # 3
                    told = () if self.deliveries is None else self.deliveries.blocks(found, share.stretches)
                    for block in (*found.derived, *told):
                        yield MadeBlock(self.setup.key, self.origin, block)

    def _stretches(self, read: BlockReader, ends: Sequence[int]) -> Iterator[list[Stretch]]:
        streams = list(enumerate(self.setup.streams))
        some = [read(stream, self.reached[part].sequence, ends[part]) for part, stream in streams]  # 1
        if len(some) == 1:
            for blocks in some[0]:
                yield [Stretch(0, blocks)]
                self.reached[0] = Reached(blocks[-1].sequence)
            return
        whole = merge(*(self._placed(part, blocks) for part, blocks in enumerate(some)), key=lambda each: each[:2])  # 2
        while together := list(islice(whole, TOGETHER)):
            runs = groupby(together, key=lambda each: each.part)
            yield [Stretch(part, [each.stored._replace(merged=each.time) for each in run]) for part, run in runs]
            for each in together:
                self.reached[each.part] = Reached(each.stored.sequence, each.time)

    def _placed(self, part: int, read: Iterator[Sequence[Stored]]) -> Iterator[PlacedBlock]:
        """A clock that was set back moves no block back."""
        name, time = self.setup.streams[part].name, self.reached[part].time
        for blocks in read:
            for each in blocks:
                time = each.time if time is None else max(time, each.time)
                yield PlacedBlock(time, name, part, each)

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories."""
        head: dict[str, Any] = {
            "version": VERSION,
            "origin": self.origin,
            "streams": self.setup.streams,
            "reached": [[each.sequence, each.time] for each in self.reached],
        }
        if self.deliveries is not None:
            head["deliveries"] = [self.deliveries.type.name, self.deliveries.number, self.deliveries.sequence]
        return with_head(head, self.lineage.dump())

    @classmethod
    def load(cls, setup: LineageSetup, state: bytes) -> LineageTask:
        """The inverse of `dump`. A lineage whose deliveries were not stored so far, or as another type, begins again: the log
        has the derived events already. Raises StateError."""
        head, rest = head_and_rest(state)
        if head["version"] != VERSION:
            problem = f"the checkpoint has the state of a lineage of version {head['version']}, this release reads {VERSION}"
            raise StateError("S110", problem, "run the release that wrote the checkpoint, or use a new checkpoint folder")
        for before, now in zip(head["streams"], setup.streams, strict=True):
            if tuple(before) != tuple(now):
                raise gone(now.name)
        told = head.get("deliveries")
        if setup.into is not None and (told is None or told[0] != setup.into.name):
            return cls(setup, tuple(head["origin"]))
        origin = tuple(head["origin"])
        lineage = Lineage.load(setup.group, origin, bytes(rest), emits=bool(setup.group.emits))
        made = cls(setup, origin, lineage)
        made.reached = [Reached(*each) for each in head["reached"]]
        if made.deliveries is not None and told is not None:
            _, made.deliveries.number, made.deliveries.sequence = told
        return made


class KeptTasks:
    """The lineages that a worker has run: one that has written a state need not be loaded from it."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: dict[tuple[str, str], tuple[bytes, LineageTask]] = {}

    def resumed(self, start: str, setup: LineageSetup, state: bytes | None) -> LineageTask:
        """`start`: identifies this start of a query."""
        known = self._kept.pop((start, setup.key), None)
        if state is None:
            return setup.begun()
        if known is not None and known[0] == _digest(state):
            return known[1]
        return LineageTask.load(setup, state)

    def keep(self, start: str, task: LineageTask) -> bytes:
        """Returns its state."""
        state = task.dump()
        if len(self._kept) >= self._most:
            self._kept.clear()
        self._kept[start, task.setup.key] = _digest(state), task
        return state


def _digest(state: bytes) -> bytes:
    return blake2b(state, digest_size=16).digest()


TASKS = KeptTasks()
"""Of this process."""
