"""The innermost part of a search beside runs: each run is gathered along its queue, then HAVING is asked.

    MATCH A a THEN B b+ HAVING sum(b.x) > 100          in search_free, where a is bound to node0

    first1 = end
    node1 = queues[key * 2 + 1, HEAD]
    while node1 != -1:
        if nodes[node1, REF] > nodes[node0, REF]:
            out_members[end] = nodes[node1, REF]
            end += 1
            … sum
        node1 = links[node1, NEXT]
    if end - first1 >= 1: …

Takes: a shape with runs. Gives: code inside the loops of a search. Never: changes a queue.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import HEAD, QUEUES, TAIL, bound_to, found, k, w
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.runs import run_values
from fairlead.matching.compiled.codegen.runs.kept_values import KeptCode
from fairlead.matching.compiled.codegen.runs.run_words import OUT_LENGTHS, OUT_MEMBERS, end, end_of, first_of, written
from fairlead.matching.compiled.machine_code.interruption import count_step, is_halted
from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.runs.gathered_run import GatheredRun, WholeCondition, count_of_run
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    NONE,
    TRUTH,
    Formula,
    SlotField,
    Variable,
    all_of,
    any_of,
    bit,
    choice,
    intrinsic,
    negated,
    variables,
)

low, high, taken = variables("low high taken")
"""The places between which a run is, and how many of its last events were counted."""


def entire_of(slot: int) -> Variable:
    """Whether the run at a slot is its whole queue."""
    return Variable(f"entire{slot}", TRUTH)


class Gathering:
    """`placed`: a formula where a search has its events."""

    def __init__(
        self, shape: Shape, accesses: Accesses, layout: Layout, placed: Callable[[Formula, int | None], Formula]
    ) -> None:
        self.shape, self.layout, self.plan, self.placed = shape, layout, shape.runs, placed
        self.chosen, self.kept = accesses.chosen_bits, accesses.kept
        self.keeping, self.ref = KeptCode(shape, accesses, layout), layout.field("REF")

    def at(self, queue: int) -> Formula:
        """The number of a queue of the key."""
        return k * self.shape.stride + queue

    def begin(self, code: Code, blocks: ExitStack, newest: int | None) -> None:
        """What follows is inside, where all runs are long enough, the newest event is a member, and HAVING is true."""
        code.assign(end, written)
        for run in self.plan.runs if newest is None and not self.shape.overlapping else ():
            if len(self.shape.slots_of(run.queue)) == 1:
                self._take_newest(code, blocks, run)
        if self.kept.decided:
            self._ask(code, blocks, newest)
        runs = {each.slot: each for each in self.plan.runs}
        for slot in range(self.shape.size):
            if slot not in runs:
                code.assign(OUT_MEMBERS[end], self._place(slot, newest))
                code.assign(OUT_LENGTHS[found, slot], 1)
                code.increase(end)
            else:
                self._gather(code, runs[slot], newest)
                if runs[slot].least > 0:
                    blocks.enter_context(code.when(count_of_run(slot) >= runs[slot].least))
        if newest is None:
            blocks.enter_context(code.when(any_of(*(self._is_newest(slot) for slot in range(self.shape.size)))))
        for each in self.left:
            blocks.enter_context(code.when(self.placed(each.condition, newest)))

    @property
    def left(self) -> list[WholeCondition]:
        """The conditions that are asked once runs are gathered."""
        decided = self.kept.decided if self._decides else []
        return [each for each in self.plan.having if each not in decided]

    @property
    def _decides(self) -> bool:
        """What is kept is always what HAVING asks for."""
        return self.kept.always and not any(each.value.is_small for each in self.kept.values)

    def _take_newest(self, code: Code, blocks: ExitStack, run: GatheredRun) -> None:
        """Where the newest event is in the queue of a run, it is in the run, or there is no relation: that is seen at once."""
        self._bound(code, run, None)
        tests = self._tests(run, None)
        if not tests:
            return
        node = bound_to(run.slot)
        code.assign(node, QUEUES[self.at(run.queue), TAIL])
        blocks.enter_context(code.when(any_of(node == NONE, self.ref[node] != w, all_of(*tests))))

    def _ask(self, code: Code, blocks: ExitStack, newest: int | None) -> None:
        """Before anything is gathered: where runs are whole queues, what is kept of these decides conditions."""
        exact: list[Formula] = [self.keeping.read(code, k)]
        slots = {slot for each in self.kept.decided for slot in each.slots}
        for run in (each for each in self.kept.entire if each.slot in slots):
            self._bound(code, run, newest)
            test = all_of(*self.keeping.is_entire(run, k, low, high))
            if run.after or run.before:
                code.assign(entire_of(run.slot), test)
                exact.append(entire_of(run.slot))
        holds = all_of(*(self.placed(each.condition, newest) for each in self.kept.decided))
        blocks.enter_context(code.when(holds if self._decides else any_of(negated(all_of(*exact)), holds)))

    def _place(self, slot: int, newest: int | None) -> Formula:
        return self.placed(SlotField("REF", slot), newest)

    def _is_newest(self, slot: int) -> Formula:
        """The newest event is at a slot; in a run it is the last one."""
        if slot not in self.plan.slots:
            return self._place(slot, None) == w
        last = choice(OUT_MEMBERS[end_of(slot) - 1], end_of(slot) > first_of(slot), NONE)
        return last == w

    def _gather(self, code: Code, run: GatheredRun, newest: int | None) -> None:
        slot, node = run.slot, bound_to(run.slot)
        queue, links = self.at(run.queue), self.layout.field("NEXT")
        code.assign(first_of(slot), end)
        self._bound(code, run, newest)
        needed = {number for each in self.left for number in each.values}
        values = [each for each in self.plan.values_of(slot) if each.number in needed]
        for value in values:
            run_values.begin(code, value)
        tests = self._tests(run, newest)
        if run.most is not None and self.shape.recent:
            self._find_last(code, run, tests)
        else:
            code.assign(node, QUEUES[queue, HEAD])
        plain = not tests and not values  # a copy of words: it only counts
        if plain:
            code.assign(taken, end)
        with code.loop(node != NONE):
            if not plain:
                count_step(code)
                with code.when(is_halted()):
                    code.give(0)
            if run.before:
                with code.when(self.ref[node] >= high):
                    code.leave()
            with ExitStack() as inside:
                if tests:
                    inside.enter_context(code.when(all_of(*tests)))
                code.assign(OUT_MEMBERS[end], self.ref[node])
                code.increase(end)
                for value in values:
                    run_values.add(code, value, lambda part: self.placed(part, newest))
                if run.most is not None and not self.shape.recent:
                    with code.when(end - first_of(slot) == run.most):
                        code.leave()
            code.assign(node, links[node])
        if plain:
            code.decrease(counter("STEPS"), end - taken)
        for value in values:
            run_values.close(code, value)
        code.assign(end_of(slot), end)
        code.assign(count_of_run(slot), end - first_of(slot))
        code.assign(OUT_LENGTHS[found, slot], count_of_run(slot))

    def _bound(self, code: Code, run: GatheredRun, newest: int | None) -> None:
        if run.after:
            code.assign(low, self._place(run.after[0], newest))
            for other in run.after[1:]:
                code.assign(low, intrinsic("max", low, self._place(other, newest)))
        if run.before:
            code.assign(high, self._place(run.before[0], newest))
            for other in run.before[1:]:
                code.assign(high, intrinsic("min", high, self._place(other, newest)))

    def _tests(self, run: GatheredRun, newest: int | None) -> list[Formula]:
        """Of an event of the queue, that it is in the run; that it is before what ends the run is known."""
        word = self.ref[bound_to(run.slot)]
        tests: list[Formula] = [word > low] if run.after else []
        if run.slot in self.chosen:
            tests.append(bit(self.layout.field("BITS")[bound_to(run.slot)], run.slot))
        tests += [word != self._place(other, newest) for other in run.others]
        return tests + [self.placed(each, newest) for each in run.conditions]

    def _find_last(self, code: Code, run: GatheredRun, tests: list[Formula]) -> None:
        """From the end, the first of the last events that the run can hold."""
        assert run.most is not None
        node, back = bound_to(run.slot), self.layout.field("PREV")
        start = variables(f"start{run.slot}")[0]
        before: list[Formula] = [self.ref[node] < high] if run.before else []
        code.assign(start, NONE)
        code.assign(taken, 0)
        code.assign(node, QUEUES[self.at(run.queue), TAIL])
        with code.loop(node != NONE):
            count_step(code)
            with code.when(is_halted()):
                code.give(0)
            if run.after:
                with code.when(self.ref[node] <= low):
                    code.leave()
            inner = [*before, *tests]
            with code.when(all_of(*inner)) if inner else code.when(taken < run.most):
                code.assign(start, node)
                code.increase(taken)
                with code.when(taken == run.most):
                    code.leave()
            code.assign(node, back[node])
        code.assign(node, start)
