"""Stable orders of whole numbers, by digits of 16 bits.

NumPy sorts 16-bit numbers by counting, in 4 nanoseconds each; 64-bit numbers it compares, in 40 to 50. The times of events that
are sorted together span seconds, not centuries: one or two digits.

Takes: columns of int64, the first decides first. Gives: the order of the rows. Never: swaps rows that are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
DIGIT_BITS, DIGITS_MAX = 16, 3
"""With four digits, counting is no faster than comparing."""
FEW = 128
"""Rows for which comparing is as fast."""


def stable_order(columns: Sequence[npt.NDArray[np.signedinteger]]) -> Numbers:
    """The rows in ascending order of their columns. `columns` is not empty."""
    order: Numbers | None = None
    for column in reversed(columns):
        order = _sorted(column, order)
    return np.arange(len(columns[0])) if order is None else order


def _sorted(column: npt.NDArray[np.signedinteger], before: Numbers | None) -> Numbers | None:
    """The rows, which are in the order `before`, by this column. None: as they stand."""
    values = (column if before is None else column.take(before)).astype(np.int64, copy=False)
    if len(values) < 2 or (values[1:] >= values[:-1]).all():
        return before
    low = values.min()
    span = int(values.max()) - int(low)
    if len(values) < FEW or span.bit_length() > DIGIT_BITS * DIGITS_MAX:
        return _then(before, np.argsort(values, kind="stable"))
    rest = values - low
    for shift in range(0, span.bit_length(), DIGIT_BITS):
        step = np.argsort((rest >> shift).astype(np.uint16), kind="stable")
        before, rest = _then(before, step), rest.take(step)
    return before


def _then(before: Numbers | None, step: Numbers) -> Numbers:
    return step if before is None else before.take(step)
