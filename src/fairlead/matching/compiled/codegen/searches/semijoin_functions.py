"""The functions of a reduced search (reduced_search.py has the table that they carry out, and what is in SCRATCH).

They are the same for all searches of all branches but for `holds` and `side_of`, which reduced_search.py adds.

Takes: the form of a branch. Gives: functions of a kernel. Never: knows a condition.
"""

from __future__ import annotations

from functools import lru_cache

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import HEAD, MEMBERS, PLANS, QUEUES, SCRATCH
from fairlead.matching.compiled.codegen.node_layout import Fields
from fairlead.matching.compiled.codegen.searches.reduced_search import (
    EQUAL,
    FILTER,
    GREATER,
    GREATER_EQUAL,
    HEADER,
    LESS,
    LESS_EQUAL,
    NEIGHBOURS,
    PLACE,
    UNLIKE,
)
from fairlead.matching.compiled.machine_code.interruption import is_halted
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    TRUE,
    TRUTH,
    Array,
    ArrayElement,
    Constant,
    Formula,
    Variable,
    all_of,
    any_of,
    call,
    choice,
    named_constants,
    negated,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction

OPEN = Constant(0, "OPEN")
"""Of the first row of a plan, the column with the number of open slots."""
OPEN_SLOT, QUEUE, FIRST_STEP, END_STEP = named_constants("OPEN_SLOT QUEUE FIRST_STEP END_STEP")
"""Columns of the row of an open slot."""
OPERATION, SLOT, PARTNER, SIDE, MINE, ITS, GROUP, ALWAYS = named_constants("OPERATION SLOT PARTNER SIDE MINE ITS GROUP ALWAYS")
"""Columns of the row of a step."""


@dataclass(frozen=True)
class SemijoinForm:
    """What differs between branches: how many slots and queues, the fields of a node, the direction, and the arrays that the
    functions take."""

    size: int
    stride: int
    fields: Fields
    recent: bool
    state: tuple[Array, ...]

    def placed(self, n: Variable, i: Variable) -> Formula:
        """The i-th candidate of n, in the direction of the matching."""
        return n - 1 - i if self.recent else i

    def tried(self, stage: Formula | None = None) -> ArrayElement:
        """How far the open slot of a stage was tried."""
        start = Constant(4) * self.size
        return SCRATCH[start if stage is None else start + stage]


def nodes_of(slot: Formula) -> ArrayElement:
    """Where in SCRATCH the nodes of a slot begin."""
    return SCRATCH[4 * slot]


def length_of(slot: Formula) -> ArrayElement:
    """How many they are."""
    return SCRATCH[4 * slot + 1]


def marks_of(slot: Formula) -> ArrayElement:
    """Where their marks begin."""
    return SCRATCH[4 * slot + 2]


def lost_of(slot: Formula) -> ArrayElement:
    """Whether one was lost in this stage."""
    return SCRATCH[4 * slot + 3]


@lru_cache(maxsize=256)
def reducing(form: SemijoinForm) -> tuple[KernelFunction, ...]:
    return (_reduced(form), _revived(form), _pruned(form), _tested(form), _compared(form), _hashed())


def _reduced(form: SemijoinForm) -> KernelFunction:
    NEXT = form.fields.field("NEXT")
    first, key, at, node, count, i, j, marks, n, slot, x = variables("first key at node count i j marks n slot x")
    code = Code()
    code.assign(count, PLANS[first, OPEN])
    code.assign(at, Constant(HEADER) * form.size)
    with code.count(j, count):
        code.assign(slot, PLANS[first + 1 + j, OPEN_SLOT])
        code.assign(node, QUEUES[key * form.stride + PLANS[first + 1 + j, QUEUE], HEAD])
        code.assign(n, 0)
        with code.loop(node != NONE):
            code.assign(SCRATCH[at + n], node)
            code.increase(n)
            code.assign(node, NEXT[node])
        code.assign(nodes_of(slot), at)
        code.assign(length_of(slot), n)
        code.assign(marks_of(slot), at + n)
        with code.count(i, at + n + n, at + n):
            code.assign(SCRATCH[i], 0)
        code.increase(at, n + n)
    with code.when(negated(call("pruned", first, 0, at, key, *form.state))):
        code.give(FALSE)
    code.assign(j, 0)
    code.assign(form.tried(), 0)
    with code.loop():
        code.assign(slot, PLANS[first + 1 + j, OPEN_SLOT])
        code.assign(n, length_of(slot))
        code.decrease(counter("STEPS"), n)
        with code.when(is_halted()):
            code.give(FALSE)
        code.assign(marks, marks_of(slot))
        code.assign(i, form.tried(j))
        with code.loop(all_of(i < n, SCRATCH[marks + form.placed(n, i)] != 0)):
            code.increase(i)
        with code.when(i == n):
            with code.when(j == 0):
                code.give(FALSE)
            code.decrease(j)
            code.call("revived", first, j + 2, *form.state)
            code.proceed()
        code.assign(form.tried(j), i + 1)
        code.assign(MEMBERS[slot], SCRATCH[nodes_of(slot) + form.placed(n, i)])
        with code.count(x, n), code.when(all_of(x != form.placed(n, i), SCRATCH[marks + x] == 0)):
            code.assign(SCRATCH[marks + x], j + 2)
        code.increase(j)
        with code.when(j == count):
            code.give(TRUE)
        code.assign(form.tried(j), 0)
        with code.when(negated(call("pruned", first, j, at, key, *form.state))):
            code.decrease(j)
            code.call("revived", first, j + 2, *form.state)
    return code.function("reduced", first, key, *form.state, rare=True)


