"""The reduced search as source: the plan of matching/reduction.py as a table, and the functions that carry it out.

The functions are the same for all searches of all branches but for `holds` (the tests of a group of constraints on `members`)
and `key` (one side of a comparison, as a whole number with the same order). The newest event is put into a node of its own that
is in no queue (`spent_0`, …), so that every member is a node.

`rt` has the plans, row by row. Of each search: a row with the number of open slots; for each of them a row `slot, queue, first
step, behind the last step` (the steps of the stage before it is fixed); then rows of steps: `operation, slot, partner, side,
key of the slot's side, key of the partner's side, group, always`. `sc` is room to work in: for each slot where its nodes begin,
how many there are, where their marks begin and whether one was lost in this stage; then how far each open slot was tried; nodes
and marks of every open slot, in queue order; a hash table. A mark is 0 for a candidate, else the stage that lost it, plus one.

Takes: a shape and its accesses. Gives: source, the table, and how a search calls it. Never: decides when (search.py does).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.shape import Clause, Shape
from fairlead.matching.reduction import Constraint, Filter, Narrow, Reduction, SlotComparison, reduced_orders

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FILTER, PLACE, PAIRS, NEIGHBOURS = 0, 1, 8, 9
COMPARED = {"<": 2, "<=": 3, ">": 4, ">=": 5, "=": 6, "!=": 7}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
STEPS_FIRST, STEPS_EACH = 256, 8
"""Steps of a search before it is reduced: some, and some for each queued event. More than in matching/interpreted/search.py,
since a step costs less beside a reduced search."""
HEADER = 5
"""Numbers in `sc` for each slot, before nodes and marks."""

FUNCTIONS = """def reduced(first, k, STATE):
    count = rt[first, 0]
    at = HEADER * SIZE
    for j in range(count):
        s = rt[first + 1 + j, 0]
        c = qs[k * STRIDE + rt[first + 1 + j, 1], 0]
        n = 0
        while c != -1:
            sc[at + n] = c
            n += 1
            c = ni[c, NEXT]
        sc[4 * s] = at
        sc[4 * s + 1] = n
        sc[4 * s + 2] = at + n
        for i in range(at + n, at + n + n):
            sc[i] = 0
        at += n + n
    if not pruned(first, 0, at, k, STATE):
        return False
    j = 0
    sc[4 * SIZE] = 0
    while True:
        s = rt[first + 1 + j, 0]
        n = sc[4 * s + 1]
        st[STEPS] -= n
        if st[STEPS] < 0 and halted(st):
            return False
        marks = sc[4 * s + 2]
        i = sc[4 * SIZE + j]
        while i < n and sc[marks + PLACED] != 0:
            i += 1
        if i == n:
            if j == 0:
                return False
            j -= 1
            revived(first, j + 2, STATE)
            continue
        sc[4 * SIZE + j] = i + 1
        members[s] = sc[sc[4 * s] + PLACED]
        for x in range(n):
            if x != PLACED and sc[marks + x] == 0:
                sc[marks + x] = j + 2
        j += 1
        if j == count:
            return True
        sc[4 * SIZE + j] = 0
        if not pruned(first, j, at, k, STATE):
            j -= 1
            revived(first, j + 2, STATE)

def revived(first, mark, STATE):
    for j in range(rt[first, 0]):
        s = rt[first + 1 + j, 0]
        for x in range(sc[4 * s + 2], sc[4 * s + 2] + sc[4 * s + 1]):
            if sc[x] == mark:
                sc[x] = 0

def pruned(first, stage, top, k, STATE):
    for j in range(rt[first, 0]):
        s = rt[first + 1 + j, 0]
        sc[4 * s + 3] = 0
    for row in range(rt[first + 1 + stage, 2], rt[first + 1 + stage, 3]):
        if rt[row, 7] == 0 and sc[4 * rt[row, 2] + 3] == 0:
            continue
        if rt[row, 0] == 0 or rt[row, 0] > 7:
            left = tested(row, stage + 1, k, STATE)
        else:
            left = compared(row, stage + 1, top, STATE)
        if left == 0:
            return False
    return True

