"""Small functions that tests call from inside the loop, as source: what in matching/expressions/functions.py is more than one
operator.

An overflow wraps around silently, so what must not overflow is tested before.
Only those that a kernel uses are compiled with it. All run as plain Python over NumPy numbers too (see compiler.py).
"""

from __future__ import annotations

EXACT = """def exact(a, d):
    if d != d:
        return 2
    if d >= 9223372036854775808.0:
        return -1
    if d < -9223372036854775808.0:
        return 1
    whole = int(d)
    if a != whole:
        return -1 if a < whole else 1
    rest = d - whole
    return -1 if rest > 0.0 else 1 if rest < 0.0 else 0"""
"""A 64-bit whole number beside a float, without rounding: -1, 0, 1, or 2 for NaN."""

PRODUCT_FITS = """def product_fits(a, b):
    lowest, highest = -9223372036854775807 - 1, 9223372036854775807
    if a == 0 or b == 0:
        return True
    if a > 0 and b > 0:
        return a <= highest // b
    if a < 0 and b < 0:
        return a >= highest // b + (1 if highest % b != 0 else 0)
    if a < 0:
        a, b = b, a
    return b >= lowest // a + (1 if lowest % a != 0 else 0)"""

SUM_FITS = """def sum_fits(a, b):
    return a <= 9223372036854775807 - b if b >= 0 else a >= -9223372036854775807 - 1 - b"""

DIFFERENCE_FITS = """def difference_fits(a, b):
    return a >= -9223372036854775807 - 1 + b if b >= 0 else a <= 9223372036854775807 + b"""

REMAINDER = """def remainder(a, b):
    if b == -1:
        return 0 * a
    size = a % b
    if size != 0 and (size < 0) != (a < 0):
        size -= b
    return size"""
"""With the sign of the dividend; the divisor is not 0."""

REMAINDER_DOUBLE = """def remainder_double(a, b):
    return np.fmod(a, b) if a - a == 0.0 else a - a"""
"""NaN for a dividend that is not finite: then a - a is NaN."""

LESSER = """def lesser(a, b):
    return a if a != a or a <= b else b"""
"""NaN wins."""

GREATER = """def greater(a, b):
    return a if a != a or a >= b else b"""

FLOOR_WHOLE = """def floor_whole(x):
    whole = int(x)
    return whole - 1 if float(whole) > x else whole"""

CEIL_WHOLE = """def ceil_whole(x):
    whole = int(x)
    return whole + 1 if float(whole) < x else whole"""

LESSER_TEXT = """def lesser_text(a, b, rank):
    if a < 0 or b < 0:
        return b if a < 0 else a
    return a if rank[a] <= rank[b] else b"""

GREATER_TEXT = LESSER_TEXT.replace("lesser", "greater").replace("<=", ">=")

QUOTIENT = """def quotient(a, b):
    size, made, rest, i = abs(a), wide(0), wide(0), 383
    while i > 0 and (size >> i) == 0:
        i -= 1
    while i >= 0:
        rest = rest * 2 + ((size >> i) & 1)
        made = made * 2
        if rest >= b:
            rest -= b
            made += 1
        i -= 1
    return (-made - 1 if rest != 0 else -made) if a < 0 else made"""
"""Of a wide number by one above 0, rounded down: bit by bit."""

REMAINDER_WIDE = """def remainder_wide(a, b):
    size = abs(a) - quotient(abs(a), abs(b)) * abs(b)
    return -size if a < 0 else size"""

ROUNDED = """def rounded(a):
    size, unit, most = abs(a), wide(1), wide(100000000000000000000000000000000000000)
    if size < most:
        return a
    while size >= most * unit:
        unit = unit * 10
    made = quotient(size, unit)
    rest = 2 * (size - made * unit)
    if rest > unit or (rest == unit and (made & 1) == 1):
        made += 1
    return -(made * unit) if a < 0 else made * unit"""
"""A DECIMAL result has 38 digits, the last of them half-even (DECIMAL_CONTEXT). `a` has at most 114."""

RATIO = """def ratio(a, b):
    if a == 0:
        return 0.0
    size, rest, mantissa, bits, i = abs(a), wide(0), 0, 0, 383
    while (size >> i) == 0:
        i -= 1
    while bits < 54:
        rest = rest * 2 + (((size >> i) & 1) if i >= 0 else wide(0))
        mantissa = mantissa * 2
        if rest >= b:
            rest -= b
            mantissa += 1
        if mantissa > 0:
            bits += 1
        i -= 1
    more = rest != 0 or (i >= 0 and (size & ((wide(1) << (i + 1)) - 1)) != 0)
    whole = mantissa >> 1
    if (mantissa & 1) == 1 and (more or (whole & 1) == 1):
        whole += 1
    made = float(whole) * as_float((i + 1025) << 52)
    return -made if a < 0 else made"""
"""A wide number by one above 0 as the nearest float, half-even: 53 bits of the quotient, the next, and whether more follow."""

YEAR = """def year(t):
    days = t // 86400000000 + 719468
    era = days // 146097
    rest = days - era * 146097
    years = (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365
    of_year = rest - (365 * years + years // 4 - years // 100)
    return years + era * 400 + (1 if of_year >= 306 else 0)"""
"""Days are counted from the first of March of the year 0, in eras of 400 years: leap days are the last of their year."""

MONTH = """def month(t):
    rest = (t // 86400000000 + 719468) % 146097
    years = (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365
    of_year = rest - (365 * years + years // 4 - years // 100)
    counted = (5 * of_year + 2) // 153
    return counted + 3 if counted < 10 else counted - 9"""

DAY = """def day(t):
    rest = (t // 86400000000 + 719468) % 146097
    years = (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365
    of_year = rest - (365 * years + years // 4 - years // 100)
    counted = (5 * of_year + 2) // 153
    return of_year - (153 * counted + 2) // 5 + 1"""

HELPERS = {
    "floor_whole": FLOOR_WHOLE,
    "ceil_whole": CEIL_WHOLE,
    "lesser_text": LESSER_TEXT,
    "greater_text": GREATER_TEXT,
    "exact": EXACT,
    "sum_fits": SUM_FITS,
    "difference_fits": DIFFERENCE_FITS,
    "product_fits": PRODUCT_FITS,
    "remainder": REMAINDER,
    "remainder_double": REMAINDER_DOUBLE,
    "lesser": LESSER,
    "greater": GREATER,
    "quotient": QUOTIENT,
    "remainder_wide": REMAINDER_WIDE,
    "rounded": ROUNDED,
    "ratio": RATIO,
    "year": YEAR,
    "month": MONTH,
    "day": DAY,
    "hour": "def hour(t):\n    return t // 3600000000 % 24",
    "minute": "def minute(t):\n    return t // 60000000 % 60",
    "second": "def second(t):\n    return t // 1000000 % 60",
    "dayofweek": "def dayofweek(t):\n    return (t // 86400000000 + 4) % 7 + 1",
}
