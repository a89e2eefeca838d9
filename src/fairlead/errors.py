"""Every error Fairlead raises, drawn once as a tree. Each has a code, a place, the problem and the fix.

    FairleadError
    ├── LanguageError      L…  the text of a rule: it does not parse, or does not fit the declared types
    ├── DataError          D…  an event: unknown type, missing or extra field, wrong value
    ├── StateError         S…  a dumped state: damaged, of another version, of another plan
    ├── LogError           N…  the log or its server: not reachable, not allowed, full
    ├── UnsupportedError   U…  something a runtime, or this installation, cannot do
    ├── UsageError         A…  an argument of the API or the command line
    └── InvariantError     X…  a fact that the code relies on does not hold: a bug, with its facts

    FairleadWarning        W1…  nothing is wrong, but it costs more than it must; warnings of rules are data (language/lint.py)

Gives: the exception classes, and `require` for invariants that hold also under ``python -O``.
Never: formats for a terminal (the command line does) or imports another module of the project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where in a text or a file: 1-based line and column, and how many characters to underline."""

    line: int
    column: int = 1
    width: int = 1
    file: str | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}"
        return f"{self.file}, {where}" if self.file else where


TEXT_LENGTH_MAX, KEPT_AT_BEGIN, KEPT_AT_END = 2_000, 1_500, 400
"""Characters of a problem or a fix: these may quote user input, which may be megabytes long."""
EXCERPT_LENGTH_MAX, KEPT_BEFORE = 200, 100
"""Characters of a line that are shown, and how many of them before the place."""


def bounded(text: str) -> str:
    """A message text; the middle of a long text is omitted."""
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
    lines = [f"    {before}{part}{after}"]
    if place is not None:
        at = column - start
        lines.append("    " + " " * (len(before) + at) + "^" * max(1, min(place.width, EXCERPT_LENGTH_MAX - at)))
    return lines


class FairleadError(Exception):
    """The root. `code` is stable: documentation and tests refer to it. `accepted` is about events that were being published:
    they are kept, and sent with the next publish or flush; or (False) they were not accepted, and are not sent."""

    accepted: bool | None = None

    def __init__(
        self, code: str, problem: str, fix: str | None = None, place: Place | str | None = None, excerpt: str | None = None
    ) -> None:
        self.code = code
        self.problem = bounded(problem)
        self.fix = None if fix is None else bounded(fix)
        self.place = place
        self.excerpt = excerpt
        super().__init__(str(self))

    def __str__(self) -> str:
        head = f"{self.code} {self.place}: {self.problem}" if self.place else f"{self.code} {self.problem}"
        lines = [head]
        if self.excerpt is not None:
            lines += excerpt_lines(self.excerpt, self.place if isinstance(self.place, Place) else None)
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.code, self.problem, self.fix, self.place, self.excerpt), {"accepted": self.accepted})


class FairleadWarning(UserWarning):
    """Python shows it once for each line that caused it; change that with `warnings.simplefilter`."""

    def __init__(self, code: str, problem: str, fix: str) -> None:
        self.code, self.problem, self.fix = code, problem, fix
        super().__init__(f"{code} {problem}\n  fix: {fix}")


class LanguageError(FairleadError):
    """A rule that does not parse or does not fit its types."""


class DataError(FairleadError):
    """An event that does not fit its type, or a file that cannot be read as events."""


class StateError(FairleadError):
    """A dumped state that cannot be loaded."""


class LogError(FairleadError):
    """A log, or its server, that cannot do what was requested now."""


class UnsupportedError(FairleadError):
    """A part of a plan that a runtime cannot run, or an optional dependency that is not installed."""


class UsageError(FairleadError):
    """A wrong argument."""


class InvariantError(FairleadError):
    """A broken invariant; always a bug in Fairlead."""


def require(holds: bool, fact: str, **facts: Any) -> None:
    """Crash with the facts if an invariant does not hold."""
    if not holds:
        shown = ", ".join(f"{name}={value!r}" for name, value in facts.items())
        raise InvariantError(
            "X001", f"{fact} ({shown})" if shown else fact, fix="please report this with the rule and the events"
        )
