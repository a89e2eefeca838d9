"""Counting different values: a hash table, searched along from the place of a value.

`different_added` notes a value for the count with a number, and returns 1 if it is new to it. Rows of earlier counts have other
numbers and are free, so nothing is ever cleared. There is room for twice as many values as are queued.

Takes: a table. Gives: functions of a kernel. Never: makes room (running/run_room.py).
"""

from __future__ import annotations

from functools import lru_cache

from fairlead.matching.compiled.codegen.runs.run_words import DIFFERENT
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    UNSIGNED,
    Formula,
    Variable,
    as_bits,
    call,
    choice,
    intrinsic,
    named_constants,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction

VALUE, NUMBER = named_constants("VALUE NUMBER")
ADDED, PLACE = "different_added", "table_place"
NAN_BITS = 0x7FF8000000000000


def word_of(value: Formula, is_double: bool) -> Formula:
    """Equal for equal values: zeros have no sign, and all NaNs are one."""
    return choice(as_bits(value + 0.0), value == value, NAN_BITS) if is_double else value


@lru_cache(maxsize=1)
def added() -> KernelFunction:
    value, number, at, mask = variables("value number at mask")
    code = Code()
    code.assign(mask, DIFFERENT.length - 1)
    code.assign(at, call(PLACE, value, mask))
    with code.loop(DIFFERENT[at, NUMBER] == number):
        with code.when(DIFFERENT[at, VALUE] == value):
            code.give(0)
        code.assign(at, (at + 1) & mask)
    code.assign(DIFFERENT[at, VALUE], value)
    code.assign(DIFFERENT[at, NUMBER], number)
    code.give(1)
    return code.function(ADDED, value, number, DIFFERENT)


@lru_cache(maxsize=1)
def place() -> KernelFunction:
    """Where a value is looked for first."""
    value, mask, z = *variables("value mask"), Variable("z", UNSIGNED)
    code = Code()
    code.assign(z, intrinsic("np.uint64", value) * intrinsic("np.uint64", 0x9E3779B97F4A7C15))
    code.assign(z, z ^ (z >> intrinsic("np.uint64", 32)))
    code.give(intrinsic("np.int64", z & intrinsic("np.uint64", mask)))
    return code.function(PLACE, value, mask)
