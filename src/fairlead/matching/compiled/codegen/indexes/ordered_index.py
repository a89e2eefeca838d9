"""The ordered index: a treap over the nodes of one queue, in queue order.

Every node has a priority that is a function of its place in the order, so the form of a tree is a function of its content. Its
aggregate is the least key below it, so "the first in queue order whose key is below x" is one descent. Keys are whole numbers:
floats become some with the same order, and where the greatest is wanted the order is turned round (see `key_of`). A tree is
made once a queue is longer than BUILD and let go below KEEP: a short queue is walked faster.

Takes: the layout of a node. Gives: functions of a kernel. Never: knows which predicate a key serves.
"""

from __future__ import annotations

from functools import lru_cache

from fairlead.matching.compiled.codegen.kernel_names import (
    HEAD,
    LINKS,
    NODES,
    QUEUES,
    ROOT,
    TREES,
)
from fairlead.matching.compiled.codegen.node_layout import Fields, NodeField
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FLOAT,
    HIGHEST,
    NONE,
    TRUE,
    TRUTH,
    UNSIGNED,
    WHOLE,
    Formula,
    FunctionCall,
    NumberComparison,
    Variable,
    all_of,
    any_of,
    as_bits,
    call,
    choice,
    intrinsic,
    negated,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction

BUILD, KEEP, STEPS = 128, 40, 12
"""STEPS: nodes that are looked at one by one before the tree is asked."""
WORST = HIGHEST
"""The key of an event that no search wants."""


def key_of(value: Formula, is_double: bool, sign: str) -> Formula:
    """The key of a value, such that `value sign x` is `key < key of x` (or `<=`)."""
    turned = sign[0] == ">"
    if is_double:
        return call("sortable", -value if turned else value)
    return ~value if turned else value


@lru_cache(maxsize=256)
def tree_functions(fields: Fields) -> tuple[KernelFunction, ...]:
    """Trees on the order alone have no keys."""
    least = (_least(fields),) if "KEY" in fields else ()
    return (_priority(), _attach(fields), _detach(fields), _built(fields), *least)


# Trees


def _priority() -> KernelFunction:
    word, z = Variable("word", WHOLE), Variable("z", UNSIGNED)
    code = Code()
    code.assign(z, intrinsic("np.uint64", word) * intrinsic("np.uint64", 0x9E3779B97F4A7C15))
    code.give(z ^ z >> intrinsic("np.uint64", 29))
    return code.function("priority", word)


@lru_cache(maxsize=1)
def sortable() -> KernelFunction:
    """A float as a whole number with the same order; -0.0 is 0.0."""
    x, i = Variable("x", FLOAT), Variable("i", WHOLE)
    code = Code()
    code.assign(i, as_bits(x + 0.0))
    code.give(choice(i, i >= 0, i ^ HIGHEST))
    return code.function("sortable", x)


def _attach(fields: Fields) -> KernelFunction:
    """The last node of the queue, after those that are in the tree already."""
    LEFT, PREV, REF, RIGHT, UP = fields.take("LEFT PREV REF RIGHT UP")
    entry, at, below, node = variables("entry at below node")
    rank = Variable("rank", UNSIGNED)
    code = Code()
    code.assign(LEFT[entry], NONE)
    code.assign(RIGHT[entry], NONE)
    code.assign(node, PREV[entry])
    code.assign(rank, call("priority", REF[entry]))
    code.assign(below, NONE)
    with code.loop(all_of(node != NONE, call("priority", REF[node]) < rank)):
        code.assign(below, node)
        code.assign(node, UP[node])
    with code.when(below != NONE):
        code.assign(LEFT[entry], below)
        code.assign(UP[below], entry)
    code.assign(UP[entry], node)
    with code.when(node == NONE):
        code.assign(QUEUES[at, ROOT], entry)
    with code.otherwise():
        code.assign(RIGHT[node], entry)
    if "KEY" in fields:
        AGG, KEY = fields.take("AGG KEY")
        code.assign(AGG[entry], KEY[entry])
        with code.when(all_of(below != NONE, AGG[below] < AGG[entry])):
            code.assign(AGG[entry], AGG[below])
        with code.loop(all_of(node != NONE, KEY[entry] < AGG[node])):
            code.assign(AGG[node], KEY[entry])
            code.assign(node, UP[node])
    return code.function("attach", entry, at, QUEUES, NODES, LINKS, TREES, rare=True)


