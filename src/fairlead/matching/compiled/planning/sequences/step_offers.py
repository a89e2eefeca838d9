"""STEPWISE: what can come next where a row was taken, in the order of preference.

Nothing is undone there, so instead of choice points each place of the pattern has *offers*: the elements that could take the
next row, and among them that the pattern is complete. Which of them stand depends on how many rounds loops have made.

Takes: the steps of a sequence. Gives: for the start, and for each step that takes a row, the offers after it. Raises `Refused`
for groups that a round can leave empty, and for too many offers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.planning.sequences.sequence_steps import (
    BeginStep,
    ChooseStep,
    EndStep,
    LeaveStep,
    RepeatStep,
    RoundStep,
    SequenceSteps,
    SkippedStep,
    SkipStep,
    TakingStep,
)
from fairlead.matching.compiled.planning.shape import Refused
from fairlead.model.plans.sequence import Take

OFFERS_MAX = 60
"""One bit each."""
NOWHERE = -1
"""Where no search comes: a loop has not made enough rounds, or all that it may."""


@dataclass(frozen=True)
class Count:
    """How many rounds a loop has made: a number, or so many more than before (`known` False)."""

    number: int
    known: bool = False


@dataclass(frozen=True)
class Offer:
    """The next row for `step`; None: the pattern is complete."""

    step: int | None
    take: Take | None
    counts: Mapping[int, Count]
    """What the counters are then."""
    least: tuple[tuple[int, Count, int], ...]
    """It stands if these counters have at least so many rounds, counted so."""
    most: tuple[tuple[int, Count, int], ...]
    """And fewer than these."""
    loose: bool
    """Rows may be skipped before it."""


def offers_after(program: SequenceSteps, step: int | None) -> list[Offer]:
    """`step`: which has taken a row; None: at the start."""
    found: list[Offer] = []
    for each in _Way(program, step).offers():
        found.append(each)
        if len(found) > OFFERS_MAX:
            raise Refused(f"STEPWISE with more than {OFFERS_MAX} ways on")
    return found


@dataclass(frozen=True)
class _Place:
    at: int
    counts: Mapping[int, Count]
    least: tuple[tuple[int, Count, int], ...] = ()
    most: tuple[tuple[int, Count, int], ...] = ()
    loose: bool = False
    again: bool = False
    """The loop here has made a round."""

    def to(self, at: int, loose: bool = False, again: bool = False) -> _Place:
        return self if self.at == NOWHERE else replace(self, at=at, loose=self.loose or loose, again=again)

    def with_count(self, counter: int, count: Count) -> _Place:
        return replace(self, counts={**self.counts, counter: count})

    def above(self, counter: int | None, least: int) -> _Place:
        """Where at least so many rounds were made."""
        if counter is None or least == 0:
            return self
        count = self.counts.get(counter, Count(0))
        if count.known:
            return self if count.number >= least else replace(self, at=NOWHERE)
        return replace(self, least=(*self.least, (counter, count, least)))

    def below(self, counter: int | None, most: int | None) -> _Place:
        """Where fewer than so many were made."""
        if counter is None or most is None:
            return self
        count = self.counts.get(counter, Count(0))
        if count.known:
            return self if count.number < most else replace(self, at=NOWHERE)
        return replace(self, most=(*self.most, (counter, count, most)))

    def one_more(self, counter: int | None) -> _Place:
        if counter is None:
            return self
        count = self.counts.get(counter, Count(0))
        return self.with_count(counter, replace(count, number=count.number + 1))


class _Way:
    def __init__(self, program: SequenceSteps, step: int | None) -> None:
        self.steps, self.step = program.steps, step

    def offers(self) -> Iterator[Offer]:
        if self.step is None:
            return self._from(_Place(0, {}))
        taking = self.steps[self.step]
        if isinstance(taking, RepeatStep):
            return self._from(_Place(self.step, {}, again=True))
        assert isinstance(taking, TakingStep)
        following = self.steps[taking.following]
        return self._from(_Place(taking.following, {}, again=isinstance(following, LeaveStep) and following.more == self.step))

    def _from(self, place: _Place) -> Iterator[Offer]:
        if place.at == NOWHERE:
            return
        step = self.steps[place.at]
        taken = self.step is not None
        match step:
            case TakingStep():
                place = place.to(place.at, step.skipping and taken)
                then = place.with_count(step.counter, Count(1, True)) if step.begins and step.counter is not None else None
                yield self._offer(then or place.one_more(step.counter), place, step.take)
            case RepeatStep():
                more = place.below(step.counter, step.most).to(place.at, place.again or step.least > 0)
                if more.at != NOWHERE:
                    yield self._offer(more.one_more(step.counter), more, step.take)
                yield from self._from(place.above(step.counter, step.least).to(step.following))
            case LeaveStep():
                yield from self._from(place.above(step.counter, step.least).to(step.following))
                yield from self._from(place.below(step.counter, step.most).to(step.more, place.again or step.least > 0))
            case SkipStep():
                yield from self._from(place.to(step.following, taken))
            case ChooseStep():
                yield from self._from(place.to(step.following))
                yield from self._from(place.to(step.other))
            case BeginStep():
                yield from self._from(place.with_count(step.counter, Count(0, True)).to(step.following))
            case EndStep():
                yield from self._from(place.one_more(step.counter).to(step.following, again=True))
            case RoundStep():
                if step.mark is not None:
                    raise Refused("STEPWISE with groups that can be empty")
                more = place.below(step.counter, step.most).to(step.body, place.again)
                leave = place.above(step.counter, step.least).to(step.following)
                for each in (more, leave) if step.longest else (leave, more):
                    yield from self._from(each)
            case SkippedStep():
                return
            case _:
                yield Offer(None, None, {}, place.least, place.most, False)

    @staticmethod
    def _offer(then: _Place, place: _Place, take: Take) -> Offer:
        return Offer(place.at, take, then.counts, place.least, place.most, place.loose)