def tested(row, mark, k, STATE):
    op = rt[row, 0]
    s = rt[row, 1]
    t = rt[row, 2]
    side = rt[row, 3]
    left = 0
    for x in range(sc[4 * s + 1]):
        if sc[sc[4 * s + 2] + x] != 0:
            continue
        c = sc[sc[4 * s] + x]
        members[s] = c
        good = False
        st[STEPS] -= 1
        if st[STEPS] < 0 and halted(st):
            return 0
        if op == 0:
            good = holds(rt[row, 6], k, STATE)
        elif op == 9:
            y = x + side
            if y >= 0 and y < sc[4 * t + 1] and sc[sc[4 * t + 2] + y] == 0:
                members[t] = sc[sc[4 * t] + y]
                good = holds(rt[row, 6], k, STATE)
        else:
            st[STEPS] -= sc[4 * t + 1]
            for y in range(sc[4 * t + 1]):
                if sc[sc[4 * t + 2] + y] == 0:
                    d = sc[sc[4 * t] + y]
                    if side < 0 and ni[d, REF] >= ni[c, REF]:
                        break
                    if side <= 0 or ni[d, REF] > ni[c, REF]:
                        members[t] = d
                        if holds(rt[row, 6], k, STATE):
                            good = True
                            break
        if good:
            left += 1
        else:
            sc[sc[4 * s + 2] + x] = mark
            sc[4 * s + 3] = 1
    return left

def compared(row, mark, top, STATE):
    op = rt[row, 0]
    s = rt[row, 1]
    t = rt[row, 2]
    side = rt[row, 3]
    n = sc[4 * s + 1]
    others = sc[4 * t + 1]
    st[STEPS] -= n + others
    wrap = 1
    if op == 6:
        while wrap < 2 * others:
            wrap = 2 * wrap
        for i in range(wrap):
            sc[top + i] = -1
        wrap -= 1
    left = 0
    p = 0
    seen = False
    several = False
    best = 0
    for i in range(n):
        x = n - 1 - i if side > 0 else i
        if sc[sc[4 * s + 2] + x] != 0:
            continue
        c = sc[sc[4 * s] + x]
        while p < others:
            y = others - 1 - p if side > 0 else p
            d = sc[sc[4 * t] + y]
            if (side < 0 and ni[d, REF] >= ni[c, REF]) or (side > 0 and ni[d, REF] <= ni[c, REF]):
                break
            p += 1
            if sc[sc[4 * t + 2] + y] != 0:
                continue
            if op == 1:
                seen = True
                continue
            v = key(rt[row, 5], d, STATE)
            if op == 6:
                sc[bucket(row, v, top, wrap, STATE)] = d
            elif not seen:
                best = v
            elif op == 7:
                if v != best:
                    several = True
            elif op < 4:
                if v > best:
                    best = v
            elif v < best:
                best = v
            seen = True
        good = several
        if seen and not several:
            if op == 1:
                good = True
            else:
                v = key(rt[row, 4], c, STATE)
                if op == 2:
                    good = v < best
                elif op == 3:
                    good = v <= best
                elif op == 4:
                    good = v > best
                elif op == 5:
                    good = v >= best
                elif op == 7:
                    good = v != best
                else:
                    good = sc[bucket(row, v, top, wrap, STATE)] != -1
        if good:
            left += 1
        else:
            sc[sc[4 * s + 2] + x] = mark
            sc[4 * s + 3] = 1
    return left

def bucket(row, v, top, wrap, STATE):
    h = hashed(v) & wrap
    while sc[top + h] != -1 and key(rt[row, 5], sc[top + h], STATE) != v:
        h = (h + 1) & wrap
    return top + h