def _detach(fields: Fields) -> KernelFunction:
    """Its two subtrees are merged in its place."""
    LEFT, REF, RIGHT, UP = fields.take("LEFT REF RIGHT UP")
    node, at, hook, lower, parent, pick, upper = variables("node at hook lower parent pick upper")
    left = Variable("left", TRUTH)
    code = Code()
    code.assign(lower, LEFT[node])
    code.assign(upper, RIGHT[node])
    code.assign(parent, UP[node])
    code.assign(hook, parent)
    code.assign(left, all_of(parent != NONE, LEFT[parent] == node))
    with code.loop():
        with code.when(any_of(lower == NONE, upper == NONE)):
            code.assign(pick, choice(lower, upper == NONE, upper))
        with code.or_when(call("priority", REF[lower]) >= call("priority", REF[upper])):
            code.assign(pick, lower)
        with code.otherwise():
            code.assign(pick, upper)
        with code.when(pick != NONE):
            code.assign(UP[pick], hook)
        with code.when(hook == NONE):
            code.assign(QUEUES[at, ROOT], pick)
        with code.or_when(left):
            code.assign(LEFT[hook], pick)
        with code.otherwise():
            code.assign(RIGHT[hook], pick)
        with code.when(any_of(lower == NONE, upper == NONE)):
            code.leave()
        code.assign(hook, pick)
        code.assign(left, pick == upper)
        with code.when(left):
            code.assign(upper, LEFT[pick])
        with code.otherwise():
            code.assign(lower, RIGHT[pick])
    if "KEY" in fields:
        _put_right(code, fields, hook, parent)
    return code.function("detach", node, at, QUEUES, NODES, LINKS, TREES, rare=True)


def _put_right(code: Code, fields: Fields, hook: Variable, parent: Variable) -> None:
    """Aggregates, from the lowest change upwards."""
    AGG, KEY, LEFT, RIGHT, UP = fields.take("AGG KEY LEFT RIGHT UP")
    node, best, lower, upper = variables("node best lower upper")
    fixed = Variable("fixed", TRUTH)
    code.assign(fixed, hook == parent)
    code.assign(node, hook)
    with code.loop(node != NONE):
        with code.when(node == parent):
            code.assign(fixed, TRUE)
        code.assign(best, KEY[node])
        code.assign(lower, LEFT[node])
        with code.when(all_of(lower != NONE, AGG[lower] < best)):
            code.assign(best, AGG[lower])
        code.assign(upper, RIGHT[node])
        with code.when(all_of(upper != NONE, AGG[upper] < best)):
            code.assign(best, AGG[upper])
        with code.when(all_of(fixed, best == AGG[node])):
            code.leave()
        code.assign(AGG[node], best)
        code.assign(node, UP[node])


def _built(fields: Fields) -> KernelFunction:
    (NEXT,) = fields.take("NEXT")
    at, node = variables("at node")
    code = Code()
    code.assign(node, QUEUES[at, HEAD])
    with code.loop(node != NONE):
        code.call("attach", node, at, QUEUES, NODES, LINKS, TREES)
        code.assign(node, NEXT[node])
    return code.function("built", at, QUEUES, NODES, LINKS, TREES, rare=True)


def _least(fields: Fields) -> KernelFunction:
    """The least key of a queue."""
    AGG, KEY, NEXT = fields.take("AGG KEY NEXT")
    at, best, node = variables("at best node")
    code = Code()
    with code.when(QUEUES[at, ROOT] != NONE):
        code.give(AGG[QUEUES[at, ROOT]])
    code.assign(best, HIGHEST)
    code.assign(node, QUEUES[at, HEAD])
    with code.loop(node != NONE):
        with code.when(KEY[node] < best):
            code.assign(best, KEY[node])
        code.assign(node, NEXT[node])
    code.give(best)
    return code.function("least", at, QUEUES, NODES, LINKS, TREES, rare=True)


# Searches


def seek_name(sign: str) -> str:
    return "seek_le" if sign.endswith("=") else "seek_lt"


def sought(sign: str, node: Formula, x: Formula, root: Formula) -> FunctionCall:
    return call(seek_name(sign), node, x, root, NODES, LINKS, TREES)


