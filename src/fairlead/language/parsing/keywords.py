"""The keywords of the language, for messages about words that were probably meant as one. (What is read as a keyword says the
grammar; a test compares.)"""

from __future__ import annotations

CLAUSE_KEYWORDS = (
    "WHERE",
    "HAVING",
    "PER",
    "WITHIN",
    "WITHOUT",
    "MATCHING",
    "DISPOSAL",
    "EMIT",
    "KEEP",
    "LIMIT",
    "RETAIN",
    "AFTER",
)
"""The words with which a clause begins."""
ALL_KEYWORDS = (
    *(
        "TYPE",
        "EXTENDS",
        "TIME",
        "EVENT UNION",
        "TOPIC",
        "ORDER BY",
        "SUBSCRIPTION",
        "MATCH",
        "WHERE",
        "HAVING",
        "PER",
        "WITHIN",
        "MATCHING",
    ),
    *(
        "DISPOSAL",
        "LIMIT",
        "PER KEY",
        "EMIT",
        "WITHOUT",
        "AFTER",
        "CLOCK BY",
        "AND",
        "OR",
        "THEN",
        "AS",
        "OF",
        "IS",
        "IN",
        "BETWEEN",
        "BEFORE",
        "LIKE",
        "RLIKE",
        "NOT",
    ),
    *(
        "NULL",
        "TRUE",
        "FALSE",
        "FIRST",
        "RECENT",
        "CONTIGUOUS",
        "PREFIX",
        "INFIX",
        "POSTFIX",
        "DESC",
        "DELAY",
        "PER SOURCE",
        "IDLE",
    ),
    *("AHEAD", "LATE", "TAG", "REVISE", "KEEP", "CASE WHEN", "WHEN", "ELSE", "END", "DISTINCT"),
    *("ALL", "NONE", "ADVANCE", "UPTO", "LIMIT", "PER EVENT", "RETAIN", "BATCH", "TABLE", "KEY", "FROM"),
    *("NEXT", "UNTIL", "LONGEST", "SHORTEST", "STEPWISE", "PREVIOUS"),
)
"""In the order in which they are suggested, where several are equally likely."""
_SKIP = "write PREFIX INFIX for past the last event, FIRST PREFIX for past the first, UPTO x for to x"
_ABSENT = "write NEXT, which passes no event; or WITHOUT Type x BETWEEN a AND b, in patterns of THEN and AND"
PHRASES: tuple[tuple[str, str], ...] = (
    (r"followed\s*by(\s*any)?\b", "write THEN; or NEXT, where none of the pattern's events may be between"),
    (r"after\s+match\b(\s+skip\b)?", _SKIP.replace("write", "write DISPOSAL")),
    (r"skip\b(\s+(past|to)\b)?", _SKIP),
    (r"partition\s+by\b", "write PER key"),
    (r"measures\b", "write EMIT Name(attribute = value, …)"),
    (r"define\b", "write the conditions in WHERE; or UNTIL after the run that one ends"),
    (r"(one\s+row|all\s+rows)\s+per\s+match\b", "leave it out: a relation is one row and lists all its events"),
    (r"greedy\b", "write LONGEST, or leave it out"),
    (r"reluctant\b", "write SHORTEST"),
    (r"not\s+(next|followed\s*by|then)\b", _ABSENT),
    (r"within\s+[\d.]+\s+\w+\s+of\s+previous\b", "write it after the elements of the group, each of which may have one"),
)
"""What other languages write (SQL MATCH_RECOGNIZE, Flink CEP, Esper), at the word that does not fit, in any case; and a fix."""
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
