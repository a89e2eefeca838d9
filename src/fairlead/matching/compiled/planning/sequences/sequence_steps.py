"""A sequence as steps of a small machine that searches with choice points.

A step does something at the row that comes next and says which step follows; one that fails goes back to the last choice
point. Steps are numbered; 0 is where a search begins.

    A a NEXT B b+         0 take a → 1 · 1 take b → 2 · 2 repeat b, else → 3 · 3 match
    A a THEN B b          0 take a → 1 · 1 take b, skipping → 2 · 2 match
    (A a NEXT B b){2,}    0 begin → 1 · 1 round: → 2, or after two → 5 · 2 take a → 3 · 3 take b → 4 · 4 end of a round → 1

A run of one element is one step (`RepeatStep`), since most patterns have only such ones: it looks at the row before it makes a
choice point.

Takes: the tree of a branch (model/plans/sequence.py). Gives: steps. Never: conditions or code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.errors import require
from fairlead.model.plans.sequence import Chain, Choice, Loop, SequencePart, Take, can_be_empty


@dataclass(frozen=True)
class TakingStep:
    """Takes the next row, or with `skipping` a later one, the nearest first."""

    take: Take
    following: int
    skipping: bool = False
    counter: int | None = None
    """Counts the rows of a run."""
    begins: bool = False
    """The row is the first of the run."""


@dataclass(frozen=True)
class RepeatStep:
    """Takes rows while they fit, from `least` to `most` of them, as `counter` counts; leaves when none fits."""

    take: Take
    following: int
    least: int
    most: int | None
    counter: int | None
    """None where nothing is to be counted."""


@dataclass(frozen=True)
class LeaveStep:
    """Continues with what follows a SHORTEST run, or else takes one row more (`more`)."""

    following: int
    more: int
    least: int
    most: int | None
    counter: int | None


@dataclass(frozen=True)
class SkipStep:
    """Continues here, or else with `further`."""

    following: int
    further: int


@dataclass(frozen=True)
class SkippedStep:
    """Skips the next row."""

    following: int


@dataclass(frozen=True)
class ChooseStep:
    """Continues with `following`, or else with `other`."""

    following: int
    other: int


@dataclass(frozen=True)
class BeginStep:
    """No rounds yet."""

    counter: int
    following: int


@dataclass(frozen=True)
class RoundStep:
    """Another round, or what follows the loop. `mark`: after which row the round begins, if it can take none at all: such a
    round counts only up to `least`."""

    counter: int
    mark: int | None
    least: int
    most: int | None
    longest: bool
    body: int
    following: int


@dataclass(frozen=True)
class EndStep:
    """A round is over: it counts."""

    counter: int
    following: int


@dataclass(frozen=True)
class MatchStep:
    pass


Step = TakingStep | RepeatStep | LeaveStep | SkipStep | SkippedStep | ChooseStep | BeginStep | RoundStep | EndStep | MatchStep


@dataclass(frozen=True)
class SequenceSteps:
    steps: tuple[Step, ...]
    counters: int
    marks: int

    @property
    def takes(self) -> list[Take]:
        found = [each.take for each in self.steps if isinstance(each, TakingStep | RepeatStep)]
        return list({each.slot: each for each in found}.values())

    @cached_property
    def before_rows(self) -> frozenset[int]:
        """The steps to which a search can come before it has taken a row."""
        return self._reached([0], through_rows=False)

    @cached_property
    def after_rows(self) -> frozenset[int]:
        """Those to which it can come when it has taken one."""
        taking = [each.following for each in self.steps if isinstance(each, TakingStep | RepeatStep)]
        again = [at for at, each in enumerate(self.steps) if isinstance(each, RepeatStep)]
        return self._reached([*taking, *again], through_rows=True)

    def _reached(self, first: Sequence[int], through_rows: bool) -> frozenset[int]:
        found: set[int] = set()
        open_steps = list(first)
        while open_steps:
            at = open_steps.pop()
            step = self.steps[at]
            if at not in found:
                found.add(at)
                if through_rows or not isinstance(step, TakingStep | SkippedStep):
                    open_steps += ways(step)
        return frozenset(found)

    @property
    def first_slots(self) -> frozenset[int]:
        """The slots for one of which the first row is taken."""
        steps = [self.steps[at] for at in self.before_rows]
        return frozenset(each.take.slot for each in steps if isinstance(each, TakingStep | RepeatStep))


def sequence_steps(part: SequencePart) -> SequenceSteps:
    return _Steps(part).made()


class _Steps:
    """From behind: what follows a part is known when its steps are made."""

    def __init__(self, part: SequencePart) -> None:
        self.steps: list[Step | None] = []
        self.counters = self.marks = 0
        self.first = self._part(part, self._add(MatchStep()))

    def made(self) -> SequenceSteps:
        """In the order in which a search comes to them, so that it seldom goes back."""
        steps = [each for each in self.steps if each is not None]
        require(len(steps) == len(self.steps), "every step is made")
        order = _order(steps, self.first)
        number = {old: new for new, old in enumerate(order)}
        return SequenceSteps(tuple(_renumbered(steps[old], number) for old in order), self.counters, self.marks)

    def _add(self, step: Step | None) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def _part(self, part: SequencePart, following: int, skipping: bool = False) -> int:
        """The step with which the part begins. `skipping`: rows may be skipped before it."""
        match part:
            case Take():
                return self._add(TakingStep(part, following, skipping))
            case Chain():
                return self._chain(part, following, skipping)
            case Loop(body=Take() as take):
                return self._run(part, take, following, skipping)
            case Choice():
                *parts, made = (self._part(each, following) for each in part.parts)
                for each in reversed(parts):
                    made = self._add(ChooseStep(each, made))
            case Loop():
                made = self._loop(part, following)
        return self._skipping(made) if skipping else made

    def _skipping(self, following: int) -> int:
        made = self._add(None)
        self.steps[made] = SkipStep(following, self._add(SkippedStep(made)))
        return made

    def _chain(self, chain: Chain, following: int, skipping: bool) -> int:
        for part, skips in reversed([*zip(chain.parts, (skipping, *chain.skips), strict=True)]):
            following = self._part(part, following, skips)
        return following

    def _run(self, loop: Loop, take: Take, following: int, skipping: bool) -> int:
        if loop.least == loop.most == 1:
            return self._add(TakingStep(take, following, skipping))
        counter = self._counter() if loop.least > 1 or loop.most is not None else None
        if loop.longest or loop.least == loop.most:
            made = self._add(RepeatStep(take, following, loop.least, loop.most, counter))
        else:
            made = self._add(None)
            more = self._add(TakingStep(take, made, counter=counter))
            self.steps[made] = LeaveStep(following, more, loop.least, loop.most, counter)
        if loop.least:
            return self._add(TakingStep(take, made, skipping, counter, True))
        made = made if counter is None else self._add(BeginStep(counter, made))
        return self._skipping(made) if skipping else made

    def _loop(self, loop: Loop, following: int) -> int:
        counter, mark = self._counter(), None
        if can_be_empty(loop.body):
            mark, self.marks = self.marks, self.marks + 1
        round_ = self._add(None)
        body = self._part(loop.body, self._add(EndStep(counter, round_)))
        self.steps[round_] = RoundStep(counter, mark, loop.least, loop.most, loop.longest, body, following)
        return self._add(BeginStep(counter, round_))

    def _counter(self) -> int:
        self.counters += 1
        return self.counters - 1


def ways(step: Step) -> Sequence[int]:
    """The steps that can follow."""
    match step:
        case ChooseStep():
            return step.following, step.other
        case LeaveStep():
            return step.following, step.more
        case SkipStep():
            return step.following, step.further
        case RoundStep():
            return step.body, step.following
        case MatchStep():
            return ()
    return (step.following,)


def _order(steps: Sequence[Step], first: int) -> list[int]:
    found: dict[int, None] = {}
    open_steps = [first]
    while open_steps:
        at = open_steps.pop()
        if at not in found:
            found[at] = None
            open_steps += reversed(ways(steps[at]))
    return list(found)


def _renumbered(step: Step, number: dict[int, int]) -> Step:
    match step:
        case ChooseStep():
            return ChooseStep(number[step.following], number[step.other])
        case LeaveStep():
            return replace(step, following=number[step.following], more=number[step.more])
        case SkipStep():
            return replace(step, following=number[step.following], further=number[step.further])
        case RoundStep():
            return replace(step, body=number[step.body], following=number[step.following])
        case MatchStep():
            return step
    return replace(step, following=number[step.following])
