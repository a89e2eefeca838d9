"""The pattern of a sequence as a program, compiled once for all keys.

    A a NEXT (B b ELSE C c)+   →   0 TAKE a   1 ENTER   2 ROUND, else 7   3 FORK 4, 6   4 TAKE b   5 JUMP 2 …   END

Takes: a branch. Gives: its instructions, with the conditions that each TAKE asks. Never: holds an event.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.matching.expressions.closures import Check, compile_condition
from fairlead.matching.failed_runs import remembered_runs
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Predicate
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.sequence import Chain, Choice, Loop, SequencePart, Take, as_asked, takes


class Operation(Enum):
    TAKE = auto()
    """One row."""
    SKIP = auto()
    """Rows may be left out."""
    FORK = auto()
    """One of several ways from here, the first preferred."""
    ENTER = auto()
    """A loop begins."""
    ROUND = auto()
    """Another round, the next instruction, or the end of the loop."""
    JUMP = auto()
    END = auto()


@dataclass(frozen=True)
class Asked:
    """A condition on the row that is taken; it is not asked where the relation has fewer events before it."""

    check: Check
    back: int


@dataclass(frozen=True)
class TakeStep:
    slot: int
    queue: int
    gap_us: int | None
    asked: tuple[Asked, ...]
    until: Asked | None


@dataclass(frozen=True)
class Instruction:
    operation: Operation
    take: TakeStep | None = None
    targets: tuple[int, ...] = ()
    """Of FORK and JUMP; of ROUND where the loop ends."""
    least: int = 0
    most: int | None = None
    longest: bool = True
    remembers: bool = False
    """Of ROUND: where the run failed, it fails again (failed_runs.py)."""


class SequenceProgram:
    """What all keys of a branch share."""

    def __init__(self, subscription: Subscription, branch: Branch, catalogue: Catalogue) -> None:
        assert branch.sequence is not None
        self.branch, self.within_us = branch, subscription.within_us
        self.stepwise, self.timed = subscription.matching.stepwise, branch.timed
        self.disposal, self.advance = subscription.disposal, subscription.advance
        self.limited = self.within_us is not None or any(each.gap_us is not None for each in takes(branch.sequence))
        self.remembered = remembered_runs(subscription, branch, catalogue)
        self.width, self.upto = len(branch.slots), frozenset(branch.upto)
        self.is_run = [slot in branch.runs for slot in range(self.width)]
        conditions = [*branch.predicates, *(each.until for each in takes(branch.sequence) if each.until is not None)]
        self.back = max((each.looks_back for each in conditions), default=0)
        types = [catalogue[name] for name in branch.signature]
        self.having = [compile_condition(each.condition, types) for each in branch.having]
        self.code: list[Instruction] = []
        self._append(branch.sequence, [*types], self._queues())
        self.code.append(Instruction(Operation.END))

    def _queues(self) -> list[int]:
        return [self.branch.queue_types.index(name) for name in self.branch.signature]

    def _append(self, part: SequencePart, types: list[Any], queues: list[int]) -> None:
        code = self.code
        match part:
            case Take():
                code.append(Instruction(Operation.TAKE, self._take(part, types, queues)))
            case Chain():
                for at, each in enumerate(part.parts):
                    if at and part.skips[at - 1]:
                        code.append(Instruction(Operation.SKIP))
                    self._append(each, types, queues)
            case Choice():
                fork, starts, ends = len(code), list[int](), list[int]()
                code.append(Instruction(Operation.FORK))
                for each in part.parts:
                    starts.append(len(code))
                    self._append(each, types, queues)
                    ends.append(len(code))
                    code.append(Instruction(Operation.JUMP))
                code[fork] = Instruction(Operation.FORK, targets=tuple(starts))
                for at in ends:
                    code[at] = Instruction(Operation.JUMP, targets=(len(code),))
            case Loop():
                code.append(Instruction(Operation.ENTER))
                head = len(code)
                code.append(Instruction(Operation.ROUND))
                self._append(part.body, types, queues)
                code.append(Instruction(Operation.JUMP, targets=(head,)))
                remembers = isinstance(part.body, Take) and part.body.slot in self.remembered
                bounds = part.least, part.most, part.longest
                code[head] = Instruction(Operation.ROUND, None, (len(code),), *bounds, remembers)

    def _take(self, part: Take, types: list[Any], queues: list[int]) -> TakeStep:
        mine = [each for each in self.branch.predicates if each.about == part.slot]
        seen = types + [types[part.slot]] * (1 + self.back)

        def asked(predicate: Predicate) -> Asked:
            return Asked(compile_condition(as_asked(predicate, self.width), seen), predicate.looks_back)

        until = None if part.until is None else asked(part.until)
        return TakeStep(part.slot, queues[part.slot], part.gap_us, tuple(map(asked, mine)), until)

    def leaving(self, slots: list[int], places: list[int]) -> int:
        """How many rows leave after a match of these slots, at these places."""
        named = [place for slot, place in zip(slots, places, strict=True) if slot in self.upto] if self.upto else []
        match self.disposal:
            case Disposal.FIRST_PREFIX:
                return places[0] + 1
            case Disposal.ADVANCE:
                return places[min(self.advance, len(places)) - 1] + 1
            case Disposal.UPTO_FIRST:
                return max(1, named[0] if named else 0)
            case Disposal.UPTO_LAST:
                return max(1, named[-1] if named else 0)
        return places[-1] + 1
