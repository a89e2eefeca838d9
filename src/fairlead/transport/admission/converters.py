"""Columns of Python values as Arrow arrays: the conversions of the fast path.

Takes: the values of one column. Gives: an array in Arrow's form of the declared data type; raises one of DOUBTS unless every
value is certainly valid. Never: says what is wrong; returns a value that `canonical` would not return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.model.events.columns import ARROW, arrow_array, arrow_type
from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import DATE_RANGE, FINER_THAN_MICROSECONDS, TIMESTAMP_RANGE, canonical, plain_number

DOUBTS = (LookupError, TypeError, ValueError, ArithmeticError, pa.ArrowException)
"""Exceptions of a conversion whose column is not certainly valid. ArrowInvalid and UnicodeError are ValueErrors."""

NULL = type(None)
MICROSECONDS = ARROW[Kind.TIMESTAMP]


def only(values: Sequence[Any], *types: type) -> None:
    if not set(map(type, values)).issubset(types):
        raise TypeError("other types than the plain ones")


def column(values: list[Any], wanted: DataType, *, allow_nan: bool, text: bool) -> pa.Array:
    """One column in Arrow's form of its data type. Raises one of DOUBTS unless every value is certainly valid."""
    if wanted.is_nested:
        return _nested(values, wanted, allow_nan=allow_nan)
    if text and wanted.kind in TEXT:
        only(values, str, NULL)
        array = TEXT[wanted.kind](values, wanted)
    else:
        array = TYPED[wanted.kind](values, wanted)
    if not isinstance(array, pa.Array):
        raise ValueError("more than 2 GB in one column")  # Arrow would return chunks
    return array if allow_nan else finite(array)


def _nested(values: list[Any], wanted: DataType, *, allow_nan: bool) -> pa.Array:
    """Like the columns of attributes: of what is inside, one after the other."""
    known = [value for value in values if value is not None]
    mask = None if len(known) == len(values) else pa.array([value is None for value in values])
    if wanted.element is not None:
        only(known, list)
        inside = column([each for value in known for each in value], wanted.element, allow_nan=allow_nan, text=False)
        ends = pa.array(np.cumsum([0, *(0 if value is None else len(value) for value in values)]), pa.int32())
        return pa.ListArray.from_arrays(ends, inside, type=arrow_type(wanted), mask=mask)
    only(known, dict)
    if not all(each.keys() <= wanted.index.keys() for each in known):
        raise ValueError("other fields")
    parts = []
    for each in wanted.fields:
        cells = [None if value is None else value.get(each.name) for value in values]
        parts.append(column(cells, each.type, allow_nan=allow_nan, text=False))
    return pa.StructArray.from_arrays(parts, fields=list(arrow_type(wanted)), mask=mask)


def finite(array: pa.Array) -> pa.Array:
    """The array, if it holds no NaN and no infinity."""
    if pa.types.is_floating(array.type) and not np.isfinite(present(array)).all():
        raise ValueError("not finite")
    return array


def present(array: pa.Array) -> npt.NDArray[Any]:
    """The values of an array of numbers, without the nulls."""
    found: npt.NDArray[Any] = (array.drop_null() if array.null_count else array).to_numpy()
    return found


def _booleans(values: list[Any], wanted: DataType) -> pa.Array:
    only(values, bool, NULL)
    return pa.array(values, ARROW[Kind.BOOLEAN])


def _integers(values: list[Any], wanted: DataType) -> pa.Array:
    only(values, int, NULL)
    return pa.array(values, ARROW[wanted.kind])


def _doubles(values: list[Any], wanted: DataType) -> pa.Array:
    only(values, float, int, NULL)
    return pa.array(values, ARROW[Kind.DOUBLE])


def _strings(values: list[Any], wanted: DataType) -> pa.Array:
    only(values, str, NULL)
    return pa.array(values, ARROW[Kind.STRING])


def _binaries(values: list[Any], wanted: DataType) -> pa.Array:
    return pa.array([canonical(value, wanted) for value in values], ARROW[Kind.BINARY])


def _decimals(values: list[Any], wanted: DataType) -> pa.Array:
    return pa.array([canonical(value, wanted) for value in values], arrow_type(wanted))


def _timestamps(values: list[Any], wanted: DataType) -> pa.Array:
    kinds = set(map(type, values)) - {NULL}
    if kinds <= {str}:
        return iso_timestamps(pa.array(values, pa.string()), values)
    if kinds == {datetime}:
        return in_range(pa.array(values, MICROSECONDS))
    if kinds in ({int}, {float}):
        return seconds(pa.array(values, pa.int64() if kinds == {int} else pa.float64()))
    return in_range(pa.array([canonical(value, wanted) for value in values], pa.int64()).view(MICROSECONDS))


