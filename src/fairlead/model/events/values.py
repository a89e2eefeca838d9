"""Values: the canonical form of each data type, conversion from raw input, and conversion back for users.

    BOOLEAN bool · INT, BIGINT int in range · DOUBLE float · DECIMAL decimal.Decimal at its scale · STRING str
    TIMESTAMP int, microseconds since 1970 UTC · DATE int, days since 1970 · BINARY bytes · any of them may be None (NULL)
    ARRAY and STRUCT tuples of these (nested_values.py)

Takes: a raw value (of Python, JSON or CSV). Gives: the canonical one, or a ValueError that says what is wrong.
Never: guesses. Text becomes a number only if `text=True` says that the source has no types (CSV).
"""

from __future__ import annotations

import base64
import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any

from fairlead.model.events.nested_values import nested, plain
from fairlead.model.events.types import DataType, Kind

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_DAY = EPOCH.toordinal()
DECIMAL_CONTEXT = Context(prec=38, rounding=ROUND_HALF_EVEN)
DECIMAL_BITS = 127
"""38 digits are fewer than 2**127."""
INT_RANGE = {Kind.INT: (-(2**31), 2**31 - 1), Kind.BIGINT: (-(2**63), 2**63 - 1)}
FINER_THAN_MICROSECONDS = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")  # fromisoformat would truncate these digits silently
DATE_AS_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")  # fromisoformat also accepts weeks, and dates without hyphens
SECONDS_AS_TEXT = re.compile(r"[+-]?[0-9]+([.][0-9]+)?")
BRIEF_BITS = 256
"""Whole numbers up to this size are shown with all their digits, 78 of them."""
_UNITS = (
    (86_400_000_000, "DAY"),
    (3_600_000_000, "HOUR"),
    (60_000_000, "MINUTE"),
    (1_000_000, "SECOND"),
    (1_000, "MILLISECOND"),
)
TIMESTAMP_RANGE = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # years 1 to 9999, the range of datetime
DAY = 86_400_000_000
DATE_RANGE = (TIMESTAMP_RANGE[0] // DAY, TIMESTAMP_RANGE[1] // DAY)


def microseconds(moment: datetime) -> int:
    """Exact microseconds since the epoch; a naive datetime is UTC."""
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (aware - EPOCH) // timedelta(microseconds=1)


def duration_words(length_us: int) -> str:
    """`5 MINUTES`: the largest unit that divides it."""
    for size, unit in _UNITS:
        if length_us and length_us % size == 0:
            count = length_us // size
            return f"{count} {unit}" + ("S" if count != 1 else "")
    return f"{length_us} MICROSECONDS"


def canonical(value: Any, wanted: DataType, *, text: bool = False) -> Any:
    """The canonical form of a raw value. Raises ValueError with the problem in words."""
    if value is None:
        return None
    match wanted.kind:
        case Kind.BOOLEAN:
            return _boolean(value, text)
        case Kind.INT | Kind.BIGINT:
            return _integer(value, wanted.kind, text)
        case Kind.DOUBLE:
            return _double(value, text)
        case Kind.DECIMAL:
            return _decimal(value, wanted)
        case Kind.STRING:
            if not isinstance(value, str):
                raise ValueError(f"expected STRING, got {_named(value)}")
            return value
        case Kind.TIMESTAMP:
            return _timestamp(value, text)
        case Kind.DATE:
            return _date(value)
        case Kind.BINARY:
            return _binary(value)
        case Kind.ARRAY | Kind.STRUCT:
            return nested(value, wanted, canonical)
        case _:
            raise ValueError(f"{wanted} is not a type of an attribute")


def shown(value: Any, form: DataType | Kind) -> Any:
    """The value for users: timestamps as aware datetimes, dates as dates, intervals as timedeltas, arrays as lists, structs as
    dicts, others unchanged. A nested value needs its data type."""
    if value is None:
        return None
    if isinstance(form, DataType):
        return plain(value, form, shown) if form.is_nested else shown(value, form.kind)
    if form is Kind.TIMESTAMP:
        return EPOCH + timedelta(microseconds=value)
    if form is Kind.DATE:
        return date.fromordinal(FIRST_DAY + value)
    if form is Kind.INTERVAL:
        return timedelta(microseconds=value)
    return value


def jsonable(value: Any, form: DataType | Kind) -> Any:
    """The value for JSON: ISO 8601 for timestamps and dates, text for decimals (exact), base64 for bytes, seconds for
    intervals, and text for the numbers that JSON does not have. A nested value needs its data type."""
    if isinstance(form, DataType):
        return plain(value, form, jsonable) if form.is_nested else jsonable(value, form.kind)
    match value:
        case bool() | None:
            return value
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case float() if not math.isfinite(value):
            return str(value)
        case int() if form is Kind.TIMESTAMP:
            return (EPOCH + timedelta(microseconds=value)).isoformat().replace("+00:00", "Z")
        case int() if form is Kind.DATE:
            return date.fromordinal(FIRST_DAY + value).isoformat()
        case int() if form is Kind.INTERVAL:
            return value / 1_000_000
    return value


class Opaque:
    """A value that Python's own types cannot hold; it fits no data type, and appears in the error."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


def _named(value: Any) -> str:
    if isinstance(value, Opaque):
        return _cut(value.text)
    return f"{type(value).__name__} {brief(value)}"


def brief(value: Any, most: int = 80) -> str:
    """A value for a message: short, always printable (repr escapes lone surrogates), and fast even for a number of a million
    digits, which Python prints in a second, or (beyond 4,300) not at all."""
    if isinstance(value, int) and value.bit_length() > BRIEF_BITS:
        return f"{'-' if value < 0 else ''}2**{value.bit_length() - 1} or more"
    try:
        shown = repr(value[: most + 1] if isinstance(value, str | bytes) else value)
    except Exception:  # a list of such numbers, or an object whose repr fails
        return f"a {type(value).__name__} without a readable form"
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def _short(value: Any) -> str:
    return brief(value) if not isinstance(value, str | Decimal | datetime) else _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _boolean(value: Any, text: bool) -> bool:
    if isinstance(value, bool):
        return value
    if text and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(f"expected BOOLEAN, got {_named(value)}")


def _integer(value: Any, kind: Kind, text: bool) -> int:
    if text and isinstance(value, str):
        try:
            value = int(plain_number(value))
        except ValueError:
            raise ValueError(f"expected {kind}, got {_named(value)}") from None
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"expected {kind}, got {_named(value)}")
    number = _asked(operator.index, value, str(kind))
    low, high = INT_RANGE[kind]
    if not low <= number <= high:
        raise ValueError(f"{_short(number)} is out of the range of {kind}")
    return int(number)


def _double(value: Any, text: bool) -> float:
    if text and isinstance(value, str):
        try:
            return float(plain_number(value))
        except ValueError:
            raise ValueError(f"expected DOUBLE, got {_named(value)}") from None
    if isinstance(value, bool) or not (isinstance(value, (int, float)) or hasattr(value, "__float__")):
        raise ValueError(f"expected DOUBLE, got {_named(value)}")
    if isinstance(value, str | Decimal):
        raise ValueError(f"expected DOUBLE, got {_named(value)}")
    try:
        return float(value) if isinstance(value, (int, float)) else float(_asked(float, value, "DOUBLE"))
    except OverflowError:
        raise ValueError(f"{_short(value)} is out of the range of DOUBLE") from None


def _asked(convert: Callable[[Any], Any], value: Any, wanted: str) -> Any:
    """Converts an object that is not a Python number. Arrays have the methods too, and fail."""
    try:
        return convert(value)
    except Exception:
        raise ValueError(f"expected {wanted}, got {_named(value)}") from None


def _decimal(value: Any, wanted: DataType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise ValueError(f"expected {wanted}, got {_named(value)}")
    if isinstance(value, int) and value.bit_length() > DECIMAL_BITS:  # converting it to a Decimal is quadratic
        raise ValueError(f"{_short(value)} is out of the range of {wanted}")
    try:
        number = Decimal(plain_number(str(value))) if isinstance(value, (float, str)) else Decimal(value)
    except (InvalidOperation, ValueError):
        raise ValueError(f"expected {wanted}, got {_named(value)}") from None
    if not number.is_finite():
        raise ValueError(f"{wanted} has no {_short(value)}")
    if number and number.adjusted() >= wanted.precision - wanted.scale:
        raise ValueError(f"{_short(value)} is out of the range of {wanted}")
    try:
        scaled = number.quantize(Decimal(1).scaleb(-wanted.scale), context=DECIMAL_CONTEXT) if number else None
    except InvalidOperation:  # it has the digits of the type before the point: only rounding can have added one
        raise ValueError(f"{_short(value)} has more than {wanted.scale} decimal places") from None
    if scaled is None:
        return Decimal(0).scaleb(-wanted.scale)  # also of -0
    if scaled != number:
        raise ValueError(f"{_short(value)} has more than {wanted.scale} decimal places")
    return scaled


def plain_number(text: str) -> str:
    """The text of a number, without forms that only Python accepts: underscores (`1_000` is a typo in data), and digits and
    spaces of other scripts. Raises ValueError."""
    if "_" in text or not text.isascii():
        raise ValueError("not the plain digits of a number")
    return text


def _timestamp(value: Any, text: bool) -> int:
    if text and isinstance(value, str) and SECONDS_AS_TEXT.fullmatch(value):
        value = float(value) if "." in value else int(value)
    elif not isinstance(value, (bool, int)) and hasattr(value, "__index__"):
        value = _asked(operator.index, value, "TIMESTAMP")  # NumPy's integers
    if isinstance(value, datetime):
        if value != value:  # pandas.NaT
            raise ValueError(f"expected TIMESTAMP, got {_named(value)}")
        if getattr(value, "nanosecond", 0):  # pandas.Timestamp
            raise ValueError(f"{_short(value)} is finer than a microsecond")
        result = microseconds(value)
    elif isinstance(value, str):
        if FINER_THAN_MICROSECONDS.search(value):
            raise ValueError(f"{_short(value)} is finer than a microsecond")
        try:
            result = microseconds(datetime.fromisoformat(value))
        except ValueError:
            raise ValueError(f"expected TIMESTAMP (ISO 8601), got {_named(value)}") from None
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"expected TIMESTAMP, got {_named(value)}")
    elif isinstance(value, float):
        if not math.isfinite(value * 1_000_000):
            raise ValueError(f"TIMESTAMP has no {value}")
        result = round(value * 1_000_000)  # seconds, as Spark casts numbers
    else:
        result = value * 1_000_000
    if not TIMESTAMP_RANGE[0] <= result <= TIMESTAMP_RANGE[1]:
        seconds = " seconds since 1970" if isinstance(value, (int, float)) else ""
        raise ValueError(f"{_short(value)}{seconds} is out of the range of TIMESTAMP (years 1 to 9999)")
    return result


def _date(value: Any) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - FIRST_DAY
    if isinstance(value, str) and DATE_AS_TEXT.fullmatch(value):
        try:
            return date.fromisoformat(value).toordinal() - FIRST_DAY
        except ValueError:
            raise ValueError(f"there is no DATE {_short(value)}") from None
    raise ValueError(f"expected DATE (ISO 8601), got {_named(value)}")


def _binary(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            raise ValueError(f"expected BINARY (bytes or base64 text), got {_named(value)}") from None
    raise ValueError(f"expected BINARY, got {_named(value)}")
