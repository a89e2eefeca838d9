"""Looking for a noted event that forbids a relation: after one member and before another, or before one.

Takes: a clause, and how its queue and the members are reached. Gives: code that looks, and the condition that it has found one,
or none. Never: notes an event (queue_entry.py), or decides an absence (deadlines.py).
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.matching.compiled.codegen.kernel_names import HEAD, LINKS, NODES, QUEUES, ROOT, TAIL, TREES, bound_to, w
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.shape import NotedQueue
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import NONE, Formula, SlotField, all_of, any_of, call, negated


class NotedSearch:
    """`at`: the place of a queue of the key. `placed`: a condition on members, where the newest event is one of them."""

    def __init__(self, layout: Layout, at: Callable[[int], Formula], placed: Callable[[Formula, int | None], Formula]) -> None:
        self._layout, self._at, self._placed = layout, at, placed
        self._ref = layout.field("REF")

    def unspoilt(self, code: Code, clause: NotedQueue, newest: int | None) -> Formula:
        """Whether no noted event forbids the members, after looking for one."""
        assert clause.until is not None
        if clause.since is None:
            return self._nothing_before(code, clause, clause.until, newest)
        at, node = self._at(clause.queue), bound_to(clause.slot)
        left, right = (self._placed(SlotField("REF", each), newest) for each in (clause.since, clause.until))
        code.assign(node, call("after", QUEUES[at, HEAD], left, QUEUES[at, ROOT], NODES, LINKS, TREES))
        spoils = self._placed(clause.condition, newest)
        with code.loop(all_of(node != NONE, self._ref[node] < right, negated(spoils))):
            count_step(code)
            code.assign(node, self._layout.field("NEXT")[node])
        return any_of(node == NONE, self._ref[node] >= right)

    def _nothing_before(self, code: Code, clause: NotedQueue, until: int, newest: int | None) -> Formula:
        """The same for events before a member, from the last of them backwards."""
        at, node, back = self._at(clause.queue), bound_to(clause.slot), self._layout.field("PREV")
        right = self._placed(SlotField("REF", until), newest)
        spoils = self._placed(clause.condition, newest)
        code.assign(node, call("after", QUEUES[at, HEAD], right - 1, QUEUES[at, ROOT], NODES, LINKS, TREES))
        with code.when(node == NONE):
            code.assign(node, QUEUES[at, TAIL])
        with code.otherwise():
            code.assign(node, back[node])
        return negated(self._spoilt_from(code, clause, spoils))

    def barred(self, code: Code, clause: NotedQueue, newest: int) -> Formula:
        """Whether a noted event forbids every relation with the newest event, which is its anchor."""
        node, back = bound_to(clause.slot), self._layout.field("PREV")
        code.assign(node, QUEUES[self._at(clause.queue), TAIL])
        with code.when(all_of(node != NONE, self._ref[node] == w)):
            code.assign(node, back[node])
        return self._spoilt_from(code, clause, self._placed(clause.condition, newest))

    def _spoilt_from(self, code: Code, clause: NotedQueue, spoils: Formula) -> Formula:
        """Whether the node of a clause spoils, or one before it; of those that are decisive the last alone matters."""
        node = bound_to(clause.slot)
        if clause.policy.decisive:
            return all_of(node != NONE, spoils)
        with code.loop(all_of(node != NONE, negated(spoils))):
            count_step(code)
            code.assign(node, self._layout.field("PREV")[node])
        return node != NONE
