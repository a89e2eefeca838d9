"""What other languages write (SQL MATCH_RECOGNIZE, Flink CEP, Esper), where it does not parse, and what it is here.

Takes: a text and the place of what does not fit. Gives: where the foreign words stand, and a fix. Never: parses.
"""

from __future__ import annotations

import re

SKIP = "write PREFIX INFIX for past the last event, FIRST PREFIX for past the first, UPTO x for to x"
ABSENT = "write NEXT, which passes no event; or WITHOUT Type x BETWEEN a AND b, in patterns of THEN and AND"
PHRASES: tuple[tuple[str, str], ...] = (
    (r"followed\s*by(\s*any)?\b", "write THEN; or NEXT, where none of the pattern's events may be between"),
    (r"after\s+match\b(\s+skip\b)?", SKIP.replace("write", "write DISPOSAL")),
    (r"skip\b(\s+(past|to)\b)?", SKIP),
    (r"partition\s+by\b", "write PER key"),
    (r"measures\b", "write EMIT Name(attribute = value, …)"),
    (r"define\b", "write the conditions in WHERE; or UNTIL after the run that one ends"),
    (r"(one\s+row|all\s+rows)\s+per\s+match\b", "leave it out: a relation is one row and lists all its events"),
    (r"greedy\b", "write LONGEST, or leave it out"),
    (r"reluctant\b", "write SHORTEST"),
    (r"not\s+(next|followed\s*by|then)\b", ABSENT),
    (r"within\s+[\d.]+\s+\w+\s+of\s+previous\b", "write it after the elements of the group, each of which may have one"),
)
"""Each at the word that does not fit, in any case."""
BEHIND: tuple[tuple[str, str, str], ...] = (
    (r"\bmatch\b((?!\bwhere\b)[^;])*$", r"->", "write THEN"),
    (r"[+*?}]\s*$", r"\?", "write SHORTEST after the run"),
    (r"\bpermute\s*$", r"\(", "write AND between elements: they come in any order"),
    (r"\bmatch\b[^;,]*[\w+*?})\]]\s*$", ",", "write NEXT, THEN or AND between elements"),
    (r"\buntil\b[^;()]*\b(and|or)\s+\w+\s*$", r"\.", "write the condition of UNTIL in parentheses"),
    (r"\)\s*$", r"\[", "write a quantifier after a group: (…){2}"),
    (r"\bwithin\s+[\d.]+\s+\w+\s*$", r"of\b", "write OF PREVIOUS, after an element; or WITHIN alone, for the whole pattern"),
    (r"(\b(match|next|then|and|or|else)\s+|\(\s*)\w+[+*?]\s*$", r"\w+", "write the quantifier after the alias: Type q+"),
)
"""What stands before that which does not fit, and this."""
ALTERNATIVES = "write ELSE between parts of a sequence, OR between whole patterns"
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