def iso_timestamps(texts: pa.Array, values: Sequence[str | None] | None = None) -> pa.Array:
    """Timestamps of ISO 8601 texts: by Arrow where it can (all with a zone, or all without), else by Python."""
    for target in (MICROSECONDS, pa.timestamp("us")):
        try:
            return in_range(texts.cast(target).cast(pa.int64()).view(MICROSECONDS))
        except pa.ArrowInvalid:
            continue
    listed = texts.to_pylist() if values is None else values
    if FINER_THAN_MICROSECONDS.search("\n".join(value for value in listed if value is not None)):
        raise ValueError("finer than a microsecond")
    return in_range(pa.array([None if value is None else datetime.fromisoformat(value) for value in listed], MICROSECONDS))


def seconds(numbers: pa.Array) -> pa.Array:
    """Timestamps of seconds since 1970: integers exactly, floats rounded half to even, as Python rounds."""
    import pyarrow.compute as pc

    if pa.types.is_floating(numbers.type):
        numbers = pc.round(pc.multiply(finite(numbers.cast(pa.float64())), 1e6), round_mode="half_to_even").cast(pa.int64())
    else:
        numbers = pc.multiply_checked(numbers.cast(pa.int64()), 1_000_000)
    return in_range(numbers.view(MICROSECONDS))


def in_range(array: pa.Array) -> pa.Array:
    """The timestamps, if all lie in the years that a datetime can show."""
    values = present(array.view(pa.int64()))
    if len(values) and not (TIMESTAMP_RANGE[0] <= values.min() and values.max() <= TIMESTAMP_RANGE[1]):
        raise ValueError("out of the range of TIMESTAMP")
    return array


def _dates(values: list[Any], wanted: DataType) -> pa.Array:
    only(values, str, date, NULL)
    if str not in map(type, values):
        return pa.array(values, ARROW[Kind.DATE])
    return arrow_array([canonical(value, wanted) for value in values], wanted)


def iso_dates(texts: pa.Array) -> pa.Array:
    """Arrow accepts what Python does: four digits, two and two."""
    return dates_in_range(texts.cast(ARROW[Kind.DATE]))


def dates_in_range(array: pa.Array) -> pa.Array:
    """The dates, if a date of Python can show all of them."""
    values = present(array.view(pa.int32()))
    if len(values) and not (DATE_RANGE[0] <= values.min() and values.max() <= DATE_RANGE[1]):
        raise ValueError("out of the range of DATE")
    return array


def _text_booleans(values: list[Any], wanted: DataType) -> pa.Array:
    return pa.array([canonical(value, wanted, text=True) for value in values], ARROW[Kind.BOOLEAN])


def _text_integers(values: list[Any], wanted: DataType) -> pa.Array:
    return pa.array([None if value is None else int(value) for value in _plain_numbers(values)], ARROW[wanted.kind])


def _text_doubles(values: list[Any], wanted: DataType) -> pa.Array:
    return pa.array([None if value is None else float(value) for value in _plain_numbers(values)], ARROW[Kind.DOUBLE])


def _text_timestamps(values: list[Any], wanted: DataType) -> pa.Array:
    if all(value is None or ":" in value for value in values):  # surely not a number of seconds
        return iso_timestamps(pa.array(values, pa.string()), values)
    return in_range(pa.array([canonical(value, wanted, text=True) for value in values], pa.int64()).view(MICROSECONDS))


def _plain_numbers(values: list[Any]) -> list[Any]:
    plain_number("".join(value for value in values if value is not None))  # all at once: a tenth of the time
    return values


Converter = Callable[[list[Any], DataType], pa.Array]
TYPED: dict[Kind, Converter] = {
    Kind.BOOLEAN: _booleans,
    Kind.INT: _integers,
    Kind.BIGINT: _integers,
    Kind.DOUBLE: _doubles,
    Kind.DECIMAL: _decimals,
    Kind.STRING: _strings,
    Kind.TIMESTAMP: _timestamps,
    Kind.DATE: _dates,
    Kind.BINARY: _binaries,
}
TEXT: dict[Kind, Converter] = {
    Kind.BOOLEAN: _text_booleans,
    Kind.INT: _text_integers,
    Kind.BIGINT: _text_integers,
    Kind.DOUBLE: _text_doubles,
    Kind.TIMESTAMP: _text_timestamps,
}
