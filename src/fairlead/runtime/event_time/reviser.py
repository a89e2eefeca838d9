"""An engine with its recent past, which late events revise (LATE REVISE WITHIN d).

The past is a list of segments, oldest first (segment.py). A round of late events:

    1. The segment of the earliest of them: the last one that begins after a smaller key.
    2. An engine is loaded with the state before that segment.
    3. It is fed with the events of that segment and of all later ones, the late ones among them in their places.
    4. The ids of the relations before and now, from there on, are compared: those that are gone are retracted, in the order of
       their completion before, and those that are new are added, in the order of their completion now.
    5. The new segments replace the old ones, and the new engine the old one.

After it, engine and past are those that the events in the total order would have led to. The relations that are taken back are
found again by feeding the old segments, so only their ids are kept.

Segments begin where the first order key changes, after a number of events. When there are too many, every second border is
dropped, so that older segments are longer: what a late event costs is in proportion to how late it is. All of this is decided
by the released events, not by the batches in which they arrive.

Takes: batches in the order of the rules, and late events. Gives: relations, and those that late events add or take back. Never:
reads a clock, does I/O; depends on how the events are cut into batches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.engine import Engine
from fairlead.errors import StateError, require
from fairlead.matching.results.delivery_order import ids_of, taken
from fairlead.model.events.columns import Columns
from fairlead.model.limits import LIMITS
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import Words
from fairlead.model.relations.relation import Relation
from fairlead.order.event_identity import event_identities
from fairlead.order.frontier import NOWHERE
from fairlead.order.holdback import head_and_rest, state_number, with_head
from fairlead.order.total import SEQUENCE
from fairlead.runtime.event_time.buffer import EVERYTHING, NO_EVENTS, rows_of
from fairlead.runtime.event_time.id_differences import differences
from fairlead.runtime.event_time.segment import (
    NO_IDS,
    KeptBatch,
    KeptSegment,
    at_positions,
    first_keys,
    joined_columns,
    with_late,
)
from fairlead.runtime.sorting import arrivals_of

Numbers = npt.NDArray[np.int64]
VERSION = 1


@dataclass(frozen=True)
class SegmentLimits:
    """`events`: of a segment, at least. `kept_max`: segments that are kept."""

    events: int = LIMITS.segment_events_min
    kept_max: int = LIMITS.segments_max


SEGMENT_LIMITS = SegmentLimits()


@dataclass(frozen=True, eq=False)
class Revision:
    """`retracted`: relations that were delivered and are taken back (sign -1), in the order of completion before the revision,
    which is not that of their delivery if an earlier one added some. `added`: relations that are delivered instead, in the
    order of completion after it."""

    retracted: Sequence[Relation] = ()
    added: Sequence[Relation] = ()

    def __len__(self) -> int:
        return len(self.retracted) + len(self.added)


class Reviser:
    """`engine`: as of now. `next`: the position of the next event. `late`: events of the open round, in the order of arrival.
    Keyword arguments are those of the engine.

    `keeps_positions`: the events have positions, which increase from batch to batch; those of late events follow, too. In a
    revision, the positions of the events after the place of a late one, and its own, are dealt out again in the new order. So
    an event has the position that it would have without late events, plus as many as there were before it."""

    def __init__(
        self,
        plan: Plan,
        engine: Engine | None = None,
        *,
        keeps_positions: bool = False,
        limits: SegmentLimits = SEGMENT_LIMITS,
        **arguments: Any,
    ) -> None:
        require(plan.order is not None and plan.order.revise_us is not None, "the rules say LATE REVISE", order=plan.order)
        assert plan.order is not None
        self.plan, self.order, self.arguments, self.limits = plan, plan.order, arguments, limits
        self.keeps_positions = keeps_positions
        self._spare: Numbers | None = None
        self.engine = Engine(plan, **arguments) if engine is None else engine
        self.next = self.engine.last.major + 1
        self.last_key = NOWHERE
        self.segments = [KeptSegment(NOWHERE, self.next, self.engine.dump())]
        self.late: list[Columns] = []
        self._known: set[bytes] | None = None
        """The identities of these, if their sources have numbered them."""
        self.needed = EVERYTHING

    def __len__(self) -> int:
        """The number of kept events."""
        return sum(map(len, self.segments))

    def feed(self, columns: Columns, needed: int = EVERYTHING) -> list[Sequence[Relation]]:
        """The next events in the order; positions are the reviser's. `needed`: the first order key of the earliest late event
        of this round so far."""
        self.needed = min(self.needed, needed)
        keys = first_keys(columns, self.order, self.plan.catalogue)
        found, low = [], 0
        for border in self._borders(keys):
            found.append(self._fed(columns, keys, low, border))
            self._begin(int(keys[border]))
            low = border
        found.append(self._fed(columns, keys, low, len(columns)))
        return found

    def _borders(self, keys: Numbers) -> list[int]:
        """Where new segments begin: at the first other key after enough events."""
        size, found = len(self.segments[-1]), []
        if size + len(keys) <= self.limits.events:
            return []
        changes = np.flatnonzero(np.diff(keys, prepend=self.last_key if size else keys[0]))
        start = -size
        while (at := int(np.searchsorted(changes, start + self.limits.events))) < len(changes):
            start = int(changes[at])
            found.append(start)
        return found

    def _fed(self, columns: Columns, keys: Numbers, low: int, high: int) -> Sequence[Relation]:
        mine = columns if (low, high) == (0, len(columns)) else columns.part(low, high)
        positions = mine.position_array if self.keeps_positions else self._positions(len(mine))
        return self._feed(KeptBatch(at_positions(mine, positions), keys[low:high]))

    def _positions(self, count: int) -> range | Numbers:
        """Those of the next events: the next ones, or in a revision with given positions the next of these."""
        if self._spare is None:
            return range(self.next, self.next + count)
        found, self._spare = self._spare[:count], self._spare[count:]
        return found

    def _feed(self, batch: KeptBatch) -> Sequence[Relation]:
        if not len(batch):
            return []
        found = self.engine.feed(batch.columns)
        self.segments[-1].add(batch, ids_of(found))
        self.next = int(batch.columns.positions[-1]) + 1
        self.last_key = int(batch.keys[-1])
        return found

    def _begin(self, key: int) -> None:
        """A new segment, before an event with this key. The frontier has passed it, so later late events are less than d before
        it: what is older, and not needed by those of this round, goes."""
        assert self.order.revise_us is not None
        self.segments[-1].close()
        self.segments.append(KeptSegment(self.last_key, self.next, self.engine.dump()))
        oldest = min(key - self.order.revise_us, self.needed)
        while len(self.segments) > 1 and self.segments[1].after < oldest:
            del self.segments[0]
        if len(self.segments) > self.limits.kept_max:
            *older, newest = self.segments
            for even, odd in zip(older[::2], older[1::2], strict=False):
                even.absorb(odd)
            self.segments = [*older[::2], newest]

    def note(self, late: Columns) -> npt.NDArray[np.bool_]:
        """Late events of the open round, after everything before the frontier was fed. Returns which of them are repeats: their
        source has sent them before. The others are revised with the round."""
        repeated = np.zeros(len(late), dtype=bool)
        if self._known is None:
            self._known = {words.tobytes() for each in self.late for words, numbered in self._identities(each) if numbered}
        known, keys = self._known, first_keys(late, self.order, self.plan.catalogue)
        for at, (words, numbered) in enumerate(self._identities(late)):
            if numbered:
                segment = self.segments[self._segment_of(int(keys[at]))]
                repeated[at] = words.tobytes() in known or segment.holds(int(keys[at]), words)
                known.add(words.tobytes())
        fresh = late if not repeated.any() else rows_of(late, np.flatnonzero(~repeated), self.plan.catalogue)
        if len(fresh):
            self.late.append(fresh)
        return repeated

    def _identities(self, late: Columns) -> Iterator[tuple[Words, bool]]:
        """Of each event its identity, and whether its source has numbered it; otherwise it is never a repeat."""
        words, numbered = np.empty((len(late), 2), dtype=np.uint64), np.zeros(len(late), dtype=bool)
        for name, table in arrivals_of(late, self.order, self.plan.catalogue).items():
            places = late.places[name]
            words[places] = event_identities(self.plan.catalogue[name], table, self.order)
            numbered[places] = table.column(SEQUENCE).is_valid().to_numpy()
        return zip(words, numbered.tolist(), strict=True)

    def revise(self) -> Revision:
        """The round ends: what its late events change. The numbers are those of the module's steps."""
        late, needed = self.late, self.needed
        self.late, self.needed, self._known = [], EVERYTHING, None
        if not late:
            return Revision()
        before = self.engine, self.next, self.last_key, self.segments
        try:
            return self._revised(_together(late))
        except BaseException:  # an interruption leaves everything as it was
            self.engine, self.next, self.last_key, self.segments = before
            self.late, self.needed = late, needed
            raise
        finally:
            self._spare = None

    def _revised(self, late: Columns) -> Revision:
        keys = first_keys(late, self.order, self.plan.catalogue)
        if self.keeps_positions:
            self._spare = np.sort(late.position_array)
        if keys.min() > self.last_key:  # they are the next in the order
            return Revision((), list(self._feed(self._ordered(NO_EVENTS, late))))
        start = self._segment_of(int(keys.min()))  # 1
        old, owed = self.segments[start:], self.engine.owed
        if self._spare is not None:
            self._spare = np.sort(np.concatenate([self._spare, *(each.positions for each in old)]))
        self.engine = self._loaded(old[0].state)  # 2
        self.engine.owed = owed
        self.next, self.last_key, self.segments = old[0].first, old[0].after, self.segments[:start]
        found: list[Sequence[Relation]] = []
        for number, segment in enumerate(old):  # 3
            end = old[number + 1].after if number + 1 < len(old) else EVERYTHING
            mine = np.flatnonzero((keys > segment.after) & (keys <= end))
            self.segments.append(KeptSegment(segment.after, self.next, self.engine.dump() if number else segment.state))
            if len(mine):
                found.append(self._feed(self._ordered(_whole(segment), rows_of(late, mine, self.plan.catalogue))))
            else:
                found += [self._feed(self._moved(each)) for each in segment.batches]
        return self._compared(old, found)  # 4, and 5: self.segments and self.engine are the new ones

    def _ordered(self, columns: Columns, late: Columns) -> KeptBatch:
        made = with_late(columns, late, self.order, self.plan.catalogue, self.next)
        made = at_positions(made, self._positions(len(made)))
        return KeptBatch(made, first_keys(made, self.order, self.plan.catalogue))

    def _moved(self, batch: KeptBatch) -> KeptBatch:
        return KeptBatch(at_positions(batch.columns, self._positions(len(batch))), batch.keys)

    def _segment_of(self, key: int) -> int:
        found = [number for number, each in enumerate(self.segments) if each.after < key]
        require(bool(found), "a late event has a place among the kept ones", key=key, after=self.segments[0].after)
        return found[-1]

    def _compared(self, old: Sequence[KeptSegment], found: Sequence[Sequence[Relation]]) -> Revision:
        before = np.concatenate([each.ids for each in old])
        now = np.concatenate([NO_IDS, *map(ids_of, found)])
        gone, fresh = differences(before, now)
        added = _at_places(found, fresh)
        return Revision([each.taken_back() for each in self._found_again(old, gone)], added)

    def _found_again(self, old: Sequence[KeptSegment], places: Numbers) -> list[Relation]:
        """The relations at these places among those of the old segments: their events are fed once more."""
        if not len(places):
            return []
        engine, last = self._loaded(old[0].state), int(places[-1])

        def relations() -> Iterator[Sequence[Relation]]:
            count = 0
            for each in (batch for segment in old for batch in segment.batches):
                if count > last:
                    return
                yield (some := engine.feed(each.columns))
                count += len(some)

        return _at_places(relations(), places)

    def _loaded(self, state: bytes) -> Engine:
        arguments = {name: self.arguments[name] for name in ("kernels_from", "check", "thresholds") if name in self.arguments}
        return Engine.load(self.plan, state, **arguments)

    def dump(self) -> bytes:
        """The past and the open round as bytes, without the engine; equal for equal histories."""
        heads, parts = [], []
        for each in (*self.segments, self._round()):
            head, mine = each.dump(self.order, self.plan.catalogue)
            heads.append(head)
            parts += mine
        head = {"version": VERSION, "last_key": self.last_key, "needed": self.needed, "segments": heads}
        return b"".join([with_head(head, b""), *parts])

    def _round(self) -> KeptSegment:
        """The open round in the form of a segment."""
        made = KeptSegment(NOWHERE, 0, b"")
        if self.late:
            late = self._ordered(NO_EVENTS, _together(self.late))
            made.add(late, NO_IDS)
        return made

    def open_round(self, state: bytes | memoryview) -> Columns:
        """The late events of the round that was open when a state was dumped; of types that are still declared."""
        head, rest = head_and_rest(state)
        *before, mine = head["segments"]
        start = sum(sum(each["bytes"]) for each in before)
        if not mine["size"] or not all(name in self.plan.catalogue for name in mine["types"]):
            return NO_EVENTS
        return _whole(KeptSegment.load(mine, rest[start:], self.order, self.plan.catalogue))

    def load(self, state: bytes | memoryview) -> bool:
        """The inverse of `dump`, beside an engine that has been loaded. Returns whether the past can be revised: not if the
        declaration of a type is gone. Raises StateError."""
        try:
            head, rest = head_and_rest(state)
            if head["version"] != VERSION:
                problem = f"the past of the events was written in version {head['version']}, this release reads {VERSION}"
                raise StateError("S110", problem, "run the release that wrote the state, or start again")
            if not all(name in self.plan.catalogue for each in head["segments"] for name in each["types"]):
                return False
            segments, at = [], 0
            for each in head["segments"]:
                size = sum(each["bytes"])
                segments.append(KeptSegment.load(each, rest[at : at + size], self.order, self.plan.catalogue))
                at += size
            *self.segments, late = segments
            self.late = [_whole(late)] if len(late) else []
            self._known = None
            self.last_key, self.needed = state_number(head["last_key"]), state_number(head["needed"])
            self.next = self.engine.last.major + 1
        except (ValueError, KeyError, TypeError, IndexError, json.JSONDecodeError, pa.ArrowException, OSError):
            raise StateError("S119", "the kept events in the state are damaged", "use an earlier dump") from None
        return True


def _whole(segment: KeptSegment) -> Columns:
    segment.close()
    return segment.batches[0].columns if segment.batches else NO_EVENTS


def _together(late: Sequence[Columns]) -> Columns:
    return late[0] if len(late) == 1 else joined_columns(late)


def _at_places(found: Iterator[Sequence[Relation]] | Sequence[Sequence[Relation]], places: Numbers) -> list[Relation]:
    """The relations at places that count through all of these."""
    made: list[Relation] = []
    start = 0
    for some in found:
        mine = places[np.searchsorted(places, start) : np.searchsorted(places, start + len(some))] - start
        made += taken(some, mine) if len(mine) else []
        start += len(some)
    return made
