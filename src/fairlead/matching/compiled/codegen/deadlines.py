"""Relations that wait for their deadline.

A relation that waits is a row of WAITING: deadline, whether it was cancelled, its key, the next one of the key and the one
before, the event that completed it, and a copy of the node of each member, so that later events can still be compared with
them. HEAP holds the rows, the earliest deadline first, and among equal ones the earliest members. Whatever tells the time
(any event of a type that the subscription reads or hears, model/plans/clocks.py) first decides what was due before.

Takes: a shape. Gives: code that loop.py weaves into the loop; none for a shape in which nothing waits.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import (
    COUNTERS,
    FIRED_AT,
    FIRED_BORN,
    FIRED_DUE,
    FIRED_REF,
    HEAD,
    HEAP,
    KEYS,
    LINKS,
    NODES,
    OUT_AT,
    OUT_DUE,
    OUT_REF,
    QUEUES,
    TOLD,
    WAITING,
    WAITS,
    b,
    bound_to,
    e,
    found,
    free,
    fresh,
    i,
    k,
    last,
    tm,
    until,
    value_of,
    w,
)
from fairlead.matching.compiled.codegen.kernel_names import MEMBERS as FOUND
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.searches.search import Searching
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.shape import Lane, NotedQueue, Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    TRUTH,
    WHOLE,
    Array,
    ArrayElement,
    Constant,
    Formula,
    FunctionCall,
    SlotField,
    Variable,
    all_of,
    as_bits,
    call,
    intrinsic,
    negated,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction

DEADLINE, CANCELLED, KEY, NEXT, PREVIOUS, BORN, MEMBERS = range(7)
"""Columns of WAITING."""
_NAMES = ("DEADLINE", "CANCELLED", "KEY", "NEXT", "PREVIOUS", "BORN")
FIRING: tuple[Array, ...] = (HEAP, WAITING, COUNTERS, KEYS, NODES, LINKS, FIRED_AT, FIRED_REF, FIRED_DUE, FIRED_BORN)
"""The array parameters of `fire`."""
row, due, limit = variables("waiting_row due limit")
forbidden = Variable("forbidden", TRUTH)


def of_row(number: Formula, column: int) -> ArrayElement:
    """What a row of WAITING has in a column."""
    return WAITING[number, Constant(column, _NAMES[column] if column < MEMBERS else f"MEMBER{column - MEMBERS}")]


class Waiting:
    def __init__(self, shape: Shape, layout: Layout, searching: Searching) -> None:
        self.shape, self.layout, self.searching = shape, layout, searching

    def opening(self, code: Code) -> None:
        if self.shape.waits:
            code.assign(counter("FIRED"), 0)

    def closing(self, code: Code) -> None:
        """The end of a finite input: `until` says up to when nothing more comes."""
        if self.shape.waits:
            code.assign(free, self._fired(until, last))

    def _fired(self, time: Formula, word: Formula) -> FunctionCall:
        return call("fire", time, word, free, *FIRING)

    def on_time(self, code: Code, lane: Lane) -> None:
        """An event decides what is due: by its time, if it has one, and by the times that its batch carries (rounds.py)."""
        if not self.shape.waits:
            return
        waiting, earliest, told = counter("HEAP") > 0, of_row(HEAP[0], DEADLINE), TOLD.length > 0
        if not lane.timed:
            with code.when(all_of(told, waiting, earliest < TOLD[i])):
                code.assign(free, self._fired(TOLD[i], w))
            return
        code.assign(limit, tm)
        with code.when(all_of(told, TOLD[i] > tm)):
            code.assign(limit, TOLD[i])
        with code.when(all_of(waiting, earliest < limit)):
            code.assign(free, self._fired(limit, w))
        with code.when(tm > counter("SEEN")):
            code.assign(counter("SEEN"), tm)

    def cancel(self, code: Code, queue: int) -> None:
        """The event e, just noted, cancels what waits and what it forbids."""
        for clause in self.shape.noted:
            if clause.queue == queue and clause.waits:
                code.assign(row, KEYS[k, WAITS])
                with code.loop(row != NONE):
                    count_step(code)
                    for slot in range(self.shape.size):
                        code.assign(bound_to(slot), of_row(row, MEMBERS + slot))
                    code.assign(bound_to(clause.slot), e)
                    with code.when(self._forbids(clause)):
                        code.assign(of_row(row, CANCELLED), 1)
                    code.assign(row, of_row(row, NEXT))

    def _forbids(self, clause: NotedQueue) -> Formula:
        mine, anchor = clause.slot, clause.policy.anchor
        apart = intrinsic("abs", SlotField("TIME", mine) - SlotField("TIME", anchor))
        after = SlotField("REF", mine) > SlotField("REF", anchor)
        return self.searching.placed(all_of(after, apart <= clause.within, clause.condition), None)

    def complete(self, code: Code, bound: int | None) -> None:
        """A relation was found: copies of its nodes are made, for it may have to wait."""
        size, after = self.shape.size, self.layout.field("NEXT")
        for slot in range(size):
            self._copy(code, slot, slot == bound)
        code.assign(forbidden, FALSE)
        deadlines: list[Formula] = []
        for clause in self.shape.noted:
            if clause.waits:
                node = bound_to(clause.slot)
                deadlines.append(self.layout.field("TIME")[bound_to(clause.policy.anchor)] + clause.within)
                code.assign(node, QUEUES[self.searching.at(clause.queue), HEAD])
                with code.loop(all_of(node != NONE, negated(forbidden))):
                    count_step(code)
                    code.assign(forbidden, self._forbids(clause))
                    code.assign(node, after[node])
        code.assign(due, deadlines[0])
        for each in deadlines[1:]:
            with code.when(each > due):
                code.assign(due, each)
        with code.when(forbidden):
            self._free_copies(code)
        with code.or_when(counter("SEEN") > due):
            code.assign(OUT_AT[found], w)
            code.assign(OUT_DUE[found], due)
            for slot in range(size):
                code.assign(OUT_REF[found, slot], self.layout.field("REF")[bound_to(slot)])
            code.increase(found)
            self._free_copies(code)
        with code.otherwise():
            self._wait(code)

    def _copy(self, code: Code, slot: int, is_newest: bool) -> None:
        """A node of its own for a member."""
        node, field = bound_to(slot), Variable("field")
        with code.when(free != NONE):
            code.assign(node, free)
            code.assign(free, self.layout.field("NEXT")[node])
        with code.otherwise():
            code.assign(node, fresh)
            code.increase(fresh)
        if "BUCKET" in self.layout:  # a copy is in no chain of the hash index
            code.assign(self.layout.field("BUCKET")[node], NONE)
        if not is_newest:
            with code.count(field, self.layout.width, self.layout["REF"]):
                code.assign(NODES[node, field], NODES[FOUND[slot], field])
            return
        REF, TIME = self.layout.take("REF TIME")  # the newest event's values are in no node yet
        code.assign(REF[node], w)
        code.assign(TIME[node], tm)
        if "BITS" in self.layout:
            code.assign(self.layout.field("BITS")[node], b)
        for number, column in enumerate(self.shape.columns):
            if column.queue == self.shape.queue_of_slot[slot] and number in self.layout.place_of_column:
                value = value_of(number)
                code.assign(self.layout.column(number)[node], as_bits(value) if column.is_double else value)

    def _free_copies(self, code: Code) -> None:
        for slot in range(self.shape.size):
            code.assign(self.layout.field("NEXT")[bound_to(slot)], free)
            code.assign(free, bound_to(slot))

    def _wait(self, code: Code) -> None:
        """The relation as a row of WAITING."""
        code.assign(row, counter("WAIT_FREE"))
        with code.when(row != NONE):
            code.assign(counter("WAIT_FREE"), of_row(row, NEXT))
        with code.otherwise():
            code.assign(row, counter("WAIT_FRESH"))
            code.increase(counter("WAIT_FRESH"))
        code.assign(of_row(row, DEADLINE), due)
        code.assign(of_row(row, CANCELLED), 0)
        code.assign(of_row(row, KEY), k)
        code.assign(of_row(row, BORN), w)
        code.assign(of_row(row, NEXT), KEYS[k, WAITS])
        code.assign(of_row(row, PREVIOUS), NONE)
        with code.when(KEYS[k, WAITS] != NONE):
            code.assign(of_row(KEYS[k, WAITS], PREVIOUS), row)
        code.assign(KEYS[k, WAITS], row)
        for slot in range(self.shape.size):
            code.assign(of_row(row, MEMBERS + slot), bound_to(slot))
        code.call("push", row, HEAP, WAITING, COUNTERS, NODES)

    def functions(self) -> list[KernelFunction]:
        return [self._earlier(), _push(), self._fire()] if self.shape.waits else []

    def _earlier(self) -> KernelFunction:
        """Which of two rows is decided first."""
        one, other, code = Variable("one", WHOLE), Variable("other", WHOLE), Code()
        with code.when(of_row(one, DEADLINE) != of_row(other, DEADLINE)):
            code.give(of_row(one, DEADLINE) < of_row(other, DEADLINE))
        REF = self.layout.field("REF")
        for slot in range(self.shape.size):
            mine, its = REF[of_row(one, MEMBERS + slot)], REF[of_row(other, MEMBERS + slot)]
            with code.when(mine != its):
                code.give(mine < its)
        code.give(FALSE)
        return code.function("earlier", one, other, WAITING, NODES)

    def _fire(self) -> KernelFunction:
        """What is due before a time is decided, at the place `word`."""
        time, word, moved, at, down, before, after, n = variables("due_before word moved at down before after n")
        after_node, REF = self.layout.take("NEXT REF")
        code = Code()
        with code.loop(all_of(counter("HEAP") > 0, of_row(HEAP[0], DEADLINE) < time)):
            count_step(code)
            code.assign(row, HEAP[0])
            code.decrease(counter("HEAP"))
            code.assign(moved, HEAP[counter("HEAP")])
            code.assign(at, 0)
            with code.loop(2 * at + 1 < counter("HEAP")):
                code.assign(down, 2 * at + 1)
                with code.when(all_of(down + 1 < counter("HEAP"), _is_earlier(HEAP[down + 1], HEAP[down]))):
                    code.increase(down)
                with code.when(negated(_is_earlier(HEAP[down], moved))):
                    code.leave()
                code.assign(HEAP[at], HEAP[down])
                code.assign(at, down)
            code.assign(HEAP[at], moved)
            code.assign(k, of_row(row, KEY))
            code.together((before, of_row(row, PREVIOUS)), (after, of_row(row, NEXT)))
            with code.when(before == NONE):
                code.assign(KEYS[k, WAITS], after)
            with code.otherwise():
                code.assign(of_row(before, NEXT), after)
            with code.when(after != NONE):
                code.assign(of_row(after, PREVIOUS), before)
            with code.when(of_row(row, CANCELLED) == 0):
                code.assign(n, counter("FIRED"))
                code.assign(FIRED_AT[n], word)
                code.assign(FIRED_DUE[n], of_row(row, DEADLINE))
                code.assign(FIRED_BORN[n], of_row(row, BORN))
                for slot in range(self.shape.size):
                    code.assign(FIRED_REF[n, slot], REF[of_row(row, MEMBERS + slot)])
                code.increase(counter("FIRED"))
            for slot in range(self.shape.size):
                code.assign(after_node[of_row(row, MEMBERS + slot)], free)
                code.assign(free, of_row(row, MEMBERS + slot))
            code.assign(of_row(row, NEXT), counter("WAIT_FREE"))
            code.assign(counter("WAIT_FREE"), row)
        code.give(free)
        return code.function("fire", time, word, free, *FIRING, rare=True)


def _is_earlier(one: Formula, other: Formula) -> FunctionCall:
    return call("earlier", one, other, WAITING, NODES)


def _push() -> KernelFunction:
    """A row into the heap."""
    at, up = variables("at up")
    code = Code()
    code.assign(at, counter("HEAP"))
    code.increase(counter("HEAP"))
    with code.loop(at > 0):
        code.assign(up, (at - 1) >> 1)
        with code.when(negated(_is_earlier(row, HEAP[up]))):
            code.leave()
        code.assign(HEAP[at], HEAP[up])
        code.assign(at, up)
    code.assign(HEAP[at], row)
    return code.function("push", row, HEAP, WAITING, COUNTERS, NODES)
