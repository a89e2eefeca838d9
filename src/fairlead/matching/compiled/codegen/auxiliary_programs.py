"""Programs beside those of branches: the numbers of keys that are far apart, the free nodes, the nodes of queues.

Gives: programs. Never: runs them.
"""

from __future__ import annotations

from functools import lru_cache

from fairlead.matching.compiled.codegen.kernel_names import LINKS
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    NONE,
    UNSIGNED,
    Array,
    Constant,
    Variable,
    all_of,
    call,
    intrinsic,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction, Program

NEXT = Constant(0, "NEXT")
"""The column of LINKS with the node that follows, in every layout."""


@lru_cache(maxsize=1)
def lookup() -> Program:
    """The numbers of values, and new numbers for new ones, until the table is full: then where it stopped."""
    values, out, keys, numbers, back = (Array(name) for name in ("values", "out", "keys", "numbers", "back"))
    count, most, start, mask, i, value, at = variables("count most start mask i value at")
    code = Code()
    code.assign(mask, keys.length - 1)
    code.assign(i, start)
    with code.loop(i < values.length):
        code.assign(value, values[i])
        code.assign(at, call("slot", value, mask))
        with code.loop(all_of(numbers[at] != NONE, keys[at] != value)):
            code.assign(at, (at + 1) & mask)
        with code.when(numbers[at] == NONE):
            with code.when(count >= most):
                code.give_results(count, i)
            code.assign(keys[at], value)
            code.assign(numbers[at], count)
            code.assign(back[count], value)
            code.increase(count)
        code.assign(out[i], numbers[at])
        code.increase(i)
    code.give_results(count, i)
    return Program([code.function("kernel", values, out, keys, numbers, back, count, most, start), _slot()])


def _slot() -> KernelFunction:
    value, mask, z = *variables("value mask"), Variable("z", UNSIGNED)
    code = Code()
    code.assign(z, intrinsic("np.uint64", value) * intrinsic("np.uint64", 0x9E3779B97F4A7C15))
    code.assign(z, z ^ (z >> intrinsic("np.uint64", 32)))
    code.give(intrinsic("np.int64", z & intrinsic("np.uint64", mask)))
    return code.function("slot", value, mask)


@lru_cache(maxsize=1)
def freed() -> Program:
    """A kernel along the free nodes."""
    used, node, count = Array("used"), *variables("node count")
    code = Code()
    code.assign(count, 0)
    with code.loop(node != NONE):
        code.assign(used[node], 0)
        code.assign(node, LINKS[node, NEXT])
        code.increase(count)
    code.give_results(count, 0)
    return Program([code.function("kernel", LINKS, used, node)])


@lru_cache(maxsize=1)
def walk() -> Program:
    """A kernel over the nodes of queues, one queue after the other, oldest first."""
    heads, out, (n, i, node) = Array("heads"), Array("out"), variables("n i c")
    code = Code()
    code.assign(n, 0)
    with code.count(i, heads.length):
        code.assign(node, heads[i])
        with code.loop(node != NONE):
            code.assign(out[n], node)
            code.increase(n)
            code.assign(node, LINKS[node, NEXT])
    code.give_results(n, 0)
    return Program([code.function("kernel", heads, LINKS, out)])
