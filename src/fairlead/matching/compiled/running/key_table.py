"""A hash table from 64-bit numbers to dense ones, in machine code: for keys that are far apart, such as order numbers.

Linear probing over a table of a power of two, never more than half full: 32 to 64 bytes a value. The table stores the values
too, not only their numbers: that would be half the bytes, and lookups among a million values would take 70 % longer.

Takes: arrays. Gives: arrays of the same length.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.machine_code.checked_build import unwritten

LEAST = 1 << 12
"""Places in the smallest table."""


class HashTable:
    def __init__(self, values: npt.NDArray[np.int64]) -> None:
        from fairlead.matching.compiled.codegen.auxiliary_programs import lookup
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
