"""The reduced search: the plan of matching/reduction.py as a table, and what of its functions (semijoin_functions.py) is a
branch's own: `holds` (the tests of a group of constraints on the members) and `side_of` (one side of a comparison, as a whole
number with the same order). The newest event is put into a node of its own that is in no queue (`spent_0`, …), so that every
member is a node.

PLANS has the plans, row by row. Of each search: a row with the number of open slots; for each of them a row `slot, queue,
first step, behind the last step` (the steps of the stage before it is fixed); then rows of steps: `operation, slot, partner,
side, key of the slot's side, key of the partner's side, group, always`. SCRATCH is room to work in: for each slot where its
nodes begin, how many there are, where their marks begin and whether one was lost in this stage; then how far each open slot
was tried; nodes and marks of every open slot, in queue order; a hash table. A mark is 0 for a candidate, else the stage that
lost it, plus one.

Takes: a shape and its accesses. Gives: functions, the table, and how a search calls it. Never: decides when (search.py does).
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import (
    COUNT,
    COUNTERS,
    HEAD,
    LINKS,
    MEMBERS,
    NODES,
    PLANS,
    QUEUES,
    RANKS,
    ROOT,
    SCRATCH,
    TREES,
    b,
    c,
    free,
    fresh,
    k,
    left,
    more,
    tm,
    value_of,
    w,
)
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.shape import NotedQueue, Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.contents import content, fields_read, parts, replaced, same, slots_read
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    TRUE,
    WHOLE,
    Array,
    Formula,
    FunctionCall,
    SlotColumn,
    SlotField,
    Variable,
    all_of,
    as_bits,
    as_float,
    bit,
    call,
    choice,
    intrinsic,
    negated,
    total,
)
from fairlead.matching.compiled.representation.statements import KernelFunction
from fairlead.matching.reduction import Constraint, Filter, Narrow, Reduction, SlotComparison, reduced_orders

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

HEADER = 5
"""Numbers in SCRATCH for each slot, before nodes and marks."""
FILTER, PLACE, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, UNLIKE, PAIRS, NEIGHBOURS = range(10)
"""Operations. Those from PLACE to UNLIKE compare all candidates of two slots in one go, the others test them."""
COMPARED = {"<": LESS, "<=": LESS_EQUAL, ">": GREATER, ">=": GREATER_EQUAL, "=": EQUAL, "!=": UNLIKE}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
STEPS_FIRST, STEPS_EACH = 256, 8
"""Steps of a search before it is reduced: some, and some for each queued event. More than in matching/interpreted/search.py,
since a step costs less beside a reduced search."""
Row = tuple[int, int, int, int, int, int, int, int]


class Semijoins:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout) -> None:
        self.shape, self.accesses, self.layout = shape, accesses, layout
        self.constraints: list[Constraint] = []
        self.conditions: list[Formula] = []
        """Of each constraint; of WITHOUT … BETWEEN, whether its function finds nothing."""
        self.sides: list[tuple[Formula, Formula] | None] = []
        self.keys: list[Formula] = []
        self._key_numbers: dict[Hashable, int] = {}
        self.groups: list[list[Formula]] = []
        self._numbers: dict[Hashable, int] = {}
        self._asked: dict[tuple[tuple[int, ...], int | None], int] = {}
        """The number of a group by its content, and by its tests: a pair of slots asks once per stage, so 60 slots ask
        100,000 times for 2,000 groups."""
        if accesses.explosive:
            self._collect()
        self.plans = {newest: Reduction(shape.size, self._bound(newest), self.constraints) for newest in accesses.explosive}

    @property
    def first(self) -> dict[int | None, int]:
        """Where in the table the plan of a search begins."""
        return self._tabulated[0]

    @property
    def table(self) -> npt.NDArray[np.int64]:
        import numpy as np

        return np.array(self._tabulated[1], dtype=np.int64).reshape(-1, 8)

    def opening(self, code: Code, newest: int | None) -> None:
        """What a search begins with: the steps it may take. (None at all: tests ask for that.)"""
        if newest in self.first and STEPS_FIRST < 0:
            code.give(self._spent(newest))
        elif newest in self.first:
            code.assign(left, STEPS_FIRST)
            code.assign(more, FALSE)

    def step(self, code: Code, newest: int | None) -> None:
        """What a search does at every step of an inner loop: once the first steps are used up, it is given more by the length
        of the queues; then it is reduced."""
        counts: list[Formula] = [QUEUES[k * self.shape.stride + at, COUNT] for at in range(len(self.shape.needed))]
        code.decrease(left)
        with code.when(left < 0):
            with code.when(more):
                code.give(self._spent(newest))
            code.assign(more, TRUE)
            code.assign(left, STEPS_EACH * total(counts))
            code.decrease(counter("STEPS"), left)

    def _spent(self, newest: int | None) -> FunctionCall:
        if newest is None:
            return call("reduced", self.first[newest], k, *self.state)
        return call(f"spent_{newest}", *self._given(newest))

    def _given(self, newest: int) -> list[Variable | Array]:
        """What a search passes on of the newest event."""
        bits = [b] if "BITS" in self.layout else []
        times = [tm] if self._reads_times else []
        return [k, w, *bits, *times, *(value_of(at) for at in self._own(newest)), free, fresh, *self.state]

    @property
    def _reads_times(self) -> bool:
        return any("TIME" in fields_read(each.condition) for each in self.shape.noted if each.searched)

    def _own(self, newest: int) -> list[int]:
        """The columns of the newest event that a node has."""
        stored = self.layout.place_of_column
        return [at for at, column in enumerate(self.shape.columns) if column.queue == newest and at in stored]

    def _begin(self, newest: int) -> KernelFunction:
        """The newest event as a node: the one it may be queued in, which has no links yet that matter."""
        code, e = Code(), Variable("entry", WHOLE)
        code.assign(e, choice(free, free != NONE, fresh))
        code.assign(self.layout.field("REF")[e], w)
        if "BITS" in self.layout:
            code.assign(self.layout.field("BITS")[e], b)
        if self._reads_times:
            code.assign(self.layout.field("TIME")[e], tm)
        for number in self._own(newest):
            value = value_of(number)
            is_double = self.shape.columns[number].is_double
            code.assign(self.layout.column(number)[e], as_bits(value) if is_double else value)
        code.assign(MEMBERS[self.shape.newest_slot(newest)], e)
        code.give(call("reduced", self.first[newest], k, *self.state))
        return code.function(f"spent_{newest}", *self._given(newest), rare=True)

    def functions(self) -> list[KernelFunction]:
        if not self.first:
            return []
        from fairlead.matching.compiled.codegen.searches.semijoin_functions import SemijoinForm, reducing

        made = [self._begin(newest) for newest in self.first if newest is not None]
        spoilt = [self._spoilt(at, each) for at, each in enumerate(self.shape.noted) if each.searched]
        form = SemijoinForm(self.shape.size, self.shape.stride, self.layout.links, self.shape.recent, self.state)
        return [*made, *spoilt, self._holds(), self._key(), *reducing(form)]

    @cached_property
    def state(self) -> tuple[Array, ...]:
        """The arrays that these functions take."""
        noted = [each.condition for each in self.shape.noted if each.searched]
        conditions = [*noted, *(each.condition for each in self.shape.tests)]
        ranked = any(part is RANKS for each in conditions for part in parts(each))
        trees, ranks = [TREES] if noted else [], [RANKS] if ranked else []
        return (QUEUES, NODES, LINKS, *trees, COUNTERS, *ranks, SCRATCH, PLANS, MEMBERS)

    # What there is to satisfy

    def _collect(self) -> None:
        shape = self.shape
        for slot in range(shape.size):
            bits: list[Formula] = [bit(SlotField("BITS", slot), slot) != 0] if slot in self.accesses.chosen_bits else []
            for test in shape.tests:
                if test.link is not None and test.link.is_double:
                    sides = ((test.link.left, test.link.left_value), (test.link.right, test.link.right_value))
                    known = [value == value for mine, value in sides if mine == slot]
                    bits += [each for each in known if not any(same(each, other) for other in bits)]
            if bits:
                self._add(Constraint(frozenset({slot})), all_of(*bits))
        for test in shape.tests:
            if test.link is None:
                self._add(Constraint(test.slots), test.condition)
            else:
                link = test.link
                both = self._sortable(link.left_value, link.is_double), self._sortable(link.right_value, link.is_double)
                self._add(Constraint(test.slots, SlotComparison(link.left, link.sign, link.right)), test.condition, both)
        instances = [(at - 1, at) for at in range(1, shape.size) if shape.follows(at)]
        orders = [(each.before, each.after) for each in shape.orders]
        orders += [(two, one) if shape.recent else (one, two) for one, two in instances]
        for one, two in reduced_orders(orders):
            before = SlotField("REF", one) < SlotField("REF", two)
            self._add(Constraint(frozenset({one, two}), order=(one, two)), before)
        for pair in instances if shape.contiguous else []:
            self._add(Constraint(frozenset(pair), beside=pair), TRUE)
        for at, clause in enumerate(shape.noted):
            if clause.searched:
                read = slots_read(clause.condition) - {clause.slot}
                ends = {each for each in (clause.since, clause.until) if each is not None}
                self._add(Constraint(frozenset({*ends, *read})), negated(call(f"spoilt_{at}", k, *self.state)))

    @staticmethod
    def _sortable(value: Formula, is_double: bool) -> Formula:
        return call("sortable", intrinsic("float", value)) if is_double else value

    def _add(self, constraint: Constraint, condition: Formula, sides: tuple[Formula, Formula] | None = None) -> None:
        self.constraints.append(constraint)
        self.conditions.append(condition)
        self.sides.append(sides)

    # The table

    def _bound(self, newest: int | None) -> int | None:
        return None if newest is None else self.shape.newest_slot(newest)

    @cached_property
    def _tabulated(self) -> tuple[dict[int | None, int], list[Row]]:
        """Made only for a kernel: costs need nothing but the plans."""
        first: dict[int | None, int] = {}
        rows: list[Row] = []
        for newest, plan in self.plans.items():
            first[newest] = len(rows)
            self._tabulate(plan, self._bound(newest), rows)
        return first, rows

    def _tabulate(self, plan: Reduction, bound: int | None, rows: list[Row]) -> None:
        rows.append((len(plan.open), 0, 0, 0, 0, 0, 0, 0))
        start = len(rows) + len(plan.open)
        steps: list[Row] = []
        for slot, stage in zip(plan.open, plan.stages, strict=True):
            begin = start + len(steps)
            steps += [self._filter(each, bound) for each in stage.filters]
            steps += [self._narrow(each, bound) for each in stage.narrows]
            rows.append((slot, self.shape.queue_of_slot[slot], begin, start + len(steps), 0, 0, 0, 0))
        rows += steps

    def _filter(self, step: Filter, bound: int | None) -> Row:
        return (FILTER, step.slot, step.slot, 0, 0, 0, self._group(step.tests, bound), 1)

    def _narrow(self, step: Narrow, bound: int | None) -> Row:
        group, always = self._group(step.tests, bound), int(step.always)
        if step.beside:
            side = -step.beside if self.shape.recent else step.beside
            return (NEIGHBOURS, step.slot, step.partner, side, 0, 0, group, always)
        if not step.is_exact:
            return (PAIRS, step.slot, step.partner, step.side, 0, 0, group, always)
        if step.link < 0:
            return (PLACE, step.slot, step.partner, step.side, 0, 0, 0, always)
        link, sides = self.constraints[step.link].link, self.sides[step.link]
        assert link is not None
        assert sides is not None
        is_left = link.left == step.slot
        sign = link.sign if is_left else SWAPPED.get(link.sign, link.sign)
        mine, other = sides if is_left else sides[::-1]
        return (COMPARED[sign], step.slot, step.partner, step.side, self._side(mine), self._side(other), 0, always)

    def _side(self, value: Formula) -> int:
        """The number of a key: the value of the node c."""
        placed = self._placed(value, c)
        number = self._key_numbers.setdefault(content(placed), len(self.keys))
        if number == len(self.keys):
            self.keys.append(placed)
        return number

    def _group(self, tests: tuple[int, ...], bound: int | None) -> int:
        """The number of a group of tests on the members."""
        asked = tests, bound
        if asked not in self._asked:
            placed = [self._beside(self.constraints[at].beside, bound, at) for at in tests]
            number = self._asked[asked] = self._numbers.setdefault(tuple(map(content, placed)), len(self.groups))
            if number == len(self.groups):
                self.groups.append(placed)
        return self._asked[asked]

    def _beside(self, beside: tuple[int, int] | None, bound: int | None, test: int) -> Formula:
        """The newest event is in no queue yet: its neighbour is the last of it."""
        if beside is None:
            return self._placed(self.conditions[test])
        before, after = beside[::-1] if self.shape.recent else beside
        return self.layout.field("NEXT")[MEMBERS[before]] == (NONE if after == bound else MEMBERS[after])

    def _placed(self, condition: Formula, node: Variable | None = None) -> Formula:
        """A condition over MEMBERS, and `c` for a noted event; or over one node."""

        def place(part: SlotColumn | SlotField) -> Formula:
            at = node if node is not None else MEMBERS[part.slot] if part.slot < self.shape.size else c
            if isinstance(part, SlotField):
                return self.layout.field(part.field)[at]
            stored = self.layout.column(part.column)[at]
            return as_float(stored) if self.shape.columns[part.column].is_double else stored

        made: Formula = replaced(condition, place)
        return made

    # Functions of this branch

    def _holds(self) -> KernelFunction:
        code, g = Code(), Variable("group", WHOLE)
        for at, tests in enumerate(self.groups):
            with code.when(g == at):
                for each in tests:
                    with code.when(negated(each)):
                        code.give(FALSE)
                code.give(TRUE)
        code.give(TRUE)
        return code.function("holds", g, k, *self.state, rare=True)

    def _key(self) -> KernelFunction:
        code, q = Code(), Variable("side", WHOLE)
        for at, each in enumerate(self.keys[1:], 1):
            with code.when(q == at):
                code.give(each)
        code.give(self.keys[0] if self.keys else 0)
        return code.function("side_of", q, c, *self.state, rare=True)

    def _spoilt(self, at: int, clause: NotedQueue) -> KernelFunction:
        """Whether an event that a clause noted forbids the members."""
        assert clause.until is not None
        REF, NEXT = self.layout.take("REF NEXT")
        queue, code = k * self.shape.stride + clause.queue, Code()
        first, root = QUEUES[queue, HEAD], QUEUES[queue, ROOT]
        if clause.since is None:
            code.assign(c, first)
        else:
            code.assign(c, call("after", first, REF[MEMBERS[clause.since]], root, NODES, LINKS, TREES))
        with code.loop(all_of(c != NONE, REF[c] < REF[MEMBERS[clause.until]])):
            with code.when(self._placed(clause.condition)):
                code.give(TRUE)
            code.assign(c, NEXT[c])
        code.give(FALSE)
        return code.function(f"spoilt_{at}", k, *self.state)


def room(size: int, queued: int) -> int:
    """Numbers that SCRATCH has to hold for a branch of so many slots where so many events of a key are queued."""
    return HEADER * size + 2 * size * queued + 4 * queued + 4
