"""The searches of a branch: nested loops over the slots, each over the events that its index gives.

The newest event is bound to its slot beforehand and not queued yet: its values are the arguments `word` (its place), `bits`,
`bucket` (its number in the hash index) and `value0, value1, …`. For `MATCH A a AND B b WHERE a.x < b.x` under FIRST, when a B
arrives:

    def search_1(key, value1, queues, …, members):
        sought0 = sortable(value1)
        if least_keys[key * 2 + 0] < sought0:
            node0 = first_lt(key * 2 + 0, sought0, queues, …)
        …
        while node0 != -1:
            members[0] = node0
            return True
        return False

Where THEN orders slots that are still open, the lowest event that each can have follows from those before it (under RECENT
the highest from those after it): `lowest0, lowest1, …` are found first, and if one is missing there is no relation at all.

Takes: a shape, its accesses and layout. Gives: functions of a kernel. Never: changes a queue.
"""

from __future__ import annotations

from contextlib import ExitStack

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.indexes.hash_index import HashIndex
from fairlead.matching.compiled.codegen.indexes.ordered_index import key_of, sought
from fairlead.matching.compiled.codegen.indexes.queue_row import row_name
from fairlead.matching.compiled.codegen.kernel_names import (
    CHAIN_LEAST,
    CHAIN_LINKS,
    CHAINS,
    CHOSEN,
    COUNTERS,
    HEAD,
    LEAST_KEYS,
    LINKS,
    MEMBERS,
    NODES,
    PLANS,
    QUEUES,
    RANKS,
    ROOT,
    ROWS,
    SCRATCH,
    TAIL,
    TREES,
    b,
    bk,
    bound_to,
    chain_of,
    count,
    found,
    free,
    fresh,
    k,
    least_of,
    lowest_of,
    sought_at,
    tm,
    value_of,
    w,
    walked,
)
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.runs.gathering import Gathering
from fairlead.matching.compiled.codegen.runs.run_words import DIFFERENT, KEPT, OUT_LENGTHS, OUT_MEMBERS, end, written
from fairlead.matching.compiled.codegen.searches.noted_search import NotedSearch
from fairlead.matching.compiled.codegen.searches.reduced_search import Semijoins
from fairlead.matching.compiled.codegen.searches.slot_order import SlotOrder
from fairlead.matching.compiled.machine_code.interruption import count_step, is_halted
from fairlead.matching.compiled.planning.access import Access, Accesses, Way
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.contents import replaced, uses_of
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    HIGHEST,
    NONE,
    TRUE,
    Argument,
    Array,
    Constant,
    Formula,
    FunctionCall,
    NumberComparison,
    SlotColumn,
    SlotField,
    Variable,
    all_of,
    any_of,
    as_float,
    bit,
    call,
    negated,
)
from fairlead.matching.compiled.representation.statements import KernelFunction

STATE: tuple[Variable | Array, ...] = (
    free, fresh, QUEUES, CHAINS, CHAIN_LEAST, LEAST_KEYS, NODES, LINKS, TREES, CHAIN_LINKS, ROWS, COUNTERS, RANKS,
    SCRATCH, PLANS, MEMBERS, CHOSEN, found, written, OUT_MEMBERS, OUT_LENGTHS, DIFFERENT, KEPT,
)  # fmt: skip


