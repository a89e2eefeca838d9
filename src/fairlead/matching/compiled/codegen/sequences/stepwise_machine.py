"""The search of a STEPWISE sequence: one attempt without a way back, from the first row that is kept.

What waits for a row is a place of the pattern with its offers (step_offers.py); `offered` has a bit for each that still stands.

    1. offers whose time has passed fall, and those after the first that says that the pattern is complete
    2. none is left: the attempt fails; the first says so: a match; the rows have ended: the search pauses
    3. the first offer that the row fits takes it
    4. if it fits none, it is skipped, and only offers before which rows may be skipped stand on

Takes: a shape. Gives: the function `search`. Never: choice points.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.sequences.row_conditions import fits, node, row_time
from fairlead.matching.compiled.codegen.sequences.search_machine import SearchMachine
from fairlead.matching.compiled.codegen.sequences.search_state import clock, counter_of, due, offered, pc
from fairlead.matching.compiled.codegen.sequences.sequence_deadlines import LAST_TIME, now
from fairlead.matching.compiled.planning.sequences.sequence_steps import MatchStep, RepeatStep, TakingStep
from fairlead.matching.compiled.planning.sequences.step_offers import Count, Offer, offers_after
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    TRUTH,
    Constant,
    Formula,
    Variable,
    all_of,
    any_of,
    bit,
    intrinsic,
    negated,
    variables,
)
from fairlead.model.plans.sequence import Take

(first,) = variables("first_offer")
ended = Variable("ended", TRUTH)
COMPLETE = Constant(-2, "COMPLETE")
"""The first offer says that the pattern is complete."""


class StepwiseMachine(SearchMachine):
    _taken = False
    """Whether a row was taken before those that are looked at now."""

    def _write_steps(self, code: Code) -> None:
        taking = [at for at, each in enumerate(self.program.steps) if isinstance(each, TakingStep | RepeatStep)]
        for place, step in enumerate((None, *taking)):
            with code.when(pc == (0 if step is None else step + 1)):
                self._wait(code, offers_after(self.program, step), place > 0)
        with code.when(pc == self._complete):
            self._match(code, self._complete, MatchStep())

    @property
    def _complete(self) -> int:
        return len(self.program.steps) + 1

    def _wait(self, code: Code, offers: list[Offer], taken: bool) -> None:
        self._coming(code)
        # 1. those that stand
        code.assign(first, NONE)
        for number, offer in enumerate(offers):
            stands: list[Formula] = [bit(offered, number) != 0, *_standing(offer)]
            if offer.take is None:
                self._completes(code, number, stands, taken)
                continue
            limit = self._deadline(offer.take) if taken else None
            passed: list[Formula] = [all_of(node == NONE, now > LAST_TIME)]
            if limit is not None:
                passed += [clock > limit, all_of(node == NONE, now > limit)]
            with code.when(negated(all_of(*stands, negated(any_of(*passed))))):
                code.change(offered, "&", ~(1 << number))
            with code.or_when(first == NONE):
                code.assign(first, number)
                if self.shape.waits:
                    code.assign(due, LAST_TIME if limit is None else intrinsic("min", limit, LAST_TIME))
        # 2. what that says at once
        with code.when(first == NONE):
            self._fail(code)
        with code.when(first == COMPLETE):
            code.assign(pc, self._complete)
            code.proceed()
        with code.when(node == NONE):
            if self.shape.waits:
                self.deadlines.schedule(code)
            code.leave()
        # 3. the first that the row fits
        for number, offer in enumerate(offers):
            if offer.take is not None:
                with code.when(bit(offered, number) != 0):
                    self._attempt(code, offer, offer.take, taken)
        # 4. the row is skipped
        loose = sum(1 << number for number, each in enumerate(offers) if each.loose or each.take is None)
        code.change(offered, "&", loose)
        for number, offer in enumerate(offers):
            if offer.loose and offer.take is not None and offer.take.until is not None:
                self._end_run(code, number, offer.take)
        if self.time is not None:
            code.assign(row_time, self.time[node])
        self._pass_row(code, self.plan.limited)
        code.proceed()

    def _completes(self, code: Code, number: int, stands: list[Formula], taken: bool) -> None:
        """The pattern is complete: no offer after this one counts."""
        if not taken:
            code.change(offered, "&", ~(1 << number))
            return
        with code.when(all_of(*stands, *(self._placed(each, None) for each in self.plan.having))):
            with code.when(first == NONE):
                code.assign(first, COMPLETE)
            code.change(offered, "&", (2 << number) - 1)
        with code.otherwise():
            code.change(offered, "&", ~(1 << number))

    def _attempt(self, code: Code, offer: Offer, take: Take, taken: bool) -> None:
        assert offer.step is not None
        self._taken = taken
        self._test(code, 0, take)
        with code.when(fits):
            self._commit(code, 0, take)
            for at, count in offer.counts.items():
                code.assign(counter_of(at), _value(at, count))
            code.assign(offered, -1)
            code.assign(pc, offer.step + 1)
            code.proceed()

    def _end_run(self, code: Code, number: int, take: Take) -> None:
        """UNTIL is true for the row: the run is over."""
        until, words = self.plan.untils[take.slot], self.plan.words_of(take.slot)
        accepted = self._accepted(take.slot, node)
        code.assign(ended, FALSE)
        with code.when(all_of(bit(offered, number) != 0, *([accepted] if accepted is not None else []))):
            self._go_back(code, [until])
            self._count_row(code, words)
            code.assign(ended, all_of(*self._there(until), self._placed(until.formula, take.slot)))
            self._uncount_row(code, words)
        with code.when(ended):
            code.change(offered, "&", ~(1 << number))

    def _can_begin(self, at: int) -> bool:
        return not self._taken

    def _can_continue(self, at: int) -> bool:
        return self._taken


def _standing(offer: Offer) -> list[Formula]:
    made: list[Formula] = [_value(at, count) >= least for at, count, least in offer.least]
    return made + [_value(at, count) < most for at, count, most in offer.most]


def _value(counter: int, count: Count) -> Formula:
    return Constant(count.number) if count.known else counter_of(counter) + count.number
