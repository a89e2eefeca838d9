"""The rule text as users see it: spans of characters with their lines and columns.

Takes: the text and the name of its file. Gives: places, excerpts, and a complete LanguageError for a `Fault`.
Never: parses.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.errors import LanguageError, Place
from fairlead.language.parsing.fault import Fault, Span

EXCERPT_CHARACTERS_MAX = 240
"""Nobody writes lines longer than this; past this column the excerpt and its caret are omitted."""

_BETWEEN_WORDS = re.compile(r"('(?>[^']+|'')*+')|(?:--[^\n]*|/\*.*?\*/|\s+)++", re.DOTALL)


@dataclass(frozen=True)
class RuleText:
    text: str
    file: str | None = None

    def place(self, span: Span) -> Place:
        """Line and column of a span; its width stops at the end of the line."""
        line_start, line_end = self._line(span.start)
        width = max(1, min(span.end, line_end) - span.start)
        return Place(bisect_left(self._line_ends, span.start) + 1, span.start - line_start + 1, width, self.file)

    def excerpt(self, span: Span) -> str | None:
        """The line in which a span begins, with each tab as one space so that the caret is under its column."""
        line_start, line_end = self._line(span.start)
        if span.start - line_start > EXCERPT_CHARACTERS_MAX:
            return None
        return self.text[line_start:line_end].rstrip("\r")[:EXCERPT_CHARACTERS_MAX].replace("\t", " ")

    def error(self, fault: Fault) -> LanguageError:
        return LanguageError(fault.code, fault.problem, fault.fix, self.place(fault.span), self.excerpt(fault.span))

    def shown(self, span: Span) -> str:
        """The text of a span on one line, without comments; a line break within a text is shown as \\n."""
        found = self.text[span.start : span.end]
        return _BETWEEN_WORDS.sub(lambda each: (each[1] or " ").replace("\n", "\\n"), found).strip()

    @cached_property
    def _line_ends(self) -> list[int]:
        """The ends of the lines: every subscription of a long text can have a warning, and each needs its line."""
        return [found.start() for found in re.finditer("\n", self.text)]

    def _line(self, at: int) -> tuple[int, int]:
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        return start, len(self.text) if end < 0 else end
