"""The row of a queue: its first nodes side by side, the upper halves of their keys before their numbers. Walking along links
through memory costs more than all the comparing.

Takes: the layout of a node. Gives: functions of a kernel, and what keeps a row when nodes enter and leave. Never: knows which
predicate a key serves.
"""

from __future__ import annotations

from functools import lru_cache

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.indexes.ordered_index import descend, sought
from fairlead.matching.compiled.codegen.kernel_names import (
    COUNT,
    COUNTERS,
    HEAD,
    LINKS,
    NODES,
    QUEUES,
    ROOT,
    ROW_OF,
    ROWS,
    TREES,
)
from fairlead.matching.compiled.codegen.node_layout import Fields
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    HIGHEST,
    NONE,
    Constant,
    NumberComparison,
    Variable,
    all_of,
    any_of,
    call,
    choice,
    intrinsic,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction

ROW = 32
"""Nodes in the row of a queue."""


def row_name(sign: str) -> str:
    return "first_le" if sign.endswith("=") else "first_lt"


@lru_cache(maxsize=256)
def rowed_function(fields: Fields) -> KernelFunction:
    """`rowed`: makes the row of a queue."""
    HIGH, NEXT = fields.take("HIGH NEXT")
    at, node, i, row = variables("at node i row")
    code = Code()
    code.assign(row, counter("SPARE"))
    with code.when(row != NONE):
        code.assign(counter("SPARE"), ROWS[row, 0])
    with code.otherwise():
        code.assign(row, counter("SIDES"))
        code.increase(counter("SIDES"))
    code.assign(QUEUES[at, ROW_OF], row)
    code.assign(node, QUEUES[at, HEAD])
    code.assign(i, 0)
    with code.loop(all_of(node != NONE, i < ROW)):
        code.assign(ROWS[row, i], HIGH[node])
        code.assign(ROWS[row, ROW + i], node)
        code.assign(node, NEXT[node])
        code.increase(i)
    code.give(row)
    return code.function("rowed", at, QUEUES, LINKS, ROWS, COUNTERS, rare=True)


@lru_cache(maxsize=256)
def first(fields: Fields, sign: str) -> KernelFunction:
    """`first_lt` or `first_le`: from the head of a queue on, the first whose key is below x."""
    KEY, NEXT = fields.take("KEY NEXT")
    at, x, high, i, n, node, row, lowest = variables("at x high i n node row lowest")
    code = Code()
    code.assign(row, QUEUES[at, ROW_OF])
    with code.when(row == NONE):
        with code.when(QUEUES[at, COUNT] < 4):
            code.give(sought(sign, QUEUES[at, HEAD], x, QUEUES[at, ROOT]))
        code.assign(row, call("rowed", at, QUEUES, LINKS, ROWS, COUNTERS))
    code.assign(high, x >> 32)
    code.assign(n, intrinsic("min", QUEUES[at, COUNT], ROW))
    code.assign(lowest, HIGHEST)
    with code.when(n == ROW):  # a full row is compared as a whole: the processor does so with several numbers at once
        with code.count(i, ROW):
            code.assign(lowest, intrinsic("min", lowest, ROWS[row, i]))
        with code.when(lowest > high):
            code.assign(n, 0)
    with code.count(i, n):
        with code.when(
            all_of(ROWS[row, i] <= high, any_of(ROWS[row, i] < high, NumberComparison(KEY[ROWS[row, ROW + i]], sign, x)))
        ):
            code.assign(counter("HINT"), i)
            code.give(ROWS[row, ROW + i])
    with code.when(QUEUES[at, COUNT] <= ROW):
        code.give(NONE)
    code.assign(node, QUEUES[at, ROOT])
    with code.when(node == NONE):
        code.give(sought(sign, NEXT[ROWS[row, Constant(ROW) + ROW - 1]], x, node))
    descend(code, fields, sign, node, x)  # none in the row is the one, so the first of all is the first after it
    return code.function(row_name(sign), at, x, QUEUES, NODES, LINKS, TREES, ROWS, COUNTERS)


def enter_row(code: Code, fields: Fields, at: Variable, entry: Variable) -> None:
    HIGH = fields.field("HIGH")
    with code.when(all_of(QUEUES[at, ROW_OF] != NONE, QUEUES[at, COUNT] <= ROW)):
        code.assign(ROWS[QUEUES[at, ROW_OF], QUEUES[at, COUNT] - 1], HIGH[entry])
        code.assign(ROWS[QUEUES[at, ROW_OF], ROW + QUEUES[at, COUNT] - 1], entry)


def leave_row(code: Code, fields: Fields, at: Variable, first: Variable, last: Variable) -> None:
    """A node leaves its queue's row; when several leave at once the row goes, and is made anew when it is needed."""
    HIGH, NEXT, REF = fields.take("HIGH NEXT REF")
    i, more, n, row = variables("i more n row")
    code.assign(row, QUEUES[at, ROW_OF])
    with code.when(row != NONE):
        code.assign(n, intrinsic("min", QUEUES[at, COUNT], ROW))
        with code.when(any_of(first != last, n <= 2)):
            code.assign(QUEUES[at, ROW_OF], NONE)
            code.assign(ROWS[row, 0], counter("SPARE"))
            code.assign(counter("SPARE"), row)
        with code.or_when(any_of(QUEUES[at, COUNT] <= ROW, REF[first] <= REF[ROWS[row, Constant(ROW) + ROW - 1]])):
            code.assign(i, counter("HINT"))
            with code.when(any_of(i >= n, ROWS[row, ROW + i] != first)):
                code.assign(i, 0)
                with code.loop(ROWS[row, ROW + i] != first):
                    code.increase(i)
            code.assign(more, choice(NEXT[ROWS[row, Constant(ROW) + ROW - 1]], QUEUES[at, COUNT] > ROW, NONE))
            with code.loop(i < n - 1):
                code.assign(ROWS[row, i], ROWS[row, i + 1])
                code.assign(ROWS[row, ROW + i], ROWS[row, ROW + i + 1])
                code.increase(i)
            with code.when(more != NONE):
                code.assign(ROWS[row, i], HIGH[more])
                code.assign(ROWS[row, ROW + i], more)
