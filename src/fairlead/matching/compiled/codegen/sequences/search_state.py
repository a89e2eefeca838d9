"""What a search over the rows of a key has: variables while it runs, a row of SEARCHES while it is suspended, and for each
choice point a row of FRAMES with what was before the choice.

Choice points of a key are a list, the last one first. A key has its rows as a list of nodes; the row that comes next is the one
after `walked`, and the rows that were taken lead back from `top` (BEFORE), each with the slot for which it was taken (TAKEN).

Takes: a shape. Gives: the variables, and code that keeps and restores them. Never: decides what is tried.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import COUNTERS, FRAMES, SEARCHES, k
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FLOAT,
    NONE,
    WHOLE,
    ArrayElement,
    Constant,
    Formula,
    Variable,
    as_bits,
    as_float,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction

pc, frame, bottom, walked, top = variables("step frame bottom walked top")
"""The step to do; the last and the first choice point; the row that was passed last, and the one that was taken last."""
clock, earliest, latest = variables("clock earliest latest")
"""The largest time of the rows that were passed; the times of those that were taken lie between the other two."""
due, got, offered = variables("due got offered")
"""The deadline of the open path; a choice point; of a STEPWISE search, which offers stand (stepwise_machine.py)."""
era, late_start = variables("era late_start")
"""What is remembered of failed runs counts in one era, a multiple of ERA; whether the first row has failed, among others, by a
time, which depends on the first row: then a later one may not fail, and another era begins."""
ERA = 2**32
PC, FRAME, BOTTOM, DUE, PLACE = range(5)
"""Columns of SEARCHES: then come the variables. DUE: when the open path ends; PLACE: where HEAP has the key."""
NAMES = ("PC", "FRAME", "BOTTOM", "DUE", "PLACE")
LINK, AGAIN = 0, 1
"""Columns of FRAMES: the choice point before, and the step to do then. Then come the variables."""
FAIL = Constant(-1, "FAIL")
LOWEST = -Constant(2**63 - 1)
"""No time is earlier."""


def of_search(key: Formula, column: int) -> ArrayElement:
    return SEARCHES[key, Constant(column, NAMES[column] if column < len(NAMES) else "")]


def of_frame(number: Formula, column: int) -> ArrayElement:
    return FRAMES[number, Constant(column, ("LINK", "AGAIN")[column] if column < 2 else "")]


def counter_of(number: int) -> Variable:
    """How many rounds a loop has made."""
    return Variable(f"rounds{number}", WHOLE)


def mark_of(number: int) -> Variable:
    """After which row its round began."""
    return Variable(f"mark{number}", WHOLE)


def member_of(slot: int) -> Variable:
    """The node that was taken for a single element."""
    return Variable(f"member{slot}", WHOLE)


class SearchState:
    def __init__(self, shape: Shape) -> None:
        plan = shape.sequence
        assert plan is not None
        self.shape, self.plan, self.program = shape, plan, plan.program
        times = [clock] if plan.limited else []
        times += [earliest, latest] if shape.windowed else []
        loops = [counter_of(at) for at in range(plan.program.counters)] + [mark_of(at) for at in range(plan.program.marks)]
        self.words = [each.number for each in plan.words]
        steps = [offered] if plan.stepwise else []
        self.saved: list[Variable] = [walked, top, *steps, *times, *loops, *self.words]
        """What a choice point keeps."""
        self.members = [member_of(slot) for slot in plan.members_read]
        """What a search has beside it: taken again after any choice that is older."""
        self.members += [era, *([late_start] if plan.limited else [])] if plan.remembered else []

    @property
    def columns(self) -> int:
        """The first columns of SEARCHES: DUE and PLACE are not there where no time decides."""
        return len(NAMES) if self.shape.waits else DUE

    @property
    def search_width(self) -> int:
        return _even(self.columns + len(self.saved) + len(self.members))

    @property
    def frame_width(self) -> int:
        return _even(2 + len(self.saved))

    # A search begins, continues and pauses

    def begin(self, code: Code) -> None:
        """At the first row."""
        code.assign(pc, 0)
        for each in (walked, top):
            code.assign(each, NONE)
        if self.plan.limited:
            code.assign(clock, LOWEST)
        if self.plan.stepwise:
            code.assign(offered, -1)
        for each in self.words:
            code.assign(each, 0.0 if each.type == FLOAT else 0)

    def resume(self, code: Code) -> None:
        code.assign(pc, of_search(k, PC))
        code.assign(frame, of_search(k, FRAME))
        code.assign(bottom, of_search(k, BOTTOM))
        for at, each in enumerate((*self.saved, *self.members), self.columns):
            code.assign(each, _read(_saved(at), each))

    def pause(self, code: Code) -> None:
        code.assign(of_search(k, PC), pc)
        code.assign(of_search(k, FRAME), frame)
        code.assign(of_search(k, BOTTOM), bottom)
        for at, each in enumerate((*self.saved, *self.members), self.columns):
            code.assign(_saved(at), _kept(each, each))

    # Choice points

    def has_room(self) -> Formula:
        """For one more."""
        return (counter("FRAME_FREE") != NONE) | (counter("FRAME_FRESH") < FRAMES.length)

    def push(self, code: Code, again: int, instead: Mapping[str, Formula] | None = None) -> None:
        """A choice point; there is room for it. `again`: the step that is done if all else fails; `instead`: what it keeps of
        some variables."""
        given = instead or {}
        code.assign(got, counter("FRAME_FREE"))
        with code.when(got != NONE):
            code.assign(counter("FRAME_FREE"), of_frame(got, LINK))
        with code.otherwise():
            code.assign(got, counter("FRAME_FRESH"))
            code.increase(counter("FRAME_FRESH"))
        with code.when(frame == NONE):
            code.assign(bottom, got)
        code.assign(of_frame(got, LINK), frame)
        code.assign(of_frame(got, AGAIN), again)
        for at, each in enumerate(self.saved, 2):
            code.assign(of_frame(got, at), _kept(each, given.get(each.name, each)))
        code.assign(frame, got)

    def pop(self, code: Code) -> None:
        """Back to the last choice point; there is one."""
        code.assign(got, frame)
        code.assign(pc, of_frame(got, AGAIN))
        for at, each in enumerate(self.saved, 2):
            code.assign(each, _read(of_frame(got, at), each))
        code.assign(frame, of_frame(got, LINK))
        code.assign(of_frame(got, LINK), counter("FRAME_FREE"))
        code.assign(counter("FRAME_FREE"), got)

    def forget(self, code: Code) -> None:
        """No choice point is left."""
        with code.when(frame != NONE):
            code.assign(of_frame(bottom, LINK), counter("FRAME_FREE"))
            code.assign(counter("FRAME_FREE"), frame)
            code.assign(frame, NONE)

    def anew(self) -> KernelFunction:
        """The search of a key, from its first row again."""
        code = Code()
        code.assign(frame, of_search(k, FRAME))
        code.assign(bottom, of_search(k, BOTTOM))
        self.forget(code)
        for each in (*self.saved, *self.members):
            code.assign(each, 0.0 if each.type == FLOAT else 0)
        self.begin(code)
        self.pause(code)
        code.give(0)
        return code.function("search_anew", k, SEARCHES, FRAMES, COUNTERS, rare=True)


def _saved(column: int) -> ArrayElement:
    """A variable of the key's search."""
    return SEARCHES[k, Constant(column)]


def _read(place: ArrayElement, variable: Variable) -> Formula:
    return as_float(place) if variable.type == FLOAT else place


def _kept(variable: Variable, value: Formula) -> Formula:
    return as_bits(value) if variable.type == FLOAT else value


def _even(width: int) -> int:
    """Rows that seldom lie across two lines of the processor's cache."""
    return width if width <= 4 else -(-width // 4) * 4
