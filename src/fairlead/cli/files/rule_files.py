"""Rule files: read as UTF-8, compiled with their name in every message.

Takes: a path, or `-` for the standard input. Gives: text or a Plan. Raises DataError if it cannot be read, LanguageError if it
is wrong.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fairlead.errors import DataError, LanguageError, Place, UsageError
from fairlead.model.limits import LIMITS

if TYPE_CHECKING:
    from fairlead.model.plans.plan import Plan

STDIN = "-"
ENDING = ".fl"
RULES_BYTES_MAX = LIMITS.text_bytes_max + 3
"""Including a byte order mark (BOM) before the text."""


def load_plan(path: str) -> Plan:
    """The compiled rules, with their guarantees."""
    from fairlead.engine import compile

    return compile(read_rules(path), shown_name(path))


def chosen(plan: Plan, names: Collection[str]) -> Plan:
    """Only these subscriptions; all of them if none is named. Raises UsageError."""
    if not names:
        return plan
    from fairlead.model.arguments import subscription_named

    needed = list(names)
    for name in needed:  # grows: what they read, and what that reads
        read = plan.derived_types(subscription_named(plan, name))
        emitters = dict.fromkeys(one.name for each in read for one in plan.emitters[each])
        needed += [each for each in emitters if each not in needed]
    missing = [each for each in needed if each not in names]
    if missing:
        shown = ", ".join(f"'{each}'" for each in missing)
        problem = f"the chosen subscriptions read derived events of {shown}"
        raise UsageError("A291", problem, f"add {' '.join(f'--subscription {each}' for each in missing)}")
    return replace(plan, subscriptions=tuple(each for each in plan.subscriptions if each.name in names))


def read_rules(path: str) -> str:
    """Raises L003 if the rules are too large, before they fill the memory."""
    if path == STDIN:
        with reading(path, "the rules"):
            content = sys.stdin.buffer.read(RULES_BYTES_MAX + 1)
    else:
        content = read_bytes(path, "the rule file", RULES_BYTES_MAX + 1)
    if len(content) > RULES_BYTES_MAX:
        problem = f"the text has more than {LIMITS.text_bytes_max:,} bytes"
        raise LanguageError("L003", problem, "split it into several files", Place(1, file=shown_name(path)))
    return decoded(content, path)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Adds the rule file's name to errors of code that compiles its text without knowing it."""
    try:
        yield
    except LanguageError as error:
        if not isinstance(error.place, Place) or error.place.file:
            raise
        place = replace(error.place, file=shown_name(path))
        raise LanguageError(error.code, error.problem, error.fix, place, error.excerpt) from None


def shown_name(path: str) -> str:
    return "<stdin>" if path == STDIN else path


def read_bytes(path: str, what: str, most: int = -1) -> bytes:
    """The content of a file or a pipe, or at most this much of it."""
    with reading(path, what), opened(path, what) as file:
        return file.read(most)


@contextmanager
def opened(path: str, what: str, *, pipes: bool = True) -> Iterator[IO[bytes]]:
    """A file, a pipe or a terminal: input that is read completely must have an end, and a device such as /dev/zero has none."""
    with reading(path, what), Path(path).open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode) and not (pipes and (not stat.S_ISCHR(mode) or file.isatty())):
            kinds = "a file or a pipe" if pipes else "a file"
            raise DataError("D013", f"{what} is not {kinds}", f"name {kinds}", path)
        yield file


@contextmanager
def reading(path: str, what: str) -> Iterator[None]:
    """Raises errors of the operating system as D013 with the path."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("D013", f"{what} does not exist", fix="check the path", place=path) from None
    except OSError as error:
        problem = f"{what} is not readable: {error.strerror or error}"
        raise DataError("D013", problem, fix="check the path and its permissions", place=shown_name(path)) from None


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
