"""Events that wait for the frontier, matched now, as if nothing else could come between them.

A matcher that waits (matcher.py) has matched what the frontier has passed, and holds the rest. A tentative run is its engine,
further on: it has also matched what is held, in the total order. An event that arrives in the middle changes the run from
there on. So the run keeps engine states on its way, and feeds again from the last one before that event:

    1. judge the new events: those that the waiting matcher takes, the run takes
    2. the last segment that begins before the earliest of them
    3. in it, what stands before that event is fed again as it is; what stands after it is put into the total order again
    4. the new segments replace the old ones
    5. segments that end before the frontier go

What it has found is a function of the events that it has been given, however they were cut into batches, and so are the
relations after any frontier. So all subscribers of one lineage can use one run (live/core/early.py), even if the run has been
given more than some of them have read. Where it keeps states is a matter of cost, and is decided by how far events reached
back lately.

Takes: a waiting matcher, then the batches that it is given. Gives: relations that are completed at or after a frontier. Never:
changes the matcher; takes part in a state that is dumped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.engine import Engine
from fairlead.matching.results.delivery_order import Interleaved, completed, ids_of
from fairlead.model.events.columns import Columns
from fairlead.model.relations.identity import Words, majors_of
from fairlead.model.relations.relation import Relation
from fairlead.order.frontier import NOWHERE
from fairlead.order.held_events import NOTHING_HELD
from fairlead.order.total import in_order
from fairlead.runtime.event_time.buffer import EVERYTHING, NO_EVENTS, EventTimeBuffer, rows_of
from fairlead.runtime.event_time.matcher import EventTimeMatcher
from fairlead.runtime.event_time.segment import NO_IDS, KeptBatch, first_keys, joined, joined_columns, with_late
from fairlead.runtime.sorting import in_their_places

Numbers = npt.NDArray[np.int64]
ArrivedBatch = tuple[Columns, npt.ArrayLike | None]
"""The next events of a sequence, and when the log stored each (microseconds), if AHEAD is about that."""


@dataclass(frozen=True)
class RunLimits:
    """`events`: of a segment, at least: a state costs about as much as feeding so many. `segments_max`: states that are kept.
    `frontiers`: how many advances back a subscriber may be that still uses the run."""

    events: int = 8_192
    segments_max: int = 16
    frontiers: int = 8


RUN_LIMITS = RunLimits()


@dataclass(frozen=True, eq=False)
class TentativeRelations:
    """Relations that are not confirmed, in the order of their completion, and their ids."""

    relations: Sequence[Relation]
    ids: Words

    def __len__(self) -> int:
        return len(self.ids)


NOTHING_TENTATIVE = TentativeRelations((), NO_IDS)


@dataclass(frozen=True, eq=False)
class RunBatch:
    """Events that were fed together, and what they completed. `completed`: the first order key of the event by which each
    relation was completed."""

    events: KeptBatch
    relations: Sequence[Relation]

    @cached_property
    def ids(self) -> Words:
        return ids_of(self.relations)

    @cached_property
    def completed(self) -> Numbers:
        at = np.searchsorted(self.events.columns.position_array, majors_of(completed(self.relations)))
        return self.events.keys[at]


class RunSegment:
    """`after`: no event of the segment, now or later, has this first order key or a smaller one. `first`: the position of its
    first event. `state`: of the engine before it."""

    def __init__(self, after: int, first: int, state: bytes) -> None:
        self.after, self.first, self.state = after, first, state
        self.batches: list[RunBatch] = []
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def add(self, batch: RunBatch) -> None:
        self.batches.append(batch)
        self.size += len(batch.events)


class RunInterruption:
    """The check of the engines of a run: that of the subscriber that works on it. It does not refer to the run, so the run is
    gone as soon as nobody uses it."""

    def __init__(self) -> None:
        self.check: Callable[[], None] | None = None

    def __call__(self) -> None:
        if self.check is not None:
            self.check()


class TentativeRun:
    """`first`: the matcher that waits, after a step. `arguments`: those of the engine. `last`: the last position of the
    sequence that the run has been given."""

    def __init__(self, first: EventTimeMatcher, *, limits: RunLimits = RUN_LIMITS, **arguments: Any) -> None:
        assert first.plan.order is not None
        self.plan, self.order, self.limits = first.plan, first.plan.order, limits
        self._interruption = RunInterruption()
        self._arguments = arguments | {"check": self._interruption}
        self.buffer = EventTimeBuffer(self.order, self.plan.catalogue, rejects=first.buffer.rejects)
        self.buffer.state = first.buffer.state
        self.buffer.held = NOTHING_HELD
        self.fed = 0
        """Events that its engines were fed: what it has cost."""
        self.broken = False
        """An advance has not ended well: the run is of no use."""
        self._reach, self._owed = 0, first.engine.owed
        frontier, state = self.buffer.frontier.at, first.engine.dump()
        self._engine = self._loaded(state)
        self.next, self.last_key = first.engine.last.major + 1, NOWHERE
        self.segments = [RunSegment(max(frontier, NOWHERE + 1) - 1, self.next, state)]
        self._frontiers = deque([frontier], maxlen=limits.frontiers)
        self._made: tuple[int, TentativeRelations] | None = None
        held, _ = first.buffer.held.cut(EVERYTHING)
        if held:
            order = in_order(held, len(self.order.keys), self.order.descending)
            self._append(in_their_places(order, held, self.order, self.plan.catalogue, self.next))

    @property
    def last(self) -> int:
        return self.buffer.last

    def _loaded(self, state: bytes) -> Engine:
        made = Engine.load(self.plan, state, **self._arguments)
        made.owed = self._owed
        return made

    def serves(self, frontier: int, last: int) -> bool:
        """Whether the relations after this frontier are known here, to a subscriber that has given all events up to `last`."""
        return not self.broken and self.last >= last and self.segments[0].after < max(frontier, NOWHERE + 1)

    def advance(self, arrived: Sequence[ArrivedBatch], check: Callable[[], None] | None = None) -> bool:
        """The next events of the sequence, all at once; those that the run has been given are skipped. `check`: ends a long
        search by an exception. Returns whether the run could take them: not those before its first segment, which are late and
        revise. After an exception, or if it could not, the run is broken."""
        self.broken = True
        fresh, low = list[Columns](), EVERYTHING
        for columns, stored in arrived:
            if (found := self._accepted(columns, stored)) is not None:
                fresh.append(found[0])
                low = min(low, found[1])
        if low <= self.segments[0].after:
            return False
        if fresh:
            self._interruption.check, self._made = check, None
            self._take(fresh[0] if len(fresh) == 1 else joined_columns(fresh), low)
            self._interruption.check = None
        self.broken = False
        if self.buffer.frontier.at > self._frontiers[-1]:
            self._frontiers.append(self.buffer.frontier.at)
        while len(self.segments) > 1 and self.segments[1].after < self._frontiers[0]:  # 5
            del self.segments[0]
        return True

    def _accepted(self, columns: Columns, stored: npt.ArrayLike | None) -> tuple[Columns, int] | None:
        """The events that are new and take part, and the least first order key of them."""
        known = int(np.searchsorted(columns.position_array, self.last, "right"))
        if known:
            columns = columns.part(known, len(columns))
            stored = None if stored is None else np.asarray(stored)[known:]
        if not len(columns):
            return None
        judged = self.buffer.judge(columns, stored)  # 1
        mine = judged.held | judged.revising
        if not mine.any():
            return None
        low = int(judged.values[mine].min())
        return (judged.columns if mine.all() else rows_of(judged.columns, np.flatnonzero(mine), self.plan.catalogue)), low

    def _take(self, fresh: Columns, low: int) -> None:
        self._reach = 3 * self._reach // 4
        if low > self.last_key:
            self._append(with_late(NO_EVENTS, fresh, self.order, self.plan.catalogue, self.next))
            return
        start = max(number for number, each in enumerate(self.segments) if each.after < low)  # 2
        old = joined([batch.events for each in self.segments[start:] for batch in each.batches])
        segment = self.segments[start]
        middle = int(np.searchsorted(old.keys, low))  # 3
        self._reach = max(self._reach, len(old) - middle)
        before, after = old.columns.part(0, middle), old.columns.part(middle, len(old))
        first = segment.first if not middle else int(before.positions[-1]) + 1
        merged = with_late(after, fresh, self.order, self.plan.catalogue, first)
        self._owed = self._engine.owed
        self._engine = self._loaded(segment.state)
        self.segments = [*self.segments[:start], RunSegment(segment.after, segment.first, segment.state)]  # 4
        self.next, self.last_key = segment.first, segment.after
        whole = [KeptBatch(before, old.keys[:middle]), KeptBatch(merged, first_keys(merged, self.order, self.plan.catalogue))]
        self._feed_all(joined([each for each in whole if len(each)]))

    def _append(self, columns: Columns) -> None:
        """Events after all others."""
        if len(self.segments[-1]) >= 2 * self._spacing:
            self._begin()
        self._feed(KeptBatch(columns, first_keys(columns, self.order, self.plan.catalogue)))

    @property
    def _spacing(self) -> int:
        """How far back from the latest event a state is wanted: a little further than events reached lately."""
        return max(self.limits.events, self._reach + self._reach // 4)

    def _feed_all(self, batch: KeptBatch) -> None:
        """One segment, or two if it has become so long that a state in it is worth its cost."""
        border = len(batch) - self._spacing
        if border >= self._spacing:
            border = int(np.searchsorted(batch.keys, batch.keys[border]))  # events with equal keys are in one segment
        if border < self._spacing:
            self._feed(batch)
            return
        self._feed(KeptBatch(batch.columns.part(0, border), batch.keys[:border]))
        self._begin()
        self._feed(KeptBatch(batch.columns.part(border, len(batch)), batch.keys[border:]))

    def _begin(self) -> None:
        self.segments.append(RunSegment(self.last_key, self.next, self._engine.dump()))
        if len(self.segments) > self.limits.segments_max:
            *older, newest = self.segments
            for even, odd in zip(older[::2], older[1::2], strict=False):
                for each in odd.batches:
                    even.add(each)
            self.segments = [*older[::2], newest]

    def _feed(self, batch: KeptBatch) -> None:
        if not len(batch):
            return
        found = self._engine.feed(batch.columns)
        self.segments[-1].add(RunBatch(batch, found))
        self.fed += len(batch)
        self.next, self.last_key = self._engine.last.major + 1, int(batch.keys[-1])

    def after(self, frontier: int) -> TentativeRelations:
        """What is completed at or after the frontier."""
        if self._made is not None and self._made[0] == frontier:
            return self._made[1]
        parts: list[Sequence[Relation]] = []
        places, ids = list[Numbers](), [NO_IDS]
        for each in (batch for segment in self.segments for batch in segment.batches if len(batch.relations)):
            low = int(np.searchsorted(each.completed, frontier))
            if low < len(each.relations):
                parts.append(each.relations)
                places.append(np.arange(low, len(each.relations)))
                ids.append(each.ids[low:])
        owner = np.repeat(np.arange(len(parts), dtype=np.int32), [len(each) for each in places])
        place = np.concatenate([np.zeros(0, dtype=np.int64), *places])
        made = TentativeRelations(Interleaved(parts, owner, place), np.concatenate(ids))
        self._made = frontier, made
        return made
