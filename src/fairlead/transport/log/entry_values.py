"""The values of tables, which are JSON, in the shape that their readers expect: other clients have written them.

A shape is a type; the pattern of a text; a list of one shape; a dict of one type to a shape, or of names to shapes (`name?` may
be missing, other names may be there); a tuple of alternatives.

A server stores messages of up to a megabyte by default, so long values are compressed: the record of a subscriber with some
thousand rules. They are decompressed up to a limit, and not read if they have too many values: an empty list takes three
bytes in JSON, next to nothing when it is compressed, and sixty-four in memory.

Takes: bytes, a shape. Gives: the value, or an error with a code. Never: does I/O; changes a value.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

from fairlead.errors import StateError

UNREADABLE = "S147"
NOTHING = type(None)
NUMBER_MAX = 1 << 64
COMPRESSED = b"fairlead-zlib 1\n"
"""The first line of a compressed value; JSON begins otherwise."""
LONG_BYTES, DECOMPRESSED_BYTES_MAX = 200_000, 64 << 20
"""What is compressed, in some milliseconds; and what it may become again: 60 times the largest message."""
VALUES_MAX = 1_000_000
"""Of an entry: three times what the longest record has that fits into a message of a megabyte."""
TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""In JSON; also one without an end, in one step."""
SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of characters, which JSON can write and UTF-8 cannot."""
DIGEST = re.compile("[0-9a-f]{32}")
"""The shape of the digest of a receipt."""


def entry_bytes(value: Any, most: int = LONG_BYTES) -> bytes:
    """A value as it is stored. `most`: the bytes that a message may have."""
    plain = json.dumps(value).encode()
    return plain if len(plain) <= min(most, LONG_BYTES) else COMPRESSED + zlib.compress(plain)


def entry_value(value: bytes, shape: Any, table: str, key: str) -> Any:
    """Raises StateError (S147)."""
    try:
        plain = _decompressed(value)
        if _values_of(plain) > VALUES_MAX and _values_of(TEXT.sub(b"", plain)) > VALUES_MAX:  # commas of texts do not count
            raise unreadable(table, key)
        found = json.loads(plain)
    except (ValueError, RecursionError):
        raise unreadable(table, key) from None
    if not fits(found, shape):
        raise unreadable(table, key)
    return found


def is_readable(value: bytes, shape: Any) -> bool:
    """Whether clients read an entry that is about to be stored."""
    try:
        entry_value(value, shape, "", "")
    except StateError:
        return False
    return True


def _decompressed(value: bytes) -> bytes:
    """Raises ValueError if it is damaged, or too long."""
    if not value.startswith(COMPRESSED):
        return value
    reading = zlib.decompressobj()
    try:
        plain = reading.decompress(value[len(COMPRESSED) :], DECOMPRESSED_BYTES_MAX)
    except zlib.error:
        raise ValueError("damaged") from None
    if not reading.eof or reading.unused_data:
        raise ValueError("too long, or incomplete")
    return plain


def _values_of(plain: bytes) -> int:
    """At most so many values has a text in JSON."""
    return sum(map(plain.count, (b",", b"[", b"{")))


def fits(value: Any, shape: Any) -> bool:
    match shape:
        case type():
            if shape is int:
                return type(value) is int and abs(value) < NUMBER_MAX
            if shape is str:
                return isinstance(value, str) and not SURROGATES.search(value)
            return isinstance(value, shape)
        case re.Pattern():
            return isinstance(value, str) and shape.fullmatch(value) is not None
        case tuple():
            return any(fits(value, each) for each in shape)
        case [each]:
            return isinstance(value, list) and all(fits(one, each) for one in value)
    if not isinstance(value, dict):
        return False
    for name, each in shape.items():
        if name is str:
            if not all(fits(one, each) for one in value.values()):
                return False
        elif name.endswith("?"):
            if name[:-1] in value and not fits(value[name[:-1]], each):
                return False
        elif name not in value or not fits(value[name], each):
            return False
    return True


def unreadable(table: str, key: str) -> StateError:
    return StateError(UNREADABLE, f"the entry '{key}' of the table {table} is not readable", "remove it, or restore a backup")
