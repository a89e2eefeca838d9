"""Small functions that tests call from inside the loop: what in matching/expressions/functions.py is more than one operator.

An overflow wraps around silently, so what must not overflow is tested before.
Only those that a kernel uses are compiled with it. All run as plain Python over NumPy numbers too (see compiler.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fairlead.matching.compiled.codegen.kernel_names import RANKS
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FLOAT,
    HIGHEST,
    NONE,
    TRUE,
    TRUTH,
    WHOLE,
    WIDE,
    Constant,
    Variable,
    all_of,
    any_of,
    as_float,
    call,
    choice,
    intrinsic,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction


@lru_cache(maxsize=64)
def helper(name: str) -> KernelFunction:
    return _MAKERS[name]()


def _floor_whole() -> KernelFunction:
    x, whole = Variable("x", FLOAT), Variable("whole", WHOLE)
    code = Code()
    code.assign(whole, intrinsic("int", x))
    code.give(choice(whole - 1, intrinsic("float", whole) > x, whole))
    return code.function("floor_whole", x)


def _ceil_whole() -> KernelFunction:
    x, whole = Variable("x", FLOAT), Variable("whole", WHOLE)
    code = Code()
    code.assign(whole, intrinsic("int", x))
    code.give(choice(whole + 1, intrinsic("float", whole) < x, whole))
    return code.function("ceil_whole", x)


def _lesser_text() -> KernelFunction:
    a, b = variables("a b")
    code = Code()
    with code.when(any_of(a < 0, b < 0)):
        code.give(choice(b, a < 0, a))
    code.give(choice(a, RANKS[a] <= RANKS[b], b))
    return code.function("lesser_text", a, b, RANKS)


def _greater_text() -> KernelFunction:
    a, b = variables("a b")
    code = Code()
    with code.when(any_of(a < 0, b < 0)):
        code.give(choice(b, a < 0, a))
    code.give(choice(a, RANKS[a] >= RANKS[b], b))
    return code.function("greater_text", a, b, RANKS)


def _exact() -> KernelFunction:
    """A 64-bit whole number beside a float, without rounding: -1, 0, 1, or 2 for NaN."""
    a, whole = variables("a whole")
    d, rest = variables("d rest", FLOAT)
    code = Code()
    with code.when(d != d):
        code.give(2)
    with code.when(d >= 2.0**63):
        code.give(NONE)
    with code.when(d < -Constant(2.0**63)):
        code.give(1)
    code.assign(whole, intrinsic("int", d))
    with code.when(a != whole):
        code.give(choice(NONE, a < whole, 1))
    code.assign(rest, d - whole)
    code.give(choice(NONE, rest > 0.0, choice(1, rest < 0.0, 0)))
    return code.function("exact", a, d)


def _sum_fits() -> KernelFunction:
    a, b = variables("a b")
    code = Code()
    code.give(choice(a <= HIGHEST - b, b >= 0, a >= -HIGHEST - 1 - b))
    return code.function("sum_fits", a, b)


def _difference_fits() -> KernelFunction:
    a, b = variables("a b")
    code = Code()
    code.give(choice(a >= -HIGHEST - 1 + b, b >= 0, a <= HIGHEST + b))
    return code.function("difference_fits", a, b)


def _product_fits() -> KernelFunction:
    a, b, highest, lowest = variables("a b highest lowest")
    code = Code()
    code.together((lowest, -HIGHEST - 1), (highest, HIGHEST))
    with code.when(any_of(a == 0, b == 0)):
        code.give(TRUE)
    with code.when(all_of(a > 0, b > 0)):
        code.give(a <= highest // b)
    with code.when(all_of(a < 0, b < 0)):
        code.give(a >= highest // b + choice(1, highest % b != 0, 0))
    with code.when(a < 0):
        code.together((a, b), (b, a))
    code.give(b >= lowest // a + choice(1, lowest % a != 0, 0))
    return code.function("product_fits", a, b)


def _remainder() -> KernelFunction:
    """With the sign of the dividend; the divisor is not 0."""
    a, b, size = variables("a b size")
    code = Code()
    with code.when(b == NONE):
        code.give(0 * a)
    code.assign(size, a % b)
    with code.when(all_of(size != 0, (size < 0) != (a < 0))):
        code.decrease(size, b)
    code.give(size)
    return code.function("remainder", a, b)


def _remainder_double() -> KernelFunction:
    """NaN for a dividend that is not finite: then a - a is NaN."""
    a, b = variables("a b", FLOAT)
    code = Code()
    code.give(choice(intrinsic("np.fmod", a, b), a - a == 0.0, a - a))
    return code.function("remainder_double", a, b)


def _lesser() -> KernelFunction:
    """NaN wins."""
    a, b = variables("a b", FLOAT)
    code = Code()
    code.give(choice(a, any_of(a != a, a <= b), b))
    return code.function("lesser", a, b)


def _greater() -> KernelFunction:
    a, b = variables("a b", FLOAT)
    code = Code()
    code.give(choice(a, any_of(a != a, a >= b), b))
    return code.function("greater", a, b)


def _quotient() -> KernelFunction:
    """Of a wide number by one above 0, rounded down: bit by bit."""
    a, b, made, rest, size = variables("a b made rest size", WIDE)
    i = Variable("i", WHOLE)
    code = Code()
    code.together((size, intrinsic("abs", a)), (made, intrinsic("wide", 0)), (rest, intrinsic("wide", 0)), (i, 383))
    with code.loop(all_of(i > 0, size >> i == 0)):
        code.decrease(i)
    with code.loop(i >= 0):
        code.assign(rest, rest * 2 + (size >> i & 1))
        code.assign(made, made * 2)
        with code.when(rest >= b):
            code.decrease(rest, b)
            code.increase(made)
        code.decrease(i)
    code.give(choice(choice(-made - 1, rest != 0, -made), a < 0, made))
    return code.function("quotient", a, b)


def _remainder_wide() -> KernelFunction:
    a, b, size = variables("a b size", WIDE)
    code = Code()
    code.assign(size, intrinsic("abs", a) - call("quotient", intrinsic("abs", a), intrinsic("abs", b)) * intrinsic("abs", b))
    code.give(choice(-size, a < 0, size))
    return code.function("remainder_wide", a, b)


def _rounded() -> KernelFunction:
    """A DECIMAL result has 38 digits, the last of them half-even (DECIMAL_CONTEXT). `a` has at most 114."""
    a, made, most, rest, size, unit = variables("a made most rest size unit", WIDE)
    code = Code()
    code.together(
        (size, intrinsic("abs", a)),
        (unit, intrinsic("wide", 1)),
        (most, intrinsic("wide", 10**38)),
    )
    with code.when(size < most):
        code.give(a)
    with code.loop(size >= most * unit):
        code.assign(unit, unit * 10)
    code.assign(made, call("quotient", size, unit))
    code.assign(rest, 2 * (size - made * unit))
    with code.when(any_of(rest > unit, all_of(rest == unit, made & 1 == 1))):
        code.increase(made)
    code.give(choice(-(made * unit), a < 0, made * unit))
    return code.function("rounded", a)


def _ratio() -> KernelFunction:
    """A wide number by one above 0 as the nearest float, half-even: 53 bits of the quotient, the next, and whether more
    follow."""
    a, b, rest, size = variables("a b rest size", WIDE)
    bits, i, mantissa, whole = variables("bits i mantissa whole")
    more, made = Variable("more", TRUTH), Variable("made", FLOAT)
    code = Code()
    with code.when(a == 0):
        code.give(0.0)
    code.together((size, intrinsic("abs", a)), (rest, intrinsic("wide", 0)), (mantissa, 0), (bits, 0), (i, 383))
    with code.loop(size >> i == 0):
        code.decrease(i)
    with code.loop(bits < 54):
        code.assign(rest, rest * 2 + choice(size >> i & 1, i >= 0, intrinsic("wide", 0)))
        code.assign(mantissa, mantissa * 2)
        with code.when(rest >= b):
            code.decrease(rest, b)
            code.increase(mantissa)
        with code.when(mantissa > 0):
            code.increase(bits)
        code.decrease(i)
    code.assign(more, any_of(rest != 0, all_of(i >= 0, size & (intrinsic("wide", 1) << i + 1) - 1 != 0)))
    code.assign(whole, mantissa >> 1)
    with code.when(all_of(mantissa & 1 == 1, any_of(more, whole & 1 == 1))):
        code.increase(whole)
    code.assign(made, intrinsic("float", whole) * as_float(i + 1025 << 52))
    code.give(choice(-made, a < 0, made))
    return code.function("ratio", a, b)


def _year() -> KernelFunction:
    """Days are counted from the first of March of the year 0, in eras of 400 years: leap days are the last of their year."""
    t, days, era, of_year, rest, years = variables("t days era of_year rest years")
    code = Code()
    code.assign(days, t // 86400000000 + 719468)
    code.assign(era, days // 146097)
    code.assign(rest, days - era * 146097)
    code.assign(years, (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365)
    code.assign(of_year, rest - (365 * years + years // 4 - years // 100))
    code.give(years + era * 400 + choice(1, of_year >= 306, 0))
    return code.function("year", t)


def _count_months(code: Code, t: Variable, of_year: Variable, counted: Variable) -> None:
    """Of the year that begins with March: the days and the whole months before `t`."""
    rest, years = variables("rest years")
    code.assign(rest, (t // 86400000000 + 719468) % 146097)
    code.assign(years, (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365)
    code.assign(of_year, rest - (365 * years + years // 4 - years // 100))
    code.assign(counted, (5 * of_year + 2) // 153)


def _month() -> KernelFunction:
    t, counted, of_year = variables("t counted of_year")
    code = Code()
    _count_months(code, t, of_year, counted)
    code.give(choice(counted + 3, counted < 10, counted - 9))
    return code.function("month", t)


def _day() -> KernelFunction:
    t, counted, of_year = variables("t counted of_year")
    code = Code()
    _count_months(code, t, of_year, counted)
    code.give(of_year - (153 * counted + 2) // 5 + 1)
    return code.function("day", t)


def _hour() -> KernelFunction:
    (t,) = variables("t")
    code = Code()
    code.give(t // 3600000000 % 24)
    return code.function("hour", t)


def _minute() -> KernelFunction:
    (t,) = variables("t")
    code = Code()
    code.give(t // 60000000 % 60)
    return code.function("minute", t)


def _second() -> KernelFunction:
    (t,) = variables("t")
    code = Code()
    code.give(t // 1000000 % 60)
    return code.function("second", t)


def _dayofweek() -> KernelFunction:
    (t,) = variables("t")
    code = Code()
    code.give((t // 86400000000 + 4) % 7 + 1)
    return code.function("dayofweek", t)


_MAKERS: dict[str, Callable[[], KernelFunction]] = {
    "floor_whole": _floor_whole,
    "ceil_whole": _ceil_whole,
    "lesser_text": _lesser_text,
    "greater_text": _greater_text,
    "exact": _exact,
    "sum_fits": _sum_fits,
    "difference_fits": _difference_fits,
    "product_fits": _product_fits,
    "remainder": _remainder,
    "remainder_double": _remainder_double,
    "lesser": _lesser,
    "greater": _greater,
    "quotient": _quotient,
    "remainder_wide": _remainder_wide,
    "rounded": _rounded,
    "ratio": _ratio,
    "year": _year,
    "month": _month,
    "day": _day,
    "hour": _hour,
    "minute": _minute,
    "second": _second,
    "dayofweek": _dayofweek,
}
HELPERS = tuple(_MAKERS)
