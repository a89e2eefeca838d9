"""What is kept of the queues of runs (planning/runs/kept_values.py): each event that enters is added, each that leaves is taken
away, and a search asks.

KEPT has a row for each queue. KEPT_TABLE is a hash table of the different values of all queues: rows of a value, and of the
number of its owner (queue and count) above how often the value is there, 0 in a free row.

Takes: accesses and a layout. Gives: code. Never: decides which events enter or leave.
"""

from __future__ import annotations

from functools import lru_cache

from fairlead.matching.compiled.codegen.kernel_names import COUNT, HEAD, LINKS, NODES, QUEUES, TAIL
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.runs.run_tables import PLACE, place, word_of
from fairlead.matching.compiled.codegen.runs.run_words import KEPT, KEPT_TABLE
from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.runs.gathered_run import (
    COUNT as COUNTED,
)
from fairlead.matching.compiled.planning.runs.gathered_run import (
    DISTINCT,
    DOUBLE,
    HALVES,
    MEAN,
    GatheredRun,
    count_of_run,
)
from fairlead.matching.compiled.planning.runs.kept_values import KeptValue
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.contents import replaced
from fairlead.matching.compiled.representation.formulas import (
    NONE,
    Constant,
    Formula,
    SlotColumn,
    SlotField,
    all_of,
    any_of,
    as_float,
    call,
    choice,
    intrinsic,
    named_constants,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction, Program

VALUE, TAG = named_constants("VALUE TAG")
ENTERS, LEAVES, OWNED = "value_enters", "value_leaves", "owned_place"
SPREAD = 0x9E3779B1
"""An owner's number times this fits into 64 bits."""
ONES = 2**32 - 1
EXACT = 1 << 22
"""So many INT values have a sum that a DOUBLE holds exactly, and so has each part of it."""


class KeptCode:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout) -> None:
        self.shape, self.layout, self.kept = shape, layout, accesses.kept

    def enter(self, code: Code, node: Formula, at: Formula) -> None:
        """A node enters the queue number `at`."""
        self._change(code, node, at, ENTERS)

    def leave(self, code: Code, node: Formula, at: Formula) -> None:
        self._change(code, node, at, LEAVES)

    def recount(self) -> Program:
        """All of it made anew: after a state was loaded or keys were numbered anew, or with a larger table."""
        at, node = variables("at node")
        code = Code()
        with code.count(at, QUEUES.length):
            code.assign(node, QUEUES[at, HEAD])
            with code.loop(node != NONE):
                self.enter(code, node, at)
                code.assign(node, self.layout.field("NEXT")[node])
        code.give_results(0, 0)
        tables = [KEPT_TABLE] if self.kept.tables else []
        kernel = code.function("kernel", QUEUES, NODES, LINKS, KEPT, *tables)
        return Program([kernel, *self.functions(), *([place()] if tables else [])])

    def functions(self) -> list[KernelFunction]:
        return [enters(), leaves(), owned()] if self.kept.tables else []

    def _change(self, code: Code, node: Formula, at: Formula, how: str) -> None:
        for queue in dict.fromkeys(each.queue for each in self.kept.values):
            mine = [each for each in self.kept.values if each.queue == queue]
            if self.shape.stride == 1:
                self._all(code, mine, node, at, how)
            else:
                with code.when(at % self.shape.stride == queue):
                    self._all(code, mine, node, at, how)

    def _all(self, code: Code, mine: list[KeptValue], node: Formula, at: Formula, how: str) -> None:
        sign = "+" if how == ENTERS else "-"
        for each in mine:
            value = each.value
            one, known = self._on(value.code, node), self._on(value.known, node)
            if value.function == COUNTED:
                code.change(KEPT[at, each.column], sign, choice(1, known, 0))
                continue
            with code.when(known):
                if value.function == DISTINCT:
                    owner = intrinsic("np.int64", at) * self.kept.tables + each.table
                    change = call(how, word_of(one, value.form == DOUBLE), owner, KEPT_TABLE)
                    code.change(KEPT[at, each.column], sign, change)
                elif value.form == HALVES:
                    code.change(KEPT[at, each.column], sign, one & ONES)
                    code.change(KEPT[at, each.column + 1], sign, 1)
                    code.change(KEPT[at, each.column + 2], sign, one >> 32)
                else:
                    code.change(KEPT[at, each.column], sign, one)
                    code.change(KEPT[at, each.column + 1], sign, 1)

    def _on(self, formula: Formula, node: Formula) -> Formula:
        """Of an event in a node."""

        def place(part: SlotColumn | SlotField) -> Formula:
            if isinstance(part, SlotField):
                return self.layout.field(part.field)[node]
            stored = self.layout.column(part.column)[node]
            return as_float(stored) if self.shape.columns[part.column].is_double else stored

        made: Formula = replaced(formula, place)
        return made

    # What a search asks

    def has_room(self, queued: Formula) -> list[Formula]:
        """For the values of so many events."""
        return [KEPT_TABLE.length >= 2 * self.kept.tables * queued] if self.kept.tables else []

    def possible(self, key: Formula) -> list[Formula]:
        """Whether the queues of a key hold as much as HAVING needs."""
        tests: list[Formula] = []
        for each in self.kept.thresholds:
            queue = next(run.queue for run in self.kept.plan.runs if run.slot == each.slot)
            at = key * self.shape.stride + queue
            if each.value is None:
                tests.append(QUEUES[at, COUNT] >= each.least)
            else:
                tests.append(KEPT[at, self.kept.of(each.value).column] >= each.least)
        return tests

    def read(self, code: Code, key: Formula) -> Formula:
        """The values of whole queues, where a search expects them. Gives whether they are exact."""
        exact: list[Formula] = []
        for slot in dict.fromkeys(slot for each in self.kept.decided for slot in sorted(each.slots)):
            run = next(each for each in self.kept.entire if each.slot == slot)
            code.assign(count_of_run(slot), QUEUES[key * self.shape.stride + run.queue, COUNT])
        decided = {number for each in self.kept.decided for number in each.values}
        for kept in (each for each in self.kept.values if each.value.number in decided):
            value, at = kept.value, key * self.shape.stride + kept.queue
            total = KEPT[at, kept.column]
            if value.function in (COUNTED, DISTINCT):
                code.assign(value.total, total)
                continue
            code.assign(value.counted, KEPT[at, kept.column + 1])
            if value.function == MEAN:
                code.assign(value.total, intrinsic("float", total))
                exact.append(value.counted <= EXACT)
            elif value.form == HALVES:
                code.assign(value.high, KEPT[at, kept.column + 2] + (total >> 32))
                code.assign(value.total, total & ONES)
            else:
                code.assign(value.total, total)
        return all_of(*exact)

    def is_entire(self, run: GatheredRun, key: Formula, low: Formula, high: Formula) -> list[Formula]:
        """Whether the run is its whole queue."""
        at, ref = key * self.shape.stride + run.queue, self.layout.field("REF")
        head, tail = QUEUES[at, HEAD], QUEUES[at, TAIL]
        tests: list[Formula] = [head != NONE] if run.after or run.before else []
        tests += [ref[head] > low] if run.after else []
        return tests + ([ref[tail] < high] if run.before else [])


