"""The fast path for Arrow columns: lossless casts to the declared data type.

Takes: a column in any type. Gives: an array in Arrow's form of the declared data type, or raises one of DOUBTS; then the record
check reads the rows one by one (`values_of` returns them as Python values). Never: rounds, truncates or guesses.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fairlead.errors import DataError
from fairlead.model.events.columns import ARROW, arrow_type, decimals_at, number_array
from fairlead.model.events.list_ends import sound_lists
from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import EPOCH, TIMESTAMP_RANGE, Opaque, canonical
from fairlead.transport.admission.converters import (
    MICROSECONDS,
    dates_in_range,
    finite,
    in_range,
    iso_dates,
    iso_timestamps,
    seconds,
)


def cast(column: pa.Array, wanted: DataType, *, allow_nan: bool) -> pa.Array:
    """The column as the wanted data type. Raises one of DOUBTS unless every value is certainly valid."""
    target = arrow_type(wanted)
    if is_.is_null(column.type):
        return pa.nulls(len(column), target)
    if wanted.is_nested:
        return _nested(sound_lists(plain(column)), wanted, allow_nan=allow_nan)
    array = CASTS[wanted.kind](column, wanted)
    return array if allow_nan else finite(array)


def _nested(column: pa.Array, wanted: DataType, *, allow_nan: bool) -> pa.Array:
    """Each part as the column of an attribute. A field that the column does not have is NULL, as a key that an object lacks."""
    target, mask = arrow_type(wanted), column.is_null() if column.null_count else None
    if wanted.element is not None:
        if any(each(column.type) for each in OTHER_LISTS):
            column = column.cast(pa.list_(column.type.value_type))
        _sure(is_.is_list(column.type))
        ends = column.offsets
        low, high = ends[0].as_py(), ends[len(column)].as_py()
        inside = cast(plain(column.values.slice(low, high - low)), wanted.element, allow_nan=allow_nan)
        ends = number_array(ends.to_numpy() - np.int32(low))
        return pa.ListArray.from_arrays(ends, inside, type=target, mask=mask)
    _sure(is_.is_struct(column.type))
    known = [each.name for each in column.type]
    _sure(len(set(known)) == len(known) and set(known) <= wanted.index.keys())
    given = dict(zip(known, column.flatten(), strict=True))
    parts = [
        cast(plain(given[each.name]), each.type, allow_nan=allow_nan)
        if each.name in given
        else pa.nulls(len(column), arrow_type(each.type))
        for each in wanted.fields
    ]
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=mask)


BYTES_OF_TEXT = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
OTHER_LISTS = (is_.is_large_list, is_.is_fixed_size_list, is_.is_list_view, is_.is_large_list_view)
NESTED = (is_.is_nested, is_.is_run_end_encoded, is_.is_union)


def require_sound(column: pa.Array, name: str) -> None:
    """Raises DataError if reading a value could leave the column's memory. Arrow trusts the offsets, views and run ends of a
    table from a file, a socket or another library, and the process would crash. Text that is not UTF-8 is a matter of its
    row, so text is looked at as bytes here."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if is_.is_dictionary(column.type):
        return require_sound(column.dictionary, name)  # `plain` checks the indices
    try:
        if column.type in BYTES_OF_TEXT:
            column = column.view(BYTES_OF_TEXT[column.type])
        column.validate(full=column.type in BYTES_OF_TEXT.values() or any(each(column.type) for each in NESTED))
    except pa.ArrowException as error:
        reason = (str(error).splitlines() or ["unknown"])[0][:200]
        problem = f"the column is damaged: {reason}"
        raise DataError("D032", problem, "write the table again", f"column {name!r}") from None


def plain(column: pa.Array) -> pa.Array:
    """The column without wrappers that do not affect the values: extension types, dictionaries, views, large offsets."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if is_.is_dictionary(column.type):
        try:
            column = column.dictionary_decode()
        except pa.ArrowException as error:
            problem = f"the dictionary of a column is damaged: {error}"
            raise DataError("D032", problem, "write the table again", "table") from None
    if is_.is_string_view(column.type) or is_.is_binary_view(column.type):
        return _without_views(column, pa.string() if is_.is_string_view(column.type) else pa.binary())
    if is_.is_large_string(column.type):
        return column.cast(pa.string())
    if is_.is_large_binary(column.type) or is_.is_fixed_size_binary(column.type):
        return column.cast(pa.binary())
    return column


def _without_views(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Arrow validates only the views of values that are not NULL, but its cast follows all of them, wherever they lead: those
    of NULLs become views of nothing first."""
    if column.null_count:
        validity, views, *texts = column.buffers()
        made = np.frombuffer(views, dtype=np.uint64)[: 2 * (column.offset + len(column))].reshape(-1, 2).copy()
        made[column.offset :][column.is_null().to_numpy(zero_copy_only=False)] = 0
        parts = [validity, pa.py_buffer(made), *texts]
        column = pa.Array.from_buffers(column.type, len(column), parts, column.null_count, column.offset)
    return column.cast(wanted)


