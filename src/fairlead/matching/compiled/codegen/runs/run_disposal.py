"""What leaves the queues after a relation with runs, by the places of its members, which OUT_MEMBERS has.

Takes: a shape and its queues. Gives: code. Never: searches.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.kernel_names import HEAD, QUEUES, TAIL, c, found, place, step
from fairlead.matching.compiled.codegen.queues import Queues
from fairlead.matching.compiled.codegen.runs.run_words import OUT_LENGTHS, OUT_MEMBERS, end_of, first_of, written
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import HIGHEST, NONE, Variable, all_of, intrinsic, variables
from fairlead.model.plans.options import Disposal

(left_over,) = variables("left_over")


class RunDisposing:
    def __init__(self, shape: Shape, queues: Queues) -> None:
        self.shape, self.queues, self.disposal = shape, queues, shape.disposal
        self.numbers = [queue for queue in range(len(shape.needed)) if queue not in shape.table_columns]
        """The queues that are no tables: these stay as they are."""
        self.ref, self.back = queues.layout.take("REF PREV")

    def dispose(self, code: Code) -> None:
        """After the relation number `found`."""
        before: Variable = written
        for slot in range(self.shape.size):
            code.assign(first_of(slot), before)
            code.assign(end_of(slot), first_of(slot) + OUT_LENGTHS[found, slot])
            before = end_of(slot)
        for queue in self.numbers:
            if self.disposal is Disposal.INFIX_POSTFIX:
                self._first(code, queue)
                self._leave_end(code, queue)
            elif self.disposal is Disposal.PREFIX_INFIX:
                self._last(code, queue)
                self._leave_front(code, queue)
            elif self.disposal is not Disposal.INFIX:
                self._first(code, queue)
                with code.when(place < HIGHEST):
                    self._leave_front(code, queue)
        everywhere = self.disposal in (Disposal.PREFIX_INFIX, Disposal.INFIX_POSTFIX) and self.shape.overlapping
        if everywhere or self.disposal is Disposal.INFIX:
            for slot in (each for each in range(self.shape.size) if each not in self.shape.branch.read):
                for queue in self.numbers:
                    if self.shape.overlapping or self.shape.queue_of_slot[slot] == queue:
                        self._leave_members(code, slot, queue)

    def _first(self, code: Code, queue: int) -> None:
        """The place of the first member of a queue."""
        code.assign(place, HIGHEST)
        for slot in self.shape.slots_of(queue):
            with code.when(end_of(slot) > first_of(slot)):
                code.assign(place, intrinsic("min", place, OUT_MEMBERS[first_of(slot)]))

    def _last(self, code: Code, queue: int) -> None:
        code.assign(place, NONE)
        for slot in self.shape.slots_of(queue):
            with code.when(end_of(slot) > first_of(slot)):
                code.assign(place, intrinsic("max", place, OUT_MEMBERS[end_of(slot) - 1]))

    def _leave_front(self, code: Code, queue: int) -> None:
        """All up to a place, as one stretch: mostly it ends at the last event."""
        head, tail = QUEUES[self.queues.at(queue), HEAD], QUEUES[self.queues.at(queue), TAIL]
        with code.when(all_of(head != NONE, self.ref[head] <= place)):
            code.assign(c, tail)
            with code.loop(self.ref[c] > place):
                count_step(code)
                code.assign(c, self.back[c])
            self.queues.leave(code, queue, head, c)

    def _leave_end(self, code: Code, queue: int) -> None:
        """All from a place on."""
        tail = QUEUES[self.queues.at(queue), TAIL]
        with code.when(all_of(tail != NONE, self.ref[tail] >= place)):
            code.assign(c, tail)
            with code.loop(all_of(self.back[c] != NONE, self.ref[self.back[c]] >= place)):
                count_step(code)
                code.assign(c, self.back[c])
            self.queues.leave(code, queue, c, tail)

    def _leave_members(self, code: Code, slot: int, queue: int) -> None:
        """The members at a slot leave a queue, as far as they are in it."""
        code.assign(left_over, end_of(slot))
        code.assign(c, QUEUES[self.queues.at(queue), TAIL])
        with code.loop(all_of(c != NONE, left_over > first_of(slot))):
            count_step(code)
            code.assign(place, OUT_MEMBERS[left_over - 1])
            with code.when(self.ref[c] < place):
                code.decrease(left_over)
            with code.otherwise():
                code.assign(step, self.back[c])
                with code.when(self.ref[c] == place):
                    self.queues.leave(code, queue, c, c)
                    code.decrease(left_over)
                code.assign(c, step)