def _revived(form: SemijoinForm) -> KernelFunction:
    first, mark, j, slot, x = variables("first mark j slot x")
    code = Code()
    with code.count(j, PLANS[first, OPEN]):
        code.assign(slot, PLANS[first + 1 + j, OPEN_SLOT])
        with code.count(x, marks_of(slot) + length_of(slot), marks_of(slot)):
            with code.when(SCRATCH[x] == mark):
                code.assign(SCRATCH[x], 0)
    return code.function("revived", first, mark, *form.state, rare=True)


def _pruned(form: SemijoinForm) -> KernelFunction:
    first, stage, top, key, j, left, row, slot = variables("first stage top key j left row slot")
    code = Code()
    with code.count(j, PLANS[first, OPEN]):
        code.assign(slot, PLANS[first + 1 + j, OPEN_SLOT])
        code.assign(lost_of(slot), 0)
    with code.count(row, PLANS[first + 1 + stage, END_STEP], PLANS[first + 1 + stage, FIRST_STEP]):
        with code.when(all_of(PLANS[row, ALWAYS] == 0, lost_of(PLANS[row, PARTNER]) == 0)):
            code.proceed()
        with code.when(any_of(PLANS[row, OPERATION] == FILTER, PLANS[row, OPERATION] > UNLIKE)):
            code.assign(left, call("tested", row, stage + 1, key, *form.state))
        with code.otherwise():
            code.assign(left, call("compared", row, stage + 1, top, *form.state))
        with code.when(left == 0):
            code.give(FALSE)
    code.give(TRUE)
    return code.function("pruned", first, stage, top, key, *form.state, rare=True)


def _tested(form: SemijoinForm) -> KernelFunction:
    REF = form.fields.field("REF")
    row, mark, key, node, other, left, operation, slot, side, partner, x, y = variables(
        "row mark key node other left operation slot side partner x y"
    )
    good = Variable("good", TRUTH)
    code = Code()
    code.assign(operation, PLANS[row, OPERATION])
    code.assign(slot, PLANS[row, SLOT])
    code.assign(partner, PLANS[row, PARTNER])
    code.assign(side, PLANS[row, SIDE])
    code.assign(left, 0)
    with code.count(x, length_of(slot)):
        with code.when(SCRATCH[marks_of(slot) + x] != 0):
            code.proceed()
        code.assign(node, SCRATCH[nodes_of(slot) + x])
        code.assign(MEMBERS[slot], node)
        code.assign(good, FALSE)
        code.decrease(counter("STEPS"))
        with code.when(is_halted()):
            code.give(0)
        with code.when(operation == FILTER):
            code.assign(good, call("holds", PLANS[row, GROUP], key, *form.state))
        with code.or_when(operation == NEIGHBOURS):
            code.assign(y, x + side)
            with code.when(all_of(y >= 0, y < length_of(partner), SCRATCH[marks_of(partner) + y] == 0)):
                code.assign(MEMBERS[partner], SCRATCH[nodes_of(partner) + y])
                code.assign(good, call("holds", PLANS[row, GROUP], key, *form.state))
        with code.otherwise():
            code.decrease(counter("STEPS"), length_of(partner))
            with code.count(y, length_of(partner)), code.when(SCRATCH[marks_of(partner) + y] == 0):
                code.assign(other, SCRATCH[nodes_of(partner) + y])
                with code.when(all_of(side < 0, REF[other] >= REF[node])):
                    code.leave()
                with code.when(any_of(side <= 0, REF[other] > REF[node])):
                    code.assign(MEMBERS[partner], other)
                    with code.when(call("holds", PLANS[row, GROUP], key, *form.state)):
                        code.assign(good, TRUE)
                        code.leave()
        _keep_or_mark(code)
    code.give(left)
    return code.function("tested", row, mark, key, *form.state, rare=True)


row, mark, top, best, node, other, at_hash, i, left, n = variables("row mark top best node other at_hash i left n")
operation, others, p, slot, side, partner, value, wrap, x, y = variables("operation others p slot side partner value wrap x y")
good, seen, several = variables("good seen several", TRUTH)
"""Of `compared`."""