def _boolean(column: pa.Array, wanted: DataType) -> pa.Array:
    _sure(is_.is_boolean(column.type))
    return column


def _integer(column: pa.Array, wanted: DataType) -> pa.Array:
    _sure(is_.is_integer(column.type))
    return _as(column, ARROW[wanted.kind])


def _double(column: pa.Array, wanted: DataType) -> pa.Array:
    _sure(is_.is_floating(column.type) or is_.is_integer(column.type))
    return _as(column, ARROW[Kind.DOUBLE], safe=False)  # integers beyond 2**53 round to the nearest, as float(int) does


def _decimal(column: pa.Array, wanted: DataType) -> pa.Array:
    if is_.is_decimal(column.type):
        return decimals_at(column, arrow_type(wanted))
    return pa.array([canonical(value, wanted) for value in column.to_pylist()], arrow_type(wanted))


def _string(column: pa.Array, wanted: DataType) -> pa.Array:
    _sure(is_.is_string(column.type))
    column.validate(full=True)  # Arrow and Parquet do not guarantee that strings are UTF-8
    return column


def _timestamp(column: pa.Array, wanted: DataType) -> pa.Array:
    if is_.is_timestamp(column.type):
        exact = _as(column, pa.timestamp("us", column.type.tz))  # raises if a value is finer than a microsecond
        return in_range(exact.view(MICROSECONDS))  # without a zone it is UTC
    if is_.is_string(column.type):
        return iso_timestamps(_string(column, wanted))
    _sure(is_.is_integer(column.type) or is_.is_floating(column.type))
    return seconds(column)


def _date(column: pa.Array, wanted: DataType) -> pa.Array:
    if is_.is_string(column.type):
        return iso_dates(_string(column, wanted))
    _sure(is_.is_date(column.type))
    return dates_in_range(_as(column, ARROW[Kind.DATE]))  # raises if a value of date64 is no whole day


def _binary(column: pa.Array, wanted: DataType) -> pa.Array:
    if is_.is_string(column.type):
        return pa.array([canonical(value, wanted) for value in _string(column, wanted).to_pylist()], pa.binary())
    _sure(is_.is_binary(column.type))
    return column


def _as(column: pa.Array, target: pa.DataType, *, safe: bool = True) -> pa.Array:
    """A cast that is free if there is nothing to do; Arrow's copies."""
    return column if column.type.equals(target) else column.cast(target, safe=safe)


def _sure(holds: bool) -> None:
    if not holds:
        raise TypeError("a column of another type")


CASTS: dict[Kind, Callable[[pa.Array, DataType], pa.Array]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INT: _integer,
    Kind.BIGINT: _integer,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _string,
    Kind.TIMESTAMP: _timestamp,
    Kind.DATE: _date,
    Kind.BINARY: _binary,
}


def values_of(column: pa.Array) -> list[Any]:
    """The column as Python values for the record check, whatever it holds."""
    try:
        if is_.is_timestamp(column.type):
            return _moments(column)
        return list(column.to_pylist())
    except UnicodeDecodeError:
        if is_.is_nested(column.type):
            return [_value(scalar) for scalar in column]
        raw = plain(column.view(BYTES_OF_TEXT.get(column.type, column.type))).to_pylist()
        return [None if value is None else value.decode("utf-8", "surrogateescape") for value in raw]
    except (ValueError, OverflowError, pa.ArrowException):
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, pa.ArrowException):
        return Opaque(_shown(scalar))


def _shown(scalar: pa.Scalar) -> str:
    try:
        return str(scalar)
    except (ValueError, OverflowError):  # a date or duration out of Python's range
        return f"a {scalar.type} out of range"


def _moments(column: pa.Array) -> list[Any]:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
    moments: list[Any] = []
    for ticks in column.cast(pa.int64()).to_pylist():
        if ticks is None:
            moments.append(None)
            continue
        micros, finer = divmod(ticks * 10**6, per_second)
        if finer:
            moments.append(Opaque(f"{ticks} ns since 1970, finer than a microsecond"))
        elif not TIMESTAMP_RANGE[0] <= micros <= TIMESTAMP_RANGE[1]:
            moments.append(Opaque(f"{ticks} {column.type.unit} since 1970, not in the years 1 to 9999"))
        else:
            moments.append(EPOCH + timedelta(microseconds=micros))
    return moments
