"""Error messages for texts that do not parse, in plain words.

Takes: the parser's error. Gives: a `Fault` that names the word that does not fit, what would fit, and the keyword that was
probably meant. Never: mentions terminals, tokens or states.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from lark import Token, UnexpectedToken

from fairlead.language.parsing.fault import Fault, Span, closest, listed
from fairlead.language.parsing.foreign import foreign_words
from fairlead.language.parsing.keywords import ALL_KEYWORDS, ALTERNATIVES, CLAUSE_KEYWORDS

_EXPRESSION = frozenset({"NAME", "INT", "DECIMAL", "STRING", "TRUE", "FALSE", "NULL", "MINUS", "LPAR", "_CASE_WHEN"})
_CLAUSES = tuple(f"_{each}" for each in CLAUSE_KEYWORDS)
_STATEMENTS = ("_TYPE", "_EVENT_UNION", "_TOPIC", "_ORDER_BY", "_SUBSCRIPTION")
STATEMENT = "a statement (TYPE, EVENT UNION, TOPIC, ORDER BY, SUBSCRIPTION)"

GROUPS: tuple[tuple[frozenset[str], str], ...] = (
    (_EXPRESSION | {"NOT"}, "a condition"),
    (_EXPRESSION, "an expression"),
    (frozenset({"EQ", "ORDER", "LESS", "GREATER", "_IS", "_IN", "_BETWEEN", "_LIKE", "_RLIKE", "NOT"}), "a comparison"),
    (frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "PIPES"}), "an arithmetic sign"),
    (frozenset(_CLAUSES), f"a clause ({', '.join(CLAUSE_KEYWORDS)})"),
    (frozenset(_STATEMENTS), STATEMENT),
)
"""Sets of terminals with one name, the larger ones first."""

WORDS = {
    "NAME": "a name",
    "ANY": "a name",
    "INT": "a whole number",
    "DECIMAL": "a decimal number",
    "STRING": "a text in single quotes",
    "EQ": "'='",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "DOT": "'.'",
    "LESS": "'<'",
    "GREATER": "'>'",
}
SILENT = frozenset({"SEMICOLON", "_COLON", "$END", "LBRACE", "QUESTION", "STAR", "COMMENT", "SPACE"})
"""Terminals that are also possible but do not help in a message."""

_WORDS_OF_KEYWORDS = frozenset(word for each in ALL_KEYWORDS for word in each.split())
_BARS_BEFORE = re.compile(r"\|\|[^|<>=!']*$")
_LAST_WORD = re.compile(r"(\w+)\s*$")
_SIMPLE_CASE = re.compile(r"(?ai)\bCASE\b(?!\s+WHEN\b)(?P<operand>(?:(?!\b(?:WHEN|THEN|END|CASE)\b)[^;]){1,80}?)\bWHEN\b")
_TEXTS = re.compile(r"'(?>[^']+|'')*+'|--[^\n]*|/\*(?>[^*]+|\*(?!/))*+\*/")
_BLANKS = re.compile(r"\s+")
_CALL_IN_KEY = re.compile(
    rf"\bPER\b(?:(?!\b(?:{'|'.join(CLAUSE_KEYWORDS)}|MATCH)\b)[^;])*?[\s,=](\w+)\s*\(\s*\w+(?:\s*\.\s*\w+)?\s*(?:,[^,;()]*)?$",
    re.IGNORECASE,
)
"""Up to the word that does not fit: a function in PER that is not `bucket(at, 1 HOUR)`."""
INCOMPLETE = {
    "TOPIC": ("needs a name and types", "write TOPIC name (Type, …)"),
    "TABLE": ("needs a name, a key and a type", "write TABLE name KEY (attribute, …) FROM Type"),
    "RETAIN": ("needs an element and a bound", "write RETAIN x 10 EVENTS or RETAIN x 5 MINUTES, where x is an element"),
    "LIMIT": ("needs a whole number", "write LIMIT 10"),
    "FOLD": ("needs the name of a run", "write FOLD q, where q is a run, such as q+"),
    "KEEP": ("needs the name of an element", "write KEEP x"),
    "NEXT": ("needs an element after it", "write NEXT Type alias, such as NEXT Quote q"),
    "UNTIL": ("needs a condition", "write UNTIL q.x > 5, after a run"),
}
"""Words that are keywords only with what follows them: what is missing where they stand alone."""
CHARACTERS = {
    "|": ALTERNATIVES,
    "#": "write -- before a comment",
}
"""What is meant by a character that is not part of the language."""
NEAR = 120
"""Characters around a word that does not fit in which its cause is looked for."""
CERTAIN = 0.7
"""How similar an accepted name and a keyword must be for the name to count as misspelt: WHRE is 0.89 WHERE, `other` 0.6 PER."""


def of_token(text: str, error: UnexpectedToken) -> Fault:
    token = error.token
    expected = frozenset(error.accepts or error.expected)
    if token.type == "$END":
        return _at_end(text, expected)
    span = Span(token.start_pos or 0, token.end_pos or 0)
    for at in (span.start, span.start - 1):  # the slash before it may have been read as a division
        if text.startswith("/*", max(0, at)):
            return _open_comment(at)
    fault = _simple_case(text, span) or _unclosed_text(text, span) or _call_in_key(text, span)
    if fault is not None:
        return fault
    foreign = foreign_words(text, span.start)
    if foreign is not None:
        end, fix = foreign
        return Fault("L001", Span(span.start, end), f"'{_BLANKS.sub(' ', text[span.start : end])}' is not expected here", fix)
    return _misspelt(text, token, span, expected) or Fault("L001", span, _problem(token), _fix(text, token, span, expected))


def of_character(text: str, at: int) -> Fault:
    character, span = text[at], Span(at, at + 1)
    if text.startswith("/*", at):
        return _open_comment(at)
    if character == "'":
        end = text.find("\n", at)
        return Fault("L002", Span(at, len(text) if end < 0 else end), "this text has no closing quote", "add ' at its end")
    if character in '"`“”‘’':
        return Fault("L002", span, f"{character} does not start a text", "write text in single quotes: '…'")
    if text.startswith("::", at):
        return Fault("L002", Span(at, at + 2), "'::' is not an operator of the language", "write cast(… AS type)")
    if text.startswith("&&", at):
        return Fault("L002", Span(at, at + 2), "'&&' is not an operator of the language", "write AND")
    foreign = foreign_words(text, at)
    fix = foreign[1] if foreign else CHARACTERS.get(character, "remove it")
    return Fault("L002", span, f"{character!r} is not a character of the language", fix)


def _simple_case(text: str, span: Span) -> Fault | None:
    """`CASE x WHEN 1 THEN …`, where the word that does not fit is x, or comes after it."""
    for found in _SIMPLE_CASE.finditer(text, max(0, span.start - NEAR), span.start + NEAR):
        if found.start() <= span.start <= found.end() + 1:
            compared = _BLANKS.sub(" ", found["operand"].strip())
            fix = f"write CASE WHEN {compared} = … THEN … WHEN {compared} = … THEN … END"
            return Fault("L001", Span(found.start(), found.start() + 4), "CASE needs a condition after each WHEN", fix)
    return None


def _call_in_key(text: str, span: Span) -> Fault | None:
    """`PER bucket(at)`, `PER hour(at)`, where the bracket after it does not fit."""
    start = max(0, span.start - NEAR)
    found = _CALL_IN_KEY.search(text[start : span.start])
    if found is None or text[span.start] != ")":
        return None
    place = Span(start + found.start(1), start + found.end(1))
    if found[1].lower() == "bucket":
        return Fault("L001", place, "bucket() needs an attribute and a duration", "write bucket(at, 1 HOUR)")
    return Fault(
        "L001", place, f"{found[1]}() cannot be part of a key", "write bucket(at, 1 HOUR), or the name of an attribute"
    )


def _unclosed_text(text: str, span: Span) -> Fault | None:
    """A text that ends directly before the word that does not fit has a quote inside it. One over several lines lacks its
    closing quote, and ends where the next text begins."""
    for found in _TEXTS.finditer(text, 0, span.end):
        begin, end = found.span()
        if found[0][0] != "'" or span.start not in (begin, end):
            continue
        if "\n" not in found[0] and end == span.start:
            return Fault(
                "L001", span, f"'{text[span.start : span.end][:40]}' is not expected here", "write '' for a quote in a text"
            )
        if "\n" in found[0]:
            line = text.count("\n", 0, end) + 1
            problem = f"this text ends on line {line}, before '{text[end : end + 20].split(chr(10))[0]}': is a quote missing?"
            return Fault("L002", Span(begin, text.index("\n", begin)), problem, "add ' where the text ends")
    return None


def _open_comment(at: int) -> Fault:
    return Fault("L002", Span(at, at + 2), "this comment has no end", "close it with */")


def _at_end(text: str, expected: frozenset[str]) -> Fault:
    end = len(text.rstrip())
    foreign = foreign_words(text, end)
    fix = foreign[1] if foreign else f"continue with {_listed(expected)}"
    return Fault("L001", Span(end, end + 1), "the text ends too early", fix)


def _misspelt(text: str, token: Token, span: Span, expected: frozenset[str]) -> Fault | None:
    """A misspelt keyword: the word itself, or the one before it, which the parser read as an alias."""
    before = _LAST_WORD.search(text, max(0, span.start - 80), span.start)
    if before and _upper(before[1]) not in _WORDS_OF_KEYWORDS:
        meant = closest(before[1], ALL_KEYWORDS)
        if meant and _alike(before[1].upper(), meant) >= CERTAIN:
            return Fault("L001", Span(*before.span(1)), f"'{before[1]}' is not expected here", f"did you mean {meant}?")
    keywords = [_keyword(each) for each in sorted(expected) if _is_keyword(each)]
    meant = closest(str(token), keywords) if token.type in ("NAME", "ANY") and len(token) > 1 else None
    if meant == _upper(token):  # these are keywords only with what follows them
        problem, fix = INCOMPLETE.get(
            meant, ("needs something else after it", f"write {meant} as the language has it, or another name")
        )
        return Fault("L001", span, f"'{token}' {problem}", fix)
    if meant:
        return Fault("L001", span, f"'{token}' is not expected here", f"did you mean {meant}?")
    return None


def _upper(word: str) -> str:
    """Only ASCII letters have two cases in keywords."""
    return word.upper() if word.isascii() else word


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _problem(token: Token) -> str:
    return f"'{token[:40]}' is not expected here"


def _fix(text: str, token: Token, span: Span, expected: frozenset[str]) -> str:
    if token.type in ("EQ", "ORDER", "LESS", "GREATER") and "_AND" in expected:
        if _BARS_BEFORE.search(text, max(0, span.start - 200), span.start):
            return "|| joins texts; write OR between conditions"
        return "comparisons do not chain; join two of them with AND"
    if expected - SILENT == {"NAME"} and _is_keyword(token.type):
        return f"write a name; {_upper(token)} is a word of the language"
    return f"write {_listed(expected)}"


def _listed(expected: frozenset[str]) -> str:
    left = set(expected) - SILENT - ({"PLUS"} if "LBRACE" in expected else set())  # quantifiers are not available
    words: list[str] = []
    for group, name in GROUPS:
        if group <= left:
            words.append(name)
            left -= group
    words += [WORDS[each] for each in WORDS if each in left]
    words += sorted(_keyword(each) for each in left if _is_keyword(each))
    return listed(words) if words else STATEMENT


def _is_keyword(terminal: str) -> bool:
    return _keyword(terminal) in ALL_KEYWORDS


def _keyword(terminal: str) -> str:
    return terminal.lstrip("_").replace("_", " ")
