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
from fairlead.matching.compiled.codegen.kernel_names import HEAD, QUEUES, k, w
from fairlead.matching.compiled.codegen.sequences.search_state import (
    FAIL,
    SearchState,
    bottom,
    clock,
    counter_of,
    due,
    earliest,
    frame,
    latest,
    mark_of,
    member_of,
    pc,
    top,
    walked,
)
from fairlead.matching.compiled.codegen.sequences.sequence_deadlines import LAST_TIME, SequenceDeadlines, fired, now
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout
from fairlead.matching.compiled.codegen.sequences.sequence_matches import SequenceMatches
from fairlead.matching.compiled.machine_code.interruption import count_step, is_halted
from fairlead.matching.compiled.planning.sequences.running_values import UNSEEN, RunningWord, SequencePredicate, unseen_name
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
    TakeStep,
)
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.contents import fields_read, replaced, slots_read
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    TRUE,
    TRUTH,
    Constant,
    Formula,
    SlotColumn,
    SlotField,
    Variable,
    all_of,
    any_of,
    as_float,
    bit,
    choice,
    intrinsic,
    negated,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction
from fairlead.model.plans.sequence import Take

node, row_time = variables("node row_time")
"""The row that comes next, and its time."""
fits, other = Variable("fits", TRUTH), Variable("fits_other", TRUTH)


