"""The record check decides exactly whether one record fits its type, and computes its canonical values.

The other checks of records (bulk_check.py, casts.py) only make it faster: they accept a subset of what this module accepts,
with the same values, and must leave every doubt to it. So all inputs agree, including their errors.

Takes: a record as a dict. Gives: its shape, canonical row, source, sequence and time of storage, or a DataError without a
place. Never: reads files, knows positions, or keeps anything between records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from fairlead.errors import DataError
from fairlead.model.events.columns import arrow_schema, text_array
from fairlead.model.events.nested_values import scalars_in
from fairlead.model.events.types import HEARTBEAT, Attribute, Catalogue, DataType, EventType, Kind
from fairlead.model.events.values import INT_RANGE, canonical, plain_number
from fairlead.model.limits import LIMITS
from fairlead.transport.admission.problems import (
    SPECIAL,
    fix_of,
    missing_field,
    no_type,
    not_published,
    oversized,
    quoted,
    unknown_field,
    unknown_type,
)

ABSENT: Any = object()
VALUE_BYTES = 8
"""What a value in an ARRAY or a STRUCT counts at least: an ARRAY of numbers has no text, and can still be large."""
MILLISECONDS_FIX = "divide milliseconds by 1000: a number is seconds since 1970; or use ISO 8601 text"
NOT_FINITE_FIX = "use null, or --allow-nan, which lets NaN and infinities in from files"


class RecordShape:
    """One publishable type, prepared for reading."""

    def __init__(self, event_type: EventType, code: int, allow_nan: bool, text: bool, position_field: str | None) -> None:
        self.name = event_type.name
        self.code = code
        self.attributes = event_type.attributes
        self.names = tuple(each.name for each in event_type.attributes)
        known = frozenset(self.names) | frozenset(SPECIAL)
        self.allowed = known if position_field is None else known | {position_field}
        self.fields = len(self.names) + len(self.allowed) - len(known)
        """The number of attributes, plus the position unless it is one of them."""
        self.time_index = event_type.time_index
        self.schema = arrow_schema(event_type)
        self.decimals = {
            each.name: each.type
            for each in event_type.attributes
            if any(part.kind is Kind.DECIMAL for part in each.type.scalars)
        }
        """The attributes with a DECIMAL, or with one inside."""
        self.allow_nan = allow_nan
        self.text = text

    def row(self, record: Mapping[Any, Any]) -> tuple[Any, ...]:
        """The canonical values in the order of the attributes."""
        for name in record:
            if name not in self.allowed:
                missing = [each for each in self.names if each not in record]
                raise unknown_field(name, f"event type '{self.name}'", self.names, missing)
        row = tuple(self._value(record.get(each.name, ABSENT), each) for each in self.attributes)
        if self.time_index is not None and row[self.time_index] is None:
            problem = f"the event time '{self.names[self.time_index]}' of '{self.name}' is null"
            raise DataError("D006", problem, "give every event of a type with TIME a time")
        if _bytes_over(row, LIMITS.event_bytes_max):
            raise oversized(f"the record of '{self.name}'")
        return row

    def _is_time(self, attribute: Attribute) -> bool:
        return self.time_index is not None and attribute is self.attributes[self.time_index]

    def _value(self, value: Any, attribute: Attribute) -> Any:
        if value is None or (type(value) is str and attribute.type.kind is Kind.STRING and value.isascii()):
            return value
        where = _Where(attribute.name, self.name)
        if value is ABSENT:
            raise missing_field(attribute.name, str(where), text=self.text, is_time=self._is_time(attribute))
        try:
            result = canonical(value, attribute.type, text=self.text)
        except ValueError as error:
            if _is_not_finite(value):
                raise DataError(
                    "D005", f"{where}: {attribute.type} does not support {str(value)[:40]}", "use null for an unknown value"
                ) from None
            usual = fix_of(attribute.type, may_be_null=not self._is_time(attribute))
            fix = MILLISECONDS_FIX if "seconds since 1970" in str(error) else usual
            raise DataError("D004", f"{where}: {error}", fix) from None
        for scalar, data_type in scalars_in(result, attribute.type):
            if data_type.kind is Kind.DOUBLE and not self.allow_nan and not math.isfinite(scalar):
                raise DataError(
                    "D005",
                    f"{where} {'has' if attribute.type.is_nested else 'is'} {scalar}, not a finite number",
                    NOT_FINITE_FIX,
                )
            if data_type.kind is Kind.STRING and not is_unicode(scalar):
                raise DataError("D016", f"{where}: {quoted(scalar)} is not valid Unicode text", "replace the lone surrogates")
        return result


class Shapes:
    """All publishable types of a catalogue, numbered: declared ones in order, then Heartbeat. `position_field`: the field with
    the position of a record, if records contain positions; it may also be an attribute."""

    def __init__(self, catalogue: Catalogue, *, allow_nan: bool, text: bool = False, position_field: str | None = None) -> None:
        publishable = [each for each in catalogue if not each.derived and not each.is_union]
        self.default = publishable[0].name if len(publishable) == 1 else None
        if all(each.name != HEARTBEAT.name for each in publishable):
            publishable.append(catalogue[HEARTBEAT.name])
        self.catalogue = catalogue
        self.names = tuple(each.name for each in publishable)
        self.name_array = text_array(self.names)
        self.by_code = [RecordShape(each, code, allow_nan, text, position_field) for code, each in enumerate(publishable)]
        self.code_of = {each.name: each.code for each in self.by_code}
        self.by_name = {each.name: each for each in self.by_code}
        self.attribute_names = frozenset(name for each in self.by_code for name in each.names)
        self.nested = {each.name: each.type for shape in self.by_code for each in shape.attributes if each.type.is_nested}
        self.position_field = position_field
        self.special = SPECIAL if position_field is None else (*SPECIAL, position_field)
        self.columns_known = tuple(dict.fromkeys([*self.special, *(name for each in self.by_code for name in each.names)]))
        self.allow_nan = allow_nan
        self.text = text
        self.needs_decimal = any(each.decimals for each in self.by_code)

    def shape_of(self, record: Mapping[Any, Any]) -> RecordShape:
        """The shape that a record's `type` names."""
        name = record.get("type", ABSENT)
        if name is ABSENT:
            if self.default is None:
                raise no_type(record)
            name = self.default
        if not isinstance(name, str):
            raise DataError("D027", f"expected text in `type`, got {quoted(name)}", "name the event type in the field `type`")
        shape = self.by_name.get(name)
        if shape is not None:
            return shape
        declared = self.catalogue.get(name)
        if declared is None:
            raise unknown_type(name, self.names)
        raise not_published(declared)

    def judge(self, record: Any) -> tuple[RecordShape, tuple[Any, ...], str | None, int | None, int | None]:
        """Shape, canonical row, source, sequence and time of storage of one record. Raises the record itself if it is a
        DataError."""
        if isinstance(record, DataError):
            raise record
        if not isinstance(record, Mapping):
            fix = 'write {"type": …, attribute: value, …}'
            raise DataError("D009", f"expected an object, got {quoted(record)}", fix)
        shape = self.shape_of(record)
        row = shape.row(record)
        given = _source(record.get("_source")), _sequence(record.get("_sequence"), self.text)
        return shape, row, *given, _stored(record.get("_stored"), self.text)


