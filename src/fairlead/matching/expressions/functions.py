"""The language's operators and functions on known values (never NULL).

Takes: canonical values (see model/events/values.py). Gives: a canonical value, or None if the result does not exist: a zero
divisor, a number out of range. Never: sees NULL (the evaluators handle that) or reads a clock or locale.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from fairlead.matching.expressions.casts import DIGITS_MAX, rounded
from fairlead.matching.expressions.like import LikePattern
from fairlead.model.events.types import INTEGER, Kind
from fairlead.model.events.values import DECIMAL_CONTEXT, EPOCH, INT_RANGE, TIMESTAMP_RANGE
from fairlead.model.expressions.text_tests import is_in_networks, regular_expression

TEXT_MAX = 1 << 24
"""Characters of a text that a function makes; a longer one is NULL, so that no rule fills the memory."""
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(sign: str, left: Kind, right: Kind) -> Callable[[Any, Any], bool]:
    """The test for two known values. A DECIMAL beside a DOUBLE is compared as a DOUBLE, as Spark does; integers compare exactly
    with anything."""
    test = COMPARE[sign]
    if {left, right} == {Kind.DECIMAL, Kind.DOUBLE}:
        return lambda a, b: test(float(a), float(b))
    return test


def unknown(value: Any) -> bool:
    """NULL and NaN: a comparison with either is unknown."""
    return value is None or value != value


def in_range(value: Any, kind: Kind) -> Any:
    """The value, or None if its kind cannot hold it."""
    if kind in INTEGER:
        low, high = INT_RANGE[kind]
    elif kind is Kind.INTERVAL:
        low, high = INT_RANGE[Kind.BIGINT]
    elif kind is Kind.TIMESTAMP:
        low, high = TIMESTAMP_RANGE
    else:
        return value
    return value if low <= value <= high else None


def arithmetic(sign: str, kind: Kind) -> Callable[[Any, Any], Any]:
    """The function of two present operands for `left sign right` with a result of `kind`."""
    if sign == "/":
        return _divide
    if sign == "%":
        return _remainder_double if kind is Kind.DOUBLE else _remainder
    if kind is Kind.DOUBLE:
        basic = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign]
        return lambda a, b: basic(float(a), float(b))
    if kind is Kind.DECIMAL:
        exact = {"+": DECIMAL_CONTEXT.add, "-": DECIMAL_CONTEXT.subtract, "*": DECIMAL_CONTEXT.multiply}[sign]
        return lambda a, b: exact(Decimal(a), Decimal(b))
    whole = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign]
    return lambda a, b: in_range(whole(a, b), kind)


def negative(value: Any, kind: Kind) -> Any:
    return DECIMAL_CONTEXT.minus(value) if kind is Kind.DECIMAL else in_range(-value, kind)


def _divide(a: Any, b: Any) -> float | None:
    return None if b == 0 else float(a) / float(b)


def _remainder_double(a: Any, b: Any) -> float | None:
    if b == 0:
        return None
    dividend, divisor = float(a), float(b)
    return math.fmod(dividend, divisor) if math.isfinite(dividend) else math.nan


def _remainder(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        try:
            return DECIMAL_CONTEXT.remainder(Decimal(a), Decimal(b))
        except InvalidOperation:  # the quotient has more than 38 digits
            return None
    size = abs(a) % abs(b)
    return -size if a < 0 else size


def like_pattern(pattern: str) -> LikePattern:
    """The test of `text LIKE pattern`, linear in the text."""
    return LikePattern(pattern)


def aggregate(function: str, values: Sequence[Any], kind: Kind) -> Any:
    """Over the values that are not NULL; with `first`, `last` and `collect`, over all."""
    if function == "collect":
        return tuple(values)
    if function in ("first", "last"):
        return values[0 if function == "first" else -1] if values else None
    present = [value for value in values if value is not None]
    if function == "count":
        return len(present)
    if function == "count distinct":  # NaN is one value
        return len({None if value != value else value for value in present})
    if not present:
        return None
    if any(value != value for value in present):
        return math.nan
    if function in ("sum", "avg"):
        wanted: list[Any] = [float(value) for value in present] if function == "avg" else present
        total = wanted[0]
        for value in wanted[1:]:  # in the order of the instances, one rounding per step: the same on every engine
            total = DECIMAL_CONTEXT.add(total, value) if isinstance(total, Decimal) else total + value
        return total / len(wanted) if function == "avg" else in_range(total, kind)
    return min(present) if function == "min" else max(present)


def _rounded(rounding: Callable[[Any], int]) -> Callable[..., Any]:
    def apply(value: Any) -> int | None:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return in_range(rounding(value), Kind.BIGINT)  # type: ignore[no-any-return]

    return apply


def element_at(array: Sequence[Any], number: int) -> Any:
    """From 1, or from the end, where -1 is the last. NULL outside."""
    if number == 0 or abs(number) > len(array):
        return None
    return array[number - 1 if number > 0 else number]


def array_contains(array: Sequence[Any], value: Any) -> bool | None:
    """As `value IN (…)` with the elements: unknown if none is equal and one is NULL or NaN, or if the value is NaN."""
    if unknown(value):
        return None
    if any(not unknown(each) and _equal(each, value) for each in array):
        return True
    return None if any(map(unknown, array)) else False


def _equal(one: Any, other: Any) -> bool:
    if {type(one), type(other)} == {Decimal, float}:  # as `comparison`
        return float(one) == float(other)
    return bool(one == other)


def _substring(text: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else begin + max(0, length)
    return text[max(0, begin) : max(0, end)]


def _within_length(length: int) -> bool:
    return length <= TEXT_MAX


def _concat(*texts: str) -> str | None:
    return "".join(texts) if _within_length(sum(map(len, texts))) else None


def _replace(text: str, part: str, other: str = "") -> str | None:
    if not part:
        return text
    return text.replace(part, other) if _within_length(len(text) + text.count(part) * (len(other) - len(part))) else None


def _split_part(text: str, separator: str, number: int) -> str | None:
    """As in Spark: an empty text where there is no such piece; an empty separator separates nothing."""
    if number == 0:
        return None
    pieces = text.split(separator) if separator else [text]
    at = number - 1 if number > 0 else len(pieces) + number
    return pieces[at] if 0 <= at < len(pieces) else ""


def _rounded_to(kind: Kind) -> Callable[..., Any]:
    def apply(value: Any, places: int = 0) -> Any:
        if isinstance(value, float):
            return value if not math.isfinite(value) else float(rounded(Decimal(repr(value)), _places(places))) + 0.0
        if isinstance(value, Decimal):
            found = rounded(value, _places(places))
            return found if found else found.copy_abs()
        return in_range(int(rounded(Decimal(value), _places(places))), kind)

    return apply


def _places(number: int) -> int:
    """No number has digits beyond these."""
    return max(-DIGITS_MAX, min(DIGITS_MAX, number))


def _moment(value: int) -> datetime:
    return EPOCH + timedelta(microseconds=value)


SCALAR: dict[str, Callable[..., Any]] = {
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "isnan": lambda value: value != value,
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda text: text.strip(" "),
    "length": len,
    "substring": _substring,
    "concat": _concat,
    "replace": _replace,
    "instr": lambda text, part: text.find(part) + 1,
    "split_part": _split_part,
    "rlike": lambda text, pattern: regular_expression(pattern).matches(text),
    "cidr_match": is_in_networks,
    "year": lambda at: _moment(at).year,
    "month": lambda at: _moment(at).month,
    "day": lambda at: _moment(at).day,
    "hour": lambda at: _moment(at).hour,
    "minute": lambda at: _moment(at).minute,
    "second": lambda at: _moment(at).second,
    "size": len,
    "array_contains": array_contains,
    "element_at": element_at,
    "dayofweek": lambda at: _moment(at).isoweekday() % 7 + 1,
}
"""The functions of model/expressions/function_table.py by name, except abs and round (by kind) and coalesce (accepts NULL)."""


def scalar(name: str, kind: Kind) -> Callable[..., Any]:
    if name == "abs" and kind is Kind.DECIMAL:
        return DECIMAL_CONTEXT.abs  # Python's own rounds to 28 digits
    if name == "round":
        return _rounded_to(kind)
    if name == "abs":
        return lambda value: in_range(abs(value), kind)
    return SCALAR[name]