# The table


@lru_cache(maxsize=1)
def enters() -> KernelFunction:
    """A value enters; gives 1 if its owner had none that is equal."""
    value, owner, at, mask = variables("value owner at mask")
    tag = KEPT_TABLE[at, TAG]
    code = Code()
    code.assign(mask, KEPT_TABLE.length - 1)
    code.assign(at, call(OWNED, value, owner, mask))
    with code.loop(tag != 0):
        with code.when(all_of(KEPT_TABLE[at, VALUE] == value, tag >> 32 == owner)):
            code.increase(tag)
            code.give(0)
        code.assign(at, (at + 1) & mask)
    code.assign(KEPT_TABLE[at, VALUE], value)
    code.assign(tag, owner << 32 | 1)
    code.give(1)
    return code.function(ENTERS, value, owner, KEPT_TABLE)


@lru_cache(maxsize=1)
def leaves() -> KernelFunction:
    """A value leaves; gives 1 if it was the last that is equal. Then its row is free, and rows after it that a search would no
    longer reach move up."""
    value, owner, at, mask, gap, home = variables("value owner at mask gap home")
    tag = KEPT_TABLE[at, TAG]
    code = Code()
    code.assign(mask, KEPT_TABLE.length - 1)
    code.assign(at, call(OWNED, value, owner, mask))
    with code.loop(_is_other(at, value, owner)):
        code.assign(at, (at + 1) & mask)
    with code.when(tag & ONES > 1):
        code.decrease(tag)
        code.give(0)
    code.assign(gap, at)
    code.assign(at, (at + 1) & mask)
    with code.loop(tag != 0):
        code.assign(home, call(OWNED, KEPT_TABLE[at, VALUE], tag >> 32, mask))
        with code.when((at - home) & mask >= (at - gap) & mask):
            code.assign(KEPT_TABLE[gap, VALUE], KEPT_TABLE[at, VALUE])
            code.assign(KEPT_TABLE[gap, TAG], tag)
            code.assign(gap, at)
        code.assign(at, (at + 1) & mask)
    code.assign(KEPT_TABLE[gap, TAG], 0)
    code.give(1)
    return code.function(LEAVES, value, owner, KEPT_TABLE)


def _is_other(at: Formula, value: Formula, owner: Formula) -> Formula:
    """The row is not that of a value of an owner."""
    return any_of(KEPT_TABLE[at, VALUE] != value, KEPT_TABLE[at, TAG] >> 32 != owner)


@lru_cache(maxsize=1)
def owned() -> KernelFunction:
    """Where a value of an owner is looked for first."""
    value, owner, mask = variables("value owner mask")
    code = Code()
    code.give(call(PLACE, value ^ (owner * Constant(SPREAD)), mask))
    return code.function(OWNED, value, owner, mask)
