"""Small functions that tests call from inside the loop, as source: what in matching/functions.py is more than one operator.

An overflow wraps around silently, so what must not overflow is tested before.
Only those that a kernel uses are compiled with it. All run as plain Python over NumPy numbers too (see compile.py).
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
}
