"""What leaves the queues after a match, and what noted events can forbid nothing any more.

Takes: a shape and its queues. Gives: code. Never: searches.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.kernel_names import HEAD, MEMBERS, QUEUES, TAIL, anchor, c, place_of, w
from fairlead.matching.compiled.codegen.queues import Queues
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import NONE, all_of, any_of
from fairlead.model.plans.plan import Disposal


class Disposing:
    def __init__(self, shape: Shape, queues: Queues) -> None:
        self.shape, self.queues = shape, queues

    def with_newest(self, code: Code, newest: int) -> None:
        """What leaves after a match with the newest event, which is not queued yet."""
        if self.shape.overlapping:
            self._by_place(code, self.shape.newest_slot(newest))
            return
        bound, disposal = self.shape.newest_slot(newest), self.shape.disposal
        for queue in range(len(self.shape.needed)):
            oldest, last = self._ends(queue)
            head, tail = QUEUES[self.queues.at(queue), HEAD], QUEUES[self.queues.at(queue), TAIL]
            if disposal is Disposal.INFIX:
                for slot in self.shape.slots_of(queue):
                    if slot != bound:
                        self.queues.leave(code, queue, MEMBERS[slot], MEMBERS[slot])
            elif disposal is Disposal.INFIX_POSTFIX:
                if oldest != bound:
                    self.queues.leave(code, queue, MEMBERS[oldest], tail)
            else:
                up_to = last if disposal is Disposal.PREFIX_INFIX else oldest
                if up_to == bound:  # all that is queued stands before it
                    with code.when(head != NONE):
                        self.queues.leave(code, queue, head, tail)
                else:
                    self.queues.leave(code, queue, head, MEMBERS[up_to])

    def among_queued(self, code: Code) -> None:
        """What leaves after a match that was found among queued events."""
        if self.shape.overlapping:
            self._by_place(code, None)
            return
        disposal = self.shape.disposal
        for queue in range(len(self.shape.needed)):
            oldest, last = self._ends(queue)
            if disposal is Disposal.INFIX:
                for slot in self.shape.slots_of(queue):
                    self.queues.leave(code, queue, MEMBERS[slot], MEMBERS[slot])
            elif disposal is Disposal.INFIX_POSTFIX:
                self.queues.leave(code, queue, MEMBERS[oldest], QUEUES[self.queues.at(queue), TAIL])
            else:
                up_to = last if disposal is Disposal.PREFIX_INFIX else oldest
                self.queues.leave(code, queue, QUEUES[self.queues.at(queue), HEAD], MEMBERS[up_to])

    def _ends(self, queue: int) -> tuple[int, int]:
        """The slots of the oldest and of the latest member of a queue."""
        slots = self.shape.slots_of(queue)
        return (slots[-1], slots[0]) if self.shape.recent else (slots[0], slots[-1])

    def _by_place(self, code: Code, bound: int | None) -> None:
        """The same for events that can sit in several queues: by place in the order, and members leave every queue."""
        shape, disposal = self.shape, self.shape.disposal
        REF, PREV = self.queues.layout.take("REF PREV")
        places = [place_of(slot) for slot in range(shape.size)]
        for slot, place in enumerate(places):
            code.assign(place, w if slot == bound else REF[MEMBERS[slot]])
        for queue in range(len(shape.needed)):
            oldest, last = self._ends(queue)
            head, tail = QUEUES[self.queues.at(queue), HEAD], QUEUES[self.queues.at(queue), TAIL]
            if disposal in (Disposal.PREFIX_INFIX, Disposal.FIRST_PREFIX):
                up_to = last if disposal is Disposal.PREFIX_INFIX else oldest
                with code.loop(all_of(head != NONE, REF[head] <= places[up_to])):
                    self.queues.leave(code, queue, head, head)
            elif disposal is Disposal.INFIX_POSTFIX:
                with code.loop(all_of(tail != NONE, REF[tail] >= places[oldest])):
                    self.queues.leave(code, queue, tail, tail)
            if disposal is not Disposal.FIRST_PREFIX:
                for place in places:
                    code.assign(c, tail)
                    with code.loop(all_of(c != NONE, REF[c] > place)):
                        count_step(code)
                        code.assign(c, PREV[c])
                    with code.when(all_of(c != NONE, REF[c] == place)):
                        self.queues.leave(code, queue, c, c)

    def forget(self, code: Code) -> None:
        """Noted events that no queued anchor precedes leave: no relation to come can be forbidden by them."""
        REF = self.queues.layout.field("REF")
        for clause in self.shape.noted:
            head = QUEUES[self.queues.at(clause.queue), HEAD]
            code.assign(anchor, QUEUES[self.queues.at(self.shape.queue_of(clause.since)), HEAD])
            code.assign(c, head)
            with code.when(all_of(c != NONE, any_of(anchor == NONE, REF[c] < REF[anchor]))):
                with code.loop(all_of(head != NONE, any_of(anchor == NONE, REF[head] <= REF[anchor]))):
                    self.queues.leave(code, clause.queue, head, head)