def _walk(code: Code, found: Formula, NEXT: NodeField, most: int) -> None:
    """From `node` along the queue, returns the first that is `found`; continues after `most` nodes if there is a tree."""
    node, root, steps = variables("node root steps")
    with code.loop(node != NONE):
        with code.when(found):
            code.give(node)
        code.increase(steps)
        with code.when(all_of(steps == most, root != NONE)):
            code.leave()
        code.assign(node, NEXT[node])
    with code.when(node == NONE):
        code.give(node)


def seek(fields: Fields, sign: str, recent: bool) -> KernelFunction:
    return _seek(fields, sign, recent, STEPS)


@lru_cache(maxsize=256)
def _seek(fields: Fields, sign: str, recent: bool, most: int) -> KernelFunction:
    """`seek_lt` or `seek_le`: from node c on, in the direction of the matching, the first whose key is below x."""
    AGG, HIGH, KEY, UP = fields.take("AGG HIGH KEY UP")
    NEXT, LEFT, RIGHT = fields.take("PREV RIGHT LEFT" if recent else "NEXT LEFT RIGHT")
    node, x, root, high, next_node, steps = variables("node x root high next_node steps")
    came = Variable("came", TRUTH)
    code = Code()
    code.assign(steps, 0)
    code.assign(high, x >> 32)
    found = all_of(HIGH[node] <= high, any_of(HIGH[node] < high, NumberComparison(KEY[node], sign, x)))
    _walk(code, found, NEXT, most)
    with code.loop():
        code.assign(next_node, RIGHT[node])
        with code.when(all_of(next_node != NONE, NumberComparison(AGG[next_node], sign, x))):
            code.assign(node, next_node)
            with code.loop():
                code.assign(next_node, LEFT[node])
                with code.when(all_of(next_node != NONE, NumberComparison(AGG[next_node], sign, x))):
                    code.assign(node, next_node)
                with code.or_when(NumberComparison(KEY[node], sign, x)):
                    code.give(node)
                with code.otherwise():
                    code.assign(node, RIGHT[node])
        with code.loop():
            code.assign(next_node, UP[node])
            with code.when(next_node == NONE):
                code.give(next_node)
            code.assign(came, LEFT[next_node] == node)
            code.assign(node, next_node)
            with code.when(came):
                code.leave()
        with code.when(NumberComparison(KEY[node], sign, x)):
            code.give(node)
    return code.function(seek_name(sign), node, x, root, NODES, LINKS, TREES)


def descend(code: Code, fields: Fields, sign: str, node: Variable, x: Formula) -> None:
    """From the root of a tree, returns the first of all whose key is below x, or NONE."""
    AGG, KEY, LEFT, RIGHT = fields.take("AGG KEY LEFT RIGHT")
    lower = Variable("lower", WHOLE)
    with code.when(negated(NumberComparison(AGG[node], sign, x))):
        code.give(NONE)
    with code.loop():
        code.assign(lower, LEFT[node])
        with code.when(all_of(lower != NONE, NumberComparison(AGG[lower], sign, x))):
            code.assign(node, lower)
        with code.or_when(NumberComparison(KEY[node], sign, x)):
            code.give(node)
        with code.otherwise():
            code.assign(node, RIGHT[node])


def past(fields: Fields, name: str, back: bool) -> KernelFunction:
    return _past(fields, name, back, STEPS)


@lru_cache(maxsize=256)
def _past(fields: Fields, name: str, back: bool, most: int) -> KernelFunction:
    """From node c on: the first that stands after the place `word`; with `back`, from c backwards, the first before it."""
    REF = fields.field("REF")
    NEXT, LEFT, RIGHT = fields.take("PREV RIGHT LEFT" if back else "NEXT LEFT RIGHT")
    sign = "<" if back else ">"
    node, word, root, best, steps = variables("node word root best steps")
    code = Code()
    code.assign(steps, 0)
    _walk(code, NumberComparison(REF[node], sign, word), NEXT, most)
    code.assign(node, root)
    code.assign(best, NONE)
    with code.loop(node != NONE):
        with code.when(NumberComparison(REF[node], sign, word)):
            code.assign(best, node)
            code.assign(node, LEFT[node])
        with code.otherwise():
            code.assign(node, RIGHT[node])
    code.give(best)
    return code.function(name, node, word, root, NODES, LINKS, TREES)


# Rows
