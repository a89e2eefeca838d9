"""A hash table from 64-bit numbers to dense ones, in machine code: for keys that are far apart, such as order numbers.

Linear probing over a table of a power of two, never more than half full: 32 to 64 bytes a value. Values stand in the table too,
not behind their numbers alone: that would be half the bytes, and lookups among a million values would take 70 % longer.

Takes: arrays. Gives: arrays of the same length.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.expressions import (
    NONE,
    UNSIGNED,
    Array,
    Variable,
    all_of,
    call,
    intrinsic,
    variables,
)
from fairlead.matching.compiled.representation.statements import Function, Program

LEAST = 1 << 12
"""Places in the smallest table."""


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


def _slot() -> Function:
    value, mask, z = *variables("value mask"), Variable("z", UNSIGNED)
    code = Code()
    code.assign(z, intrinsic("np.uint64", value) * intrinsic("np.uint64", 0x9E3779B97F4A7C15))
    code.assign(z, z ^ (z >> intrinsic("np.uint64", 32)))
    code.give(intrinsic("np.int64", z & intrinsic("np.uint64", mask)))
    return code.function("slot", value, mask)


class HashTable:
    def __init__(self, values: npt.NDArray[np.int64]) -> None:
        from fairlead.matching.compiled.machine_code.compiler import kernel_of

        self.lookup = kernel_of(lookup())
        self.count = 0
        self.back = np.zeros(0, dtype=np.int64)
        self._resize(max(LEAST, 4 * len(values)))
        self.of(values)

    def of(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        out = unwritten(len(values), np.int32)
        values = np.ascontiguousarray(values, dtype=np.int64)
        done = 0
        while done < len(values):
            most = len(self.keys) // 2
            self.count, done = self.lookup(values, out, self.keys, self.numbers, self.back, self.count, most, done)
            if done < len(values):
                self._resize(2 * len(self.keys))
        return out

    def values(self) -> npt.NDArray[np.int64]:
        return self.back[: self.count]

    def _resize(self, size: int) -> None:
        size = 1 << (size - 1).bit_length()
        known = self.back[: self.count].copy()
        self.keys, self.numbers = np.zeros(size, dtype=np.int64), np.full(size, -1, dtype=np.int32)
        self.back = np.zeros(size // 2 + 1, dtype=np.int64)
        self.count = 0
        if len(known):
            out = unwritten(len(known), np.int32)
            self.count, _ = self.lookup(known, out, self.keys, self.numbers, self.back, 0, size // 2, 0)
