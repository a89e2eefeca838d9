"""What a sequence asks of rows, written from docs/semantics.md apart from the matchers: the ways through its pattern.

    SequenceReading(rows)   all rows of one key, from the start row on
      .ways(…)              what can be taken of them, slot by slot, whatever comes first in the order of the search

A checker needs less than a matcher: whether there is a way at all (a round), or whether what was delivered is one (admission).

`loose` is Φ as far as event validity is concerned: NEXT, rows next to each other and times are not asked, since no event could
have partners without end next to it or within a time.

Takes: a conjunction that is a sequence, rows. Gives: ways. Never: decides which of them is delivered, or when.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from fairlead.dataclass import dataclass
from fairlead.model.events.event import Event
from fairlead.model.expressions.expression import Predicate
from fairlead.model.plans.sequence import Chain, Choice, Loop, SequencePart, Take, as_asked
from fairlead.testing.interpreter import holds
from fairlead.testing.properties.conjunctions import Members, TracedConjunction
from fairlead.testing.properties.trace import TraceDelivery

Taken = tuple[tuple[int, int], ...]
"""Slot and place of each row, in the order of the rows."""
ROWS_MAX = 10
"""Rows of a stretch in which a round is looked for, the newest ones."""
TRIES_MAX = 150
"""Rows that are tried before a stretch counts as none: with rows left out and groups in groups there are two ways to the power
of its rows. Giving up, and cutting the stretch, can only make the checker miss a round."""


@dataclass(frozen=True)
class Stand:
    """On a way: the next row, what was taken, and whether rows may be left out before the next one is."""

    row: int
    taken: Taken
    skips: bool = False


_asked = lru_cache(maxsize=4096)(as_asked)


class SequenceReading:
    def __init__(
        self, conjunction: TracedConjunction, rows: Sequence[Event], loose: bool = False, tries: float = math.inf
    ) -> None:
        assert conjunction.branch.sequence is not None
        self.tries_left = tries
        self.conjunction, self.rows, self.loose = conjunction, rows, loose
        self.branch, self.subscription, self.tree = conjunction.branch, conjunction.subscription, conjunction.branch.sequence
        self.delivered: Taken | None = None

    def ways(self, start: int) -> Iterator[Taken]:
        """The ways that begin with this row, and for which HAVING is true."""
        for stand in self._through(self.tree, Stand(start, ())):
            members = dict(enumerate(self.members(stand.taken)))
            if stand.taken and all(holds(each.condition, members) for each in self.branch.having):
                yield stand.taken

    def admits(self, delivery: TraceDelivery) -> bool:
        """What was delivered is a way through the rows."""
        at = {row.position: place for place, row in enumerate(self.rows)}
        held = [(at[event.position], slot) for slot, place in enumerate(delivery.places) for event in place]
        self.delivered = tuple((slot, place) for place, slot in sorted(held))
        ordered = all(list(place) == sorted(place, key=lambda event: event.position) for place in delivery.places)
        return ordered and any(way == self.delivered for way in self.ways(self.delivered[0][1]))

    def members(self, taken: Taken) -> Members:
        """What each slot holds; before the way ends, some hold nothing yet."""
        held = [tuple(self.rows[at] for slot, at in taken if slot == each) for each in range(len(self.branch.slots))]
        return tuple(each if slot in self.branch.runs or not each else each[0] for slot, each in enumerate(held))

    def _through(self, part: SequencePart, stand: Stand) -> Iterator[Stand]:
        match part:
            case Take():
                yield from self._taking(part, stand)
            case Chain():
                yield from self._along(part, 0, stand)
            case Choice():
                for each in part.parts:
                    yield from self._through(each, stand)
            case Loop():
                yield from self._around(part, 0, stand)

    def _along(self, chain: Chain, at: int, stand: Stand) -> Iterator[Stand]:
        if at == len(chain.parts):
            yield stand
            return
        skips = at > 0 and chain.skips[at - 1] and bool(stand.taken)
        for after in self._through(chain.parts[at], Stand(stand.row, stand.taken, stand.skips or skips)):
            yield from self._along(chain, at + 1, after)

    def _around(self, loop: Loop, count: int, stand: Stand) -> Iterator[Stand]:
        """A round that takes no row counts only up to the smallest number. With STEPWISE rows may be left out between
        rounds."""
        if count >= loop.least:
            yield stand
        if loop.most is not None and count >= loop.most:
            return
        skips = stand.skips or (count > 0 and self.subscription.matching.stepwise)
        for after in self._through(loop.body, Stand(stand.row, stand.taken, skips)):
            if len(after.taken) > len(stand.taken) or count < loop.least:
                yield from self._around(loop, count + 1, after)

    def _taking(self, take: Take, stand: Stand) -> Iterator[Stand]:
        taken, row = stand.taken, stand.row
        self.tries_left -= 1
        while self.tries_left > 0 and row < len(self.rows) and not (taken and self._has_passed(take, row, taken)):
            if self._is_delivered(take.slot, row, taken) and self._fits(take, row, taken):
                yield Stand(row + 1, (*taken, (take.slot, row)))
            if not taken or not (stand.skips or self.loose) or self._ends(take, row, taken):
                return
            row += 1
            self.tries_left -= 1

    def _is_delivered(self, slot: int, row: int, taken: Taken) -> bool:
        if self.delivered is None:
            return True
        return len(taken) < len(self.delivered) and self.delivered[len(taken)] == (slot, row)

    def _ends(self, take: Take, row: int, taken: Taken) -> bool:
        """STEPWISE leaves out no row for which UNTIL is true."""
        return self.subscription.matching.stepwise and self._is_until(take, row, taken)

    def _is_until(self, take: Take, row: int, taken: Taken) -> bool:
        return take.until is not None and self._accepts(take.slot, row) and self._is_true(take.until, row, taken) is True

    def _accepts(self, slot: int, row: int) -> bool:
        return self.rows[row].type in self.conjunction.accepted[slot]

    def _has_passed(self, take: Take, row: int, taken: Taken) -> bool:
        """The rows before this one have a time that is later than it may be."""
        times = [each.time for each in self.rows[taken[0][1] : row] if each.time is not None]
        return not self.loose and any(max(times) > limit for limit in self._limits(take, taken))

    def _limits(self, take: Take, taken: Taken) -> list[int]:
        within, first, last = self.subscription.within_us, self.rows[taken[0][1]].time, self.rows[taken[-1][1]].time
        found = [] if within is None else [(first or 0) + within]
        return found if take.gap_us is None else [*found, (last or 0) + take.gap_us]

    def _fits(self, take: Take, row: int, taken: Taken) -> bool:
        if not self._accepts(take.slot, row) or self._is_until(take, row, taken):
            return False
        if taken and not self.loose:
            times = [self.rows[at].time or 0 for _, at in taken] + [self.rows[row].time or 0]
            within = self.subscription.within_us
            if within is not None and max(times) - min(times) > within:
                return False
            if take.gap_us is not None and times[-1] - times[-2] > take.gap_us:
                return False
        asked = [each for each in self.branch.predicates if each.about == take.slot]
        return all(self._is_true(each, row, taken) is not False for each in asked)

    def _is_true(self, predicate: Predicate, row: int, taken: Taken) -> bool | None:
        """Of the row as the next one; None if it looks back too far."""
        about = predicate.about
        assert about is not None
        before = [self.rows[at] for _, at in taken if self._accepts(about, at)][::-1]
        if predicate.looks_back > len(before):
            return None
        width = len(self.branch.slots)
        members = dict(enumerate(self.members((*taken, (about, row)))))
        return holds(_asked(predicate, width), members | dict(enumerate([self.rows[row], *before], width)))


class SequenceRounds:
    """Counts rounds of a sequence, event by event."""

    def __init__(self, conjunction: TracedConjunction) -> None:
        self.conjunction = conjunction
        self.rows: dict[object, list[Event]] = {}
        self.count = 0

    def feed(self, event: Event) -> None:
        for key in keys_of(self.conjunction, event):
            rows = self.rows.setdefault(key, [])
            rows.append(event)
            del rows[:-ROWS_MAX]
            reading = SequenceReading(self.conjunction, rows, tries=TRIES_MAX)
            if any(way[-1][1] == len(rows) - 1 for start in range(len(rows)) for way in reading.ways(start)):
                self.count += 1
                self.rows.clear()
                return


class RoundsFrom:
    """Rounds that begin with an event in a slot, and end among the rows of its key after it. No condition ties the slot to
    others, so they are the same for every event that fits it."""

    def __init__(self, conjunction: TracedConjunction, slot: int, rows: Sequence[Event]) -> None:
        self.conjunction, self.slot, self.rows = conjunction, slot, rows
        self._ends: dict[int, int | None] = {}

    def reach(self, event: Event, needed: int) -> bool:
        """So many rounds follow the event, one after the other."""
        at: int | None = next((place for place, row in enumerate(self.rows) if row.position > event.position), len(self.rows))
        for _ in range(needed):
            assert at is not None
            if at not in self._ends:
                self._ends[at] = self._end(event, at)
            at = self._ends[at]
            if at is None:
                return False
        return True

    def _end(self, event: Event, start: int) -> int | None:
        """The row after the round that begins with the row at `start`."""
        for end in range(start + 1, min(len(self.rows), start + ROWS_MAX) + 1):
            alone = self.rows[end - 1].type in self.conjunction.accepted[self.slot]
            reading = SequenceReading(self.conjunction, [event, *self.rows[start:end]], loose=True, tries=TRIES_MAX)
            if any(way[0] == (self.slot, 0) and (len(way) > 1 or alone) for way in reading.ways(0)):
                return end
        return None


def keys_of(conjunction: TracedConjunction, event: Event) -> tuple[object, ...]:
    """The keys under which the event is a row of the sequence."""
    slots = [slot for slot in range(len(conjunction.branch.slots)) if event.type in conjunction.accepted[slot]]
    return tuple(dict.fromkeys(conjunction.key_of(slot, event) for slot in slots))


def rows_of(conjunction: TracedConjunction, events: Sequence[Event], key: object) -> list[Event]:
    return [each for each in events if key in keys_of(conjunction, each)]
