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
FOREIGN = {"->": "THEN"}
"""What other languages write for a keyword."""
