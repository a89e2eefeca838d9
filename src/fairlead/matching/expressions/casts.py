"""`cast(x AS type)` on known values.

    to              from
    INT, BIGINT     numbers, towards zero · text of a number · BOOLEAN as 0, 1 · TIMESTAMP, duration: whole seconds, downwards
    DOUBLE          the same, not rounded
    DECIMAL(p,s)    numbers, text, BOOLEAN; half away from zero; a DOUBLE by its shortest text
    STRING          numbers, BOOLEAN, TIMESTAMP and DATE (ISO 8601)
    BOOLEAN         text: true, false · numbers: not zero
    TIMESTAMP       text (ISO 8601) · numbers: seconds since 1970 · DATE: its midnight
    DATE            text (ISO 8601) · TIMESTAMP: its day, in UTC

Takes: a canonical value and its kind. Gives: the value of the other type, or None if the type has none. Never: raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import DAY, INT_RANGE, TIMESTAMP_RANGE, canonical, jsonable, plain_number

SECOND = 1_000_000
HALF_UP = Context(prec=800, rounding=ROUND_HALF_UP)
"""A DOUBLE has at most 767 digits; nothing is rounded but by `quantize`."""
DIGITS_MAX = 400
"""Places before or after the point beyond which no type has a value."""


def cast(source: Kind, wanted: DataType) -> Callable[[Any], Any]:
    """The function of a known value."""
    if source is wanted.kind and source is not Kind.DECIMAL:
        return lambda value: value
    match wanted.kind:
        case Kind.INT | Kind.BIGINT:
            return lambda value: _whole(
                _number(value, source), INT_RANGE[wanted.kind], downwards=source in (Kind.TIMESTAMP, Kind.INTERVAL)
            )
        case Kind.DOUBLE:
            return lambda value: _double(value, source)
        case Kind.DECIMAL:
            return lambda value: _decimal(_number(value, source), wanted)
        case Kind.STRING:
            return lambda value: _text(value, source)
        case Kind.BOOLEAN:
            return lambda value: _boolean(value, source)
        case Kind.DATE:
            return _date if source is Kind.STRING else lambda value: value // DAY
    return lambda value: _timestamp(value, source)


def _number(value: Any, source: Kind) -> int | Decimal | None:
    """Exact and finite, or None."""
    match source:
        case Kind.DOUBLE:
            return Decimal(repr(value)) if math.isfinite(value) else None
        case Kind.STRING:
            try:
                found = Decimal(plain_number(value.strip(" ")))
            except (InvalidOperation, ValueError):
                return None
            return found if found.is_finite() and abs(found.adjusted()) <= DIGITS_MAX else None
        case Kind.TIMESTAMP | Kind.INTERVAL:
            return HALF_UP.divide(Decimal(value), Decimal(SECOND))
        case Kind.DECIMAL:
            return Decimal(value)
    return int(value)


def _whole(number: int | Decimal | None, range_: tuple[int, int], downwards: bool) -> int | None:
    if number is None:
        return None
    whole = math.floor(number) if downwards else int(number)
    return whole if range_[0] <= whole <= range_[1] else None


def _double(value: Any, source: Kind) -> float | None:
    if source is Kind.STRING:
        try:
            return float(plain_number(value.strip(" ")))
        except ValueError:
            return None
    return value / SECOND if source in (Kind.TIMESTAMP, Kind.INTERVAL) else float(value)


def _decimal(number: int | Decimal | None, wanted: DataType) -> Decimal | None:
    if number is None:
        return None
    scaled = rounded(Decimal(number), wanted.scale)
    if scaled and scaled.adjusted() >= wanted.precision - wanted.scale:
        return None
    return scaled.quantize(Decimal(1).scaleb(-wanted.scale), context=HALF_UP) if scaled else Decimal(0).scaleb(-wanted.scale)


def rounded(number: Decimal, places: int) -> Decimal:
    """Half away from zero, to so many decimal places; a number that has no more is returned as it is."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # it is finite
    if -exponent <= places:
        return number
    if number.adjusted() < -places - 1:  # less than half of the last place
        return Decimal(0)
    return number.quantize(Decimal(1).scaleb(-places), context=HALF_UP)


def _text(value: Any, source: Kind) -> str:
    match source:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.TIMESTAMP | Kind.DATE:
            return str(jsonable(value, source))
        case Kind.DECIMAL:
            return format(value if value else value.copy_abs(), "f")
        case Kind.DOUBLE:
            return "NaN" if value != value else repr(value)
    return str(value)


def _boolean(value: Any, source: Kind) -> bool | None:
    if source is not Kind.STRING:
        return bool(value == value and value != 0)
    return {"true": True, "false": False}.get(value.strip(" ").lower())


def _date(text: str) -> int | None:
    try:
        return int(canonical(text.strip(" "), DataType(Kind.DATE)))
    except ValueError:
        return None


def _timestamp(value: Any, source: Kind) -> int | None:
    if source is Kind.DATE:
        return int(value * DAY)
    if source is Kind.STRING:
        try:
            return int(canonical(value.strip(" "), DataType(Kind.TIMESTAMP)))
        except (ValueError, OverflowError):
            return None
    seconds = _number(value, source)
    if seconds is None:
        return None
    return _whole(HALF_UP.multiply(Decimal(seconds), Decimal(SECOND)), TIMESTAMP_RANGE, downwards=True)