class _Where(NamedTuple):
    """An attribute as messages name it; formatted only if something is wrong."""

    attribute: str
    type: str

    def __str__(self) -> str:
        return f"attribute '{self.attribute}' of '{self.type}'"


def _is_not_finite(value: Any) -> bool:
    return not value.is_finite() if isinstance(value, Decimal) else isinstance(value, float) and not math.isfinite(value)


def is_unicode(text: str) -> bool:
    """False if lone surrogates keep the text from being UTF-8; JSON's escapes can produce them."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _source(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and is_unicode(value)):
        return value
    raise DataError("D010", f"expected text in `_source`, got {quoted(value)}", "name the publisher as text, or leave it out")


def _sequence(value: Any, text: bool) -> int | None:
    if value is None:
        return None
    try:
        if text and isinstance(value, str):
            value = int(plain_number(value))
        low, high = INT_RANGE[Kind.BIGINT]
        if not isinstance(value, bool) and hasattr(value, "__index__") and low <= value <= high:
            return int(value)
    except ValueError:
        pass
    fix = "number the records of a source with integers"
    raise DataError("D010", f"expected a 64-bit integer in `_sequence`, got {quoted(value)}", fix)


def _stored(value: Any, text: bool) -> int | None:
    if value is None:
        return None
    try:
        return int(canonical(value, DataType(Kind.TIMESTAMP), text=text))
    except (ValueError, OverflowError):
        fix = "write when the log stored the event as a TIMESTAMP, or leave it out"
        raise DataError("D010", f"expected a TIMESTAMP in `_stored`, got {quoted(value)}", fix) from None


def _bytes_over(row: tuple[Any, ...], limit: int) -> bool:
    """Whether the text and bytes of a row exceed the limit. A character has at most four bytes, so few rows are encoded."""
    sized = [value for value in row if isinstance(value, (str, bytes))]
    nested = [value for value in row if type(value) is tuple]
    if not nested and 4 * sum(map(len, sized)) <= limit:
        return False
    return sum(map(_bytes_of, (*sized, *nested))) > limit


def _bytes_of(value: Any) -> int:
    """Of a text, of bytes, and of all that is in a nested value, where each part counts as a number, too."""
    if type(value) is tuple:
        return sum(VALUE_BYTES + _bytes_of(each) for each in value)
    return len(value.encode()) if isinstance(value, str) else len(value) if isinstance(value, bytes) else 0
