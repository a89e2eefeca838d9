"""What leaves the queues after the matches of one event, where several are found at once (ALL) or matched events can stay
(KEEP, UPTO, NONE): the newest event is queued first, and CHOSEN has a row of nodes for each relation.

By place in the order: of each queue the nodes up to (or from) a place leave, except those that KEEP names in some relation.

Takes: a shape and its queues. Gives: code. Never: searches.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.matching.compiled.codegen.kernel_names import CHOSEN, HEAD, QUEUES, TAIL, c, count, place, relation, stays, step
from fairlead.matching.compiled.codegen.node_layout import NodeField
from fairlead.matching.compiled.codegen.queues import Queues
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    HIGHEST,
    NONE,
    TRUE,
    Formula,
    all_of,
    any_of,
    negated,
    variables,
)
from fairlead.model.plans.options import Disposal

following, round_ = variables("following round")


class UnionDisposing:
    def __init__(self, shape: Shape, queues: Queues) -> None:
        self.shape, self.queues = shape, queues
        self.disposal, self.kept = shape.disposal, shape.branch.kept
        self.everywhere = self.disposal in (Disposal.PREFIX_INFIX, Disposal.INFIX, Disposal.INFIX_POSTFIX)

    def dispose(self, code: Code) -> None:
        """After `count` relations."""
        if self.disposal is Disposal.NONE:
            return
        queues = [queue for queue in range(len(self.shape.needed)) if queue not in self.shape.table_columns]
        if self.disposal.upto:
            first = self.disposal is Disposal.UPTO_FIRST
            self._extreme(code, self.shape.branch.upto, least=first)
            for queue in queues:
                self._leave_front(code, queue, lambda ref: ref < place)
            return
        for queue in queues:
            mine = [slot for slot in self.shape.slots_of(queue) if slot not in self.kept]
            if mine:
                self._dispose(code, queue, mine)
        if self.everywhere and (self.shape.overlapping or self.disposal is Disposal.INFIX):
            self._leave_members(code, queues)

    def _dispose(self, code: Code, queue: int, mine: list[int]) -> None:
        """The stretch of a queue that leaves; `mine`: its slots that are not kept."""
        if self.disposal is Disposal.INFIX:
            return
        if self.disposal is Disposal.INFIX_POSTFIX:
            self._extreme(code, mine, least=True)
            self._leave_end(code, queue)
            return
        if self.disposal is Disposal.ADVANCE:
            self._advance(code, mine)
        else:
            self._extreme(code, mine, least=self.disposal is Disposal.FIRST_PREFIX)
        self._leave_front(code, queue, lambda ref: ref <= place)

    def _ref(self, slot: int) -> Formula:
        """Where the member of a relation stands."""
        return self.queues.layout.field("REF")[CHOSEN[relation, slot]]

    def _extreme(self, code: Code, slots: tuple[int, ...] | list[int], least: bool) -> None:
        """The first or the last place of the members at some slots."""
        code.assign(place, HIGHEST if least else NONE)
        with code.count(relation, count):
            for slot in slots:
                with code.when(self._ref(slot) < place if least else self._ref(slot) > place):
                    code.assign(place, self._ref(slot))

    def _advance(self, code: Code, slots: list[int]) -> None:
        """The place of the n-th member, or of the last."""
        code.assign(place, NONE)
        with code.count(round_, self.shape.subscription.advance):
            code.assign(following, HIGHEST)
            with code.count(relation, count):
                for slot in slots:
                    with code.when(all_of(self._ref(slot) > place, self._ref(slot) < following)):
                        code.assign(following, self._ref(slot))
            with code.when(following == HIGHEST):
                code.leave()
            code.assign(place, following)

    def _leave_front(self, code: Code, queue: int, passed: Callable[[Formula], Formula]) -> None:
        self._leave_from(code, queue, QUEUES[self.queues.at(queue), HEAD], self.queues.layout.field("NEXT"), passed)

    def _leave_end(self, code: Code, queue: int) -> None:
        tail, before = QUEUES[self.queues.at(queue), TAIL], self.queues.layout.field("PREV")
        self._leave_from(code, queue, tail, before, lambda ref: ref >= place)

    def _leave_from(self, code: Code, queue: int, end: Formula, links: NodeField, passed: Callable[[Formula], Formula]) -> None:
        REF = self.queues.layout.field("REF")
        code.assign(c, end)
        with code.loop(all_of(c != NONE, passed(REF[c]))):
            count_step(code)
            code.assign(step, links[c])
            self._leave(code, queue)
            code.assign(c, step)

    def _leave(self, code: Code, queue: int, gone: bool = False) -> None:
        """The node c leaves, unless KEEP names its event in one of the relations. `gone`: it loses its place."""
        REF = self.queues.layout.field("REF")
        kept = [slot for slot in self.kept if self.shape.overlapping or self.shape.queue_of_slot[slot] == queue]
        if not kept:
            self._drop(code, queue, gone)
            return
        code.assign(stays, FALSE)
        with code.count(relation, count):
            with code.when(any_of(*(self._ref(slot) == REF[c] for slot in kept))):
                code.assign(stays, TRUE)
        with code.when(negated(stays)):
            self._drop(code, queue, gone)

    def _drop(self, code: Code, queue: int, gone: bool) -> None:
        self.queues.leave(code, queue, c, c)
        if gone:
            code.assign(self.queues.layout.field("REF")[c], NONE)

    def _leave_members(self, code: Code, queues: list[int]) -> None:
        """Members leave every queue that they are in. A place is looked for from the end of a queue."""
        REF, PREV = self.queues.layout.take("REF PREV")
        number, stay = round_, {*self.kept, *self.shape.branch.read}
        if not self.shape.overlapping:
            for slot in (each for each in range(self.shape.size) if each not in stay):
                with code.count(number, count):
                    code.assign(c, CHOSEN[number, slot])
                    with code.when(REF[c] != NONE):  # it has not left as a member of another relation
                        self._leave(code, self.shape.queue_of_slot[slot], gone=True)
            return
        for slot in range(self.shape.size):
            if slot in stay:
                continue
            with code.count(number, count):
                code.assign(place, REF[CHOSEN[number, slot]])
                for queue in queues:
                    code.assign(c, QUEUES[self.queues.at(queue), TAIL])
                    with code.loop(all_of(c != NONE, REF[c] > place)):
                        count_step(code)
                        code.assign(c, PREV[c])
                    with code.when(all_of(c != NONE, REF[c] == place)):
                        self._leave(code, queue)