class Searching:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout) -> None:
        self.shape, self.accesses, self.layout = shape, accesses, layout
        self.end = TAIL if shape.recent else HEAD
        self.step, self.ref = layout.field("PREV" if shape.recent else "NEXT"), layout.field("REF")
        self.order = SlotOrder(shape, self.ref)
        self.calls: dict[str, FunctionCall] = {}
        self.called: set[str] = set()
        """The functions that searches call."""
        self.nothing: Formula = count if shape.every else Constant(0) if shape.runs else FALSE
        """What a search gives that has found nothing, or all."""
        self.hash_index = HashIndex(shape, accesses, layout)
        self.semijoins = Semijoins(shape, accesses, layout)
        self.noted = NotedSearch(layout, self.at, self.placed)
        self.gathering = Gathering(shape, accesses, layout, self.placed)

    def functions(self) -> list[KernelFunction]:
        """The search functions; `calls` then says how each is called."""
        made = []
        for newest in self.accesses.searches():
            name, code = "search_free" if newest is None else f"search_{newest}", Code()
            self._body(code, newest)
            own = [value_of(at) for at, column in enumerate(self.shape.columns) if column.queue == newest]
            given: list[Variable | Array] = [k, *((w,) if newest is None else (w, b, bk, tm, *own)), *STATE]
            uses = uses_of(code.body)
            self.called |= uses.calls
            read: list[Argument] = [each for each in given if each.name in uses.names]
            self.calls[name] = call(name, *read)
            made.append(code.function(name, *(each for each in given if each.name in uses.names)))
        return made

    def placed(self, condition: Formula, newest: int | None) -> Formula:
        """A condition where a search has its events: those of open slots in nodes, the newest event's values as arguments."""
        bound = None if newest is None else self.shape.newest_slot(newest)

        def place(part: SlotColumn | SlotField) -> Formula:
            if isinstance(part, SlotField):
                if part.slot == bound:
                    return {"REF": w, "BITS": b, "TIME": tm}[part.field]
                return self.layout.field(part.field)[bound_to(part.slot)]
            if part.slot == bound:
                return value_of(part.column)
            stored = self.layout.column(part.column)[bound_to(part.slot)]
            return as_float(stored) if self.shape.columns[part.column].is_double else stored

        made: Formula = replaced(condition, place)
        return made

    def at(self, queue: int) -> Formula:
        """The number of a queue of the key."""
        return k * self.shape.stride + queue

    def _body(self, code: Code, newest: int | None) -> None:
        """Loop in loop, down to a relation."""
        if self.shape.every:
            code.assign(count, 0)
        self._opening(code, newest)
        self.semijoins.opening(code, newest)
        if code.is_ended:
            return  # it is reduced at once
        with ExitStack() as blocks:
            inner = False
            for slot in self.shape.singles:
                access = self.accesses.of(slot, newest)
                self._open(code, blocks, access, newest, inner)
                inner = inner or access.way not in (Way.NEWEST, Way.NEIGHBOUR)
            if self.shape.runs:
                self.gathering.begin(code, blocks, newest)
            for clause in self.shape.noted:
                if clause.searched:
                    blocks.enter_context(code.when(self.noted.unspoilt(code, clause, newest)))
            for slot in () if self.shape.runs else sorted(self.order.opened(newest)):
                code.assign(CHOSEN[count, slot] if self.shape.every else MEMBERS[slot], bound_to(slot))
            if self.shape.runs:
                code.give(end)
            elif self.shape.every:
                code.increase(count)
                with code.when(count >= self.shape.relations_max):
                    code.give(count)
            else:
                code.give(TRUE)
        if not code.is_ended:
            code.give(self.nothing)

    def _open(self, code: Code, blocks: ExitStack, access: Access, newest: int | None, inner: bool) -> None:
        """The loop of a slot, and in it the tests of its events; what follows goes inside. What follows the tests is
        written as the blocks are closed, the last first. `inner`: there is a loop around it."""
        slot, once = access.slot, access.way is Way.NEIGHBOUR
        tests = [self.placed(each.condition, newest) for each in self.accesses.tests_left(slot, newest)]
        tests += self.order.tests(slot, newest)
        if access.way is Way.NEWEST:
            if tests:
                blocks.enter_context(code.when(all_of(*tests)))
            return
        if slot in self.accesses.chosen_bits:
            tests.insert(0, bit(self.layout.field("BITS")[bound_to(slot)], slot))
        bound = self.accesses.chain_bound(slot, newest)
        form = self.accesses.chained[self.shape.queue_of_slot[slot]].form if bound is not None else None
        if bound is not None and form is not None and not self._along(slot, newest):
            tests.insert(0, self.hash_index.may_satisfy(bound_to(slot), sought_at(slot), bound, form))
        self._start(code, access, newest)
        bounded = inner and not once and newest in self.semijoins.first
        last = (
            slot == max(self.order.opened(newest))
            and not any(each.searched for each in self.shape.noted)
            and not self.shape.runs
        )
        innermost = last and not once and not bounded
        if innermost:  # it only counts: asking would cost it a tenth
            code.assign(walked, 0)
            blocks.callback(code.decrease, counter("STEPS"), walked)
        least = self._chain_key(slot, newest)
        if least is not None:
            code.assign(least_of(slot), HIGHEST)
            blocks.callback(self._note_least, code, slot)
        blocks.enter_context(code.loop(bound_to(slot) != NONE))
        if least is not None:
            with code.when(least < least_of(slot)):
                code.assign(least_of(slot), least)
        if innermost:
            code.increase(walked)
        elif bounded:
            self.semijoins.step(code, newest)
        elif not once:
            count_step(code)
            with code.when(is_halted()):
                code.give(self.nothing)
        self.order.end_loop(code, slot, newest)
        final = once or not self.accesses.depends(slot, newest)  # one that passes is enough
        if once:
            blocks.callback(_leave, code)
        elif tests or not final:
            blocks.callback(self._advance, code, access)
        if tests:
            blocks.enter_context(code.when(all_of(*tests)))
        if final and not once:
            blocks.callback(_leave, code)

    def _opening(self, code: Code, newest: int | None) -> None:
        """What the newest event alone decides, and the ends between which THEN leaves the open slots."""
        if newest is not None:
            bound = self.shape.newest_slot(newest)
            if bound in self.accesses.chosen_bits:
                with code.when(negated(bit(b, bound))):
                    code.give(self.nothing)
            for each in self.accesses.tests_at(-1, newest):
                with code.when(negated(self.placed(each.condition, newest))):
                    code.give(self.nothing)
        timely = self.order.timely(newest)
        for slot in timely:
            lowest, at = lowest_of(slot), self.at(self.shape.queue_of_slot[slot])
            if self.shape.follows(slot) and slot - 1 in timely:
                code.assign(lowest, self.step[lowest_of(slot - 1)])
            else:
                code.assign(lowest, QUEUES[at, self.end])
            for other in self.order.ahead(slot, newest):
                code.assign(lowest, self._past(lowest, lowest_of(other), at))
            with code.when(lowest == NONE):
                code.give(self.nothing)

    def _past(self, node: Variable, other: Variable, at: Formula) -> FunctionCall:
        """From a node on, the first that stands after another one (before it under RECENT)."""
        return call("past", node, self.ref[other], QUEUES[at, ROOT], NODES, LINKS, TREES)

    # The loop of a slot

    def _start(self, code: Code, access: Access, newest: int | None) -> None:
        """The first node of a slot's loop."""
        shape, slot, node = self.shape, access.slot, bound_to(access.slot)
        queue, follows = shape.queue_of_slot[slot], shape.follows(slot) and not self.order.after_newest(slot, newest)
        where, once = self.at(queue), access.way is Way.NEIGHBOUR
        if access.way is Way.HASH:
            self._start_chain(code, access, newest)
            return
        if once and not shape.follows(slot):
            code.assign(node, QUEUES[where, TAIL])
            for _ in range(shape.newest_slot(queue) - slot - 1):
                code.assign(node, self.layout.field("PREV")[node])
            return
        timely = slot in self.order.timely(newest)
        if follows:
            code.assign(node, self.step[bound_to(slot - 1)])
        elif timely and not once:
            code.assign(node, lowest_of(slot))
        else:
            code.assign(node, QUEUES[where, self.end])
        if not once:
            if follows and timely:
                behind = NumberComparison(self.ref[node], ">" if shape.recent else "<", self.ref[lowest_of(slot)])
                with code.when(all_of(node != NONE, behind)):
                    code.assign(node, lowest_of(slot))
            for other in self.order.ahead(slot, newest):
                if other < slot:
                    code.assign(node, self._past(node, bound_to(other), where))
        if access.bound is not None:
            self._seek(code, access, newest, timely)

    def _seek(self, code: Code, access: Access, newest: int | None, timely: bool) -> None:
        """From there on, the first whose key the ordered index finds."""
        assert access.bound is not None
        shape, slot, node, bound = self.shape, access.slot, bound_to(access.slot), access.bound
        column, where = shape.columns[bound.column], self.at(shape.queue_of_slot[slot])
        value, x = self.placed(bound.value, newest), sought_at(slot)
        code.assign(x, key_of(value, column.is_double, bound.sign))
        if shape.follows(slot) or timely:
            code.assign(node, sought(bound.sign, node, x, QUEUES[where, ROOT]))
        else:  # nothing in the queue is below its least key: LEAST_KEYS has it, or something below it
            with code.when(NumberComparison(LEAST_KEYS[where], "<=" if bound.sign.endswith("=") else "<", x)):
                if shape.recent:
                    code.assign(node, sought(bound.sign, node, x, QUEUES[where, ROOT]))
                else:
                    arrays = QUEUES, NODES, LINKS, TREES, ROWS, COUNTERS
                    code.assign(node, call(row_name(bound.sign), where, x, *arrays))
                with code.when(node == NONE):
                    code.assign(LEAST_KEYS[where], call("least", where, QUEUES, NODES, LINKS, TREES))
            with code.otherwise():
                code.assign(node, NONE)
        if column.is_double:
            with code.when(value != value):
                code.assign(node, NONE)

    def _advance(self, code: Code, access: Access) -> None:
        """The next node of a slot's loop, unless what is inside has returned a relation."""
        if code.is_ended:
            return
        node = bound_to(access.slot)
        if access.way is Way.HASH:
            code.assign(node, self.hash_index.step(node))
        elif access.bound is None:
            code.assign(node, self.step[node])
        else:
            root = QUEUES[self.at(self.shape.queue_of_slot[access.slot]), ROOT]
            code.assign(node, sought(access.bound.sign, self.step[node], sought_at(access.slot), root))

    def _start_chain(self, code: Code, access: Access, newest: int | None) -> None:
        """Along the events of the queue that have the partner's number."""
        shape, slot, node = self.shape, access.slot, bound_to(access.slot)
        follows = shape.follows(slot) and not self.order.after_newest(slot, newest)
        if follows and slot - 1 in shape.equal_slots:
            code.assign(node, self.hash_index.step(bound_to(slot - 1)))
            return
        self._enter_chain(code, access, newest)
        if follows:
            before = NumberComparison(self.ref[node], ">=" if shape.recent else "<=", self.ref[bound_to(slot - 1)])
            with code.loop(all_of(node != NONE, before)):
                if newest in self.semijoins.first:
                    self.semijoins.step(code, newest)
                else:
                    count_step(code)
                code.assign(node, self.hash_index.step(node))

    def _enter_chain(self, code: Code, access: Access, newest: int | None) -> None:
        """The first event of the chain, unless none of it can satisfy the comparison whose least value is known."""
        shape, slot, node = self.shape, access.slot, bound_to(access.slot)
        is_newest = newest is not None and access.partner == shape.newest_slot(newest)
        number = bk if is_newest else self.hash_index.number_of(bound_to(access.partner))
        self.hash_index.start(code, node, number, shape.queue_of_slot[slot], chain_of(slot))
        bound = self.accesses.chain_bound(slot, newest)
        if bound is not None:
            column, value, x = shape.columns[bound.column], self.placed(bound.value, newest), sought_at(slot)
            code.assign(x, key_of(value, column.is_double, bound.sign))
            below = NumberComparison(CHAIN_LEAST[chain_of(slot)], "<=" if bound.sign.endswith("=") else "<", x)
            beyond: list[Formula] = [negated(below), *([value != value] if column.is_double else [])]
            with code.when(all_of(node != NONE, any_of(*beyond))):
                code.assign(node, NONE)

    def _along(self, slot: int, newest: int | None) -> bool:
        """The slot continues along the chain of the one before it."""
        follows = self.shape.follows(slot) and not self.order.after_newest(slot, newest)
        return follows and slot - 1 in self.shape.equal_slots

    def _chain_key(self, slot: int, newest: int | None) -> Formula | None:
        """Of an event at the slot, where its chain is walked from the beginning: what the least is known of."""
        bound = self.accesses.chain_bound(slot, newest)
        if bound is None or (self.shape.follows(slot) and not self.order.after_newest(slot, newest)):
            return None
        column = self.shape.columns[bound.column]
        stored = key_of(self.placed(SlotColumn(bound.column, slot), newest), column.is_double, bound.sign)
        form = self.accesses.chained[self.shape.queue_of_slot[slot]].form
        return self.hash_index.key_at(bound_to(slot), stored, form)

    def _note_least(self, code: Code, slot: int) -> None:
        """A chain was walked to its end."""
        with code.when(all_of(bound_to(slot) == NONE, least_of(slot) < HIGHEST)):
            code.assign(CHAIN_LEAST[chain_of(slot)], least_of(slot))


def _leave(code: Code) -> None:
    """Ends the loop, unless what is inside has returned a relation."""
    if not code.is_ended:
        code.leave()
