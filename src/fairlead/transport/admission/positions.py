"""Positions in the input: the field or column that the user names.

A position is an integer from 0, larger than all before it; gaps are allowed. A record without a position, or with one that does
not increase, is a bad record like any other. A record that is bad for another reason still uses its position.

Takes: values of that field. Gives: positions, or a DataError without a place; the fast paths raise ValueError or TypeError if
in doubt. Never: reorders or counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.errors import DataError, Place
from fairlead.model.events.columns import bits_of
from fairlead.model.events.values import plain_number
from fairlead.model.relations.identity import POSITIONS_MAX
from fairlead.transport.admission.problems import did_you_mean, listed, quoted

Positions = npt.NDArray[np.int64]
FIX = "use a field that numbers all records, such as the offset of a log with one partition"


def positions_of_column(column: pa.Array) -> Positions:
    """The positions of a table's rows, without a copy if they are 64 bits wide. Raises if in doubt."""
    if not pa.types.is_integer(column.type):
        raise TypeError("not integers")
    if column.null_count:
        raise ValueError("null position")
    return _rising(bits_of(column if pa.types.is_int64(column.type) else column.cast(pa.int64())))


def positions_of_values(values: Sequence[Any], *, text: bool) -> Positions:
    """The positions of records. Raises if in doubt."""
    numbers = list(map(_number, values)) if text else values
    if set(map(type, numbers)) != {int}:
        raise TypeError("not integers")
    return _rising(np.array(numbers, dtype=np.int64))


def position_of(record: Mapping[Any, Any], field: str, least: int, *, text: bool) -> int:
    """The position of one record, at least `least`. Raises DataError."""
    value = record.get(field)
    if value is None:
        raise DataError("D019", f"the record has no value in the position field '{field}'", FIX)
    try:
        found = _number(value) if text else value
    except (TypeError, ValueError):
        found = None
    if found is None or isinstance(found, bool) or not hasattr(found, "__index__"):
        raise DataError("D023", f"'{field}' is not a whole number but {quoted(value)}", FIX)
    position = int(found)
    if not 0 <= position < POSITIONS_MAX:
        raise DataError("D023", f"'{field}' is {quoted(position)}, not a position from 0 to {POSITIONS_MAX - 1:,}", FIX)
    if position < least:
        problem = f"'{field}' is {position}, not greater than the position before it, {least - 1}"
        fix = f"sort the input by '{field}' and remove duplicates; files are read in the order in which they are named"
        raise DataError("D034", problem, fix)
    return position


def no_column(field: str, names: Iterable[str], place: Place | str) -> DataError:
    """The error of a table or header that lacks the column."""
    known = list(names)
    fix = did_you_mean(field, known) or listed("name the column of positions, one of", known)
    return DataError("D020", f"the position column {quoted(field)} is missing", fix, place)


def _number(text: str) -> int:
    return int(plain_number(text))


def _rising(found: Positions) -> Positions:
    if len(found) and not (found[0] >= 0 and found[-1] < POSITIONS_MAX and bool((found[1:] > found[:-1]).all())):
        raise ValueError("not rising positions")
    return found
