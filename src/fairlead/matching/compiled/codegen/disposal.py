"""What leaves the queues after a match, and what noted events can forbid nothing any more.

Takes: a shape and its queues. Gives: code. Never: searches.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.kernel_names import (
    CLOCK,
    COUNT,
    FLAGS,
    HEAD,
    KEYS,
    MEMBERS,
    QUEUES,
    TAIL,
    anchor,
    c,
    k,
    place_of,
    w,
    within,
)
from fairlead.matching.compiled.codegen.queues import LOOSE, Queues
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.access import can_be_loose
from fairlead.matching.compiled.planning.shape import NotedQueue, Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import NONE, Constant, all_of, any_of
from fairlead.model.plans.options import Disposal


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
            oldest = self._oldest(queue)
            head, tail = QUEUES[self.queues.at(queue), HEAD], QUEUES[self.queues.at(queue), TAIL]
            if disposal is Disposal.INFIX:
                for slot in self.shape.slots_of(queue):
                    if slot != bound:
                        self.queues.leave(code, queue, MEMBERS[slot], MEMBERS[slot])
            elif disposal is Disposal.INFIX_POSTFIX:
                if oldest != bound:
                    self.queues.leave(code, queue, MEMBERS[oldest], tail)
            else:
                up_to = self._up_to(queue)
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
            oldest = self._oldest(queue)
            if disposal is Disposal.INFIX:
                for slot in self.shape.slots_of(queue):
                    self.queues.leave(code, queue, MEMBERS[slot], MEMBERS[slot])
            elif disposal is Disposal.INFIX_POSTFIX:
                self.queues.leave(code, queue, MEMBERS[oldest], QUEUES[self.queues.at(queue), TAIL])
            else:
                self.queues.leave(code, queue, QUEUES[self.queues.at(queue), HEAD], MEMBERS[self._up_to(queue)])

    def _up_to(self, queue: int) -> int:
        """The slot of the last member that leaves with all before it."""
        slots = sorted(self.shape.slots_of(queue), reverse=self.shape.recent)
        counts = {Disposal.FIRST_PREFIX: 1, Disposal.ADVANCE: self.shape.subscription.advance}
        return slots[min(counts.get(self.shape.disposal, len(slots)), len(slots)) - 1]

    def leaves_newest(self, queue: int) -> bool:
        """Whether the newest event, a member, leaves with the match."""
        if self.shape.disposal in (Disposal.FIRST_PREFIX, Disposal.ADVANCE):
            return self._up_to(queue) == self.shape.newest_slot(queue)
        return True

    def _oldest(self, queue: int) -> int:
        """The slot of the oldest member of a queue."""
        slots = self.shape.slots_of(queue)
        return slots[-1] if self.shape.recent else slots[0]

    def _by_place(self, code: Code, bound: int | None) -> None:
        """The same for events that can sit in several queues: by place in the order, and members leave every queue."""
        shape, disposal = self.shape, self.shape.disposal
        REF, PREV = self.queues.layout.take("REF PREV")
        places = [place_of(slot) for slot in range(shape.size)]
        for slot, place in enumerate(places):
            code.assign(place, w if slot == bound else REF[MEMBERS[slot]])
        for queue in range(len(shape.needed)):
            oldest = self._oldest(queue)
            head, tail = QUEUES[self.queues.at(queue), HEAD], QUEUES[self.queues.at(queue), TAIL]
            if disposal in (Disposal.PREFIX_INFIX, Disposal.FIRST_PREFIX, Disposal.ADVANCE):
                with code.loop(all_of(head != NONE, REF[head] <= places[self._up_to(queue)])):
                    self.queues.leave(code, queue, head, head)
            elif disposal is Disposal.INFIX_POSTFIX:
                with code.loop(all_of(tail != NONE, REF[tail] >= places[oldest])):
                    self.queues.leave(code, queue, tail, tail)
            if disposal not in (Disposal.FIRST_PREFIX, Disposal.ADVANCE):
                for place in places:
                    code.assign(c, tail)
                    with code.loop(all_of(c != NONE, REF[c] > place)):
                        count_step(code)
                        code.assign(c, PREV[c])
                    with code.when(all_of(c != NONE, REF[c] == place)):
                        self.queues.leave(code, queue, c, c)

    def forget(self, code: Code) -> None:
        """Noted events by which no relation to come can be forbidden leave (noted_events.py)."""
        REF = self.queues.layout.field("REF")
        for clause in self.shape.noted:
            if clause.policy.before:
                self._forget_before(code, clause)
                continue
            head = QUEUES[self.queues.at(clause.queue), HEAD]
            code.assign(anchor, QUEUES[self.queues.at(self.shape.queue_of(clause.policy.anchor)), HEAD])
            code.assign(c, head)
            with code.when(all_of(c != NONE, any_of(anchor == NONE, REF[c] < REF[anchor]))):
                with code.loop(all_of(head != NONE, any_of(anchor == NONE, REF[head] <= REF[anchor]))):
                    self.queues.leave(code, clause.queue, head, head)
        if can_be_loose(self.shape) and any(each.policy.before for each in self.shape.noted):  # all that a key has may be noted
            counts = [QUEUES[self.queues.at(queue), COUNT] == 0 for queue in range(len(self.shape.needed))]
            with code.when(all_of(KEYS[k, FLAGS] & LOOSE, *counts)):
                code.change(KEYS[k, FLAGS], "&", ~Constant(LOOSE))

    def _forget_before(self, code: Code, clause: NotedQueue) -> None:
        """Of those noted before a member, the oldest leave."""
        policy, head = clause.policy, QUEUES[self.queues.at(clause.queue), HEAD]
        REF, NEXT = self.queues.layout.take("REF NEXT")
        if policy.decisive and policy.timed:
            code.assign(anchor, QUEUES[self.queues.at(self.shape.queue_of(policy.anchor)), HEAD])
            with code.loop(QUEUES[self.queues.at(clause.queue), COUNT] > 1):
                if not policy.early:
                    with code.when(all_of(anchor != NONE, REF[NEXT[head]] >= REF[anchor])):
                        code.leave()
                self.queues.leave(code, clause.queue, head, head)
        if policy.horizon_us is not None:
            time = self.queues.layout.field("TIME")
            with code.loop(all_of(head != NONE, time[head] < KEYS[k, CLOCK] - within - clause.within)):
                self.queues.leave(code, clause.queue, head, head)
