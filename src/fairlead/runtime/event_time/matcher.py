"""A plan with ORDER BY over a sequence of events: hold back (buffer.py), match (engine.py), revise (reviser.py).

With LATE REVISE, late events are revised round by round. A round is a stretch of the sequence, with positions that are equal
but for their last bits, so it does not depend on batches. When it ends:

    1. What the frontier has passed by its end is released and matched: ordinary deliveries.
    2. Its late events revise: relations are taken back (sign -1), then relations are added.

Where a batch has no late event, nothing is cut.

Takes: batches in the order of a log or of a file. Gives: deliveries, and verdicts on events that take no part. Never: reads a
clock, does I/O; depends on how the sequence is cut into batches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.engine import Engine
from fairlead.errors import StateError, require
from fairlead.matching.results.delivery_order import Interleaved, completed
from fairlead.model.events.columns import Columns
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import majors_of
from fairlead.model.relations.relation import Relation
from fairlead.order.holdback import head_and_rest, state_number, with_head
from fairlead.runtime.event_time.buffer import (
    EVERYTHING,
    NO_EVENTS,
    NO_VERDICTS,
    EventTimeBuffer,
    EventVerdicts,
    JudgedEvents,
    rows_of,
)
from fairlead.runtime.event_time.reviser import SEGMENT_LIMITS, Reviser, SegmentLimits
from fairlead.runtime.event_time.segment import joined_columns
from fairlead.runtime.event_time.shared_steps import SharedSteps

Numbers = npt.NDArray[np.int64]
FILE_ROUND_BITS = 10
"""Rounds of files are 1,024 events."""
NO_ROUND = -1
VERSION = 1


@dataclass(frozen=True, eq=False)
class OrderedFindings:
    """`relations`: deliveries, some of which may take relations back. `by`: for each, the position in the sequence of the event
    by which the frontier passed its completion, or the last position of the round that was revised. `rounds`: for each, the
    number of the round that was revised, or NO_ROUND; None if there was none. `verdicts`: on events that take no part.
    `duplicates`: how many repeats were dropped among events that were held together."""

    relations: Sequence[Relation]
    by: Numbers
    rounds: Numbers | None = None
    verdicts: EventVerdicts = NO_VERDICTS
    duplicates: int = 0


class EventTimeMatcher:
    """`round_bits`: how many last bits of a position do not count for its round. `rejects`: whether an event without a place in
    the order is rejected, not an error. Other keyword arguments are those of the engine."""

    def __init__(
        self,
        plan: Plan,
        round_bits: int = FILE_ROUND_BITS,
        *,
        engine: Engine | None = None,
        limits: SegmentLimits = SEGMENT_LIMITS,
        rejects: bool = False,
        **arguments: Any,
    ) -> None:
        require(plan.order is not None, "the events have an order by value")
        assert plan.order is not None
        self.plan, self.round_bits, self.arguments = plan, round_bits, arguments
        self.buffer = EventTimeBuffer(plan.order, plan.catalogue, rejects=rejects)
        self._engine = Engine(plan, **arguments) if engine is None else engine
        self.reviser = None if plan.order.revise_us is None else Reviser(plan, self._engine, limits=limits, **arguments)
        self.round = NO_ROUND
        """The round that has late events and has not ended."""
        self._forgotten = NO_EVENTS

    @property
    def engine(self) -> Engine:
        """As of now; a revision replaces it."""
        return self._engine if self.reviser is None else self.reviser.engine

    def step(
        self,
        columns: Columns,
        stored: npt.ArrayLike | None = None,
        closed: bool = False,
        steps: SharedSteps | None = None,
    ) -> OrderedFindings:
        """The next events of the sequence. `stored`: when the log stored each (microseconds). `closed`: the round of the last
        one has ended, as that of a block does. `steps`: shared with other matchers of the same sequence; they share what is
        released, unless late events revise."""
        if self.reviser is None:
            return self._matched(columns, stored, steps)
        judged = self.buffer.judge(columns, stored)
        made = CollectedDeliveries()
        rounds = judged.positions >> self.round_bits
        if self.round != NO_ROUND and len(rounds) and rounds[0] > self.round:
            self._revise(self.reviser, made)
        repeated = np.zeros(len(judged.columns), dtype=bool)
        for low, high in self._stretches(judged, rounds):
            self._advance(self.reviser, judged, low, high, made, repeated)
            if judged.revising[low:high].any():
                self.round = int(rounds[high - 1])
            if self.round != NO_ROUND and (closed or high < len(rounds)):
                self._revise(self.reviser, made)
        given = {EventVerdict.LATE: judged.late, EventVerdict.AHEAD: judged.ahead, EventVerdict.REPEATED: repeated}
        return made.findings(self._with_forgotten(self.buffer.verdicts(judged, given)))

    def _with_forgotten(self, verdicts: EventVerdicts) -> EventVerdicts:
        """Late events of a round that was open when the rules changed: nothing is revised by them any more."""
        if not len(self._forgotten):
            return verdicts
        late, self._forgotten = self._forgotten, NO_EVENTS
        told = joined_columns([late, verdicts.columns]) if len(verdicts) else late
        return EventVerdicts(told, ((EventVerdict.LATE,) * len(late) + verdicts.verdicts))

    def _matched(self, columns: Columns, stored: npt.ArrayLike | None, steps: SharedSteps | None) -> OrderedFindings:
        """Without revisions."""
        if steps is None:
            released, prepared = self.buffer.step(columns, stored), None
        else:
            released, prepared = steps.step(self.buffer, columns, stored)
        relations = self._engine.feed(released.columns, prepared)
        by = released.by[majors_of(completed(relations)) - (self.buffer.next - len(released.by))]
        return OrderedFindings(relations, by, None, released.verdicts, released.columns.duplicates)

    def _stretches(self, judged: JudgedEvents, rounds: Numbers) -> Iterator[tuple[int, int]]:
        """From where to where: each ends with the last event of a round that has late ones, or at the end of the batch."""
        late = rounds[judged.revising]
        if self.round != NO_ROUND and len(rounds) and rounds[0] == self.round:
            late = np.append(late, self.round)
        ends = np.searchsorted(rounds, np.unique(late), "right").tolist()
        low = 0
        for high in sorted({*ends, len(rounds)}):
            yield low, high
            low = high

    def _advance(
        self,
        reviser: Reviser,
        judged: JudgedEvents,
        low: int,
        high: int,
        made: CollectedDeliveries,
        repeated: npt.NDArray[np.bool_],
    ) -> None:
        """Events of one round, or of several without late events: step 1, and their late events are noted."""
        late = low + np.flatnonzero(judged.revising[low:high])
        self.buffer.hold(judged, low, high)
        released, by = self.buffer.release(judged, low, high)
        first = reviser.next
        made.duplicates += released.duplicates
        rows = released.position_array - (self.buffer.next - len(by))
        found = reviser.feed(released, int(judged.values[late].min()) if len(late) else EVERYTHING)
        for relations in found:
            if len(relations):
                made.add(relations, by[rows[majors_of(completed(relations)) - first]])
        if len(late):
            repeated[late] = reviser.note(rows_of(judged.columns, late, self.plan.catalogue))

    def _revise(self, reviser: Reviser, made: CollectedDeliveries) -> None:
        """The round ends: step 2."""
        revision, last = reviser.revise(), ((self.round + 1) << self.round_bits) - 1
        for relations in (revision.retracted, revision.added):
            if len(relations):
                made.add(relations, np.full(len(relations), last, dtype=np.int64), self.round)
        self.round = NO_ROUND

    def passed(self, last: int | None) -> OrderedFindings:
        """The sequence has gone on to this position, or has ended (None), perhaps without events of this matcher: ends a round
        that is over."""
        made = CollectedDeliveries()
        if self.reviser is not None and self.round != NO_ROUND and (last is None or last >> self.round_bits > self.round):
            self._revise(self.reviser, made)
        return made.findings(NO_VERDICTS)

    def finish(self, until: int | None = None) -> OrderedFindings:
        """The sequence has ended: its last round, then all events that were held, then what `until` decides."""
        made = CollectedDeliveries()
        if self.reviser is not None and self.round != NO_ROUND:
            self._revise(self.reviser, made)
        rest = self.buffer.finish()
        made.duplicates += rest.duplicates
        found = self.reviser.feed(rest) if self.reviser is not None else [self._engine.feed(rest)]
        for relations in (*found, self.engine.finish(until)):
            if len(relations):
                made.add(relations, np.full(len(relations), self.buffer.last, dtype=np.int64))
        return made.findings(self._with_forgotten(NO_VERDICTS))

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories, however they were cut into batches."""
        engine, held = self.engine.dump(), self.held()
        return b"".join([with_head({"version": VERSION, "bytes": [len(engine), len(held)]}, b""), engine, held])

    def held(self) -> bytes:
        """The state without the engine's."""
        parts = [self.buffer.dump()]
        if self.reviser is not None:
            parts.append(self.reviser.dump())
        head = {"version": VERSION, "order": self.buffer.order.canonical, "round": self.round, "bits": self.round_bits}
        head["bytes"] = [len(each) for each in parts]
        return b"".join([with_head(head, b""), *parts])

    @classmethod
    def load(
        cls,
        plan: Plan,
        dumped: bytes | memoryview,
        round_bits: int = FILE_ROUND_BITS,
        *,
        limits: SegmentLimits = SEGMENT_LIMITS,
        rejects: bool = False,
        **arguments: Any,
    ) -> EventTimeMatcher:
        """The inverse of `dump`. Raises StateError."""
        with _readable():
            head, rest = head_and_rest(dumped)
            _require_version(head)
            size, held = head["bytes"]
            state, kept = bytes(rest[:size]), rest[size : size + held]
        engine = Engine.load(plan, state, **arguments)
        return cls.resume(plan, engine, kept, round_bits, limits=limits, rejects=rejects, **arguments)

    @classmethod
    def resume(
        cls,
        plan: Plan,
        engine: Engine,
        held: bytes | memoryview,
        round_bits: int = FILE_ROUND_BITS,
        *,
        limits: SegmentLimits = SEGMENT_LIMITS,
        rejects: bool = False,
        **arguments: Any,
    ) -> EventTimeMatcher:
        """From the state of the engine, and what `held` returned beside it, if anything. If the engine has other subscriptions
        than it had then, what was released before is not revised any more. If the rules have another order, all of them are
        new, and begin with the next event. Raises StateError."""
        made = cls(plan, round_bits, engine=engine, limits=limits, rejects=rejects, **arguments)
        made.buffer.begin(engine.last.major + 1)
        if not held:
            return made
        with _readable():
            head, rest = head_and_rest(held)
            _require_version(head)
            if head["order"] != made.buffer.order.canonical:
                return made
            if head["bits"] != round_bits:
                raise ValueError(head["bits"])
            ends = np.cumsum([0, *head["bytes"]]).tolist()
            made.buffer.load(rest[ends[0] : ends[1]])
            unchanged = made.reviser is not None and not (engine.change.started or engine.change.dropped)
            if made.reviser is not None and unchanged and made.reviser.load(rest[ends[1] : ends[2]]):
                made.round = state_number(head["round"])
            elif made.reviser is not None:
                made.buffer.floor = made.buffer.frontier.at
                made._forgotten = made.reviser.open_round(rest[ends[1] : ends[2]])
        return made


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, json.JSONDecodeError, OSError):
        raise StateError("S119", "the held-back events in the state are damaged", "use an earlier dump") from None


