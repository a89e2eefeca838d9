"""Every error Fairlead raises, drawn once as a tree. Each has a code, a place, the problem and the fix.

    FairleadError
    ├── LanguageError      L…  the text of a rule does not parse, or does not fit the declared types
    ├── DataError          D…  an event is invalid: unknown type, missing or extra field, wrong value
    ├── StateError         S…  a stored state is damaged, or belongs to another version or plan
    ├── LogError           N…  the log or its server is not reachable, does not permit the action, or is full
    ├── UnsupportedError   U…  a runtime, or this installation, does not support something
    ├── UsageError         A…  an argument of the API or the command line is invalid
    └── InvariantError     X…  an internal check failed: a bug, with its facts

    FairleadWarning        W1…  nothing is wrong, but it costs more than necessary; warnings of rules are data (language/lint)

What each code means stands in error_codes.py; an error with any other code is itself a bug (X001).

Gives: the exception classes, and `require` for invariants that hold also under ``python -O``.
Never: formats for a terminal (the command line does) or imports another module of the project than error_codes.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fairlead.error_codes import CODES


@dataclass(frozen=True)
class Place:
    """A place in a text or a file: line and column, both from 1, and the number of characters to underline."""

    line: int
    column: int = 1
    width: int = 1
    file: str | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}"
        return f"{self.file}, {where}" if self.file else where


TEXT_LENGTH_MAX, KEPT_AT_BEGIN, KEPT_AT_END = 2_000, 1_500, 400
"""Characters of a problem or a fix: it may quote what users pass, which may be megabytes."""
EXCERPT_LENGTH_MAX, KEPT_BEFORE = 200, 100
"""Characters of a line that are shown, and how many of them before the place."""
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]")
"""Characters that a terminal or a log would obey instead of showing them: control characters other than tab and newline, line
separators, and those that change the direction of text."""


def printable(text: str) -> str:
    """The text with escapes for characters that must not reach a terminal. It may quote what a stranger wrote: names, values,
    lines of files."""
    return UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def pictured(text: str) -> str:
    """As `printable`, with one character for each, so that places below the line stay right."""
    return UNSAFE.sub(lambda found: chr(0x2400 + ord(found[0])) if ord(found[0]) < 0x20 else "\ufffd", text)


def bounded(text: str) -> str:
    """A text of a message, without its middle where it is too long to read."""
    if len(text) <= TEXT_LENGTH_MAX:
        return text
    left_out = f" … {len(text) - KEPT_AT_BEGIN - KEPT_AT_END:,} characters … "
    return text[:KEPT_AT_BEGIN] + left_out + text[-KEPT_AT_END:]


def excerpt_lines(excerpt: str, place: Place | None) -> list[str]:
    """The line of a text, and carets below it; of a long line, the part around the place."""
    column = 0 if place is None else place.column - 1
    start = 0 if len(excerpt) <= EXCERPT_LENGTH_MAX else max(0, column - KEPT_BEFORE)
    part = excerpt[start : start + EXCERPT_LENGTH_MAX]
    before, after = "…" if start else "", "…" if start + len(part) < len(excerpt) else ""
    lines = [f"    {before}{pictured(part)}{after}"]
    if place is not None:
        at = column - start
        lines.append("    " + " " * (len(before) + at) + "^" * max(1, min(place.width, EXCERPT_LENGTH_MAX - at)))
    return lines


class FairleadError(Exception):
    """The base class of all errors that Fairlead raises.

    `code` is stable and documented (docs/errors.md); `problem` says what is wrong, `fix` what to do about it, `place` where it
    is, and `excerpt` quotes the line of the text. `accepted` is set by `publish` and `flush`: True if the events are kept and
    sent with the next publish or flush, False if they were rejected, None if the error is not about publishing.
    """

    accepted: bool | None = None

    def __init__(
        self, code: str, problem: str, fix: str | None = None, place: Place | str | None = None, excerpt: str | None = None
    ) -> None:
        require_registered(code)
        self.code = code
        self.problem = printable(bounded(problem))
        self.fix = None if fix is None else printable(bounded(fix))
        self.place = place
        self.excerpt = excerpt
        super().__init__(str(self))

    def __str__(self) -> str:
        head = f"{self.code} {printable(str(self.place))}: {self.problem}" if self.place else f"{self.code} {self.problem}"
        lines = [head]
        if self.excerpt is not None:
            lines += excerpt_lines(self.excerpt, self.place if isinstance(self.place, Place) else None)
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.code, self.problem, self.fix, self.place, self.excerpt), {"accepted": self.accepted})


class FairleadWarning(UserWarning):
    """The category of Fairlead's warnings. Python shows each once per line of code; `warnings.simplefilter` changes that."""

    def __init__(self, code: str, problem: str, fix: str) -> None:
        require_registered(code)
        self.code, self.problem, self.fix = code, problem, fix
        super().__init__(f"{code} {problem}\n  fix: {fix}")


class LanguageError(FairleadError):
    """The text of a rule does not parse, or does not fit the declared types."""


class DataError(FairleadError):
    """An event does not fit its type, or a file does not hold events."""


class StateError(FairleadError):
    """A stored state does not load: it is damaged, or belongs to another version or plan."""


class LogError(FairleadError):
    """The log or its server cannot do what you asked for now: not reachable, not permitted, full."""


class UnsupportedError(FairleadError):
    """A runtime does not support a part of the plan, or an optional dependency is not installed."""


class UsageError(FairleadError):
    """An argument or option is invalid."""


class InvariantError(FairleadError):
    """An internal check failed. This is always a bug in Fairlead."""


def require(holds: bool, fact: str, **facts: Any) -> None:
    """Crash with the facts if an invariant does not hold."""
    if not holds:
        shown = ", ".join(f"{name}={value!r}" for name, value in facts.items())
        raise InvariantError(
            "X001", f"{fact} ({shown})" if shown else fact, fix="please report this with the rule and the events"
        )


def require_registered(code: str) -> None:
    """An error or a warning has a code that error_codes.py lists."""
    if code not in CODES:
        require(False, "the code of an error is listed in error_codes.py", code=code)
