"""What HAVING reads of a run, made event by event while the run is gathered: in the order of the queue, one rounding a step.

Takes: the values of a plan of runs. Gives: code before, for each event, and after. Never: decides which events there are.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import RANKS
from fairlead.matching.compiled.codegen.runs.run_tables import ADDED, word_of
from fairlead.matching.compiled.codegen.runs.run_words import DIFFERENT
from fairlead.matching.compiled.planning.runs.gathered_run import (
    COUNT,
    DISTINCT,
    DOUBLE,
    FIRST,
    HALVES,
    LARGE,
    LEAST,
    MEAN,
    PLAIN,
    ROUNDED,
    SUM,
    TEXT,
    RunValue,
)
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    WHOLE,
    Constant,
    Formula,
    Variable,
    call,
    choice,
    intrinsic,
)

Placed = Callable[[Formula], Formula]


def begin(code: Code, value: RunValue) -> None:
    """Before the first event."""
    code.assign(value.counted, 0)
    if value.function == DISTINCT:
        code.increase(counter("COUNTS"))
        code.assign(number_of(value), counter("COUNTS"))
    zero: Formula = Constant(0.0) if value.form == DOUBLE else intrinsic("wide", 0) if _is_wide(value) else Constant(0)
    code.assign(value.total, 0 if value.function in (COUNT, DISTINCT) else zero)
    if value.form == HALVES and value.function == SUM:
        code.assign(value.high, 0)


def add(code: Code, value: RunValue, placed: Placed) -> None:
    """The event that `placed` finds."""
    each, known = placed(value.code), placed(value.known)
    match value.function:
        case "count":
            code.increase(value.total, choice(1, known, 0))
        case "first":
            with code.when(value.counted == 0):
                _note(code, value, each, known)
        case "last":
            _note(code, value, each, known)
        case "any":
            code.assign(value.total, each)
        case "count distinct":
            with code.when(known):
                word = word_of(each, value.form == DOUBLE)
                code.increase(value.total, call(ADDED, word, number_of(value), DIFFERENT))
        case _:
            with code.when(known):
                _join(code, value, each)
                code.increase(value.counted)


def close(code: Code, value: RunValue) -> None:
    """After the last event."""
    if value.function == SUM and value.form == HALVES:
        code.increase(value.high, value.total >> 32)
        code.assign(value.total, value.total & (2**32 - 1))
    if value.function == FIRST:
        code.assign(value.counted, choice(1, value.counted == 1, 0))


def number_of(value: RunValue) -> Variable:
    """Of a count of different values: rows of the table that have it are of this count."""
    return Variable(f"count_number{value.number}", WHOLE)


def _is_wide(value: RunValue) -> bool:
    return value.form in (LARGE, ROUNDED)


def _note(code: Code, value: RunValue, each: Formula, known: Formula) -> None:
    """The value of one event, also if it is NULL: 1 where it is not, 2 where it is."""
    with code.when(known):
        code.assign(value.total, each)
        code.assign(value.counted, 1)
    with code.otherwise():
        code.assign(value.counted, 2 if value.function == FIRST else 0)


def _join(code: Code, value: RunValue, each: Formula) -> None:
    total = value.total
    if value.function in (SUM, MEAN):
        _sum(code, value, each)
        return
    with code.when(value.counted == 0):
        code.assign(total, each)
    with code.otherwise():
        least = value.function == LEAST
        if value.form == TEXT:
            code.assign(total, call("lesser_text" if least else "greater_text", total, each, RANKS))
        elif value.form == DOUBLE:
            code.assign(total, call("lesser" if least else "greater", total, each))
        else:
            code.assign(total, choice(each, each < total if least else each > total, total))


def _sum(code: Code, value: RunValue, each: Formula) -> None:
    total = value.total
    if value.form == HALVES:
        code.increase(total, each & (2**32 - 1))
        code.increase(value.high, each >> 32)
        return
    if value.form == PLAIN:
        code.increase(total, each)
        return
    number = intrinsic("float", each) if value.form == DOUBLE else each
    joined = call("rounded", total + number) if value.form == ROUNDED else total + number
    with code.when(value.counted == 0):  # not 0 + x: that would lose the sign of -0.0
        code.assign(total, number)
    with code.otherwise():
        code.assign(total, joined)
