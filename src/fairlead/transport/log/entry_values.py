"""The values of tables, which are JSON, in the shape that their readers expect: other clients have written them.

A shape is a type; the pattern of a text; a list of one shape; a dict of one type to a shape, or of names to shapes (`name?` may
be missing, other names may be there); a tuple of alternatives.

Takes: bytes, a shape. Gives: the value, or an error with a code. Never: does I/O; changes a value.
"""

from __future__ import annotations

import json
import re
from typing import Any

from fairlead.errors import StateError

UNREADABLE = "S147"
NOTHING = type(None)
NUMBER_MAX = 1 << 64
SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of characters, which JSON can write and UTF-8 cannot."""
DIGEST = re.compile("[0-9a-f]{32}")
"""The shape of the digest of a receipt."""


def entry_value(value: bytes, shape: Any, table: str, key: str) -> Any:
    """Raises StateError (S147)."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        raise unreadable(table, key) from None
    if not fits(found, shape):
        raise unreadable(table, key)
    return found


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
