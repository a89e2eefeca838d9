"""Rule files: read as UTF-8, compiled with their name in every message.

Takes: a path, or `-` for the standard input. Gives: text or a Plan. Raises DataError where it cannot be read, LanguageError
where it is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.errors import DataError, LanguageError, Place, UsageError

if TYPE_CHECKING:
    from fairlead.model.plan import Plan

STDIN = "-"
ENDING = ".fl"


def load_plan(path: str) -> Plan:
    """The compiled rules, with their guarantees."""
    from fairlead.engine import compile

    return compile(read_rules(path), shown_name(path))


def chosen(plan: Plan, names: Collection[str]) -> Plan:
    """Only these subscriptions; all of them where none is named. Raises UsageError."""
    if not names:
        return plan
    from fairlead.model.arguments import subscription_named

    for name in names:
        read = plan.derived_types(subscription_named(plan, name))
        missing = [one.name for each in read for one in plan.emitters[each] if one.name not in names]
        if missing:
            problem = f"'{name}' reads what {', '.join(missing)} emits"
            raise UsageError("A291", problem, f"choose that too: --subscription {missing[0]}")
    return replace(plan, subscriptions=tuple(each for each in plan.subscriptions if each.name in names))


def read_rules(path: str) -> str:
    if path == STDIN:
        return decoded(sys.stdin.buffer.read(), path)
    return decoded(read_bytes(path, "the rule file"), path)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """The rule file's name in errors of those who compile its text without knowing it."""
    try:
        yield
    except LanguageError as error:
        if not isinstance(error.place, Place) or error.place.file:
            raise
        place = replace(error.place, file=shown_name(path))
        raise LanguageError(error.code, error.problem, error.fix, place, error.excerpt) from None


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
