"""What other languages write (SQL MATCH_RECOGNIZE, Flink CEP, Esper), where it does not parse, and what it is here.

Takes: a text and the place of what does not fit. Gives: where the foreign words stand, and a fix. Never: parses.
"""

from __future__ import annotations

import re

from fairlead.language.parsing.keywords import BEHIND, PHRASES

BEFORE = 2000
"""Characters before it that are looked at."""

_IN_ANY_CASE = re.IGNORECASE | re.ASCII
_PHRASES = tuple((re.compile(words, _IN_ANY_CASE), fix) for words, fix in PHRASES)
_BEHIND = tuple((re.compile(one, _IN_ANY_CASE), re.compile(two, _IN_ANY_CASE), fix) for one, two, fix in BEHIND)


def foreign_words(text: str, at: int) -> tuple[int, str] | None:
    """Of those that begin here: where they end, and the fix."""
    for words, fix in _PHRASES:
        found = words.match(text, at)
        if found:
            return found.end(), fix
    before = text[max(0, at - BEFORE) : at]
    for behind, words, fix in _BEHIND:
        found = words.match(text, at)
        if found and behind.search(before):
            return found.end(), fix
    return None
