"""What becomes of a match: its members by slot, and the rows that leave.

Takes: a shape, its layout and the state of a search. Gives: code. Never: searches.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import (
    COUNT,
    HEAD,
    MEMBERS,
    OUT_AT,
    OUT_BORN,
    OUT_DUE,
    OUT_LENGTH,
    OUT_REF,
    OUT_START,
    QUEUES,
    TAIL,
    k,
    w,
)
from fairlead.matching.compiled.codegen.sequences.search_state import SearchState, top
from fairlead.matching.compiled.codegen.sequences.sequence_deadlines import fired
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import NONE, Formula, all_of, any_of, negated, variables
from fairlead.model.limits import LIMITS
from fairlead.model.plans.options import Disposal

number, at, gone, step, place, total, last = variables("number at gone gone_next out_place total last_gone")


class SequenceMatches:
    def __init__(self, shape: Shape, layout: SequenceLayout, state: SearchState) -> None:
        self.shape, self.layout, self.state = shape, layout, state
        self.before, self.taken, self.ref = (layout.field(name) for name in ("BEFORE", "TAKEN", "REF"))
        self.next = layout.field("NEXT")

    def deliver(self, code: Code) -> None:
        """The relation of the rows that were taken. Without room for it the search pauses at this step."""
        size = self.shape.size
        rows = OUT_REF.length - counter("MEMBERS") >= QUEUES[k, COUNT]
        with code.when(negated(all_of(counter("FOUND") < OUT_AT.length, rows))):
            code.assign(counter("FULL"), 1)
            code.leave()
        code.increase(counter("DECIDED"))
        with code.when(counter("DECIDED") > LIMITS.relations_per_event_max):
            code.assign(counter("EXCEEDED"), 1)
            code.assign(counter("FULL"), 1)
            code.leave()
        code.assign(number, counter("FOUND"))
        code.assign(OUT_AT[number], w)
        code.assign(OUT_DUE[number], fired)
        code.assign(OUT_START[number], counter("START"))
        code.assign(OUT_BORN[number], counter("BORN"))
        # 1. how many each slot has
        for slot in range(size):
            code.assign(OUT_LENGTH[number, slot], 0)
        code.assign(at, top)
        with code.loop(at != NONE):
            count_step(code)
            code.increase(OUT_LENGTH[number, self.taken[at]])
            code.assign(at, self.before[at])
        # 2. where the members of each end
        code.assign(place, counter("MEMBERS"))
        for slot in range(size):
            code.increase(place, OUT_LENGTH[number, slot])
            code.assign(MEMBERS[slot], place)
        code.assign(total, place - counter("MEMBERS"))
        code.assign(counter("MEMBERS"), place)
        # 3. from the last to the first
        code.assign(at, top)
        with code.loop(at != NONE):
            code.decrease(MEMBERS[self.taken[at]])
            code.assign(OUT_REF[MEMBERS[self.taken[at]]], self.ref[at])
            code.assign(at, self.before[at])
        code.increase(counter("FOUND"))

    def dispose(self, code: Code) -> None:
        """What leaves: rows up to a member, or up to before one."""
        subscription = self.shape.subscription
        match subscription.disposal:
            case Disposal.FIRST_PREFIX:
                self.drop_first(code)
            case Disposal.ADVANCE:
                self._drop_up_to(code, self._nth(code, subscription.advance or 1))
            case Disposal.UPTO_FIRST | Disposal.UPTO_LAST:
                self._drop_before(code, subscription.disposal is Disposal.UPTO_LAST)
            case _:
                self._drop_up_to(code, top)

    def _nth(self, code: Code, n: int) -> Formula:
        """The n-th member, or the last."""
        code.assign(last, top)
        with code.loop(total > n):
            count_step(code)
            code.assign(last, self.before[last])
            code.decrease(total)
        return last

    def _drop_before(self, code: Code, is_last: bool) -> None:
        """What stands before the first or the last member of an element; at least the first row."""
        code.assign(at, top)
        code.assign(last, NONE)
        named = any_of(*(self.taken[at] == slot for slot in self.shape.branch.upto))
        with code.loop(all_of(at != NONE, last == NONE) if is_last else at != NONE):
            count_step(code)
            with code.when(named):
                code.assign(last, at)
            code.assign(at, self.before[at])
        with code.when(QUEUES[k, HEAD] == last):
            code.assign(last, NONE)
        self.drop_first(code)
        with code.loop(all_of(last != NONE, QUEUES[k, HEAD] != last)):
            count_step(code)
            self.drop_first(code)

    def _drop_up_to(self, code: Code, member: Formula) -> None:
        """The first rows, up to this one."""
        code.assign(last, member)
        code.assign(gone, QUEUES[k, HEAD])
        code.assign(step, gone)
        code.assign(total, 1)
        with code.loop(step != last):
            count_step(code)
            code.assign(step, self.next[step])
            code.increase(total)
        code.assign(QUEUES[k, HEAD], self.next[last])
        with code.when(QUEUES[k, HEAD] == NONE):
            code.assign(QUEUES[k, TAIL], NONE)
        code.assign(self.next[last], counter("FREE"))
        code.assign(counter("FREE"), gone)
        code.decrease(QUEUES[k, COUNT], total)
        code.decrease(counter("QUEUED"), total)

    def drop_first(self, code: Code) -> None:
        """The first row leaves."""
        code.assign(gone, QUEUES[k, HEAD])
        code.assign(QUEUES[k, HEAD], self.next[gone])
        with code.when(QUEUES[k, HEAD] == NONE):
            code.assign(QUEUES[k, TAIL], NONE)
        code.assign(self.next[gone], counter("FREE"))
        code.assign(counter("FREE"), gone)
        code.decrease(QUEUES[k, COUNT])
        code.decrease(counter("QUEUED"))
