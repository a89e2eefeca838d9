"""Nested values as bytes: equal bytes for equal values, however they came.

    NULL                 0
    whole number, time   i, 64 bits            BOOLEAN as 0 and 1; INT and BIGINT alike
    DOUBLE               d, its bits           every NaN is one; 0.0 and -0.0 differ, as in other content of an event
    DECIMAL              m, its text           at the scale of its type
    STRING, BINARY       t, length, bytes
    ARRAY                a, length, elements
    STRUCT               s, number of fields that are not NULL, each with its name, in the order of names

So a field that is added to a STRUCT, and is NULL in a value, changes nothing. Since each part says how long it is, no two
values have the same bytes.

Takes: an Arrow column of lists or structs. Gives: bytes for each value. Never: an order that means anything: it only
distinguishes values, and is the same everywhere.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from fairlead.model.events.columns import canonical_values
from fairlead.model.events.types import Kind

Encoder = Callable[[Any], bytes]
NOTHING = b"0"
NAN = struct.pack(">d", float("nan"))


def nested_bytes(column: pa.Array) -> list[bytes | None]:
    """None for a value that is NULL."""
    encode = _encoder(column.type)
    return [None if value is None else encode(value) for value in canonical_values(column, Kind.STRUCT)]


def _encoder(kind: pa.DataType) -> Encoder:
    if pa.types.is_list(kind):
        return _array(_encoder(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return _struct(sorted((each.name.encode(), at, _encoder(each.type)) for at, each in enumerate(fields)))
    return _scalar


def _array(element: Encoder) -> Encoder:
    def encode(values: tuple[Any, ...]) -> bytes:
        return b"a" + _length(len(values)) + b"".join(NOTHING if each is None else element(each) for each in values)

    return encode


def _struct(fields: list[tuple[bytes, int, Encoder]]) -> Encoder:
    def encode(values: tuple[Any, ...]) -> bytes:
        made = [_sized(name) + inner(values[at]) for name, at, inner in fields if values[at] is not None]
        return b"s" + _length(len(made)) + b"".join(made)

    return encode


def _scalar(value: Any) -> bytes:
    match value:
        case int():
            return b"i" + struct.pack(">q", value)
        case float():
            return b"d" + (NAN if value != value else struct.pack(">d", value))
        case Decimal():
            return b"m" + _sized(format(value, "f").encode())
        case str():
            return b"t" + _sized(value.encode())
    return b"t" + _sized(value)


def _sized(content: bytes) -> bytes:
    return _length(len(content)) + content


def _length(number: int) -> bytes:
    return struct.pack(">I", number)
