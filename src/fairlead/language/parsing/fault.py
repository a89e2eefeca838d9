"""An error in a rule text before it has a line and a column: its code, its span of characters, the problem, the fix.

The passes raise a `Fault`; `compile_text` turns the first one into a LanguageError with place and excerpt, so no pass needs the
text. Also the one way to say "did you mean".
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """Characters `start` (inclusive) to `end` (exclusive) of the text. A tuple, since a long text has a hundred thousand."""

    start: int
    end: int


class Fault(Exception):
    def __init__(self, code: str, span: Span, problem: str, fix: str | None = None) -> None:
        self.code = code
        self.span = span
        self.problem = problem
        self.fix = fix
        super().__init__(f"{code} {problem}")


def closest(name: str, options: Iterable[str], likeness: float = 0.6) -> str | None:
    """The option that a misspelt name most likely meant, ignoring case; the first of equally likely ones."""
    folded: dict[str, str] = {}
    for option in options:
        folded.setdefault(option.casefold(), option)
    found = difflib.get_close_matches(name.casefold()[:64], folded, n=1, cutoff=likeness)
    return folded[found[0]] if found else None


def did_you_mean(name: str, options: Iterable[str], otherwise: str | None = None, likeness: float = 0.6) -> str | None:
    """The fix for an unknown name: the likely one, or else `otherwise`."""
    meant = closest(name, options, likeness)
    return f"did you mean '{meant}'?" if meant else otherwise


def listed(words: Iterable[str], last: str = "or") -> str:
    """`a, b or c`"""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""
