"""The names of what runs are written to: the words of all members one after the other, and how many each slot has.

While a search has its members, what would be their relation is written after those that were found (`written`), and stays if it
is one. `first_of(slot)` and `end_of(slot)` say where the words of a run are.
"""

from __future__ import annotations

from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    TRUE,
    WHOLE,
    Array,
    Formula,
    Variable,
    call,
    negated,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction

OUT_MEMBERS, OUT_LENGTHS = Array("out_members"), Array("out_lengths")
"""The words of the members of all relations, and by relation and slot how many there are."""
DIFFERENT = Array("different")
"""A hash table of the values of one run: rows of a value and of the number of the count that met it (run_tables.py)."""
KEPT, KEPT_TABLE = Array("kept"), Array("kept_table")
"""What is kept of queues, and the different values in them (kept_values.py)."""
written, end = variables("written end")
"""How many words the relations so far have, and where those of the one at hand end."""
AMONG = "among"


def first_of(slot: int) -> Variable:
    return Variable(f"first{slot}", WHOLE)


def end_of(slot: int) -> Variable:
    return Variable(f"end{slot}", WHOLE)


def is_outside(slot: int, word: Formula) -> Formula:
    """The event at this place is not in the run at a slot, once that is gathered."""
    return negated(call(AMONG, OUT_MEMBERS, first_of(slot), end_of(slot), word))


def among() -> KernelFunction:
    """Whether a word is between two places of OUT_MEMBERS, where words rise."""
    low, high, word, middle = variables("low high word middle")
    code = Code()
    with code.loop(low < high):
        code.assign(middle, (low + high) // 2)
        with code.when(OUT_MEMBERS[middle] == word):
            code.give(TRUE)
        with code.when(OUT_MEMBERS[middle] < word):
            code.assign(low, middle + 1)
        with code.otherwise():
            code.assign(high, middle)
    code.give(FALSE)
    return code.function(AMONG, OUT_MEMBERS, low, high, word)
