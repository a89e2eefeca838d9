"""The search over the rows of one key as code: the steps of a sequence, each of which says what is done next.

    step FAIL       back to the last choice point; if there is none, the first row leaves and the search begins at the next one
    step 0, 1, …    what sequence_steps.py has made of the pattern

The steps stand one after the other in one loop, so that what follows is mostly the next test. At the end of the rows the open
path stays as it is: the search continues when the next row of the key has come. That is the same as to search everything again,
since conditions, and the clock that its rows give a key, only look back; of a clock that other keys move too, see `restarts`.

Takes: a shape. Gives: the function `search`. Never: reads a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import HEAD, QUEUES, k
from fairlead.matching.compiled.codegen.sequences.row_conditions import RowConditions, before_row, fits, node, row_time
from fairlead.matching.compiled.codegen.sequences.search_state import (
    ERA,
    FAIL,
    SearchState,
    clock,
    counter_of,
    due,
    earliest,
    era,
    frame,
    late_start,
    latest,
    mark_of,
    member_of,
    pc,
    top,
    walked,
)
from fairlead.matching.compiled.codegen.sequences.sequence_deadlines import LAST_TIME, SequenceDeadlines, now
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout, failed_name
from fairlead.matching.compiled.codegen.sequences.sequence_matches import SequenceMatches
from fairlead.matching.compiled.machine_code.interruption import count_step, is_halted
from fairlead.matching.compiled.planning.sequences.running_values import RunningWord
from fairlead.matching.compiled.planning.sequences.sequence_steps import (
    BeginStep,
    ChooseStep,
    EndStep,
    LeaveStep,
    MatchStep,
    RepeatStep,
    RoundStep,
    SkippedStep,
    SkipStep,
    TakingStep,
)
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    TRUTH,
    ArrayElement,
    Formula,
    Variable,
    all_of,
    any_of,
    choice,
    intrinsic,
    negated,
)
from fairlead.model.plans.sequence import Take

other = Variable("fits_other", TRUTH)
"""Whether the row could be the next element too."""


class SearchMachine(RowConditions):
    def __init__(self, shape: Shape, layout: SequenceLayout) -> None:
        super().__init__(shape, layout)
        self.state = SearchState(shape)
        self.matches, self.deadlines = SequenceMatches(shape, layout, self.state), SequenceDeadlines(shape, layout)

    def body(self) -> Code:
        """Of the function `search`: of the key k, which has rows."""
        code = Code()
        self.state.resume(code)
        with code.loop():
            count_step(code)
            with code.when(is_halted()):
                code.leave()
            with code.when(pc == FAIL):
                with code.when(frame != NONE):
                    self.state.pop(code)
                with code.otherwise():
                    self.matches.drop_first(code)
                    if self.plan.remembered and self.plan.limited:
                        with code.when(late_start != 0):
                            self._begin_era(code)
                    self._begin_again(code)
            self._write_steps(code)
        self.state.pause(code)
        code.give(0)
        return code

    def _write_steps(self, code: Code) -> None:
        for at, step in enumerate(self.program.steps):
            with code.when(pc == at):
                _STEPS[type(step)](self, code, at, step)

    def _begin_again(self, code: Code) -> None:
        """At the first row, if there is one."""
        self.state.begin(code)
        with code.when(QUEUES[k, HEAD] == NONE):
            if self.shape.waits:
                code.assign(due, LAST_TIME + 1)
                self.deadlines.schedule(code)
            code.leave()

    # What failed before: a run at a row, which has taken so many rows

    def _begin_era(self, code: Code) -> None:
        if self.plan.remembered:
            code.increase(era, ERA)
        if self.plan.remembered and self.plan.limited:
            code.assign(late_start, 0)

    def _fail_again(self, code: Code, at: int, step: RepeatStep | LeaveStep) -> None:
        """Where the run failed with as many rows."""
        if at in self.plan.remembered:
            of_this_start = [late_start == 0] if self.plan.limited else []
            with code.when(all_of(*of_this_start, self._failed(at) >= self._length(step))):
                self._fail(code)

    def _remember(self, code: Code, at: int, step: RepeatStep | LeaveStep) -> None:
        """It fails, or there is a match. Not before the step is done: one that pauses is done again."""
        if at in self.plan.remembered:
            code.assign(self._failed(at), self._length(step))

    def _failed(self, at: int) -> ArrayElement:
        return self.layout.field(failed_name(self.plan.remembered[at]))[walked]

    @staticmethod
    def _length(step: RepeatStep | LeaveStep) -> Formula:
        return era + (1 if step.counter is None else intrinsic("min", counter_of(step.counter), step.least))

    # Rows

    def _pause(self, code: Code, take: Take) -> None:
        """At the end of the rows (some were taken), if the path is still open."""
        limit = self._deadline(take)
        told: list[Formula] = [now > LAST_TIME] if limit is None else [now > intrinsic("min", limit, LAST_TIME)]
        with code.when(negated(any_of(*told))):
            if self.shape.waits:
                code.assign(due, LAST_TIME if limit is None else intrinsic("min", limit, LAST_TIME))
                self.deadlines.schedule(code)
            code.leave()

    def _choice_point(self, code: Code, again: int, words: list[RunningWord], skipped: bool) -> None:
        """Before the row is taken. `skipped`: what is tried later begins after it. Without room the search pauses here."""
        with code.when(negated(self.state.has_room())):
            self._uncount_row(code, words)
            code.assign(counter("FULL"), 1)
            code.leave()
        instead: dict[str, Formula] = {each.number.name: before_row(each) for each in words}
        if skipped:
            instead[walked.name] = node
            if self.plan.limited:
                instead[clock.name] = intrinsic("max", clock, row_time)
        self.state.push(code, again, instead)

    def _commit(self, code: Code, at: int, take: Take) -> None:
        """The row is taken."""
        code.assign(self.layout.field("BEFORE")[node], top)
        code.assign(self.layout.field("TAKEN")[node], take.slot)
        if self.shape.windowed:
            first = choice(row_time, top == NONE, intrinsic("min", earliest, row_time))
            last = choice(row_time, top == NONE, intrinsic("max", latest, row_time))
            if not self._can_begin(at):
                first, last = first.no, last.no  # type: ignore[assignment]
            code.together((earliest, first), (latest, last))
        self._pass_row(code, self.plan.limited)
        code.assign(top, node)
        if take.slot in self.plan.members_read:
            code.assign(member_of(take.slot), node)

    # Steps

    def _take(self, code: Code, at: int, step: TakingStep) -> None:
        take, words = step.take, self.plan.words_of(step.take.slot)
        self._coming(code)
        passed = self._has_passed(at, take)
        if passed:
            with code.when(all_of(*passed)):
                self._note_time(code)
                self._fail(code)
        with code.when(node == NONE):
            self._pause(code, take)
            self._fail(code)
        self._test(code, at, take)
        with code.when(negated(fits)):
            if step.skipping:
                if at in self.program.before_rows:
                    with code.when(top == NONE):
                        self._fail(code)
                self._pass_row(code, self.plan.limited)
                code.proceed()
            else:
                self._fail(code)
        if step.skipping and not self.plan.is_sure(step.following):
            with code.when(top != NONE) if at in self.program.before_rows else nullcontext():
                self._choice_point(code, at, words, True)
        self._commit(code, at, take)
        if step.counter is not None:
            count = counter_of(step.counter)
            code.assign(count, 1 if step.begins else count + 1)
        code.assign(pc, step.following)

    def _note_time(self, code: Code) -> None:
        if self.plan.remembered and self.plan.limited:
            code.assign(late_start, 1)

    def _fail(self, code: Code) -> None:
        code.assign(pc, FAIL)
        code.proceed()

    def _pass_row(self, code: Code, limited: bool) -> None:
        if limited:
            code.assign(clock, intrinsic("max", clock, row_time))
        code.assign(walked, node)

    def _repeat(self, code: Code, at: int, step: RepeatStep) -> None:
        take = step.take
        count = None if step.counter is None else counter_of(step.counter)
        self._fail_again(code, at, step)
        passed = self._has_passed(at, take)
        if passed:
            with code.when(all_of(*passed)):
                self._note_time(code)
        self._coming(code)
        code.assign(fits, FALSE)
        goes_on: list[Formula] = [] if step.most is None or count is None else [count < step.most]
        goes_on += [negated(all_of(*passed))] if passed else []
        with code.when(all_of(*goes_on)) if goes_on else nullcontext():
            with code.when(node == NONE):
                self._pause(code, take)
            with code.otherwise():
                self._test(code, at, take)
        with code.when(fits):
            if not self.plan.is_sure(step.following):
                with code.when(count >= step.least) if count is not None and step.least > 1 else nullcontext():
                    self._leave_point(code, at, step)
            self._remember(code, at, step)
            self._commit(code, at, take)
            if count is not None:
                code.increase(count)
            code.proceed()
        self._remember(code, at, step)
        if count is not None and step.least > 1:
            with code.when(count < step.least):
                self._fail(code)
        code.assign(pc, step.following)

    def _leave_point(self, code: Code, at: int, step: RepeatStep) -> None:
        """A choice point for leaving the run before this row. If another single row has to follow, it is asked at once whether
        this would be one: mostly not."""
        words, following = self.plan.words_of(step.take.slot), self.program.steps[step.following]
        asks = isinstance(following, TakingStep) and not following.skipping
        if not asks or words or self.plan.words_of(following.take.slot):  # type: ignore[union-attr]
            self._choice_point(code, step.following, words, False)
            return
        assert isinstance(following, TakingStep)
        self._test(code, step.following, following.take, other)
        with code.when(other):
            self._choice_point(code, step.following, words, False)

    def _leave(self, code: Code, at: int, step: LeaveStep) -> None:
        count = None if step.counter is None else counter_of(step.counter)
        self._fail_again(code, at, step)
        if count is not None and step.least > 1:
            with code.when(count < step.least):
                self._remember(code, at, step)
                code.assign(pc, step.more)
                code.proceed()
        with code.when(count < step.most) if count is not None and step.most is not None else nullcontext():
            self._require_room(code)
            self.state.push(code, step.more)
        self._remember(code, at, step)
        code.assign(pc, step.following)

    def _require_room(self, code: Code) -> None:
        """For a choice point: otherwise the search pauses before this step."""
        with code.when(negated(self.state.has_room())):
            code.assign(counter("FULL"), 1)
            code.leave()

    def _skip(self, code: Code, at: int, step: SkipStep) -> None:
        with code.when(top != NONE):
            self._require_room(code)
            self.state.push(code, step.further)
        code.assign(pc, step.following)

    def _skipped(self, code: Code, at: int, step: SkippedStep) -> None:
        self._coming(code)
        with code.when(node == NONE):
            self._fail(code)
        if self.time is not None and self.plan.limited:
            code.assign(row_time, self.time[node])
        self._pass_row(code, self.plan.limited)
        code.assign(pc, step.following)
        code.proceed()

    def _choose(self, code: Code, at: int, step: ChooseStep) -> None:
        self._require_room(code)
        self.state.push(code, step.other)
        code.assign(pc, step.following)

    def _begin(self, code: Code, at: int, step: BeginStep) -> None:
        code.assign(counter_of(step.counter), 0)
        code.assign(pc, step.following)

    def _round(self, code: Code, at: int, step: RoundStep) -> None:
        count = counter_of(step.counter)
        if step.mark is not None:
            with code.when(all_of(count > step.least, mark_of(step.mark) == top)):
                self._fail(code)
        self._require_room(code)
        if step.mark is not None:
            code.assign(mark_of(step.mark), top)
        first, second = (step.body, step.following) if step.longest else (step.following, step.body)
        code.assign(pc, first)
        if step.least:
            with code.when(count < step.least):
                code.assign(pc, step.body)
                code.proceed()
        if step.most is not None:
            with code.when(count >= step.most):
                code.assign(pc, step.following)
                code.proceed()
        self.state.push(code, second)
        code.proceed()

    def _end(self, code: Code, at: int, step: EndStep) -> None:
        code.increase(counter_of(step.counter))
        code.assign(pc, step.following)
        code.proceed()

    def _match(self, code: Code, at: int, step: MatchStep) -> None:
        tests: list[Formula] = [top != NONE] if at in self.program.before_rows else []
        tests += [self._placed(each, None) for each in self.plan.having]
        if tests:
            with code.when(negated(all_of(*tests))):
                code.assign(pc, FAIL)
                code.proceed()
        self.matches.deliver(code)
        self.matches.dispose(code)
        self.state.forget(code)
        self._begin_era(code)
        self._begin_again(code)
        code.proceed()


_STEPS: dict[type, Callable[..., None]] = {
    TakingStep: SearchMachine._take,
    RepeatStep: SearchMachine._repeat,
    LeaveStep: SearchMachine._leave,
    SkipStep: SearchMachine._skip,
    SkippedStep: SearchMachine._skipped,
    ChooseStep: SearchMachine._choose,
    BeginStep: SearchMachine._begin,
    RoundStep: SearchMachine._round,
    EndStep: SearchMachine._end,
    MatchStep: SearchMachine._match,
}
