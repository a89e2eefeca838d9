"""A key that is a whole number, as its number: from a table, where they lie close together (running/keys.py).

Takes: the variable k with the key. Gives: code that replaces it by the number, a new one for a new key. Never: numbers of keys
that are not whole numbers, which the batch has.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.matching.compiled.codegen.arguments import LaneArguments
from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import KEY_TABLE, KEY_VALUES, j, k, kbase, v
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import Array

AHEAD = 8
"""How many rows ahead the memory of a key is fetched: by the time its row comes, it is there."""


def number_key(code: Code, lane: int, fetch: Callable[[], None]) -> None:
    """`fetch`: what the row of the key v will read. It is fetched some rows before: which lane is next, no processor can
    foresee."""
    with code.when(KEY_TABLE.length > 0):
        code.assign(v, k)
        code.assign(k, KEY_TABLE[v - kbase])
        with code.when(k < 0):
            code.assign(k, counter("KEYS"))
            code.increase(counter("KEYS"))
            code.assign(KEY_TABLE[v - kbase], k)
            code.assign(KEY_VALUES[k], v)
        keys = Array(LaneArguments(lane).key)
        with code.when(j + AHEAD < keys.length):
            code.assign(v, KEY_TABLE[keys[j + AHEAD] - kbase])
            with code.when(v >= 0):
                fetch()
