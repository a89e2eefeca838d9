"""Rule files: read as UTF-8, compiled with their name in every message.

Takes: a path, or `-` for the standard input. Gives: text or a Plan. Raises DataError where it cannot be read, LanguageError
where it is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.errors import DataError, Place

if TYPE_CHECKING:
    from fairlead.model.plan import Plan

STDIN = "-"
ENDING = ".fl"


def load_plan(path: str) -> Plan:
    """The compiled rules, with their guarantees."""
    from fairlead.engine import compile

    return compile(read_rules(path), shown_name(path))


def read_rules(path: str) -> str:
    if path == STDIN:
        return decoded(sys.stdin.buffer.read(), path)
    return decoded(read_bytes(path, "the rule file"), path)


def shown_name(path: str) -> str:
    return "<stdin>" if path == STDIN else path


def read_bytes(path: str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError("D013", f"{what} does not exist", fix="check the path", place=path) from None
    except OSError as error:
        problem = f"{what} cannot be read: {error.strerror or error}"
        raise DataError("D013", problem, fix="check the path and its permissions", place=path) from None


def decoded(content: bytes, path: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        problem = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise DataError(
            "D016", problem, fix="save the file as UTF-8", place=Place(line, column, file=shown_name(path))
        ) from None
