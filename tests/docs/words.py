"""Phrases that the documentation does not use, each with the established word of the field.

A phrase is a regular expression over one paragraph of prose, in one line: a row of a table, an item of a list, a sentence of a
docstring, wherever its lines end. Code, between backticks or fences, does not count. It should be precise enough to have no
false alarm: better one that misses a case than one that somebody has to switch off.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

CODE = "`…`"
"""What stands for code within a line, so that a phrase can say "after code"."""

BEGINS = re.compile(r"\s*(?:[-*] |\d+\. |\||#|\w+:(?: |$)|\w+ = |--?\w)")
"""A line that does not belong to the paragraph before it: an item, a row, a heading, a key of YAML or TOML, an option."""

PHRASES: dict[str, str] = {
    # resuming and saving
    r"\b(?:go|goes|went|going) on\b": "resume, continue",
    r"\bput(?:s|ting)? (?:(?!input)\w+ ){0,3}(?:down|aside)\b|\bset(?:s|ting)? aside\b": "snapshot, save; skip",
    r"\bnow and then\b": "periodically",
    r"\bfor good\b": "permanently",
    # reporting
    r"\b(?:is|are|was|were|be|been|being) told\b|\btold (?:apart|with)\b": "is reported, is returned with",
    r"\btells? (?:\w+ ){0,3}apart\b": "distinguishes",
    r"\bfound out\b": "detected",
    # arriving
    r"\b(?:come|comes|came|coming) (?:late|again)\b": "late event; is redelivered, is repeated",
    r"\bwhat (?:comes|came)\b": "incoming events",
    r"\bas (?:they|it) comes?\b|\b(?:when|if) an event comes\b": "as it arrives",
    # persons
    r"\bwho(?:m|ever)\b": "subscribers that, publishers that",
    r"\bwho (?:has|have|publish\w*|reads?|subscribes?|needs?|wants?|opens?|extends?|cannot|waits?)\b": "a subscriber with, …",
    r"\b(?:those|everybody|everyone|anybody|nobody) who\b|\beverybody with\b": "all subscribers that",
    # what is allowed
    r"\bnot to be had\b": "is not supported",
    r"\bcannot be(?=\s*(?:[,.;:|()]|$))": "is invalid, is not supported",
    r"\bunless (?:it is )?(?:said|told|asked)\b": "default; unless you pass …",
    # numbers
    r"\b(?:an?|one) (?:[\w-]+ ){0,2}(?:stream|record|row|message|object|range|process|task|blob|event) an? "
    r"(?:type|line|name|event|relation|slice|task|block|point|second)\b": "one … per …",
    r"\bbytes an event\b|\b(?:ms|s|µs|microseconds) an? (?:event|block|row|task|batch)\b": "per event",
    r"\bonce an? (?:process|block|batch|stream|client|second|minute)\b(?! (?:is|has|was))": "once per …",
    # place
    r"\bbehind (?:it|them|that|this|what|which|its|their|others|rows|those|all|how|"
    r"the (?:argument|deadline|frontier|last|first|relation|event|block)s?)\b|"
    r"\bexactly behind\b": "after",
    # functions
    rf"{CODE} (?:gives?|takes?)\b(?! (?:\d|about|as long|up|over|time|longer|less|an? \w+ less))|"
    r"\| (?:gives|takes) \|": "returns, accepts",
    # errors
    r"(?<!injected )(?<!--)\bfaults?\b(?! injection)": "error, failure; fault injection injects an “injected fault”",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    # sentences of earlier editions
    r"\bwhat kernels found\b": "the kernel's matches",
    r"\bis full refuses\b": "publishing fails when the log is full",
    r"\btaken as it is\b": "is used unchanged",
    r"\bpromise only\b": "every row is tested",
    r"\bgoes when it goes\b": "stops with the command",
    r"\bif you can tell\b": "filter irrelevant rows first",
    r"\bwith its element then\b": "qualify it with its alias",
    r"\bhas no end to say\b": "is not supported on streams",
    r"\bbrings? (?:\w+ )?(?:\w+ )?along\b": "contains",
    r"\bleads? nowhere\b": "is not a valid path",
    r"\bwhere (?:one|it) (?:was|is) (?:ended|said)\b": "resumes from",
}
_PHRASES = [(re.compile(pattern, re.IGNORECASE | re.MULTILINE), better) for pattern, better in PHRASES.items()]


class Finding(NamedTuple):
    place: str
    phrase: str
    better: str

    def __str__(self) -> str:
        return f"{self.place}: “{self.phrase}”; better: {self.better}"


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs of a page, each in one line with the number of its first, without code and addresses of links."""
    fenced, started, first = False, list[str](), 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        if started and (fence or not line.strip() or BEGINS.match(line)):
            yield first, _without_code(" ".join(started))
            started = []
        fenced ^= fence
        if not fence and not fenced and line.strip():
            first = first if started else number
            started.append(line.strip())


def _without_code(paragraph: str) -> str:
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"``.*?``|`[^`]*`", CODE, paragraph))


def findings(text: str, page: str | Path, phrases: Sequence[tuple[re.Pattern[str], str]] = _PHRASES) -> list[Finding]:
    return [
        Finding(f"{page}:{number}", found[0], better)
        for number, line in (prose(text) if phrases else ())
        for pattern, better in phrases
        for found in pattern.finditer(line)
    ]


def source_prose(source: str) -> Iterator[tuple[int, str]]:
    """The paragraphs of a module's docstrings, comments and texts (a word alone is none), each in one line, with the number of
    its first line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from _paragraphs(enumerate(node.value.splitlines(), node.lineno))
    if "#" not in source:
        return
    comments = [each for each in tokenize.generate_tokens(io.StringIO(source).readline) if each.type == tokenize.COMMENT]
    for _, together in groupby(enumerate(comments), key=lambda each: _block(*each)):
        yield from _paragraphs((comment.start[0], comment.string.lstrip("# ")) for _, comment in together)


def _block(number: int, comment: tokenize.TokenInfo) -> tuple[bool, int]:
    """Equal for comments on consecutive lines of their own; a comment after code stands alone."""
    alone = comment.line.lstrip().startswith("#")
    return alone, comment.start[0] - number if alone else comment.start[0]


def _paragraphs(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for blank, together in groupby(lines, key=lambda line: not line[1].strip()):
        if not blank:
            numbers, texts = zip(*together, strict=True)
            yield numbers[0], " ".join(text.strip() for text in texts)


def source_findings(source: str, module: str | Path) -> list[Finding]:
    paragraphs = list(source_prose(source))
    everything = "\n\n".join(_without_code(text) for _, text in paragraphs)
    likely = [each for each in _PHRASES if each[0].search(everything)]  # few: paragraph by paragraph, all of them take a second
    return [
        Finding(f"{module}:{first}", found.phrase, found.better)
        for first, paragraph in paragraphs
        for found in findings(paragraph, module, likely)
    ]
