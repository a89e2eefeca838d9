"""The ordered index: a treap over the nodes of one queue, in queue order; and the first nodes of a queue side by side.

Every node has a priority that is a function of its place in the order, so the form of a tree is a function of its content. Its
aggregate is the least key below it, so "the first in queue order whose key is below x" is one descent. Keys are whole numbers:
floats become some with the same order, and where the greatest is wanted the order is turned round (see `key_of`). A tree is
made once a queue is longer than BUILD and let go below KEEP: a short queue is walked faster.

Takes: the layout of a node. Gives: functions of a kernel. Never: knows which predicate a key serves.
"""

from __future__ import annotations

from functools import lru_cache

from fairlead.matching.compiled.codegen.arrays import (
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
from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.node_layout import Fields
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.expressions import (
    HIGHEST,
    NONE,
    TRUE,
    Call,
    Comparison,
    Constant,
    Expression,
    Variable,
    all_of,
    any_of,
    as_bits,
    call,
    choice,
    intrinsic,
    variables,
)
from fairlead.matching.compiled.representation.statements import Function

BUILD, KEEP, STEPS = 128, 40, 12
"""STEPS: nodes that are looked at one by one before the tree is asked."""
WORST = HIGHEST
"""The key of an event that no search wants."""
ROW = 32
"""Nodes in the row of a queue."""


def key_of(value: Expression, is_double: bool, sign: str) -> Expression:
    """The key of a value, such that `value sign x` is `key < key of x` (or `<=`)."""
    turned = sign[0] == ">"
    if is_double:
        return call("sortable", -value if turned else value)
    return ~value if turned else value


@lru_cache(maxsize=256)
def tree_functions(fields: Fields, rowed: bool) -> tuple[Function, ...]:
    """Trees on the order alone have no keys. `rowed`: the first nodes of a queue lie side by side."""
    least = (_least(fields),) if "KEY" in fields else ()
    rows = (_rowed(fields),) if rowed else ()
    return (_priority(), _attach(fields), _detach(fields), _built(fields), *least, *rows)


# Trees


def _priority() -> Function:
    word, z = variables("word z")
    code = Code()
    code.assign(z, intrinsic("np.uint64", word) * intrinsic("np.uint64", 0x9E3779B97F4A7C15))
    code.give(z ^ z >> intrinsic("np.uint64", 29))
    return code.function("priority", word)


@lru_cache(maxsize=1)
def sortable() -> Function:
    """A float as a whole number with the same order; -0.0 is 0.0."""
    x, i = variables("x i")
    code = Code()
    code.assign(i, as_bits(x + 0.0))
    code.give(choice(i, i >= 0, i ^ HIGHEST))
    return code.function("sortable", x)


def _attach(fields: Fields) -> Function:
    """The last node of the queue, behind those that are in the tree already."""
    LEFT, PREV, REF, RIGHT, UP = fields.take("LEFT PREV REF RIGHT UP")
    e, at, below, c, p = variables("e at below c p")
    code = Code()
    code.assign(LEFT[e], NONE)
    code.assign(RIGHT[e], NONE)
    code.assign(c, PREV[e])
    code.assign(p, call("priority", REF[e]))
    code.assign(below, NONE)
    with code.loop(all_of(c != NONE, call("priority", REF[c]) < p)):
        code.assign(below, c)
        code.assign(c, UP[c])
    with code.when(below != NONE):
        code.assign(LEFT[e], below)
        code.assign(UP[below], e)
    code.assign(UP[e], c)
    with code.when(c == NONE):
        code.assign(QUEUES[at, ROOT], e)
    with code.otherwise():
        code.assign(RIGHT[c], e)
    if "KEY" in fields:
        AGG, KEY = fields.take("AGG KEY")
        code.assign(AGG[e], KEY[e])
        with code.when(all_of(below != NONE, AGG[below] < AGG[e])):
            code.assign(AGG[e], AGG[below])
        with code.loop(all_of(c != NONE, KEY[e] < AGG[c])):
            code.assign(AGG[c], KEY[e])
            code.assign(c, UP[c])
    return code.function("attach", e, at, QUEUES, NODES, LINKS, TREES, rare=True)


def _detach(fields: Fields) -> Function:
    """Its two subtrees are merged in its place."""
    LEFT, REF, RIGHT, UP = fields.take("LEFT REF RIGHT UP")
    c, at, hook, lower, left, p, pick, r = variables("c at hook l left p pick r")
    code = Code()
    code.assign(lower, LEFT[c])
    code.assign(r, RIGHT[c])
    code.assign(p, UP[c])
    code.assign(hook, p)
    code.assign(left, all_of(p != NONE, LEFT[p] == c))
    with code.loop():
        with code.when(any_of(lower == NONE, r == NONE)):
            code.assign(pick, choice(lower, r == NONE, r))
        with code.or_when(call("priority", REF[lower]) >= call("priority", REF[r])):
            code.assign(pick, lower)
        with code.otherwise():
            code.assign(pick, r)
        with code.when(pick != NONE):
            code.assign(UP[pick], hook)
        with code.when(hook == NONE):
            code.assign(QUEUES[at, ROOT], pick)
        with code.or_when(left):
            code.assign(LEFT[hook], pick)
        with code.otherwise():
            code.assign(RIGHT[hook], pick)
        with code.when(any_of(lower == NONE, r == NONE)):
            code.leave()
        code.assign(hook, pick)
        code.assign(left, pick == r)
        with code.when(left):
            code.assign(r, LEFT[pick])
        with code.otherwise():
            code.assign(lower, RIGHT[pick])
    if "KEY" in fields:
        _put_right(code, fields, hook, p)
    return code.function("detach", c, at, QUEUES, NODES, LINKS, TREES, rare=True)


def _put_right(code: Code, fields: Fields, hook: Variable, p: Variable) -> None:
    """Aggregates, from the lowest change upwards."""
    AGG, KEY, LEFT, RIGHT, UP = fields.take("AGG KEY LEFT RIGHT UP")
    c, best, fixed, lower, r = variables("c best fixed l r")
    code.assign(fixed, hook == p)
    code.assign(c, hook)
    with code.loop(c != NONE):
        with code.when(c == p):
            code.assign(fixed, TRUE)
        code.assign(best, KEY[c])
        code.assign(lower, LEFT[c])
        with code.when(all_of(lower != NONE, AGG[lower] < best)):
            code.assign(best, AGG[lower])
        code.assign(r, RIGHT[c])
        with code.when(all_of(r != NONE, AGG[r] < best)):
            code.assign(best, AGG[r])
        with code.when(all_of(fixed, best == AGG[c])):
            code.leave()
        code.assign(AGG[c], best)
        code.assign(c, UP[c])


def _built(fields: Fields) -> Function:
    (NEXT,) = fields.take("NEXT")
    at, c = variables("at c")
    code = Code()
    code.assign(c, QUEUES[at, HEAD])
    with code.loop(c != NONE):
        code.call("attach", c, at, QUEUES, NODES, LINKS, TREES)
        code.assign(c, NEXT[c])
    return code.function("built", at, QUEUES, NODES, LINKS, TREES, rare=True)


def _least(fields: Fields) -> Function:
    """The least key of a queue."""
    AGG, KEY, NEXT = fields.take("AGG KEY NEXT")
    at, best, c = variables("at best c")
    code = Code()
    with code.when(QUEUES[at, ROOT] != NONE):
        code.give(AGG[QUEUES[at, ROOT]])
    code.assign(best, HIGHEST)
    code.assign(c, QUEUES[at, HEAD])
    with code.loop(c != NONE):
        with code.when(KEY[c] < best):
            code.assign(best, KEY[c])
        code.assign(c, NEXT[c])
    code.give(best)
    return code.function("least", at, QUEUES, NODES, LINKS, TREES, rare=True)


# Searches


def seek_name(sign: str) -> str:
    return "seek_le" if sign.endswith("=") else "seek_lt"


def row_name(sign: str) -> str:
    return "first_le" if sign.endswith("=") else "first_lt"


def sought(sign: str, node: Expression, x: Expression, root: Expression) -> Call:
    return call(seek_name(sign), node, x, root, NODES, LINKS, TREES)


def seek(fields: Fields, sign: str, recent: bool) -> Function:
    return _seek(fields, sign, recent, STEPS)


@lru_cache(maxsize=256)
def _seek(fields: Fields, sign: str, recent: bool, most: int) -> Function:
    """`seek_lt` or `seek_le`: from node c on, in the direction of the matching, the first whose key is below x."""
    AGG, HIGH, KEY, UP = fields.take("AGG HIGH KEY UP")
    NEXT, LEFT, RIGHT = fields.take("PREV RIGHT LEFT" if recent else "NEXT LEFT RIGHT")
    c, x, root, came, high, n, steps = variables("c x root came high n steps")
    code = Code()
    code.assign(steps, 0)
    code.assign(high, x >> 32)
    with code.loop(c != NONE):
        with code.when(all_of(HIGH[c] <= high, any_of(HIGH[c] < high, Comparison(KEY[c], sign, x)))):
            code.give(c)
        code.increase(steps)
        with code.when(all_of(steps == most, root != NONE)):
            code.leave()
        code.assign(c, NEXT[c])
    with code.when(c == NONE):
        code.give(c)
    with code.loop():
        code.assign(n, RIGHT[c])
        with code.when(all_of(n != NONE, Comparison(AGG[n], sign, x))):
            code.assign(c, n)
            with code.loop():
                code.assign(n, LEFT[c])
                with code.when(all_of(n != NONE, Comparison(AGG[n], sign, x))):
                    code.assign(c, n)
                with code.or_when(Comparison(KEY[c], sign, x)):
                    code.give(c)
                with code.otherwise():
                    code.assign(c, RIGHT[c])
        with code.loop():
            code.assign(n, UP[c])
            with code.when(n == NONE):
                code.give(n)
            code.assign(came, LEFT[n] == c)
            code.assign(c, n)
            with code.when(came):
                code.leave()
        with code.when(Comparison(KEY[c], sign, x)):
            code.give(c)
    return code.function(seek_name(sign), c, x, root, NODES, LINKS, TREES)


def past(fields: Fields, name: str, back: bool) -> Function:
    return _past(fields, name, back, STEPS)


@lru_cache(maxsize=256)
def _past(fields: Fields, name: str, back: bool, most: int) -> Function:
    """From node c on: the first that stands after the place `word`; with `back`, from c backwards, the first before it."""
    REF = fields.field("REF")
    NEXT, LEFT, RIGHT = fields.take("PREV RIGHT LEFT" if back else "NEXT LEFT RIGHT")
    sign = "<" if back else ">"
    c, word, root, best, steps = variables("c word root best steps")
    code = Code()
    code.assign(steps, 0)
    with code.loop(c != NONE):
        with code.when(Comparison(REF[c], sign, word)):
            code.give(c)
        code.increase(steps)
        with code.when(all_of(steps == most, root != NONE)):
            code.leave()
        code.assign(c, NEXT[c])
    with code.when(c == NONE):
        code.give(c)
    code.assign(c, root)
    code.assign(best, NONE)
    with code.loop(c != NONE):
        with code.when(Comparison(REF[c], sign, word)):
            code.assign(best, c)
            code.assign(c, LEFT[c])
        with code.otherwise():
            code.assign(c, RIGHT[c])
    code.give(best)
    return code.function(name, c, word, root, NODES, LINKS, TREES)


# Rows


def _rowed(fields: Fields) -> Function:
    """The first nodes of a queue, side by side: upper halves of their keys, then their numbers. Walking along links through
    memory costs more than all the comparing."""
    HIGH, NEXT = fields.take("HIGH NEXT")
    at, c, i, r = variables("at c i r")
    code = Code()
    code.assign(r, counter("SPARE"))
    with code.when(r != NONE):
        code.assign(counter("SPARE"), ROWS[r, 0])
    with code.otherwise():
        code.assign(r, counter("SIDES"))
        code.increase(counter("SIDES"))
    code.assign(QUEUES[at, ROW_OF], r)
    code.assign(c, QUEUES[at, HEAD])
    code.assign(i, 0)
    with code.loop(all_of(c != NONE, i < ROW)):
        code.assign(ROWS[r, i], HIGH[c])
        code.assign(ROWS[r, ROW + i], c)
        code.assign(c, NEXT[c])
        code.increase(i)
    code.give(r)
    return code.function("rowed", at, QUEUES, LINKS, ROWS, COUNTERS, rare=True)


@lru_cache(maxsize=256)
def first(fields: Fields, sign: str) -> Function:
    """`first_lt` or `first_le`: from the head of a queue on, the first whose key is below x."""
    KEY, NEXT = fields.take("KEY NEXT")
    at, x, high, i, n, r = variables("at x high i n r")
    code = Code()
    code.assign(r, QUEUES[at, ROW_OF])
    with code.when(r == NONE):
        with code.when(QUEUES[at, COUNT] < 4):
            code.give(sought(sign, QUEUES[at, HEAD], x, QUEUES[at, ROOT]))
        code.assign(r, call("rowed", at, QUEUES, LINKS, ROWS, COUNTERS))
    code.assign(high, x >> 32)
    code.assign(n, intrinsic("min", QUEUES[at, COUNT], ROW))
    with code.count(i, n):
        with code.when(all_of(ROWS[r, i] <= high, any_of(ROWS[r, i] < high, Comparison(KEY[ROWS[r, ROW + i]], sign, x)))):
            code.assign(counter("HINT"), i)
            code.give(ROWS[r, ROW + i])
    with code.when(QUEUES[at, COUNT] <= ROW):
        code.give(NONE)
    code.give(sought(sign, NEXT[ROWS[r, Constant(ROW) + ROW - 1]], x, QUEUES[at, ROOT]))
    return code.function(row_name(sign), at, x, QUEUES, NODES, LINKS, TREES, ROWS, COUNTERS)


def enter_row(code: Code, fields: Fields, at: Variable, e: Variable) -> None:
    HIGH = fields.field("HIGH")
    with code.when(all_of(QUEUES[at, ROW_OF] != NONE, QUEUES[at, COUNT] <= ROW)):
        code.assign(ROWS[QUEUES[at, ROW_OF], QUEUES[at, COUNT] - 1], HIGH[e])
        code.assign(ROWS[QUEUES[at, ROW_OF], ROW + QUEUES[at, COUNT] - 1], e)


def leave_row(code: Code, fields: Fields, at: Variable, first: Variable, last: Variable) -> None:
    """A node leaves its queue's row; when several leave at once the row goes, and is made anew when it is needed."""
    HIGH, NEXT = fields.take("HIGH NEXT")
    i, more, n, r = variables("i more n r")
    code.assign(r, QUEUES[at, ROW_OF])
    with code.when(r != NONE):
        code.assign(n, intrinsic("min", QUEUES[at, COUNT], ROW))
        with code.when(any_of(first != last, n <= 2)):
            code.assign(QUEUES[at, ROW_OF], NONE)
            code.assign(ROWS[r, 0], counter("SPARE"))
            code.assign(counter("SPARE"), r)
        with code.otherwise():
            code.assign(i, counter("HINT"))
            with code.when(any_of(i >= n, ROWS[r, ROW + i] != first)):
                code.assign(i, 0)
                with code.loop(all_of(i < n, ROWS[r, ROW + i] != first)):
                    code.increase(i)
            with code.when(i < n):
                code.assign(more, choice(NEXT[ROWS[r, Constant(ROW) + ROW - 1]], QUEUES[at, COUNT] > ROW, NONE))
                with code.loop(i < n - 1):
                    code.assign(ROWS[r, i], ROWS[r, i + 1])
                    code.assign(ROWS[r, ROW + i], ROWS[r, ROW + i + 1])
                    code.increase(i)
                with code.when(more != NONE):
                    code.assign(ROWS[r, i], HIGH[more])
                    code.assign(ROWS[r, ROW + i], more)