def _compared(form: SemijoinForm) -> KernelFunction:
    """A comparison of the candidates of two slots, in one go along both: keeps what has a partner. With THEN between the slots
    (`side`), only the partners before a candidate, or after it, count."""
    code = Code()
    code.assign(operation, PLANS[row, OPERATION])
    code.assign(slot, PLANS[row, SLOT])
    code.assign(partner, PLANS[row, PARTNER])
    code.assign(side, PLANS[row, SIDE])
    code.assign(n, length_of(slot))
    code.assign(others, length_of(partner))
    code.decrease(counter("STEPS"), n + others)
    code.assign(wrap, 1)
    with code.when(operation == EQUAL):
        with code.loop(wrap < 2 * others):
            code.assign(wrap, 2 * wrap)
        with code.count(i, wrap):
            code.assign(SCRATCH[top + i], NONE)
        code.decrease(wrap)
    code.assign(left, 0)
    code.assign(p, 0)
    code.assign(seen, FALSE)
    code.assign(several, FALSE)
    code.assign(best, 0)
    with code.count(i, n):
        code.assign(x, choice(n - 1 - i, side > 0, i))
        with code.when(SCRATCH[marks_of(slot) + x] != 0):
            code.proceed()
        code.assign(node, SCRATCH[nodes_of(slot) + x])
        with code.loop(p < others):
            _take_in(code, form)
        code.assign(good, several)
        with code.when(all_of(seen, negated(several))):
            _decide(code, form)
        _keep_or_mark(code)
    code.give(left)
    return code.function("compared", row, mark, top, *form.state, rare=True)


def _keep_or_mark(code: Code) -> None:
    """Candidate x of the slot is counted if it is good, and gets the mark of the stage if not."""
    with code.when(good):
        code.increase(left)
    with code.otherwise():
        code.assign(SCRATCH[marks_of(slot) + x], mark)
        code.assign(lost_of(slot), 1)


def _take_in(code: Code, form: SemijoinForm) -> None:
    """The next partner: its value into the hash table, or the best value so far."""
    REF = form.fields.field("REF")
    code.assign(y, choice(others - 1 - p, side > 0, p))
    code.assign(other, SCRATCH[nodes_of(partner) + y])
    with code.when(any_of(all_of(side < 0, REF[other] >= REF[node]), all_of(side > 0, REF[other] <= REF[node]))):
        code.leave()
    code.increase(p)
    with code.when(SCRATCH[marks_of(partner) + y] != 0):
        code.proceed()
    with code.when(operation == PLACE):
        code.assign(seen, TRUE)
        code.proceed()
    code.assign(value, call("side_of", PLANS[row, ITS], other, *form.state))
    with code.when(operation == EQUAL):
        _probe(code, form)
        code.assign(SCRATCH[top + at_hash], other)
    with code.or_when(negated(seen)):
        code.assign(best, value)
    with code.or_when(operation == UNLIKE):
        with code.when(value != best):
            code.assign(several, TRUE)
    with code.or_when(operation < GREATER):
        with code.when(value > best):
            code.assign(best, value)
    with code.or_when(value < best):
        code.assign(best, value)
    code.assign(seen, TRUE)


def _decide(code: Code, form: SemijoinForm) -> None:
    """Whether the candidate has a partner among those that were taken in."""
    with code.when(operation == PLACE):
        code.assign(good, TRUE)
    with code.otherwise():
        code.assign(value, call("side_of", PLANS[row, MINE], node, *form.state))
        with code.when(operation == LESS):
            code.assign(good, value < best)
        with code.or_when(operation == LESS_EQUAL):
            code.assign(good, value <= best)
        with code.or_when(operation == GREATER):
            code.assign(good, value > best)
        with code.or_when(operation == GREATER_EQUAL):
            code.assign(good, value >= best)
        with code.or_when(operation == UNLIKE):
            code.assign(good, value != best)
        with code.otherwise():
            _probe(code, form)
            code.assign(good, SCRATCH[top + at_hash] != NONE)


def _probe(code: Code, form: SemijoinForm) -> None:
    """The place of a value in the hash table, or a free one."""
    held = call("side_of", PLANS[row, ITS], SCRATCH[top + at_hash], *form.state)
    code.assign(at_hash, call("hashed", value) & wrap)
    with code.loop(all_of(SCRATCH[top + at_hash] != NONE, held != value)):
        code.assign(at_hash, (at_hash + 1) & wrap)


def _hashed() -> KernelFunction:
    value, z = variables("value z")
    code = Code()
    code.assign(z, (value ^ value >> 31) * 2654435761)
    code.give(z ^ z >> 17)
    return code.function("hashed", value)