class SearchMachine:
    def __init__(self, shape: Shape, layout: SequenceLayout) -> None:
        plan = shape.sequence
        assert plan is not None
        self.shape, self.layout, self.plan, self.program = shape, layout, plan, plan.program
        self.state = SearchState(shape)
        self.matches, self.deadlines = SequenceMatches(shape, layout, self.state), SequenceDeadlines(shape, layout)
        self.next, self.bits = layout.field("NEXT"), layout.field("BITS")
        self.time = layout.field("TIME") if shape.timed else None

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

    # Rows

    def _coming(self, code: Code) -> None:
        code.assign(node, choice(QUEUES[k, HEAD], walked == NONE, self.next[walked]))

    def _deadline(self, take: Take) -> Formula | None:
        """Until when a path that has taken something may get a row for this."""
        limits: list[Formula] = []
        if self.time is not None and self.shape.windowed:
            limits.append(self.time[QUEUES[k, HEAD]] + (self.shape.subscription.within_us or 0))
        if self.time is not None and take.gap_us is not None:
            limits.append(self.time[top] + take.gap_us)
        return limits[0] if len(limits) == 1 else intrinsic("min", *limits) if limits else None

    def _has_passed(self, at: int, take: Take) -> list[Formula]:
        limit = self._deadline(take)
        if limit is None or not self._can_continue(at):
            return []
        return [*([top != NONE] if self._can_begin(at) else []), clock > limit]

    def _pause(self, code: Code, take: Take) -> None:
        """At the end of the rows (some were taken), if the path is still open."""
        limit = self._deadline(take)
        told: list[Formula] = [now > LAST_TIME] if limit is None else [now > intrinsic("min", limit, LAST_TIME)]
        with code.when(negated(any_of(*told))):
            if self.shape.waits:
                code.assign(due, LAST_TIME if limit is None else intrinsic("min", limit, LAST_TIME))
                self.deadlines.schedule(code)
            code.leave()

    def _test(self, code: Code, at: int, take: Take, fits: Variable = fits) -> None:
        """Whether the row that comes fits: `fits`. Then the words of the slot count it."""
        tests: list[Formula] = []
        if self.time is not None:
            code.assign(row_time, self.time[node])
        if self._can_continue(at):
            begins: list[Formula] = [top == NONE] if self._can_begin(at) else []
            if take.gap_us is not None and self.time is not None:
                tests.append(any_of(*begins, row_time - self.time[top] <= take.gap_us))
            if self.shape.windowed:
                span = intrinsic("max", latest, row_time) - intrinsic("min", earliest, row_time)
                tests.append(any_of(*begins, span <= (self.shape.subscription.within_us or 0)))
        words = self.plan.words_of(take.slot)
        asked = self.plan.asked.get(take.slot, ())
        until = self.plan.untils.get(take.slot)
        code.assign(fits, bit(self.bits[node], take.slot) != 0)
        if not (tests or asked or until or words):
            return
        with code.when(fits):
            self._go_back(code, [*asked, *([until] if until is not None else [])])
            self._count_row(code, words)
            if until is not None:
                tests.append(negated(all_of(*self._there(until), self._placed(until.formula, take.slot))))
            for each in asked:
                test = self._placed(each.formula, take.slot)
                there = self._there(each)
                tests.append(any_of(negated(all_of(*there)), test) if there else test)
            if tests:
                code.assign(fits, all_of(*tests))
            if words and tests:
                with code.when(negated(fits)):
                    self._uncount_row(code, words)

    def _count_row(self, code: Code, words: list[RunningWord]) -> None:
        if words:
            code.together(*((_before(each), each.number) for each in words))
            code.together(*((each.number, self._placed(each.then, each.slot)) for each in words))

    def _uncount_row(self, code: Code, words: list[RunningWord]) -> None:
        for each in words:
            code.assign(each.number, _before(each))

    def _there(self, predicate: SequencePredicate) -> list[Formula]:
        """The path has as many events as the condition looks back to."""
        return [_earlier(slot) != NONE for slot in self._looked_at(predicate)[-1:]]

    def _looked_at(self, predicate: SequencePredicate) -> list[int]:
        """The slots of earlier events in it, the nearest first."""
        found = [slot for slot in slots_read(predicate.formula) if slot in self.plan.earlier]
        return sorted(found, key=lambda slot: self.plan.earlier[slot][1])

    def _go_back(self, code: Code, asked: list[SequencePredicate]) -> None:
        """The earlier events of the path that the conditions read: those that the type of their slot accepts."""
        found = {self.plan.earlier[slot]: slot for each in asked for slot in self._looked_at(each)}
        for of, most in {slot: max(back for at, back in found if at == slot) for slot, _ in found}.items():
            at: Formula = top
            for back in range(1, most + 1):
                here = Variable(f"back{back}_{of}")
                code.assign(here, at if back == 1 else choice(NONE, at == NONE, self.layout.field("BEFORE")[at]))
                accepted = self._accepted(of, here)
                if accepted is not None:
                    with code.loop(all_of(here != NONE, negated(accepted))):
                        count_step(code)
                        code.assign(here, self.layout.field("BEFORE")[here])
                if (of, back) in found:
                    code.assign(_earlier(found[of, back]), here)
                at = here

    def _accepted(self, slot: int, at: Formula) -> Formula | None:
        """Whether the type of the slot accepts an event; None if it accepts all."""
        queue = self.shape.queue_of_slot[slot]
        mine = [number for number, lane in enumerate(self.shape.lanes) if queue in lane.queues]
        if len(mine) == sum(1 for lane in self.shape.lanes if lane.queues):
            return None
        return any_of(*(self.layout.field("LANE")[at] == number for number in mine))

    def _placed(self, formula: Formula, about: int | None) -> Formula:
        """With events where the search has them. `about`: the slot of the row that comes."""

        def place(part: SlotColumn | SlotField) -> Formula:
            at: Formula = node if part.slot == about else member_of(part.slot)
            if part.slot in self.plan.earlier:
                at = _earlier(part.slot)
            if isinstance(part, SlotField):
                return self.layout.field(part.field)[at]
            stored = self.layout.column(part.column)[at]
            return as_float(stored) if self.shape.columns[part.column].is_double else stored

        made: Formula = replaced(formula, place)
        return made

    def _choice_point(self, code: Code, again: int, words: list[RunningWord], skipped: bool) -> None:
        """Before the row is taken. `skipped`: what is tried later begins behind it. Without room the search pauses here."""
        with code.when(negated(self.state.has_room())):
            self._uncount_row(code, words)
            code.assign(counter("FULL"), 1)
            code.leave()
        instead: dict[str, Formula] = {each.number.name: _before(each) for each in words}
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

    def _can_begin(self, at: int) -> bool:
        """Whether the search can come to the step without a row."""
        return at in self.program.before_rows

    def _can_continue(self, at: int) -> bool:
        """Whether it can come to it with one."""
        return at in self.program.after_rows

    def functions(self) -> list[KernelFunction]:
        """Whether no row of the path was taken for a slot with the value that the row that comes has."""
        return [self._unseen(slot, column) for slot, column in self.plan.unseen]

    def _unseen(self, slot: int, column: int) -> KernelFunction:
        code, at, known = Code(), Variable("at"), self.shape.known_bit(column)
        mine, its = (self._placed(SlotColumn(column, slot), slot), self.layout.column(column)[at])
        same: Formula = mine == its
        if self.shape.columns[column].is_double:
            same = any_of(mine == as_float(its), all_of(mine != mine, as_float(its) != as_float(its)))
        code.assign(at, top)
        with code.loop(at != NONE):
            count_step(code)
            with code.when(all_of(self.layout.field("TAKEN")[at] == slot, bit(self.bits[at], known) != 0, same)):
                code.give(FALSE)
            code.assign(at, self.layout.field("BEFORE")[at])
        code.give(TRUE)
        return code.function(unseen_name(slot, column), *UNSEEN)

    # Steps

    def _take(self, code: Code, at: int, step: TakeStep) -> None:
        take, words = step.take, self.plan.words_of(step.take.slot)
        self._coming(code)
        passed = self._has_passed(at, take)
        if passed:
            with code.when(all_of(*passed)):
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
        if step.skipping and not self._is_sure(step.following):
            with code.when(top != NONE) if at in self.program.before_rows else nullcontext():
                self._choice_point(code, at, words, True)
        self._commit(code, at, take)
        if step.counter is not None:
            count = counter_of(step.counter)
            code.assign(count, 1 if step.begins else count + 1)
        code.assign(pc, step.following)

    def _fail(self, code: Code) -> None:
        code.assign(pc, FAIL)
        code.proceed()

    def _pass_row(self, code: Code, limited: bool) -> None:
        if limited:
            code.assign(clock, intrinsic("max", clock, row_time))
        code.assign(walked, node)

    def _repeat(self, code: Code, at: int, step: RepeatStep) -> None:
        take, words = step.take, self.plan.words_of(step.take.slot)
        count = None if step.counter is None else counter_of(step.counter)
        passed = self._has_passed(at, take)
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
            if not self._is_sure(step.following):
                with code.when(count >= step.least) if count is not None and step.least > 1 else nullcontext():
                    self._leave_point(code, at, step)
            self._commit(code, at, take)
            if count is not None:
                code.increase(count)
            code.proceed()
        if count is not None and step.least > 1:
            with code.when(count < step.least):
                self._fail(code)
        code.assign(pc, step.following)

    def _is_sure(self, at: int) -> bool:
        """Whether a search that gets to this step ends with a match: then no choice before it is ever tried again."""
        match self.program.steps[at]:
            case MatchStep():
                return not self.plan.having and at not in self.program.before_rows
            case RepeatStep() as step:
                return step.least <= 1 and self._is_sure(step.following)
        return False

    def _leave_point(self, code: Code, at: int, step: RepeatStep) -> None:
        """A choice point for leaving the run before this row. If another single row has to follow, it is asked at once whether this
        would be one: mostly not."""
        words, following = self.plan.words_of(step.take.slot), self.program.steps[step.following]
        asks = isinstance(following, TakeStep) and not following.skipping
        if not asks or words or self.plan.words_of(following.take.slot):  # type: ignore[union-attr]
            self._choice_point(code, step.following, words, False)
            return
        assert isinstance(following, TakeStep)
        self._test(code, step.following, following.take, other)
        with code.when(other):
            self._choice_point(code, step.following, words, False)

    def _leave(self, code: Code, at: int, step: LeaveStep) -> None:
        count = None if step.counter is None else counter_of(step.counter)
        if count is not None and step.least > 1:
            with code.when(count < step.least):
                code.assign(pc, step.more)
                code.proceed()
        with code.when(count < step.most) if count is not None and step.most is not None else nullcontext():
            self._require_room(code)
            self.state.push(code, step.more)
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
        self._begin_again(code)
        code.proceed()


def _before(word: RunningWord) -> Variable:
    return Variable(f"was_{word.number.name}", word.number.type)


def _earlier(slot: int) -> Variable:
    return Variable(f"earlier{slot}")


_STEPS: dict[type, Callable[..., None]] = {
    TakeStep: SearchMachine._take,
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