def hashed(v):
    z = (v ^ (v >> 31)) * 2654435761
    return z ^ (z >> 17)"""

Row = tuple[int, int, int, int, int, int, int, int]


class Semijoins:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout) -> None:
        self.shape, self.accesses, self.layout = shape, accesses, layout
        self.constraints: list[Constraint] = []
        self.sources: list[str] = []
        """Of each constraint; of WITHOUT … BETWEEN, a call."""
        self.sides: list[tuple[str, str] | None] = []
        self.keys: list[str] = []
        self.groups: list[str] = []
        self.rows: list[Row] = []
        self.plans: dict[int | None, Reduction] = {}
        self.first: dict[int | None, int] = {}
        """Where in the table the plan of a search begins."""
        if accesses.explosive:
            self._collect()
            for newest in accesses.explosive:
                self._plan(newest)

    @property
    def table(self) -> npt.NDArray[np.int64]:
        import numpy as np

        return np.array(self.rows, dtype=np.int64).reshape(-1, 8)

    def opening(self, newest: int | None) -> list[str]:
        """What a search begins with: the steps it may take. (None at all: tests ask for that.)"""
        if newest in self.first and STEPS_FIRST < 0:
            return [f"return {self._spent(newest)}"]
        return [f"left = {STEPS_FIRST}", "more = False"] if newest in self.first else []

    def step(self, newest: int | None) -> list[str]:
        """What a search does at every step of an inner loop: once the first steps are used up, it is given more by the length
        of the queues; then it is reduced."""
        if newest not in self.first:
            return []
        counts = " + ".join(f"qs[k * {self.shape.stride} + {at}, 2]" for at in range(len(self.shape.needed)))
        return [
            "left -= 1",
            "if left < 0:",
            "    if more:",
            f"        return {self._spent(newest)}",
            "    more = True",
            f"    left = {STEPS_EACH} * ({counts})",
            "    st[STEPS] -= left",
        ]

    def _spent(self, newest: int | None) -> str:
        if newest is None:
            return f"reduced({self.first[newest]}, k, STATE)"
        bits, own = ["b"] if "BITS" in self.layout else [], [f"x{at}" for at in self._own(newest)]
        return f"spent_{newest}({', '.join(['k', 'w', *bits, *own, 'free', 'fresh', 'STATE'])})"

    def _own(self, newest: int) -> list[int]:
        """The columns of the newest event that a node has."""
        stored = self.layout.place_of_column
        return [at for at, column in enumerate(self.shape.columns) if column.queue == newest and at in stored]

    def _begin(self, newest: int) -> str:
        """The newest event as a node: the one it may be queued in, which has no links yet that matter."""
        lines = [f"def {self._spent(newest)}:", "    e = free if free != -1 else fresh", "    ni[e, REF] = w"]
        lines += ["    ni[e, BITS] = b"] if "BITS" in self.layout else []
        for number in self._own(newest):
            value = f"as_bits(x{number})" if self.shape.columns[number].is_double else f"x{number}"
            lines.append(f"    ni[e, {self.layout.place_of_column[number]}] = {value}")
        lines += [f"    members[{self.shape.newest_slot(newest)}] = e", f"    return reduced({self.first[newest]}, k, STATE)"]
        return "\n".join(lines)

    def functions(self) -> list[str]:
        if not self.first:
            return []
        made = [self._begin(newest) for newest in self.first if newest is not None]
        made += [*self._spoilt(), self._holds(), self._key()]
        placed = "(n - 1 - i)" if self.shape.recent else "i"
        constants = {"HEADER": HEADER, "SIZE": self.shape.size, "STRIDE": self.shape.stride, "PLACED": placed}
        text = re.sub("HEADER|SIZE|STRIDE|PLACED", lambda found: str(constants[found[0]]), FUNCTIONS)
        return [self.layout.named(each) for each in (*made, *text.split("\n\n"))]

    def stated(self, sources: list[str]) -> list[str]:
        """With the arrays that any of these functions needs in place of STATE."""
        if not self.first:
            return sources
        words = set(re.findall(r"\w+", "\n".join(self.functions())))
        state = ", ".join(each for each in ("qs", "ni", "nn", "tt", "st", "rank", "sc", "rt", "members") if each in words)
        return [re.sub(r"\bSTATE\b", state, each) for each in sources]

    # What there is to satisfy

    def _collect(self) -> None:
        shape = self.shape
        for slot in range(shape.size):
            bits = [f"(nbits[c{slot}] >> {slot}) & 1 != 0"] if slot in self.accesses.chosen_bits else []
            for test in shape.tests:
                if test.link is not None and test.link.is_double:
                    sides = ((test.link.left, test.link.left_code), (test.link.right, test.link.right_code))
                    bits += [f"{code} == {code}" for mine, code in sides if mine == slot]
            if bits:
                self._add(Constraint(frozenset({slot})), " and ".join(dict.fromkeys(bits)))
        for test in shape.tests:
            if test.link is None:
                self._add(Constraint(test.slots), test.source)
            else:
                link = test.link
                codes = [f"sortable(float({code}))" if link.is_double else code for code in (link.left_code, link.right_code)]
                made = Constraint(test.slots, SlotComparison(link.left, link.sign, link.right))
                self._add(made, test.source, (codes[0], codes[1]))
        instances = [(at - 1, at) for at in range(1, shape.size) if shape.follows(at)]
        orders = [(each.before, each.after) for each in shape.orders]
        orders += [(b, a) if shape.recent else (a, b) for a, b in instances]
        for a, b in reduced_orders(orders):
            self._add(Constraint(frozenset({a, b}), order=(a, b)), f"nref[c{a}] < nref[c{b}]")
        for pair in instances if shape.contiguous else []:
            self._add(Constraint(frozenset(pair), beside=pair), "")
        for at, clause in enumerate(shape.clauses):
            if clause.right is not None:
                read = {int(slot) for slot in re.findall(r"\[c(\d+)\]", clause.source)} - {clause.slot}
                self._add(Constraint(frozenset({clause.left, clause.right, *read})), f"not spoilt_{at}(k, STATE)")

    def _add(self, constraint: Constraint, source: str, sides: tuple[str, str] | None = None) -> None:
        self.constraints.append(constraint)
        self.sources.append(source)
        self.sides.append(sides)

    # The table

    def _plan(self, newest: int | None) -> None:
        shape = self.shape
        bound = None if newest is None else shape.newest_slot(newest)
        plan = Reduction(shape.size, bound, self.constraints)
        self.first[newest] = len(self.rows)
        self.plans[newest] = plan
        self.rows.append((len(plan.open), 0, 0, 0, 0, 0, 0, 0))
        start = len(self.rows) + len(plan.open)
        steps: list[Row] = []
        for slot, stage in zip(plan.open, plan.stages, strict=True):
            begin = start + len(steps)
            steps += [self._filter(each, bound) for each in stage.filters]
            steps += [self._narrow(each, bound) for each in stage.narrows]
            self.rows.append((slot, shape.queue_of_slot[slot], begin, start + len(steps), 0, 0, 0, 0))
        self.rows += steps

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

    def _side(self, code: str) -> int:
        text = re.sub(r"\bnref\[c\d+\]", "ni[c, REF]", self._valued(code, "c"))
        if text not in self.keys:
            self.keys.append(text)
        return self.keys.index(text)

    def _group(self, tests: tuple[int, ...], bound: int | None) -> int:
        sources = [self._beside(self.constraints[at].beside, bound) or self.sources[at] for at in tests]
        text = "\n".join(f"if not ({self._placed(each)}):\n    return False" for each in sources)
        if text not in self.groups:
            self.groups.append(text)
        return self.groups.index(text)

    def _beside(self, beside: tuple[int, int] | None, bound: int | None) -> str:
        """The newest event is in no queue yet: its neighbour is the last of it."""
        if beside is None:
            return ""
        before, after = beside[::-1] if self.shape.recent else beside
        return f"ni[members[{before}], NEXT] == {-1 if after == bound else f'members[{after}]'}"

    def _valued(self, text: str, node: str | None = None) -> str:
        def value(found: re.Match[str]) -> str:
            column, slot = int(found[1]), int(found[2])
            stored = f"ni[{node or self._node(slot)}, {self.layout.place_of_column[column]}]"
            return f"as_float({stored})" if self.shape.columns[column].is_double else stored

        return re.sub(r"\bv(\d+)\[c(\d+)\]", value, text)

    def _node(self, slot: int) -> str:
        return f"members[{slot}]" if slot < self.shape.size else "c"

    def _placed(self, text: str) -> str:
        """Source over `members`, and `c` for a noted event."""
        return re.sub(
            r"\bn(ref|bits|time)\[c(\d+)\]",
            lambda found: f"ni[{self._node(int(found[2]))}, {found[1].upper()}]",
            self._valued(text),
        )

    # Functions of this branch

    def _holds(self) -> str:
        lines = ["def holds(g, k, STATE):"]
        for at, text in enumerate(self.groups):
            lines += [f"    if g == {at}:", *(f"        {line}" for line in text.split("\n") if line), "        return True"]
        return "\n".join([*lines, "    return True"])

    def _key(self) -> str:
        lines = ["def key(q, c, STATE):"]
        for at, text in enumerate(self.keys[1:], 1):
            lines += [f"    if q == {at}:", f"        return {text}"]
        return "\n".join([*lines, f"    return {self.keys[0] if self.keys else '0'}"])

    def _spoilt(self) -> list[str]:
        return [self._spoilt_by(at, each) for at, each in enumerate(self.shape.clauses) if each.right is not None]

    def _spoilt_by(self, at: int, clause: Clause) -> str:
        """Whether an event that a clause noted forbids the members."""
        assert clause.right is not None
        queue = f"k * {self.shape.stride} + {clause.queue}"
        left, right = (self._placed(f"nref[c{each}]") for each in (clause.left, clause.right))
        return "\n".join(
            [
                f"def spoilt_{at}(k, STATE):",
                f"    c = after(qs[{queue}, 0], {left}, qs[{queue}, 3], ni, nn, tt)",
                f"    while c != -1 and ni[c, REF] < {right}:",
                f"        if {self._placed(clause.source)}:",
                "            return True",
                "        c = ni[c, NEXT]",
                "    return False",
            ]
        )


def room(size: int, queued: int) -> int:
    """Numbers that `sc` has to hold for a branch of so many slots where so many events of a key are queued."""
    return HEADER * size + 2 * size * queued + 4 * queued + 4
