"""Whether the row that comes next fits: its type and what it is by itself (bits), times, and the conditions of the element,
which read the path.

Takes: a shape. Gives: code for one row, with the search's variables. Never: decides what is tried.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.kernel_names import HEAD, QUEUES, k
from fairlead.matching.compiled.codegen.sequences.search_state import (
    clock,
    earliest,
    late_start,
    latest,
    member_of,
    top,
    walked,
)
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.sequences.running_values import UNSEEN, RunningWord, SequencePredicate, unseen_name
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.contents import replaced, slots_read
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    TRUE,
    TRUTH,
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
fits = Variable("fits", TRUTH)


class RowConditions:
    def __init__(self, shape: Shape, layout: SequenceLayout) -> None:
        plan = shape.sequence
        assert plan is not None
        self.shape, self.layout, self.plan, self.program = shape, layout, plan, plan.program
        self.next, self.bits = layout.field("NEXT"), layout.field("BITS")
        self.time = layout.field("TIME") if shape.timed else None

    def _coming(self, code: Code) -> None:
        code.assign(node, choice(QUEUES[k, HEAD], walked == NONE, self.next[walked]))

    def _can_begin(self, at: int) -> bool:
        """Whether the search can come to the step without a row."""
        return at in self.program.before_rows

    def _can_continue(self, at: int) -> bool:
        """Whether it can come to it with one."""
        return at in self.program.after_rows

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
                near = any_of(*begins, span <= (self.shape.subscription.within_us or 0))
                tests.append(near)
                if self.plan.remembered:
                    with code.when(negated(near)):
                        code.assign(late_start, 1)
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
            code.together(*((before_row(each), each.number) for each in words))
            code.together(*((each.number, self._placed(each.then, each.slot)) for each in words))

    def _uncount_row(self, code: Code, words: list[RunningWord]) -> None:
        for each in words:
            code.assign(each.number, before_row(each))

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


def before_row(word: RunningWord) -> Variable:
    return Variable(f"was_{word.number.name}", word.number.type)


def _earlier(slot: int) -> Variable:
    return Variable(f"earlier{slot}")
