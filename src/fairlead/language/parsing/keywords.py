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
    "FOLD",
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
    *("AHEAD", "LATE", "TAG", "REVISE", "KEEP", "FOLD", "CASE WHEN", "WHEN", "ELSE", "END", "DISTINCT"),
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
    (r"group\s+by\b", "write PER key"),
    (r"select\b", "write SUBSCRIPTION name MATCH Type alias WHERE condition EMIT Name(attribute = value)"),
    (r"create\b", "leave it out"),
    (r"primary\s+key\b", "leave it out; the key of a subscription is in its PER"),
    (r"i_?like\b", "write lower(text) LIKE 'part%', or text RLIKE '(?i)part'"),
    (r"(contains|starts\s*_?with|ends\s*_?with)\b", "write LIKE '%part%', 'start%' or '%end'"),
    (r"//", "write -- before a comment"),
)
"""What other languages write (SQL, Flink CEP, Esper), at the word that does not fit, in any case; and a fix."""
_ABSENCE = "write WITHOUT Type x WITHIN 5 MINUTES OF a, or WITHOUT Type x BETWEEN a AND b, after the pattern"
_DURATION = "write the duration alone, without quotes: 5 MINUTES"
_NOT_A_CLAUSE = r"((?!\b(where|having|per|emit)\b)[^;])*"
BEHIND: tuple[tuple[str, str, str], ...] = (
    (r"\bmatch\b((?!\bwhere\b)[^;])*$", r"->", "write THEN"),
    (r"[+*?}]\s*$", r"\?", "write SHORTEST after the run"),
    (r"\bpermute\s*$", r"\(", "write AND between elements: they come in any order"),
    (r"\bemit\s+\w+\s*\(([^;]*,)?\s*\w+\s*$", r"[.,()\[:]", "name each attribute: id = o.id"),
    (rf"\bmatch\b{_NOT_A_CLAUSE}[\w+*?}})\]]\s*$", ",", "write NEXT, THEN or AND between elements"),
    (r"\buntil\b[^;()]*\b(and|or)\s+\w+\s*$", r"\.", "write the condition of UNTIL in parentheses"),
    (r"\w\s*\.\s*\w+\s*$", r"\[", "write element_at(o.lines, 1) for the first element of an ARRAY"),
    (r"\)\s*$", r"\[", "write a quantifier after a group: (…){2}"),
    (r"\bwithin\s+[\d.]+\s+\w+\s*$", r"of\b", "write OF PREVIOUS, after an element; or WITHIN alone, for the whole pattern"),
    (
        r"(\b(match|next|then|and|or|else)\s+|\(\s*)\w+\s*([+*?]|\{[\d,\s]*\}|\[\d+\])\s*$",
        r"\w+",
        "write the quantifier after the alias: Type q+",
    ),
    (r"\bgroup\s*$", r"by\b", "write PER key"),
    (rf"\bmatch\b{_NOT_A_CLAUSE}\b(and|then)\s*$", r"not\b", _ABSENCE),
    (r"\bmatch\s*$", r"not\b", _ABSENCE),
    (
        r"\btype\b((?!\b(subscription|match)\b)[^;])*$",
        r"not\s+null\b",
        "leave it out: an attribute can be NULL, except that of TIME",
    ),
    (r"\bmatch\s+every\s+\w+\s*$", r"\w+", "leave out EVERY: a subscription finds relation after relation"),
    (r"\bcount\s*\(\s*$", r"\*", "write count(x), where x is an element"),
    (r"\b(within|after|delay|idle|ahead)\s+[\d.]+\s*$", r"\w+|$", "write a unit of time after the number, such as SECONDS"),
    (r"\b(within|after|delay|idle|ahead)\s+$", r"interval\b|'\s*[\d.]+[^']*'", _DURATION),
    (r"\bsubscription\s+\w+\s*$", r"-", "use letters, digits and _ in a name"),
    (r"\bsubscription\s+\w+\s*$", r"(?!match\b)\w+(?=\s+match\b)", "write the name in one word, such as My_Rule"),
)
"""What stands before that which does not fit, and this."""
ALTERNATIVES = "write ELSE between parts of a sequence, OR between whole patterns"
FOREIGN_FUNCTIONS = {
    **dict.fromkeys(("lag", "previous"), "write prev(q.x), in WHERE of a sequence"),
    **dict.fromkeys(
        ("now", "current_timestamp", "getdate"), "rules know the times of events only: write WITHIN, AFTER or WITHOUT … WITHIN"
    ),
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff"), "subtract the times: b.at - a.at < 5 MINUTES"),
    **dict.fromkeys(("dateadd", "date_add"), "add a duration to a time: a.at + 5 MINUTES"),
    **dict.fromkeys(("if", "iif", "iff", "decode"), "write CASE WHEN condition THEN value ELSE other END"),
    **dict.fromkeys(("nvl", "ifnull"), "write coalesce(value, other)"),
    **dict.fromkeys(("len", "char_length"), "write length(text)"),
    **dict.fromkeys(("array_size", "cardinality", "array_length"), "write size(array)"),
    **dict.fromkeys(("contains", "list_contains", "has"), "write array_contains(array, value); of a text, LIKE '%part%'"),
    **dict.fromkeys(("get", "list_element", "array_get"), "write element_at(array, 1), where 1 is the first"),
    **dict.fromkeys(("collect_list", "array_agg", "list"), "write collect(q.x), in EMIT"),
    **dict.fromkeys(("to_date", "date"), "write cast(text AS DATE), or DATE '2024-05-01'"),
    **dict.fromkeys(("to_timestamp", "timestamp"), "write cast(text AS TIMESTAMP), or TIMESTAMP '2024-05-01T09:30:00Z'"),
}
"""What SQL dialects call functions, by their names, and what it is here."""