def _require_version(head: Mapping[str, Any]) -> None:
    if head["version"] != VERSION or "bytes" not in head:
        problem = f"the held-back events were written in version {head['version']}, this release reads {VERSION}"
        raise StateError("S110", problem, "run the release that wrote the state, or start again")


class CollectedDeliveries:
    """Deliveries of one step, one after the other."""

    def __init__(self) -> None:
        self.parts: list[Sequence[Relation]] = []
        self.by: list[Numbers] = []
        self.rounds: list[int] = []
        self.duplicates = 0

    def add(self, relations: Sequence[Relation], by: Numbers, round_number: int = NO_ROUND) -> None:
        self.parts.append(relations)
        self.by.append(by)
        self.rounds.append(round_number)

    def findings(self, verdicts: EventVerdicts) -> OrderedFindings:
        by = np.concatenate([np.zeros(0, dtype=np.int64), *self.by])
        sizes = [len(each) for each in self.parts]
        rounds = None
        if any(each != NO_ROUND for each in self.rounds):
            rounds = np.repeat(np.array(self.rounds, dtype=np.int64), sizes)
        return OrderedFindings(in_sequence(self.parts), by, rounds, verdicts, self.duplicates)


def in_sequence(parts: Sequence[Sequence[Relation]]) -> Sequence[Relation]:
    """The relations of all parts, one part after the other."""
    if len(parts) < 2:
        return parts[0] if parts else []
    owner = np.repeat(np.arange(len(parts), dtype=np.int32), [len(each) for each in parts])
    return Interleaved(parts, owner, np.concatenate([np.arange(len(each)) for each in parts]))
