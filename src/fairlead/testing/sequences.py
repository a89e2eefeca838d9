"""Sequences in the reference matcher: the definition (docs/semantics.md), literally. After every row everything is searched
again, from the first row that is kept.

    paths      all ways through the pattern, in their order, each as soon as it is complete, or open at the end of the rows
    stepwise   the one way without a way back

Takes: a branch, rows of one key, the time that the subscription has seen. Gives: its relations. Never: remembers what it has
tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.matching.outcome import too_many_decided
from fairlead.model.events.event import Event
from fairlead.model.events.values import TIMESTAMP_RANGE
from fairlead.model.expressions.expression import Predicate
from fairlead.model.limits import LIMITS
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.sequence import Chain, Choice, Loop, SequencePart, Take, as_asked
from fairlead.testing.interpreter import holds

LAST_TIME = TIMESTAMP_RANGE[1]
"""No event is later. A path without a limit is open until nothing follows at all."""


@dataclass(frozen=True)
class ReferenceRow:
    event: Event
    names: tuple[str, ...]
    """The types of the branch that accept it."""


@dataclass(frozen=True)
class Skip:
    """THEN: rows may be skipped here."""


@dataclass(frozen=True)
class Round:
    """Here a loop has made `count` rounds, the last one since so many rows were taken."""

    loop: Loop
    count: int
    since: int


@dataclass(frozen=True)
class Open:
    """It may still get the row after the last one, until this time has passed."""

    deadline: int


Todo = tuple[SequencePart | Skip | Round, ...]
Taken = tuple[tuple[int, int], ...]
"""Slot and place of each row."""
Step = tuple[Take, Todo, bool]


class ReferenceSequence:
    """A branch that is a sequence, for one key: the rows from the first one on that can begin a relation."""

    def __init__(self, subscription: Subscription, branch: Branch) -> None:
        assert branch.sequence is not None
        self.subscription, self.branch, self.tree = subscription, branch, branch.sequence
        self.rows: list[ReferenceRow] = []
        self.told: int | None = None
        self.open: Open | None = None

    def arrive(self, event: Event, names: list[str], told: int | None) -> list[tuple[Any, ...]]:
        """The relations that this row decides; `told`: the time that the subscription has seen."""
        self.rows.append(ReferenceRow(event, tuple(names)))
        return self.decide(told if self.branch.timed else None)

    def decide(self, told: int | None) -> list[tuple[Any, ...]]:
        """Search again until nothing more is decided."""
        found: list[tuple[Any, ...]] = []
        self.told, self.open = told, None
        while self.rows and self.open is None:
            outcome = self.stepwise() if self.subscription.matching.stepwise else self.first_path()
            match outcome:
                case Open():
                    self.open = outcome
                case None:
                    del self.rows[0]
                case _:
                    found.append(self.members(outcome))
                    if len(found) > LIMITS.relations_per_event_max:
                        raise too_many_decided(self.subscription.name)
                    del self.rows[: self.disposed(outcome)]
        return found

    # ---- the search

    def first_path(self) -> Taken | Open | None:
        for path in self.paths((self.tree,), 0, ()):
            if isinstance(path, Open) or self.is_relation(path):
                return path
        return None

    def paths(self, todo: Todo, place: int, taken: Taken) -> Iterator[Taken | Open]:
        if not todo:
            yield taken
            return
        first, rest = todo[0], todo[1:]
        match first:
            case Take():
                if self.has_passed(first, place, taken):
                    return
                if place == len(self.rows):
                    yield Open(self.deadline(first, taken))
                elif self.fits(first, place, taken):
                    yield from self.paths(rest, place + 1, (*taken, (first.slot, place)))
            case Skip():
                for at in range(place, len(self.rows) + 1) if taken else [place]:
                    yield from self.paths(rest, at, taken)
            case Chain():
                yield from self.paths((*steps_of(first), *rest), place, taken)
            case Choice():
                for each in first.parts:
                    yield from self.paths((each, *rest), place, taken)
            case Loop():
                yield from self.paths((Round(first, 0, len(taken)), *rest), place, taken)
            case Round():
                for further in rounds(first, taken):
                    yield from self.paths((*further, *rest), place, taken)

    def stepwise(self) -> Taken | Open | None:
        todo: Todo = (self.tree,)
        place, taken = 0, tuple[tuple[int, int], ...]()
        while True:
            # 1. what can come next, in order, up to where the pattern is complete
            steps: list[Step | None] = []
            for step in self.steps(todo, taken, False):
                if step is not None:
                    steps.append(step)
                elif self.is_relation(taken):
                    steps.append(None)
                    break
            # 2. the first row that fits one of them
            while True:
                steps = [each for each in steps if each is None or not self.has_passed(each[0], place, taken)]
                if not steps:
                    return None
                if steps[0] is None:
                    return taken
                if place == len(self.rows):
                    return Open(self.deadline(steps[0][0], taken))
                fitting = next((each for each in steps if each and self.fits(each[0], place, taken)), None)
                if fitting is not None:
                    take, todo, _ = fitting
                    taken, place = (*taken, (take.slot, place)), place + 1
                    break
                steps = [each for each in steps if each is None or (each[2] and not self.is_ended(each[0], place, taken))]
                place += 1

    def steps(self, todo: Todo, taken: Taken, loose: bool) -> Iterator[Step | None]:
        """What can be taken next, what is left to do then, and whether rows may be skipped before; None: it is complete."""
        if not todo:
            yield None
            return
        first, rest = todo[0], todo[1:]
        match first:
            case Take():
                yield first, rest, loose
            case Skip():
                yield from self.steps(rest, taken, loose or bool(taken))
            case Chain():
                yield from self.steps((*steps_of(first), *rest), taken, loose)
            case Choice():
                for each in first.parts:
                    yield from self.steps((each, *rest), taken, loose)
            case Loop():
                yield from self.steps((Round(first, 0, len(taken)), *rest), taken, loose)
            case Round():
                for further in rounds(first, taken):
                    again = bool(further) and len(taken) > first.since  # rows may be skipped between rounds
                    yield from self.steps((*further, *rest), taken, loose or again)

    # ---- one row

    def has_passed(self, take: Take, place: int, taken: Taken) -> bool:
        """The clock at this place is later than the row may be."""
        if place == len(self.rows) and self.told is not None and self.told > LAST_TIME:
            return True
        clock = [row.event.time for row in self.rows[:place] if row.event.time is not None]
        if place == len(self.rows) and self.told is not None:
            clock.append(self.told)
        return bool(taken) and max(clock, default=self.deadline(take, taken)) > self.deadline(take, taken)

    def deadline(self, take: Take, taken: Taken) -> int:
        limits = [LAST_TIME]
        if self.subscription.within_us is not None:
            limits.append((self.rows[taken[0][1]].event.time or 0) + self.subscription.within_us)
        if take.gap_us is not None:
            limits.append((self.rows[taken[-1][1]].event.time or 0) + take.gap_us)
        return min(limits)

    def fits(self, take: Take, place: int, taken: Taken) -> bool:
        row = self.rows[place]
        if self.branch.slots[take.slot].type not in row.names or self.is_ended(take, place, taken):
            return False
        times = [self.rows[at].event.time or 0 for _, at in (*taken, (take.slot, place))]
        if self.subscription.within_us is not None and max(times) - min(times) > self.subscription.within_us:
            return False
        if taken and take.gap_us is not None and times[-1] - times[-2] > take.gap_us:
            return False
        asked = [each for each in self.branch.predicates if each.about == take.slot]
        return all(self.is_true(each, place, taken) is not False for each in asked)

    def is_ended(self, take: Take, place: int, taken: Taken) -> bool:
        """UNTIL is true for the row."""
        if take.until is None or self.branch.slots[take.slot].type not in self.rows[place].names:
            return False
        return self.is_true(take.until, place, taken) is True

    def is_true(self, predicate: Predicate, place: int, taken: Taken) -> bool | None:
        """Of the row as the next one of the slot that the condition is about; None if it looks back too far."""
        assert predicate.about is not None
        own = self.branch.slots[predicate.about].type
        before = [self.rows[at].event for _, at in taken if own in self.rows[at].names][::-1]
        if predicate.looks_back > len(before):
            return None
        width = len(self.branch.slots)
        members = dict(enumerate(self.members((*taken, (predicate.about, place)))))
        return holds(as_asked(predicate, width), members | dict(enumerate([self.rows[place].event, *before], width)))

    # ---- a relation

    def members(self, taken: Taken) -> tuple[Any, ...]:
        """What each slot holds: a run its events, any other its event."""
        held = [tuple(self.rows[at].event for slot, at in taken if slot == each) for each in range(len(self.branch.slots))]
        return tuple(each if slot in self.branch.runs or not each else each[0] for slot, each in enumerate(held))

    def is_relation(self, taken: Taken) -> bool:
        members = dict(enumerate(self.members(taken)))
        return bool(taken) and all(holds(each.condition, members) for each in self.branch.having)

    def disposed(self, taken: Taken) -> int:
        """How many rows leave."""
        places, named = [at for _, at in taken], [at for slot, at in taken if slot in self.branch.upto]
        match self.subscription.disposal:
            case Disposal.FIRST_PREFIX:
                return places[0] + 1
            case Disposal.ADVANCE:
                return places[: self.subscription.advance][-1] + 1
            case Disposal.UPTO_FIRST:
                return max(1, named[0] if named else 0)
            case Disposal.UPTO_LAST:
                return max(1, named[-1] if named else 0)
        return places[-1] + 1


def steps_of(chain: Chain) -> Todo:
    """Its parts, with a Skip before those after a THEN."""
    made: list[SequencePart | Skip] = [chain.parts[0]]
    for skip, part in zip(chain.skips, chain.parts[1:], strict=True):
        made += [Skip(), part] if skip else [part]
    return tuple(made)


def rounds(at: Round, taken: Sequence[Any]) -> list[Todo]:
    """Another round, and to leave the loop, in the order of preference. A round without a row counts only up to `least`."""
    loop, count = at.loop, at.count
    if count > loop.least and len(taken) == at.since:
        return []
    more: list[Todo] = [(loop.body, Round(loop, count + 1, len(taken)))] if loop.most is None or count < loop.most else []
    leave: list[Todo] = [()] if count >= loop.least else []
    return [*more, *leave] if loop.longest else [*leave, *more]
