"""What the kernel of a sequence needs to know of its branch, or why there can be none.

Takes: the shape of a branch with a sequence. Gives: a `SequencePlan`, and the shape its value columns; or raises `Refused`.
Never: generates code.
"""

from __future__ import annotations

from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.planning.sequences.running_values import (
    RunningConditions,
    RunningWord,
    SequencePredicate,
    is_plain,
)
from fairlead.matching.compiled.planning.sequences.sequence_steps import (
    LeaveStep,
    MatchStep,
    RepeatStep,
    SequenceSteps,
    TakingStep,
    sequence_steps,
)
from fairlead.matching.compiled.planning.sequences.step_offers import offers_after
from fairlead.matching.compiled.planning.shape import Refused, Shape
from fairlead.matching.compiled.representation.contents import slots_read
from fairlead.matching.compiled.representation.formulas import Formula
from fairlead.matching.expressions.closures import slot_types
from fairlead.matching.failed_runs import remembered_runs
from fairlead.model.events.types import Catalogue


@dataclass(frozen=True)
class SequencePlan:
    program: SequenceSteps
    asked: dict[int, tuple[SequencePredicate, ...]]
    """By slot: when a row is taken for it."""
    untils: dict[int, SequencePredicate]
    """By slot: a row for which this holds ends the run."""
    having: tuple[Formula, ...]
    words: tuple[RunningWord, ...]
    earlier: dict[int, tuple[int, int]]
    """Slots after those of the branch: of which slot's type, and how many events before the one that is taken."""
    unseen: tuple[tuple[int, int], ...]
    """The slots and columns of which different values are counted."""
    stepwise: bool
    limited: bool
    """Times of rows decide: a window, or a limit to the event before."""
    lasting: frozenset[int]
    """The slots of runs of which it is remembered where they failed (failed_runs.py)."""

    def is_sure(self, at: int) -> bool:
        """Whether a search that gets to this step ends with a match: then no choice before it is ever tried again."""
        match self.program.steps[at]:
            case MatchStep():
                return not self.having and at not in self.program.before_rows
            case RepeatStep() as step:
                return step.least <= 1 and self.is_sure(step.following)
        return False

    @cached_property
    def remembered(self) -> dict[int, int]:
        """The steps at which a run stands that may fail again where it failed before, with the slot of the run."""
        found: dict[int, int] = {}
        for at, each in enumerate(self.program.steps):
            if isinstance(each, RepeatStep) and not self.is_sure(at):
                found[at] = each.take.slot
            elif isinstance(each, LeaveStep):
                more = self.program.steps[each.more]
                assert isinstance(more, TakingStep)
                found[at] = more.take.slot
        return {at: slot for at, slot in found.items() if slot in self.lasting}

    def words_of(self, slot: int) -> list[RunningWord]:
        return [each for each in self.words if each.slot == slot]

    @cached_property
    def members_read(self) -> list[int]:
        """The single elements that conditions on later rows, or on whole relations, read."""
        read = {slot for about, each in self.asked.items() for one in each for slot in slots_read(one.formula) - {about}}
        read |= {slot for about, each in self.untils.items() for slot in slots_read(each.formula) - {about}}
        read |= {slot for each in self.having for slot in slots_read(each)}
        return sorted(slot for slot in read if slot not in self.earlier)


def sequence_plan(shape: Shape, catalogue: Catalogue) -> SequencePlan:
    branch = shape.branch
    assert branch.sequence is not None
    if branch.noting:
        raise Refused(f"{branch.noting[0].keyword} in a sequence")
    program = sequence_steps(branch.sequence)
    conditions = RunningConditions(shape, slot_types(branch, catalogue), frozenset(branch.runs))
    asked: dict[int, tuple[SequencePredicate, ...]] = {}
    for predicate in branch.predicates:
        if not is_plain(predicate):
            about = predicate.about
            assert about is not None
            asked[about] = (*asked.get(about, ()), conditions.asked(predicate))
    untils = {each.slot: conditions.asked(each.until) for each in program.takes if each.until is not None}
    having = tuple(conditions.whole(each) for each in branch.having)
    limited = shape.subscription.within_us is not None or any(each.gap_us is not None for each in program.takes)
    words = tuple(conditions.words)
    stepwise = shape.subscription.matching.stepwise
    for step in (
        (None, *(at for at, each in enumerate(program.steps) if isinstance(each, TakingStep | RepeatStep))) if stepwise else ()
    ):
        offers_after(program, step)  # raises what cannot be compiled
    unseen = tuple(conditions.unseen)
    lasting = remembered_runs(shape.subscription, branch, catalogue)
    return SequencePlan(program, asked, untils, having, words, conditions.earlier, unseen, stepwise, limited, lasting)
